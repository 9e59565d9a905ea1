# SPDX-License-Identifier: Apache-2.0
"""similis_register(), by ctypes."""

from __future__ import annotations

import ctypes
import json
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Optional, Union

from . import c_abi, threads, values

STAGES: Final = ("translation", "rigid", "similarity", "affine", "deformable", "symmetric")
METRICS: Final = ("lncc", "ncc", "mi", "mse", "dice")
PRESETS: Final = ("quick", "balanced", "accurate")
STARTS: Final = ("auto", "centers", "moments", "identity")
GIVEN: Final = len(STARTS)

Metric = Union[str, tuple[str, Mapping[str, Any]]]
Callback = Callable[[str, int, int, float], Any]


class MetricTerm(ctypes.Structure):
    """similis_metric_term."""

    _fields_ = [
        ("metric", ctypes.c_int32),
        ("window_size", ctypes.c_int32),
        ("num_bins", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("weight", ctypes.c_double),
        ("sampling", ctypes.c_double),
        ("seed", ctypes.c_uint64),
    ]


class Progress(ctypes.Structure):
    """similis_register_progress."""

    _fields_ = [
        ("stage", ctypes.c_int32),
        ("shrink", ctypes.c_int32),
        ("iteration", ctypes.c_int32),
        ("iterations", ctypes.c_int32),
        ("loss", ctypes.c_double),
        ("min_jacobian", ctypes.c_double),
    ]


_PROGRESS: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Progress))


class Volume(ctypes.Structure):
    """similis_volume."""

    _fields_ = [("data", ctypes.POINTER(c_abi.Tensor)), ("to_world", ctypes.c_double * 12)]


