"""Rounding or a bug: the statistic, the controls, the replay, and the verdict on honest runs and on planted bugs."""

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import numpy_rnn
from numpy_rnn.training import NUMPY, STAGES, Loop
from parity_tests.mutations.curves import ADAM, BUGS, AdadeltaEpsOutside, Bug, with_optimizer
from torch_rnn import compare_curves
from torch_rnn.curves import calibrate
from torch_rnn.curves.calibrate import draw, held_apart, measure, verdict_of
from torch_rnn.curves.runs import NUMPY_SIDE, SIDES, TORCH_SIDE, Run, Settings, Side
from torch_rnn.curves.stages import CONTROLS, Row, first_fault, replay
from torch_rnn.curves.statistic import Evidence, gather, largest_of_last
from torch_rnn.curves.verdict import BUG, OPEN, ROUNDING, Verdict, judge
from torch_rnn.tolerances import CURVES, STAGE
from torch_rnn.twins import twin

SMALL: dict[str, Any] = {
    "task": "sunspots",
    "cell": "rnn",
    "hidden": 4,
    "layers": 1,
    "window": 30,
    "carry": "detach",
    "optimizer": "adam",
    "lr": 0.01,
    "clip": None,
    "epochs": 2,
    "dtype": "float64",
    "seed": 3,
}


def judged(sides: tuple[Side, Side] = SIDES, **changes: Any) -> Verdict:
    run = Run(Settings(**{**SMALL, **changes}), sides)
    for _ in run.train():
        pass
    return judge(run)


# Verdicts


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_called_not_rounding_and_its_stage_is_named(bug: Bug) -> None:
    verdict = judged(bug.sides, **bug.settings)
    assert verdict.outcome == BUG, verdict.sentence()
    assert verdict.fault is not None
    assert (verdict.fault.stage, bug.tensor in verdict.fault.tensor) == (bug.stage, True), verdict.sentence()
    assert verdict.fault.step <= verdict.shown_at <= verdict.fault.step + 2
    assert verdict.sentence().startswith(f"Not rounding: at step {verdict.shown_at} the curves differ by ")
    assert f"step {verdict.fault.step}, stage {bug.stage}: " in verdict.sentence()


@pytest.mark.parametrize("number", range(0, 100, 9))
def test_an_honest_run_is_called_rounding(number: int) -> None:
    """Every ninth of the 100 of ``python -m torch_rnn.curves.calibrate --honest``."""
    settings, steps = held_apart()[number]
    verdict = verdict_of(settings, min(steps, 24))
    assert verdict.outcome == ROUNDING, f"{settings}: {verdict.sentence()}"


def test_the_settings_held_apart_are_none_of_the_calibrations() -> None:
    drawn = [draw(np.random.default_rng([0, i]))[0] for i in range(300)]
    apart = [settings for settings, _ in held_apart()]
    assert len(apart) == 100
    series = [s for s in apart if s.task in ("sine", "sunspots")]
    assert {s.hidden for s in series} & {s.hidden for s in drawn} == set()
    assert {s.task for s in apart} - {s.task for s in drawn} == {"article", "adding", "copy", "text"}
    for name in ("cell", "dtypes", "optimizer", "carry"):
        assert len({getattr(s, name) for s in apart}) >= 3, name


def test_a_setting_of_the_calibration_stays_below_the_thresholds() -> None:
    measured = measure(*draw(np.random.default_rng([0, 1])))
    assert all(value < CURVES[n] for n, values in measured["statistics"].items() for value in values)
    assert measured["excess"] < STAGE


@pytest.fixture
def no_processes(monkeypatch):
    """A thread stands in for the processes: what is run in them is the same, and is seen by the coverage."""
    monkeypatch.setattr(calibrate, "ProcessPoolExecutor", lambda workers, **options: ThreadPoolExecutor(1))


