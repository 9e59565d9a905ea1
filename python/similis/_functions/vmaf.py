# SPDX-License-Identifier: Apache-2.0
"""VMAF of clips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn, Optional, TypeVar, Union, overload

from .._arrays.kinds import imported, is_of, kind_of, require_kind
from .._library import c_abi, values
from .._library.refusals import type_name
from .._library.vmaf import Scorer
from .losses import without_unknown
from .unknown_options import refuse_options

Array = TypeVar("Array")


def _is_torch(array: Any) -> bool:
    return is_of("torch", "Tensor", array)


def _is_on_gpu(array: Any) -> bool:
    return array.device.type == "cuda" if _is_torch(array) else is_of("cupy", "ndarray", array)


def _prepared(name: str, array: Any) -> Any:
    """The array itself on a GPU, else a NumPy array of the same elements."""
    if _is_torch(array):
        if array.device.type not in ("cpu", "cuda"):
            raise ValueError(
                f"vmaf: {name} is on {array.device}; it must be on the CPU or a CUDA device"
            )
        return array.detach() if _is_on_gpu(array) else array.detach().numpy()
    if is_of("jax", "Array", array):
        import numpy

        return numpy.asarray(array)
    kind = kind_of("vmaf", array, name)
    require_kind("vmaf", kind, name, array)
    return kind.prepared(array)


def _like(array: Any, scores: list[float]) -> Any:
    """Scores as an array of the library that `array` is of, on its device."""
    if _is_torch(array):
        torch = imported("torch")
        return torch.tensor(scores, dtype=torch.float64, device=array.device)
    if _is_on_gpu(array):
        cupy = imported("cupy")
        with array.device:
            return cupy.array(scores, dtype=cupy.float64)
    import numpy

    return numpy.array(scores, dtype=numpy.float64)


def _planes(name: str, array: Any, axes: tuple[int, ...]) -> Any:
    if _is_torch(array):
        _require_samples(name, array)  # NumPy does not have all of torch's dtypes
    planes = _prepared(name, array)
    if planes.ndim not in axes:
        letters = " or ".join("[T, H, W]" if each == 3 else "[H, W]" for each in axes)
        raise ValueError(f"vmaf: {name} has shape {list(planes.shape)}; it must be {letters}")
    _require_samples(name, planes)
    return planes


def _require_samples(name: str, array: Any) -> None:
    if _dtype(array) not in ("uint8", "uint16"):
        raise TypeError(f"vmaf: {name} is {_dtype(array)}; it must be uint8 or uint16")


def _dtype(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _described(array: Any) -> c_abi.Tensor:
    if _is_torch(array):
        device = c_abi.Device(c_abi.CUDA, array.device.index)
        return c_abi.tensor(
            array.data_ptr(), array.shape, array.stride(), _dtype(array), device
        )
    return kind_of("vmaf", array).describe(array)


def _stream(array: Any) -> int:
    if _is_torch(array):
        return int(imported("torch").cuda.current_stream(array.device).cuda_stream)
    return kind_of("vmaf", array).stream()


def _most_threads(array: Any) -> int:
    """The number of torch's threads for torch's tensors, else 0: the library's own number."""
    return int(imported("torch").get_num_threads()) if _is_torch(array) else 0


def _listed(name: str, given: Union[str, Sequence[str]]) -> list[str]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, str) for each in given):
        raise TypeError(f"vmaf: {name} is of type {type_name(given)}; it must be a str or a list")
    return list(given)