class Options(ctypes.Structure):
    """similis_register_options."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("stages", ctypes.POINTER(ctypes.c_int32)),
        ("stage_count", ctypes.c_int64),
        ("metrics", ctypes.POINTER(MetricTerm)),
        ("metric_count", ctypes.c_int64),
        ("iterations", ctypes.POINTER(ctypes.c_int32)),
        ("iteration_count", ctypes.c_int64),
        ("levels", ctypes.POINTER(ctypes.c_int32)),
        ("level_count", ctypes.c_int64),
        ("linear_metric", MetricTerm),
        ("initial", ctypes.c_double * 12),
        ("fluid", ctypes.c_double),
        ("elastic", ctypes.c_double),
        ("step", ctypes.c_double),
        ("min_jacobian", ctypes.c_double),
        ("tolerance", ctypes.c_double),
        ("fixed_mask", ctypes.POINTER(c_abi.Tensor)),
        ("moving_mask", ctypes.POINTER(c_abi.Tensor)),
        ("fixed_name", ctypes.c_char_p),
        ("moving_name", ctypes.c_char_p),
        ("start", ctypes.c_int32),
        ("preset", ctypes.c_int32),
        ("mask_not_finite", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("progress", _PROGRESS),
        ("progress_context", ctypes.c_void_p),
        ("fixed_labels", ctypes.POINTER(c_abi.Tensor)),
        ("moving_labels", ctypes.POINTER(c_abi.Tensor)),
    ]


_OPTIONS_OF_METRICS: Final = {"lncc": ("window_size",), "mi": ("bins", "sampling")}


def metric_term(name: str, given: Any, seed: int) -> MetricTerm:
    """A metric by its name, or by its name and a mapping of its options."""
    options: Mapping[str, Any] = {}
    if isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[1], Mapping):
        given, options = given
    if not isinstance(given, str):
        raise TypeError(
            f"register: {name} holds {values.shown(given)}; a metric is a name, or a name and a "
            'dict of options, as ("lncc", {"window_size": 5})'
        )
    values.one_of("register", name, given, METRICS)
    term = MetricTerm(METRICS.index(given), 5, 48, 0, 1.0, 1.0, seed)
    for option, value in options.items():
        if option == "weight" or (given == "mi" and option == "sampling"):
            setattr(term, option, values.number("register", option, value))
        elif option in _OPTIONS_OF_METRICS.get(given, ()):
            member = "num_bins" if option == "bins" else option
            setattr(term, member, values.integer("register", option, value))
        else:
            known = ("weight", *_OPTIONS_OF_METRICS.get(given, ()))
            takes = values.listed(known) if len(known) > 1 else known[0]
            raise ValueError(f"register: {given} has no option {option!r}; it takes {takes}")
    return term


def _sequence(name: str, given: Any) -> Sequence[Any]:
    if not isinstance(given, (tuple, list)):
        raise TypeError(
            f"register: {name} is {values.shown(given)}; it must be a tuple or a list"
        )
    return given


def _integers(name: str, given: Any) -> Any:
    numbers = [values.integer("register", name, each) for each in _sequence(name, given)]
    return (ctypes.c_int32 * max(1, len(numbers)))(*numbers), len(numbers)


def options_of(
    *,
    stages: Any,
    metrics: Any,
    linear_metric: Any,
    preset: Any,
    start: int,
    initial: Optional[Sequence[float]],
    iterations: Any,
    levels: Any,
    fluid: Any,
    elastic: Any,
    step: Any,
    min_jacobian: Any,
    tolerance: Any,
    nan: Any,
    seed: Any,
    names: tuple[str, str],
) -> Options:
    """The C struct, without masks, labels and progress. Values that C's types hold are left to the library,
    which refuses them in its words."""
    number = values.number
    options = Options(struct_size=ctypes.sizeof(Options))
    words = [values.one_of("register", "stages", s, STAGES) for s in _sequence("stages", stages)]
    options.stages = (ctypes.c_int32 * max(1, len(words)))(*map(STAGES.index, words))
    options.stage_count = len(words)
    whole_seed = values.unlimited_integer("register", "seed", seed)
    if not 0 <= whole_seed < 2**64:
        raise ValueError(f"register: seed is {seed!r}; it must be from 0 to {2**64 - 1}")
    terms = [metric_term("metrics", each, whole_seed) for each in _sequence("metrics", metrics)]
    options.metrics = (MetricTerm * max(1, len(terms)))(*terms)
    options.metric_count = len(terms)
    options.linear_metric = metric_term("linear_metric", linear_metric, whole_seed)
    for name, given in (("iterations", iterations), ("levels", levels)):
        if given is None:
            continue
        numbers, count = _integers(name, given)
        setattr(options, name, numbers)
        setattr(options, f"{name[:-1]}_count", count)
    options.initial[:] = initial or (1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)
    options.start = start
    for name, given in (("fluid", fluid), ("elastic", elastic)):
        sigma = -1.0 if given is None else number("register", name, given)
        if given is not None and sigma < 0:  # C's word for its own choice
            raise ValueError(f"register: {name} is {given!r}; it must be from 0 to 1000")
        setattr(options, name, sigma)
    options.step = number("register", "step", step)
    options.min_jacobian = number("register", "min_jacobian", min_jacobian)
    options.tolerance = number("register", "tolerance", tolerance)
    options.preset = PRESETS.index(values.one_of("register", "preset", preset, PRESETS))
    options.mask_not_finite = int(values.one_of("register", "nan", nan, ("error", "mask")) == "mask")
    options.fixed_name, options.moving_name = [each.encode() for each in names]
    return options


def set_pair(options: Options, kind: str, pair: Sequence[Optional[c_abi.Tensor]]) -> None:
    """The masks or the labels (kind) of fixed and of moving; None: there is none."""
    for image, given in zip(("fixed", "moving"), pair):
        if given is not None:
            setattr(options, f"{image}_{kind}", ctypes.pointer(given))


def volume_of(data: c_abi.Tensor, to_world: Sequence[float]) -> Volume:
    return Volume(ctypes.pointer(data), (ctypes.c_double * 12)(*to_world))


_HANDLE: Final = ctypes.c_void_p
_register = c_abi.prepared(
    "similis_register",
    ctypes.c_int32,
    ctypes.POINTER(Volume),
    ctypes.POINTER(Volume),
    ctypes.POINTER(Options),
    ctypes.POINTER(_HANDLE),
    ctypes.POINTER(c_abi.Execution),
)
_destroy = c_abi.prepared("similis_registration_destroy", None, _HANDLE)
_affine = c_abi.prepared(
    "similis_registration_affine", ctypes.c_int32, _HANDLE, ctypes.c_double * 12
)
_has_displacement = c_abi.prepared(
    "similis_registration_has_displacement", ctypes.c_int32, _HANDLE
)
_PARTS: Final = {
    name: c_abi.prepared(f"similis_registration_{name}", ctypes.c_int32, _HANDLE, c_abi.TENSOR)
    for name in ("displacement", "inverse_displacement", "warped")
}
_report = c_abi.prepared(
    "similis_registration_report",
    ctypes.c_int32,
    _HANDLE,
    ctypes.POINTER(Volume),
    ctypes.POINTER(Volume),
    c_abi.TENSOR,
    c_abi.TENSOR,
    ctypes.POINTER(ctypes.c_char_p),
    ctypes.POINTER(c_abi.Execution),
)


def _checked(status: int) -> None:
    if status != 0:
        c_abi.raise_last_error(status)


class Found:
    """A similis_registration, destroyed with this object."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle

    def __del__(self) -> None:
        if self._handle:
            _destroy(self._handle)

    def affine(self) -> list[float]:
        rows = (ctypes.c_double * 12)()
        _checked(_affine(self._handle, rows))
        return list(rows)

    def has_displacement(self) -> bool:
        return bool(_has_displacement(self._handle))

    def copy_to(self, part: str, output: c_abi.Tensor) -> None:
        """part: displacement, inverse_displacement or warped."""
        _checked(_PARTS[part](self._handle, ctypes.byref(output)))

    def report(
        self,
        images: Sequence[Optional[Volume]] = (None, None),
        masks: Sequence[Optional[c_abi.Tensor]] = (None, None),
        most_threads: int = 0,
    ) -> dict[str, Any]:
        """The report on fixed and moving, and their masks. Without the images it lacks similarity
        and determinants."""
        text, execution = ctypes.c_char_p(), c_abi.execution(0, most_threads)
        _checked(_report(self._handle, *images, *masks, ctypes.byref(text), execution))
        report: dict[str, Any] = json.loads(text.value or b"{}")
        return report