def test_the_calibration_prints_what_honest_pairs_give(no_processes, monkeypatch, capsys) -> None:
    seen = []

    def briefly(settings: Settings, steps: int) -> dict[str, Any]:
        seen.append((settings, steps))
        if len(seen) == 1:
            return measure(dataclasses.replace(settings, epochs=1), 2)
        return {"statistics": {n: [-0.5, -0.4] for n in CURVES}, "excess": -0.1 * len(seen)}

    monkeypatch.setattr(calibrate, "measure", briefly)
    assert calibrate.main(["--settings", "100", "--seed", "7"]) == 0
    assert seen == [draw(np.random.default_rng([7, i])) for i in range(100)]
    out, err = capsys.readouterr()
    assert err == "100 of 100\n"
    *curves, stages = out.splitlines()
    assert [line.partition(":")[0] for line in curves] == [f"controls {n}, 203 pairs" for n in sorted(CURVES)]
    assert all(f"above {CURVES[n]}: 0, by the tail" in line for n, line in zip(sorted(CURVES), curves, strict=True))
    assert stages.startswith("stages, 100 steps: median -5.")
    assert f"above {STAGE}: 0" in stages


def test_the_calibration_judges_the_settings_held_apart(no_processes, monkeypatch, capsys) -> None:
    chosen = [(settings, min(steps, 4)) for settings, steps in held_apart(2)]
    monkeypatch.setattr(calibrate, "held_apart", lambda: chosen)
    assert calibrate.main(["--honest"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == f"2 {ROUNDING}, 0 {BUG}, 0 {OPEN}"
    for line, (settings, steps) in zip(lines, chosen, strict=True):
        assert line.startswith(ROUNDING)
        assert line.endswith(f"{steps} steps: {calibrate.describe(settings)}")
    open_verdict = Verdict(OPEN, 4, None, None, reason="the loss is not finite")
    monkeypatch.setattr(calibrate, "verdict_of", lambda *given: open_verdict)
    assert calibrate.main(["--honest"]) == 1
    assert "    Cannot tell: the loss is not finite.\n" in capsys.readouterr().out


def test_float32_against_float64_is_rounding_and_a_bug_between_them_is_seen() -> None:
    verdict = judged(dtype="float32", torch_dtype="float64", epochs=4)
    assert verdict.outcome == ROUNDING, verdict.sentence()
    assert verdict.evidence is not None
    assert verdict.evidence.difference.max() > 1e-9  # it is float32 on one side
    wrong = dataclasses.replace(NUMPY_SIDE, backend=with_optimizer("adadelta", AdadeltaEpsOutside))
    found = judged((wrong, TORCH_SIDE), dtype="float32", torch_dtype="float64", optimizer="adadelta", lr=1.0)
    assert found.outcome == BUG, found.sentence()
    assert found.fault is not None
    assert found.fault.stage == "update"


@pytest.mark.parametrize(
    ("changes", "because", "remedy"),
    [
        ({"controls": 0}, "without control runs", "--controls 4"),
        ({"carry": "full", "epochs": 1}, "one step shows the first loss alone", "--epochs"),
        ({"cell": "rnn-relu", "optimizer": "sgd", "lr": 1e200}, "with finite losses", "--lr"),
    ],
    ids=["no controls", "one step", "not finite"],
)
def test_it_cannot_tell_and_says_what_would(changes: dict[str, Any], because: str, remedy: str) -> None:
    verdict = judged(**changes)
    assert verdict.outcome == OPEN
    assert verdict.sentence().startswith("Cannot tell: ")
    assert because in verdict.reason
    assert remedy in verdict.reason


def test_it_cannot_tell_where_rounding_hides_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CURVES, 4, 14.0)  # as if rounding moved the curves by a percent of the loss
    verdict = judged()
    assert verdict.outcome == OPEN
    assert "could be seen; --controls 8" in verdict.reason
    assert "float64" in judged(dtype="float32").reason


def test_a_difference_that_no_stage_explains_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CURVES, 4, -5.0)  # a false alarm
    verdict = judged()
    assert verdict.outcome == OPEN
    assert "no stage of any step" in verdict.reason


# Numbers that are not finite


