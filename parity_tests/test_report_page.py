"""The page report.html, in a real browser and without one; the picture and the event files beside it."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from numpy_rnn.training import Record
from parity_tests.mutations.curves import BUGS
from torch_rnn import compare_curves
from torch_rnn.curves import picture
from torch_rnn.curves.charts import LIMIT, charts, thin
from torch_rnn.curves.compare import Comparison
from torch_rnn.curves.verdict import OPEN, judge

CHROMIUM = shutil.which("chromium")
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]
BUG = BUGS[0]  # Adam's eps inside the root
QUICK = {"hidden": 3, "window": 50, "epochs": 2, "controls": 2}


@pytest.fixture(scope="module")
def honest() -> Comparison:
    return compare_curves("sunspots", **QUICK)


@pytest.fixture(scope="module")
def faulty() -> Comparison:
    """A planted bug, in a task whose name a page must not take for its own."""
    comparison = compare_curves("sunspots", sides=BUG.sides, **QUICK, **BUG.settings)
    run = comparison.run
    run.task = dataclasses.replace(run.task, name='a </script><b>"&')
    return comparison


# In a browser


def test_the_page_in_a_browser(faulty: Comparison, tmp_path: Path) -> None:
    """One start for all that needs one: it takes most of the time."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    path = tmp_path / "report.html"
    faulty.write_report(path)
    requests, complaints = [], []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            tmp_path / "profile", executable_path=CHROMIUM, args=QUIET, viewport={"width": 1280, "height": 800}
        )
        page = browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(path.as_uri())
            title = 'a </script><b>"&: numpy_rnn and torch.nn from the same weights'
            assert [page.title(), page.locator("h1").inner_text()] == [title, title]
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.locator(".verdict").is_visible()
            assert page.locator(".verdict").inner_text().startswith("✕ Not rounding: at step ")
            drawn = {name: page.locator(f"#{name} .scatterlayer .trace").count() for name in ("losses", "norms")}
            assert drawn == {"losses": 6, "norms": 2}
            assert page.locator("#difference .point").count() == 10
            assert page.locator("tr.fault").inner_text().split("\t")[:2] == [BUG.stage, faulty.verdict.fault.tensor]
            hover(page)
        zoom(page)
        switch(page)
        keys(page)
        dark(page)
        paper(page)
        assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()] * 2
        assert complaints == []
        refused = page.evaluate("fetch('https://example.org').then(() => 'sent', () => 'refused')")
        assert refused == "refused"
        assert "Content Security Policy" in complaints[0]
        browser.close()


