# SPDX-License-Identifier: Apache-2.0
"""VMAF of clips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Optional, TypeVar, Union, overload

from .._arrays.kinds import imported, is_of, kind_of, require_kind
from .._library import c_abi, values
from .._library.refusals import type_name
from .._library.vmaf import Scorer

Array = TypeVar("Array")


def _on_host(name: str, array: Any) -> Any:
    """A NumPy array of the same elements."""
    if is_of("torch", "Tensor", array):
        if array.device.type != "cpu":
            raise ValueError(f"vmaf: {name} is on {array.device}; it must be on the CPU")
        return array.detach().numpy()
    if is_of("cupy", "ndarray", array):
        raise ValueError(f"vmaf: {name} is on a GPU; it must be on the CPU")
    if is_of("jax", "Array", array):
        import numpy

        return numpy.asarray(array)
    kind = kind_of("vmaf", array, name)
    require_kind("vmaf", kind, name, array)
    return kind.prepared(array)


def _like(array: Any, scores: list[float]) -> Any:
    """Scores as an array of the library that `array` is of."""
    if is_of("torch", "Tensor", array):
        torch = imported("torch")
        return torch.tensor(scores, dtype=torch.float64)
    import numpy

    return numpy.array(scores, dtype=numpy.float64)


def _planes(name: str, array: Any, axes: int) -> Any:
    planes = _on_host(name, array)
    if planes.ndim != axes:
        letters = "[T, H, W]" if axes == 3 else "[H, W]"
        raise ValueError(f"vmaf: {name} has shape {list(planes.shape)}; it must be {letters}")
    if str(planes.dtype) not in ("uint8", "uint16"):
        raise TypeError(f"vmaf: {name} is {planes.dtype}; it must be uint8 or uint16")
    return planes


def _described(array: Any) -> c_abi.Tensor:
    return kind_of("vmaf", array).describe(array)


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

    def __init__(
        self,
        height: int,
        width: int,
        *,
        models: Union[str, Sequence[str]] = "vmaf_v0.6.1",
        features: Union[str, Sequence[str]] = (),
        bit_depth: Optional[int] = None,
    ) -> None:
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
        """Takes the next frame's luma planes [H,W].

        Returns: the numbers of the frames that are now known, by column; a frame waits for the next.
        """
        held = [
            _planes(name, array, 2)
            for name, array in (("reference", reference), ("distorted", distorted))
        ]
        self._scorer.push(*[_described(each) for each in held])
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


def vmaf(
    reference: Any,
    distorted: Any,
    *,
    model: str = "vmaf_v0.6.1",
    bit_depth: Optional[int] = None,
    features: bool = False,
) -> Any:
    """VMAF of each frame of a clip, exact in all bits of libvmaf's C code.

    Args:
        reference, distorted: luma planes [T,H,W] of consecutive frames; u8, or u16 with samples in
            the low bits; alike in all but their strides; on the CPU.
        model: as `similis vmaf -m` takes it: a version such as "vmaf_v0.6.1neg", a path, or parts
            such as "path=model.json:enable_transform".
        bit_depth: of a sample, 8, 10, 12 or 16; by default 8 for u8, 16 for u16.
        features: return all numbers, of the model's features too, by libvmaf's names.

    Returns: f64 [T], of torch for tensors and else of NumPy; with features a dict of such.

    Raises:
        ValueError, TypeError: the planes are not alike or not that, a side is below 33, there is no
            such model, bit_depth does not fit the dtype, or a sample is above 2^bit_depth - 1.
    """
    of_reference = _planes("reference", reference, 3)
    of_distorted = _planes("distorted", distorted, 3)
    if of_reference.shape != of_distorted.shape:
        raise ValueError(
            f"vmaf: distorted has shape {list(of_distorted.shape)}; it must be that of reference, "
            f"{list(of_reference.shape)}"
        )
    if not isinstance(model, str):
        raise TypeError(f"vmaf: model is of type {type_name(model)}; it must be a str")
    every = values.flag("vmaf", "features", features)
    scorer = VmafScorer(*of_reference.shape[1:], models=model, bit_depth=bit_depth)
    frames: list[dict[str, float]] = []
    for one, other in zip(of_reference, of_distorted):
        frames += scorer.push(one, other)
    frames += scorer.finish()
    columns = scorer.columns
    if every:
        return {name: _like(reference, [frame[name] for frame in frames]) for name in columns}
    parts = dict(part.partition("=")[::2] for part in model.split(":"))
    score = parts.get("name", "vmaf")
    return _like(reference, [frame[score] for frame in frames])