def test_a_run_stops_where_a_loss_is_not_finite_and_names_the_first_tensor() -> None:
    run = Run(Settings(**{**SMALL, "cell": "rnn-relu", "optimizer": "sgd", "lr": 1e200}))
    pairs = list(run.train())
    assert not math.isfinite(pairs[-1][0].loss)
    assert all(math.isfinite(record.loss) for pair in pairs[:-1] for record in pair)
    assert len(pairs) < run.total
    verdict = judge(run)
    assert verdict.stopped == pairs[-1]
    assert [place.side for place in verdict.not_finite] == ["numpy", "torch"]
    assert all((p.step, p.stage) == (pairs[-1][0].step, "forward") for p in verdict.not_finite), verdict.sentence()


def test_the_first_tensor_that_is_not_finite_on_one_side_alone() -> None:
    class Breaks(Loop):
        def clip_gradients(self) -> float:
            norm = super().clip_gradients()
            if self.position == 4:
                next(p for n, p in self.model.named_parameters() if n == "linear.bias").grad.data[:] = math.nan
            return norm

    verdict = judged((dataclasses.replace(NUMPY_SIDE, loop=Breaks), TORCH_SIDE))
    (place,) = verdict.not_finite
    assert (place.step, place.side, place.stage, place.tensor) == (5, "numpy", "clip", "d linear.bias")
    assert verdict.stopped is not None
    assert verdict.stopped[0].step == 6
    assert math.isfinite(verdict.stopped[1].loss)


# Replay


def test_the_replay_shows_every_stage_in_order_and_honest_sides_agree() -> None:
    run = Run(Settings(**{**SMALL, "clip": 0.1, "cell": "lstm"}))
    rows = [row for step in replay(run, 2, 3) for row in step]
    assert list(dict.fromkeys(row.stage for row in rows)) == list(STAGES)
    assert {row.step for row in rows} == {2, 3}
    assert max(row.excess for row in rows) < STAGE
    names = {(row.stage, row.tensor) for row in rows}
    assert {("state in", "c"), ("forward", "output of window 2"), ("loss", "loss")} <= names
    assert {("gradients", "d rnn.weight_hh_l0"), ("clip", "total norm"), ("state out", "h.requires_grad")} <= names
    assert {
        ("update", "change of linear.bias"),
        ("update", "exp_avg of linear.bias"),
        ("update", "lr of group 0"),
    } <= names
    assert not any(row.difference for row in rows if row.stage == "state in")


def test_a_fault_that_shows_late_is_found_where_it_lies() -> None:
    class Late(numpy_rnn.Adam):
        def _update(self, p: Any, g: Any, state: Any, group: Any) -> None:
            super()._update(p, g, state, group)
            if state["step"] == 2:
                p *= 1 + 1e-9

    run = Run(Settings(**SMALL), (dataclasses.replace(NUMPY_SIDE, backend=with_optimizer("adam", Late)), TORCH_SIDE))
    fault = first_fault(run, 9, STAGE)
    assert fault is not None
    assert (fault.step, fault.stage) == (2, "update")
    assert first_fault(Run(Settings(**SMALL)), 9, STAGE) is None


# Controls and the statistic


def test_controls_start_one_unit_in_the_last_place_away_on_both_sides_alike() -> None:
    run = Run(Settings(**{**SMALL, "dtype": "float32", "torch_dtype": "float64", "controls": 2}))
    ours, theirs = ([list(loop.weights().values()) for loop in loops] for loops in run.loops)
    for i in range(3):
        for a, b in zip(ours[i], theirs[i], strict=True):
            assert (a.dtype, b.dtype) == (np.float32, np.float64)
            assert_array_equal(a, b)
    for control in ours[1:]:
        for moved, w in zip(control, ours[0], strict=True):
            assert_array_equal(np.abs(moved.view(np.int32) - w.view(np.int32)), 1)
    assert any((a != b).any() for a, b in zip(ours[1], ours[2], strict=True))


