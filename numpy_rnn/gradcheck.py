"""Check hand-written backward passes against numerical derivatives, and lay two sets of arrays side by side.

Works on plain functions of arrays: yours as well as those of ``numpy_rnn.cells``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from numpy_rnn.diagnosis import Diagnosis, diagnose
from numpy_rnn.diagnosis.bugs import bugs_of, possible
from numpy_rnn.diagnosis.recognise import recognise
from numpy_rnn.typing import Array

COMPLEX_STEP = 1e-30  # no difference is taken, so nothing cancels: as small as the numbers allow
TOLERANCES = {"complex": 1e-12, "central": 1e-7}  # of each gradient's scale; tests measure 1e-15 and 1e-10


@dataclass(frozen=True)
class Comparison:
    """How far one array is from its reference, at its worst entry."""

    name: str
    shape: tuple[int, ...]
    max_abs: float  # largest absolute error
    relative: float  # that, divided by the largest |entry| of the reference
    ulps: float  # that, in units in the last place of the largest |entry| of the reference
    index: tuple[int, ...]  # where it is
    got: float
    expected: float
    right_shape: tuple[int, ...] | None = None  # where shape is another, so that there are no numbers


def real_array(name: str, value: Any) -> Array:
    """Return ``value`` as an array in the byte order of this machine.

    >>> real_array("dx", [[1, 2], [3]])
    Traceback (most recent call last):
    TypeError: dx must be an array of real numbers, got a list of lists of unequal lengths

    Raises ``TypeError`` for what is no array of real numbers.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        raise TypeError(
            f"{name} must be an array of real numbers, got a {type(value).__name__} of lists of unequal lengths"
        ) from None
    if array.dtype.kind not in "fiu":
        what = type(value).__name__ if array.dtype == object and array.ndim == 0 else array.dtype
        raise TypeError(f"{name} must be an array of real numbers, got {what}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def generator(seed: int) -> np.random.Generator:
    """Return what draws the upstream gradients. Raises ``ValueError`` for what is no whole number of at least 0."""
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed must be a whole number of at least 0, got {seed!r}")
    return np.random.default_rng(int(seed))


def compare(name: str, got: Array, expected: Array, noise: float = 0.0) -> Comparison:
    """Compare two arrays of one shape; nan agrees with nan and inf with inf, with anything else they differ infinitely.

    >>> compare("dx", np.array([1.0, 2.0]), np.array([1.0, 2.5])).relative
    0.2

    Where the whole reference is no larger than ``noise``, to which it is known, an error of that size counts as none.

    Raises ``ValueError`` for unequal shapes, ``TypeError`` for what is no array of real numbers.
    """
    got, expected = real_array(name, got), real_array(f"the reference of {name}", expected)
    if got.shape != expected.shape:
        raise ValueError(f"{name} must have the shape of its reference, {expected.shape}, got {got.shape}")
    if got.size == 0:
        return Comparison(name, got.shape, 0.0, 0.0, 0.0, (), 0.0, 0.0)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.where(same, 0.0, np.abs(got - expected))
    error = np.where(np.isnan(error), np.inf, error)
    index = np.unravel_index(int(np.argmax(error)), error.shape)
    finite = np.abs(expected[np.isfinite(expected)])
    scale = finite.max() if finite.size else finite.dtype.type(0)
    worst = float(error[index])
    in_noise = worst <= noise and scale <= 1e3 * noise
    ulp = float(np.spacing(scale.astype(np.result_type(got, expected))))
    relative = 0.0 if worst == 0 or in_noise else worst / float(scale) if scale > 0 else np.inf  # (11.3)
    ulps = 0.0 if worst == 0 else worst / ulp if scale > 0 else np.inf  # (11.4)
    return Comparison(
        name,
        got.shape,
        worst,
        relative,
        ulps,
        tuple(int(i) for i in index),
        float(got[index]),
        float(expected[index]),
    )


@dataclass(frozen=True, repr=False)
class Report:
    """One ``Comparison`` a tensor, and the bound on ``relative`` that each must keep. It prints as its table."""

    rows: tuple[Comparison, ...]
    tolerance: float
    columns: tuple[str, str] = ("got", "expected")
    diagnosis: Diagnosis | None = None  # of what differs; None where nothing was looked for

    @property
    def ok(self) -> bool:
        """Whether every tensor is within the tolerance."""
        return all(row.relative <= self.tolerance for row in self.rows)

    @property
    def worst(self) -> Comparison:
        """The row with the largest relative error."""
        return max(self.rows, key=lambda row: row.relative)

    def table(self) -> str:
        """Return the rows as text, each with its worst entry, and one line of verdict.

        "error/scale" is the largest error over the tensor's largest entry, "ulps" the same in units in the last place.
        "rounding" marks a reference that is no more than the noise of its own computation, and an error of that size.
        Where some differ, the bug that it looks like comes last.
        """
        head = ("", "shape", "max error", "error/scale", "ulps", "worst entry", *self.columns, "")
        cells = [head]
        for row in self.rows:
            cells.append(
                (
                    row.name,
                    str(row.shape) if row.right_shape is None else f"{row.shape} for {row.right_shape}",
                    f"{row.max_abs:.1e}",
                    f"{row.relative:.1e}",
                    f"{row.ulps:.1f}" if row.ulps < 1e5 else f"{row.ulps:.0e}",
                    str(list(row.index)),
                    f"{row.got:.9g}",
                    f"{row.expected:.9g}",
                    "FAIL" if row.relative > self.tolerance else "rounding" if row.max_abs > 0 == row.relative else "",
                )
            )
        widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
        lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
        failed = sum(row.relative > self.tolerance for row in self.rows)
        verdict = (
            f"all {len(self.rows)} within {self.tolerance:.0e} of their scale"
            if self.ok
            else f"{failed} of {len(self.rows)} differ by more than {self.tolerance:.0e} of their scale"
        )
        likely = [] if self.ok or self.diagnosis is None else self.diagnosis.lines()
        return "\n".join([*(line.rstrip() for line in lines), verdict, *likely])

    __repr__ = table


def check_backward(
    forward: Callable[..., Array | Sequence[Array]],
    backward: Callable[..., Sequence[Array | None]],
    inputs: Mapping[str, Array],
    *,
    method: str = "complex",
    step: float | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> Report:
    """Compare a hand-written backward with a numerical derivative of its forward, entry by entry.

    >>> def forward(x, w):
    ...     return np.tanh(x @ w.T)
    >>> def backward(d_y, x, w):
    ...     d_z = d_y * (1 - forward(x, w) ** 2)
    ...     return d_z @ w, d_z.T @ x
    >>> rng = np.random.default_rng(0)
    >>> inputs = {"x": rng.normal(size=(4, 3)), "w": rng.normal(size=(2, 3))}
    >>> check_backward(forward, backward, inputs).ok
    True
    >>> report = check_backward(forward, lambda d_y, x, w: (None, d_y.T @ x), inputs)
    >>> report.ok, report.worst.name
    (False, 'w')
    >>> report = check_backward(forward, lambda d_y, x, w: (backward(d_y, x, w)[0] / 4, None), inputs)
    >>> report.diagnosis.bugs
    ('factor-0.25',)

    Arguments named as those of a cell, whose forward gives that cell's numbers, are seen to be that cell, and every
    known bug of it is recomputed. Here dW_hh pairs each delta with the state after the step, not before it:

    >>> def rnn(x, h_0, w_ih, w_hh):  # (T, B, I), (B, H), (H, I), (H, H)
    ...     h = [h_0]
    ...     for x_t in x:
    ...         h.append(np.tanh(x_t @ w_ih.T + h[-1] @ w_hh.T))
    ...     return np.array(h[1:])
    >>> def rnn_backward(dh, x, h_0, w_ih, w_hh):
    ...     h = rnn(x, h_0, w_ih, w_hh)
    ...     dx, dw_ih, dw_hh, carried = np.zeros_like(x), np.zeros_like(w_ih), np.zeros_like(w_hh), np.zeros_like(h_0)
    ...     for t in reversed(range(len(x))):
    ...         dz = (dh[t] + carried) * (1 - h[t] ** 2)
    ...         dx[t] = dz @ w_ih
    ...         dw_ih += dz.T @ x[t]
    ...         dw_hh += dz.T @ h[t]  # the bug
    ...         carried = dz @ w_hh
    ...     return dx, carried, dw_ih, dw_hh
    >>> shapes = {"x": (6, 4, 3), "h_0": (4, 5), "w_ih": (5, 3), "w_hh": (5, 5)}
    >>> inputs = {name: rng.normal(size=shape) / 2 for name, shape in shapes.items()}
    >>> print("\\n".join(check_backward(rnn, rnn_backward, inputs).diagnosis.lines()))
    likely bug: h-for-h-before: dW_hh pairs the delta of step t with the state after it, not with the state
                before: one time step off (w_hh)

    A forward that returns a cache besides is wrapped, so that the arrays alone come back:

    >>> def backward(d_y, x, w):
    ...     y, cache = my_forward(x, w)
    ...     return my_backward(d_y, cache)

    Arguments: ``forward(*inputs)`` returns an array or a tuple of arrays. ``backward(upstream, *inputs)`` is given
    random upstream gradients, laid out like what ``forward`` returned, and returns one gradient for each input, in
    order, or None for one that is not to be checked. ``inputs`` are float64 or longdouble arrays by name, in
    the order of the arguments. ``method`` "complex" (exact to rounding; the forward must be analytic and pass complex
    numbers through: no ``abs``, no ``.real``, buffers of the dtype of the input) or "central" (central differences;
    for any forward, away from kinks). A difference within the rounding of the numerical derivative counts as none: a
    central difference cannot see gradients that small; the complex step sees them, unless their own terms cancel.
    ``step`` and ``tolerance`` (of each gradient's scale) have defaults that fit the method.

    Returns a ``Report`` with one row an input and, where some differ, the ``diagnosis``: see ``numpy_rnn.diagnosis``.

    Raises ``TypeError`` for inputs that are not real floats, a forward or backward that returns something else than
    arrays of real numbers, or, with the complex step, a forward that is not analytic (its derivative along one random
    direction is compared with a central difference); ``ValueError`` for a gradient of the wrong shape or number, for
    a forward that returns something else when called again, and for a forward or backward that writes into its
    arguments.
    """
    if method not in TOLERANCES:
        raise ValueError(f"method must be 'complex' or 'central', got {method!r}")
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs must be a mapping from names to arrays, got {type(inputs).__name__}")
    for name, value in {"step": step, "tolerance": tolerance}.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < np.inf):
            raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    rng = generator(seed)
    arrays = {name: real_array(f"inputs[{name!r}]", value).copy() for name, value in inputs.items()}
    for name, array in arrays.items():
        if array.dtype not in (np.float64, np.longdouble):
            raise TypeError(f"inputs[{name!r}] must be float64 or longdouble, got {array.dtype}")
    result = guarded("forward", forward, *_unwritable(arrays))
    outputs = [real_array("what forward returns for real inputs", output) for output in _outputs(result)]
    repeated = _outputs(guarded("forward", forward, *_unwritable(arrays)))
    if [y.shape for y in repeated] != [y.shape for y in outputs] or any(
        compare("output", *pair).relative > 1e-9 for pair in zip(repeated, outputs, strict=True)
    ):
        raise ValueError(
            "forward must return the same for the same arguments, got something else the second time: "
            "does it draw random numbers or keep a state?"
        )
    upstream = [rng.normal(size=y.shape).astype(np.result_type(y, np.float64)) for y in outputs]
    given = tuple(_unwritable({str(i): d for i, d in enumerate(upstream)}))
    returned = guarded(
        "backward", backward, given if isinstance(result, tuple | list) else given[0], *_unwritable(arrays)
    )
    gradients = [returned] if len(arrays) == 1 and isinstance(returned, np.ndarray) else returned
    if not isinstance(gradients, Sequence):
        raise TypeError(f"backward must return a tuple of gradients, got {type(gradients).__name__}")
    if len(gradients) != len(arrays):
        raise ValueError(f"backward must return one gradient for each of {len(arrays)} inputs, got {len(gradients)}")

    def loss(changed: Mapping[str, Array]) -> Any:
        outputs = _outputs(forward(*changed.values()))
        if any(map(np.iscomplexobj, changed.values())) and not all(map(np.iscomplexobj, outputs)):
            raise TypeError("forward must pass complex numbers through, got real outputs: try method='central'")
        return sum(np.sum(d * y) for d, y in zip(upstream, outputs, strict=True))

    terms = sum(float(np.abs(d * y).sum()) for d, y in zip(upstream, outputs, strict=True))
    bound = TOLERANCES[method] if tolerance is None else float(tolerance)
    theirs = {
        name: real_array(f"the gradient of {name}", g)
        for name, g in zip(arrays, gradients, strict=True)
        if g is not None
    }
    if not theirs:
        raise ValueError("backward must return at least one gradient, got only None")
    steps = {name: _step(arrays[name], method) if step is None else float(step) for name in theirs}
    derivatives = {}
    for name, gradient in theirs.items():
        if gradient.shape != arrays[name].shape:
            raise ValueError(f"the gradient of {name} must be {arrays[name].shape}, got {gradient.shape}")
        derivatives[name] = _numerical(loss, arrays, name, method, steps[name])
        if not np.isfinite(derivatives[name]).all():
            raise ValueError(f"the numerical derivative by {name} must be finite, got nan or inf: check the forward")
    largest = max(float(np.abs(d).max(initial=0)) for d in derivatives.values())
    rows = []
    for name, gradient in theirs.items():
        row = compare(name, gradient, derivatives[name])
        if row.relative > bound:
            # What rounding leaves unknown: a derivative that is truly zero is seldom exactly so.
            noise = 4 * float(np.finfo(arrays[name].dtype).eps) * terms
            if method == "central":
                noise = min(noise / steps[name], 1e-6 * largest)
            elif row.max_abs <= noise:
                # Imaginary parts round by themselves. Another step rounds otherwise: digits that stay are known.
                again = _numerical(loss, arrays, name, method, steps[name] / 3)
                spread = 100 * float(np.abs(again - derivatives[name]).max())
                unknown = np.abs(derivatives[name]).max() <= spread
                noise = min(noise, max(spread, 1e-6 * largest) if unknown else spread)
            row = compare(name, gradient, derivatives[name], noise)
        rows.append(row)
    if method == "complex":
        _check_analytic(loss, arrays, derivatives, rng)
    report = Report(tuple(rows), bound, ("backward", "numerical"))
    if report.ok:
        return report
    wrong = {row.name for row in rows if row.relative > report.tolerance}
    return replace(
        report, diagnosis=_diagnosis(arrays, outputs, upstream, theirs, derivatives, wrong, report.tolerance)
    )


def _diagnosis(
    arrays: Mapping[str, Array],
    outputs: Sequence[Array],
    upstream: Sequence[Array],
    theirs: Mapping[str, Array],
    derivatives: Mapping[str, Array],
    wrong: Collection[str],
    tolerance: float,
) -> Diagnosis:
    """Look for the bug. What is right is taken from theirs, which have no error of a numerical derivative."""
    ours = {name: derivatives[name] if name in wrong else theirs[name] for name in derivatives}
    cell = recognise(arrays, outputs, upstream)
    if cell is None:
        return diagnose(theirs, ours, tolerance=tolerance)
    # The outputs are right, whatever the backward does: a bug of the forward is none here.
    right = {name: result for name, result in cell.results().items() if name.startswith("output ")}
    texts = possible(cell.case, bugs_of(cell.case), outputs_right=True)
    known = texts, {bug: partial(cell.results, bug) for bug in texts}
    return diagnose({**theirs, **right}, {**ours, **right}, tolerance=tolerance, known=known)


def _step(array: Array, method: str) -> float:
    """The complex step needs only to be small; a central difference balances its error against rounding."""
    return COMPLEX_STEP if method == "complex" else float(np.finfo(array.dtype).eps) ** (1 / 3)


def _numerical(
    loss: Callable[[Mapping[str, Array]], Any], arrays: Mapping[str, Array], name: str, method: str, h: float
) -> Array:
    """Return the derivative of ``loss`` with respect to every entry of ``arrays[name]``."""
    derivative = np.zeros_like(arrays[name])
    complex_arrays = {n: a.astype(np.result_type(a, np.complex128)) for n, a in arrays.items()}
    for index in np.ndindex(derivative.shape):
        if method == "complex":
            derivative[index] = loss(_moved(complex_arrays, name, index, 1j * h)).imag / h
        else:
            wide = h * max(1.0, float(abs(arrays[name][index])))
            up, down = _moved(arrays, name, index, wide), _moved(arrays, name, index, -wide)
            derivative[index] = (loss(up) - loss(down)) / (up[name][index] - down[name][index])
    return derivative


def _moved(arrays: Mapping[str, Array], name: str, index: tuple[int, ...], by: complex) -> dict[str, Array]:
    moved = arrays[name].copy()
    moved[index] += by
    return {**arrays, name: moved}


def _check_analytic(
    loss: Callable[[Mapping[str, Array]], Any],
    arrays: Mapping[str, Array],
    derivatives: Mapping[str, Array],
    rng: np.random.Generator,
) -> None:
    """Raise unless the complex step agrees, along one random direction, with a central difference."""
    direction = {name: rng.normal(size=arrays[name].shape) for name in derivatives}
    h = 1e-6
    up, down = (
        loss({**arrays, **{name: arrays[name] + sign * h * d for name, d in direction.items()}}) for sign in (1, -1)
    )
    terms = [derivatives[name] * d for name, d in direction.items()]
    along, size = sum(t.sum() for t in terms), sum(np.abs(t).sum() for t in terms)
    if abs((up - down) / (2 * h) - along) > 1e-3 * size + 1e-6 * (abs(up) + 1):
        raise TypeError(
            "forward must be analytic for the complex step, but its derivative changes with it "
            "(abs, .real or a comparison inside?): try method='central'"
        )


def _outputs(returned: Any) -> list[Array]:
    """Return what a forward returned as a list of arrays."""
    outputs = list(returned) if isinstance(returned, tuple | list) else [returned]
    for output in outputs:
        if not isinstance(output, np.ndarray | np.number | float | complex):
            raise TypeError(
                f"forward must return an array or a tuple of arrays, got a {type(output).__name__}: "
                "wrap it, so that a cache does not come back"
            )
    if not outputs:
        raise TypeError("forward must return an array or a tuple of arrays, got an empty one")
    return [np.asarray(output) for output in outputs]


def guarded(role: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function`` on arguments of which the arrays are read-only; say who it was if it writes into one."""
    try:
        return function(*arguments)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ValueError(f"{role} must not write into its arguments: {error}") from error


def _unwritable(arrays: Mapping[str, Array]) -> list[Array]:
    copies = [array.copy() for array in arrays.values()]
    for array in copies:
        array.flags.writeable = False
    return copies