class _Call:
    """One registration on a thread of its own, so that a signal reaches the caller's thread at
    once: Ctrl-C waits for one iteration, not for all."""

    def __init__(
        self,
        fixed: Volume,
        moving: Volume,
        options: Options,
        most_threads: int,
        asks: bool,
        stream: int,
    ) -> None:
        self._arguments = fixed, moving, options, most_threads, stream
        self._asks = asks
        self._stops = False
        self._answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._handle = ctypes.c_void_p()
        self._error: Optional[BaseException] = None
        self.events: queue.SimpleQueue[Optional[tuple[str, int, int, float]]] = queue.SimpleQueue()
        options.progress = self._progress = _PROGRESS(self._look)
        self._thread = threading.Thread(target=self._run, name="similis.register", daemon=True)
        self._thread.start()

    def _look(self, _: Any, at: Any) -> int:
        if self._asks and not self._stops:
            state = at.contents
            self.events.put((STAGES[state.stage], state.shrink, state.iteration, state.loss))
            return int(self._answers.get() and not self._stops)
        return int(not self._stops)

    def _run(self) -> None:
        fixed, moving, options, most_threads, stream = self._arguments
        try:
            execution = c_abi.execution(stream, most_threads)
            _checked(_register(fixed, moving, options, ctypes.byref(self._handle), execution))
        except BaseException as error:  # the library's message is this thread's own
            self._error = error
        self.events.put(None)

    def answer(self, goes_on: bool) -> None:
        self._answers.put(goes_on)

    def stop(self) -> None:
        """Ends the registration, whose result is dropped."""
        self._stops = True
        self._answers.put(False)
        self._thread.join()
        if self._handle:
            _destroy(self._handle)

    def result(self) -> Found:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return Found(self._handle)


def run(
    fixed: Volume,
    moving: Volume,
    options: Options,
    callback: Optional[Callback] = None,
    most_threads: int = 0,
    stream: int = 0,
) -> Found:
    """Registers; the callback is called on this thread, and may return False to end it. stream: of
    images on a GPU."""
    if most_threads == 0:
        threads.follow_worker()
    call = _Call(fixed, moving, options, most_threads, callback is not None, stream)
    try:
        event = call.events.get()
        while event is not None:
            assert callback is not None
            call.answer(callback(*event) is not False)
            event = call.events.get()
        return call.result()
    except BaseException:
        call.stop()
        raise