def test_the_statistic_by_hand() -> None:
    ours = np.array([[1.0, 1.0 + 1e-10, 1.0 - 3e-10], [0.5, 0.5 + 2e-10, 0.5]])
    theirs = np.array([[1.0 + 4e-10, 1.0 + 4e-10, 1.0 + 4e-10], [0.5, 0.5, 0.5]])
    evidence = gather(ours, theirs, "float64")
    assert_allclose(evidence.difference, 4e-10, rtol=1e-6)
    assert_allclose(evidence.rounding, np.array([math.sqrt(5), math.sqrt(6.5)]) * 1e-10, rtol=1e-6)
    assert_allclose(evidence.statistic, math.log10(4 / math.sqrt(5)), rtol=1e-6)
    assert evidence.first_above(0.0) == 1
    assert evidence.first_above(1.0) is None


def test_the_floor_where_the_controls_coincide() -> None:
    flat = np.full((30, 3), 0.5)
    evidence = gather(flat, flat, "float64")
    assert (evidence.statistic, evidence.first_apart(), evidence.growth()) == (-math.inf, None, None)
    one_unit = gather(flat, flat + np.spacing(0.5) * np.array([1, 1, 1]), "float64")
    assert -1 < one_unit.statistic < 0
    assert gather(flat, flat * (1 + 1e-13), "float64").statistic > CURVES[2]
    assert gather(flat, flat * (1 + 1e-13), "float32").statistic < 0
    assert gather(flat * 0, flat * 0, "float64").statistic == -math.inf


def test_growth_and_separation_by_construction() -> None:
    steps = np.arange(1, 121)
    base, grown = np.ones(120), 1e-12 * 1.25**steps
    losses = np.stack([base, base + 0.5 * grown, base - 2 * grown], axis=1)
    evidence = gather(losses, losses + grown[:, None], "float64")
    assert evidence.first_apart() == 1 + int(np.argmax(grown > 0.01 * (1 + grown)))
    assert_allclose(evidence.growth(), 1.25, rtol=1e-3)
    assert evidence.statistic < 0.3  # the controls grow alike