def until(page, expression: str) -> None:
    """Wait; the page's policy forbids the browser's own way, which is to let the page evaluate a string."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never true: {expression}")


def hover(page) -> None:
    page.locator("#losses").scroll_into_view_if_needed()
    box = page.locator("#losses .draglayer .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
    page.locator("#losses .hovertext", has_text=re.compile("step [56], epoch [12]")).wait_for()
    shown = page.locator("#losses .hovertext").text_content()
    assert re.search(r"loss in NumPy 0\.\d+loss in PyTorch 0\.\d+difference ", shown), shown


def zoom(page) -> None:
    """Dragging over one chart zooms all in time; a double click shows the whole run again."""
    box = page.locator("#losses .draglayer .nsewdrag").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.25 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], y, steps=3)
    page.mouse.up()
    until(page, "document.getElementById('norms').layout.xaxis.range[1] < 9")
    ranges = page.evaluate("[...document.querySelectorAll('.chart')].map((at) => at.layout.xaxis.range)")
    assert ranges[0] == ranges[1] == ranges[2]
    page.mouse.dblclick(box["x"] + box["width"] / 2, y)
    until(page, "document.getElementById('norms').layout.xaxis.autorange === true")


def switch(page) -> None:
    button = page.get_by_role("button", name="log axis").first
    for pressed, kind in (("true", "log"), ("false", "linear"), ("true", "log")):
        assert button.get_attribute("aria-pressed") == pressed
        assert page.evaluate("document.getElementById('losses')._fullLayout.yaxis.type") == kind
        button.press("Enter")


def keys(page) -> None:
    page.locator("#norms").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.locator("#norms .hovertext", has_text="step 2, epoch 1").wait_for()


def dark(page) -> None:
    """What the reader has set stays: the axis is linear now."""
    before = page.evaluate("document.getElementById('losses').layout.paper_bgcolor")
    page.emulate_media(color_scheme="dark")
    until(page, f"document.getElementById('losses').layout.paper_bgcolor !== {before!r}")
    assert page.evaluate("document.getElementById('losses')._fullLayout.yaxis.type") == "linear"


def paper(page) -> None:
    """There the page is light and unfolded, and afterwards as it was."""
    looks = (
        "[document.getElementById('losses').layout.paper_bgcolor, document.querySelectorAll('details[open]').length]"
    )
    before = page.evaluate(looks)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(looks) == ["#ffffff", 2]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(looks) == before


# Without one


def parts(page: str) -> tuple[str, list]:
    """Return what is read, without styles and scripts, and the charts."""
    data = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    assert "<" not in data[1]  # nothing there can end the script
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return text, json.loads(data[1], parse_constant=pytest.fail)


def test_the_page_names_what_was_compared_and_found(honest: Comparison) -> None:
    text, drawn = parts(honest.report())
    assert [chart["name"] for chart in drawn] == ["losses", "difference", "norms"]
    sentence = honest.verdict.sentence().partition(": ")[2]
    assert all(word in text for word in ('<html lang="en">', "Rounding", sentence, "1921-1955", "persistence"))
    assert all(f"<dt>{name}</dt>" in text for name in ("hidden", "optimizer", "numpy", "torch", "rnn-parity"))
    call = re.search('<code id="command">torch_rnn.(.*?)</code>', text)[1].replace("&#x27;", "'")
    again = eval(call, {"compare_curves": compare_curves})
    assert_array_equal(again.numpy_loss, honest.numpy_loss)
    first, last = re.findall(r"<summary>(.*?)</summary>", text)
    assert (first[:7], last[:8]) == ("Step 1:", "Step 10:")
    for name in ("output of window 5", "d rnn.weight_hh_l0", "change of linear.bias", "h.requires_grad"):
        assert f'<td class="text">{name}</td>' in text, name
    assert honest.report() == honest.report()


def test_the_page_shows_where_a_bug_lies(faulty: Comparison) -> None:
    text, _ = parts(faulty.report())
    rows = re.findall(r"<tr(?: class=\"fault\")?>(.*?)</tr>", text)
    (marked,) = re.findall(r'<tr class="fault">(.*?)</tr>', text)
    assert f">{BUG.stage}<" in marked
    assert marked.endswith("<td>the fault</td>")
    assert len([row for row in rows if row.endswith("<td>differs</td>")]) >= 1
    assert not any("differs" in row for row in rows if ">forward<" in row)
    assert "sides=..." in text


def test_a_run_without_controls_and_one_that_stopped_have_a_page_too() -> None:
    text, (losses, difference, _) = parts(compare_curves("sunspots", **QUICK | {"controls": 0}).report())
    assert "Cannot tell" in text
    assert "There were no control runs" in text
    assert [len(chart["data"]) for chart in (losses, difference)] == [2, 2]
    stopped = compare_curves("sunspots", **QUICK, cell="rnn-relu", optimizer="sgd", lr=1e200)
    text, (losses, difference, _) = parts(stopped.report())
    assert "Not finite first: step 2, stage forward" in text
    assert losses["data"][-1]["y"][-1] is None
    assert losses["data"][-1]["mode"] == "markers"
    assert re.findall(r"<summary>Step (\d+)", text) == ["1"]


def test_plotly_knows_every_property_of_the_charts(honest: Comparison, faulty: Comparison) -> None:
    """The script in the page passes over what it does not know, its Python package refuses it."""
    figures = pytest.importorskip("plotly.graph_objects")
    for comparison in (honest, faulty):
        for chart in charts(comparison.run, comparison.verdict):
            text = re.sub(r'"--[a-z-]+"', '"#123456"', json.dumps([chart.traces, chart.layout]))
            traces, layout = json.loads(text)
            assert len(figures.Figure(traces, layout).data) == len(chart.traces)


def test_long_runs_are_thinned_and_keep_their_extremes() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=40_000)
    values[[7, 12_345]] = 9, -9
    values[30_000] = np.nan
    kept = thin(values, values**3)
    assert len(kept) <= LIMIT
    assert {0, 7, 12_345, 30_000, 39_999} <= set(kept.tolist())
    assert_array_equal(thin(values[:LIMIT]), np.arange(LIMIT))


def test_a_long_run_says_how_many_steps_are_drawn(honest: Comparison) -> None:
    run = compare_curves("sine", hidden=1, controls=0, epochs=1).run
    run.pairs = [(Record(1, i, 1, 1.0 / i, 1.0), Record(1, i, 1, 1.0 / i, 1.0)) for i in range(1, 8001)]
    run.all_losses = ([], [])
    losses, *_ = charts(run, dataclasses.replace(honest.verdict, outcome=OPEN, evidence=None, threshold=None))
    assert len(losses.traces[0]["x"]) < LIMIT
    assert losses.notes[0].startswith("Of 8000 steps ")


def test_ulps_of_a_replay_are_those_of_the_coarser_dtype(honest: Comparison) -> None:
    from torch_rnn.curves.stages import replay

    (rows,) = replay(honest.run, 10, 10, controls=0)
    row = next(row for row in rows if row.tensor == "output of window 5")
    assert row.ulps == row.difference / np.spacing(row.scale)
    change = next(row for row in rows if row.tensor == "change of linear.weight")
    assert change.ulps < change.difference / np.spacing(change.scale) or change.difference == 0
    assert judge(honest.run).outcome == "rounding"


# Beside it


def test_the_same_run_gives_the_same_svg(honest: Comparison, tmp_path: Path) -> None:
    for name in ("a", "b"):
        picture.save(honest.plot(), tmp_path / name, "svg")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert b"<dc:date>" not in (tmp_path / "a").read_bytes()


def test_tensorboard_reads_the_event_files_back(run, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from tensorboard.util.tensor_util import make_ndarray

    for _ in range(2):  # the second replaces the first
        status, out, _ = run("curves", *(f"--{name}={value}" for name, value in QUICK.items()), "--tensorboard")
    assert status == 0
    assert "--tensorboard" in out.split("\n\n")[0]
    table = np.genfromtxt(tmp_path / "loss-curves" / "curves.csv", delimiter=",", names=True)
    for side in ("numpy", "torch"):
        assert f"wrote loss-curves/tensorboard/{side}/" in out
        events = accumulator.EventAccumulator(str(tmp_path / "loss-curves" / "tensorboard" / side)).Reload()
        for tag in ("loss", "grad_norm"):
            read = [(event.step, make_ndarray(event.tensor_proto).item()) for event in events.Tensors(tag)]
            assert read == list(zip(table["step"], table[f"{side}_{tag}"], strict=True))