class VmafScorer:
    """Scores a clip frame by frame: every model and feature in one pass.

    Args:
        height, width: of the luma planes, in samples.
        models: as `similis vmaf -m` takes them, such as "vmaf_v0.6.1",
            "version=vmaf_v0.6.1neg:name=neg" or "path=model.json"; one or several.
        features: such as "vif" or "adm=adm_enhn_gain_limit=1.2".
        bit_depth: of a sample, 8, 10, 12 or 16; by default 8 for u8, 16 for u16.

    Raises:
        ValueError, TypeError: there is no such model or feature, or planes are too small.
    """

    @without_unknown
    def __init__(
        self,
        height: int,
        width: int,
        *,
        models: Union[str, Sequence[str]] = "vmaf_v0.6.1",
        features: Union[str, Sequence[str]] = (),
        bit_depth: Optional[int] = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            refuse_options("VmafScorer", unknown, VmafScorer)
        depth = None if bit_depth is None else values.integer("vmaf", "bit_depth", bit_depth)
        self._scorer = Scorer(
            values.integer("vmaf", "height", height),
            values.integer("vmaf", "width", width),
            _listed("models", models),
            _listed("features", features),
            depth,
        )

    @property
    def columns(self) -> list[str]:
        """The names of a frame's numbers, which are libvmaf's."""
        return list(self._scorer.columns)

    def _ready(self) -> list[dict[str, float]]:
        frames = []
        numbers = self._scorer.pop()
        while numbers is not None:
            frames.append(dict(zip(self._scorer.columns, numbers)))
            numbers = self._scorer.pop()
        return frames

    def push(self, reference: Any, distorted: Any) -> list[dict[str, float]]:
        """Takes the next frame's luma planes [H,W], or those of several frames [T,H,W].

        All frames are on the CPU, or all on one CUDA device. On a GPU several frames at once are
        faster; the call uses the current stream and waits for it.

        Returns: the numbers of the frames that are now known, by column; a frame waits for the next.
        """
        of_reference = _planes("reference", reference, (2, 3))
        of_distorted = _planes("distorted", distorted, (2, 3))
        return self._pushed(of_reference, of_distorted, _most_threads(reference))

    def _pushed(self, reference: Any, distorted: Any, threads: int) -> list[dict[str, float]]:
        self._scorer.push(_described(reference), _described(distorted), _stream(reference), threads)
        return self._ready()

    def finish(self) -> list[dict[str, float]]:
        """Says that no frame comes any more. Returns: the numbers of the frames that waited."""
        self._scorer.finish()
        return self._ready()


@overload
def vmaf(
    reference: Array,
    distorted: Array,
    *,
    model: str = ...,
    bit_depth: Optional[int] = ...,
    features: Literal[False] = ...,
) -> Array: ...


@overload
def vmaf(
    reference: Array,
    distorted: Array,
    *,
    model: str = ...,
    bit_depth: Optional[int] = ...,
    features: Literal[True],
) -> dict[str, Array]: ...


@without_unknown
def vmaf(
    reference: Any,
    distorted: Any,
    *,
    model: str = "vmaf_v0.6.1",
    bit_depth: Optional[int] = None,
    features: bool = False,
    **unknown: NoReturn,
) -> Any:
    """VMAF of each frame of a clip, exact in all bits of libvmaf's C code.

    Args:
        reference, distorted: luma planes [T,H,W] of consecutive frames; u8, or u16 with samples in
            the low bits; alike in all but their strides; on the CPU or on one CUDA device, whose
            current stream is used and waited for.
        model: as `similis vmaf -m` takes it: a version such as "vmaf_v0.6.1neg", a path, or parts
            such as "path=model.json:enable_transform".
        bit_depth: of a sample, 8, 10, 12 or 16; by default 8 for u8, 16 for u16.
        features: return all numbers, of the model's features too, by libvmaf's names.

    Returns: f64 [T], of torch or CuPy for their arrays, on their device, and else of NumPy; with
        features a dict of such.

    Raises:
        ValueError, TypeError: the planes are not alike or not that, a side is below 33, there is no
            such model, bit_depth does not fit the dtype, or a sample is above 2^bit_depth - 1.
    """
    if unknown:
        refuse_options("vmaf", unknown, vmaf)
    of_reference = _planes("reference", reference, (3,))
    of_distorted = _planes("distorted", distorted, (3,))
    if of_reference.shape != of_distorted.shape:
        raise ValueError(
            f"vmaf: distorted has shape {list(of_distorted.shape)}; it must be that of reference, "
            f"{list(of_reference.shape)}"
        )
    if not isinstance(model, str):
        raise TypeError(f"vmaf: model is of type {type_name(model)}; it must be a str")
    every = values.flag("vmaf", "features", features)
    scorer = VmafScorer(*of_reference.shape[1:], models=model, bit_depth=bit_depth)
    threads = _most_threads(reference)
    frames: list[dict[str, float]] = []
    if _is_on_gpu(of_reference):
        frames += scorer._pushed(of_reference, of_distorted, threads)
    else:
        for one, other in zip(of_reference, of_distorted):
            frames += scorer._pushed(one, other, threads)
    frames += scorer.finish()
    columns = scorer.columns
    if every:
        return {name: _like(reference, [frame[name] for frame in frames]) for name in columns}
    parts = dict(part.partition("=")[::2] for part in model.split(":"))
    score = parts.get("name", "vmaf")
    return _like(reference, [frame[score] for frame in frames])