def test_the_largest_of_the_last_steps_by_its_definition() -> None:
    for steps in (1, 9, 10, 11, 100, 333):
        x = np.random.default_rng(steps).random((steps, 2))
        expected = [x[max(0, t + 1 - max(10, (t + 1) // 8)) : t + 1].max(axis=0) for t in range(steps)]
        assert_array_equal(largest_of_last(x), expected)


def test_controls_that_are_not_finite_are_infinitely_far_off() -> None:
    ours = np.ones((3, 2))
    theirs = ours.copy()
    theirs[1:, 1] = math.nan
    evidence = gather(ours, theirs, "float64")
    assert np.isfinite(evidence.rounding[0])
    assert np.isinf(evidence.rounding[1:]).all()
    theirs[2, 0] = math.inf
    assert len(gather(ours, theirs, "float64").difference) == 2
    with pytest.raises(ValueError, match=r"\(steps, 1 \+ N\), N at least 1, got \(3, 1\)"):
        gather(ours[:, :1], theirs, "float64")


def test_the_smallest_bug_that_would_be_seen() -> None:
    evidence = Evidence(np.zeros(3), np.array([1e-9, 2e-9, 4e-9]), np.array([1.0, 1.0, 8.0]), 4)
    assert evidence.smallest_seen(1.0) == (3, pytest.approx(5e-9))
    assert Evidence(np.zeros(1), np.ones(1), np.ones(1), 4).smallest_seen(1.0) is None


def test_the_sentence_of_a_run_too_short_for_all_that_it_could_say() -> None:
    one = Evidence(np.full(1, 1e-9), np.full(1, 1e-9), np.ones(1), 4)
    sentence = Verdict(ROUNDING, 1, 1.0, one).sentence()
    assert sentence.startswith("Rounding: at each of 1 steps")
    assert "would have been seen" not in sentence
    steps = 1e-12 * 1.25 ** np.arange(1, 121)
    apart = Evidence(steps, steps, np.ones(120), 4)
    assert f" They separate, by 1 % of the loss, at step {apart.first_apart()}." in (
        Verdict(ROUNDING, 120, 1.0, apart).sentence()
    )
    assert (
        Row(1, "loss", "loss", 0.0, 0.0, 1e-9, 0.0).sentence().endswith("differs by 0.0e+00; rounding explains 1.0e-09")
    )
    with pytest.raises(ValueError, match="run must have made at least one step, got none"):
        judge(Run(Settings(**SMALL)))


# The options of a run


@pytest.mark.parametrize("optimizer", [name for name in NUMPY.optimizers if name not in ("adam", "adadelta", "sgd")])
def test_every_optimizer_runs_on_both_sides(optimizer: str) -> None:
    assert judged(optimizer=optimizer, epochs=1, controls=1).outcome == ROUNDING


@pytest.mark.parametrize(
    ("schedule", "settings"),
    [
        ("steplr", {"step_size": 1, "gamma": 0.5}),
        ("exponentiallr", {"gamma": 0.9}),
        ("cosineannealinglr", {"T_max": 3}),
        ("reducelronplateau", {"patience": 0, "threshold": 0.9}),
    ],
)
def test_every_schedule_changes_the_rate_on_both_sides(schedule: str, settings: dict[str, Any]) -> None:
    run = Run(Settings(**SMALL | {"epochs": 3, "controls": 1, "schedule": schedule, "schedule_settings": settings}))
    list(run.train())
    ours, theirs = (float(loops[0].optimizer.param_groups[0]["lr"]) for loops in run.loops)
    assert ours < 0.01
    assert_allclose(ours, theirs, rtol=1e-15)
    assert judge(run).outcome == ROUNDING


def test_dropout_has_the_same_masks_on_both_sides_and_in_every_control() -> None:
    changes = {"layers": 2, "dropout": 0.5, "cell": "gru", "controls": 2}
    run = Run(Settings(**{**SMALL, **changes}))
    list(run.train())
    assert judge(run).outcome == ROUNDING
    without = Run(Settings(**{**SMALL, **changes, "dropout": 0.0}))
    list(without.train())
    assert (np.abs(run.losses(0) - without.losses(0)) > 1e-6).all()
    assert_allclose(run.losses(0)[:, 1:], run.losses(0)[:, :1].repeat(2, axis=1), rtol=1e-10)
    headless = {**SMALL, **changes, "task": "article", "hidden": 1, "window": 1}
    assert len(list(Run(Settings(**headless)).train())) == 10
    with pytest.raises(ValueError, match="dropout must be 0 with one layer"):
        Run(Settings(**{**SMALL, "dropout": 0.5}))


@pytest.mark.parametrize("task", ["adding", "copy", "text", "sine"])
def test_a_task_at_its_defaults_gets_below_its_target(task: str) -> None:
    """One backend alone would do, so there are no controls."""
    comparison = compare_curves(task, controls=0)
    for ours, theirs in comparison.scores:
        assert ours.target is not None
        assert max(ours.error, theirs.error) < ours.target < ours.baseline


# compare_curves


def test_compare_curves_holds_the_arrays_and_shows_itself() -> None:
    seen: list[int] = []
    comparison = compare_curves(
        "sine", hidden=3, window=50, epochs=2, controls=3, progress=lambda ours, theirs: seen.append(ours.step)
    )
    assert seen == list(range(1, 9))
    assert comparison.settings.optimizer == "adadelta"
    assert_array_equal(comparison.numpy_loss, [ours.loss for ours, _ in comparison.run.pairs])
    assert_array_equal(comparison.torch_loss, [theirs.loss for _, theirs in comparison.run.pairs])
    assert comparison.numpy_controls.shape == comparison.torch_controls.shape == (8, 3)
    assert repr(comparison) == f"<Comparison: {comparison.verdict.sentence()}>"
    assert len(comparison.plot().axes) == 2
    page = comparison._repr_html_()
    assert page.startswith("<p>Rounding: ")
    assert 'src="data:image/png;base64,iVBOR' in page


def test_compare_curves_judges_a_side_of_ones_own_and_refuses_what_it_does_not_know() -> None:
    bug = BUGS[0]
    assert compare_curves("sine", sides=bug.sides, hidden=3, epochs=1, controls=1, **ADAM).verdict.outcome == BUG
    with pytest.raises(ValueError, match=r"settings must be some of bidirectional, carry, cell, .*, got hiden"):
        compare_curves("sine", hiden=3)


def test_every_number_of_controls_has_its_threshold() -> None:
    assert sorted(CURVES) == [1, 2, 3, 4]
    assert judged(controls=6, epochs=1).threshold == CURVES[4]
    assert CONTROLS >= 2


def other_side(loop=Loop, model=twin):
    return (NUMPY_SIDE, replace(TORCH_SIDE, loop=loop, model=model))


TINY = {"hidden": 3, "window": 50, "epochs": 3, "controls": 2}


def test_other_initial_weights_are_named():
    def transposed(module):
        model = twin(module)
        with torch.no_grad():
            model.rnn.weight_hh_l0.copy_(model.rnn.weight_hh_l0.T.clone())
        return model

    verdict = compare_curves("sine", sides=other_side(model=transposed), **TINY).verdict
    assert verdict.outcome == BUG
    assert (verdict.fault.step, verdict.fault.stage, verdict.fault.tensor) == (1, "state in", "rnn.weight_hh_l0")
    assert "The two sides start from other weights: step 1, stage state in: rnn.weight_hh_l0" in verdict.sentence()


def test_a_loss_that_is_infinite_on_one_side_alone_is_a_bug():
    class Spoilt(Loop):
        def clip_gradients(self):
            norm = super().clip_gradients()
            if self.position == 4:
                next(iter(self.model.parameters())).grad.mul_(float("nan"))
            return norm

    verdict = compare_curves("sine", sides=other_side(Spoilt), **TINY).verdict
    assert (verdict.outcome, verdict.fault.step, verdict.fault.stage) == (BUG, 5, "clip")
    assert "Not rounding: at step 6 one loss is finite and the other is not." in verdict.sentence()


def test_a_wrong_last_update_shows_though_no_loss_comes_after_it():
    class NoLastStep(Loop):
        def clip_gradients(self):
            norm = super().clip_gradients()
            if self.position == self.total - 1:
                for parameter in self.model.parameters():
                    parameter.grad.zero_()
            return norm

    verdict = compare_curves("sine", sides=other_side(NoLastStep), **TINY).verdict
    assert (verdict.outcome, verdict.fault.step, verdict.fault.stage) == (BUG, 12, "clip")
    assert "the weights at the end are far apart" in verdict.sentence()


def test_tensors_of_other_shapes_are_a_fault():
    class Shorter(Loop):
        def step(self, watch=None):
            def shorter(stage, read):
                if watch is not None:
                    cut = stage == "forward"
                    watch(stage, lambda: {k: v[:-1] if cut else v for k, v in read().items()})

            return super().step(shorter)

        def shares(self, lengths):
            return [1.001 * share for share in super().shares(lengths)]

    verdict = compare_curves("sine", sides=other_side(Shorter), **TINY).verdict
    assert (verdict.outcome, verdict.fault.stage) == (BUG, "forward")
    assert "of shape (50, 1, 1) against (49, 1, 1)," in verdict.fault.tensor


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"controls": -1}, "controls must be a whole number of at least 0, got -1"),
        ({"seed": None}, "seed must be a whole number of at least 0, got None"),
        ({"hidden": 2.5}, "hidden must be a whole number of at least 1, got 2.5"),
        ({"optimizer": "lion"}, "optimizer must be one of adadelta, .*, got 'lion'"),
        ({"schedule": "nix"}, "schedule must be one of steplr, .*, got 'nix'"),
        ({"clip": "off"}, "clip must be a finite number above 0, got 'off'"),
        ({"lr": -1.0}, "lr must be a finite number above 0, got -1.0"),
        ({"bidirectional": "no"}, "bidirectional must be True or False, got 'no'"),
        ({"dtype": "float16"}, "dtype must be float32 or float64, got 'float16'"),
        ({"torch_dtype": "real"}, "torch_dtype must be float32 or float64, got 'real'"),
    ],
)
def test_a_setting_that_is_refused_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        compare_curves("sine", **settings)


def test_a_dtype_may_be_written_in_several_ways():
    settings = compare_curves("sine", dtype=np.float64, torch_dtype="f4", hidden=2, epochs=1, controls=1).settings
    assert (settings.dtypes, settings.coarser) == (("float64", "float32"), "float32")
