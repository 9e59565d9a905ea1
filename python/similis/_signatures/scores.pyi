# SPDX-License-Identifier: Apache-2.0
# Written by scripts/python_stubs.py.
from collections.abc import Callable, Sequence
from typing import Any, Literal, Optional, Protocol, TypeVar, Union, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from similis._library.measures import PerAxisFloat, PerAxisInt, Range
from similis._library.values import DataRange
from similis._functions.scores import FloatSsimMeans

_T = TypeVar("_T", bound=np.generic)
_F = TypeVar("_F", bound=np.floating[Any])

class _JaxArray(Protocol):
    """A method that only jax.Array has, which tells it from other libraries' arrays."""

    def block_until_ready(self) -> Any: ...

_J = TypeVar("_J", bound=_JaxArray)
Coordinates = Optional[Sequence[float]]


@overload
def integer_ssim(
    x: NDArray[Any], y: NDArray[Any], *, bit_depth: Optional[int] = None, channel_axis:
    Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def integer_ssim(
    x: Tensor, y: Tensor, *, bit_depth: Optional[int] = None, channel_axis: Optional[int] =
    None
) -> Tensor: ...

@overload
def float_ssim(
    x: NDArray[Any], y: NDArray[Any], *, bit_depth: Optional[int] = None, scale: Optional[int]
    = None, enable_db: bool = False, clip_db: bool = False, enable_lcs: Literal[False] = False,
    channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def float_ssim(
    x: NDArray[Any], y: NDArray[Any], *, bit_depth: Optional[int] = None, scale: Optional[int]
    = None, enable_db: bool = False, clip_db: bool = False, enable_lcs: Literal[True],
    channel_axis: Optional[int] = None
) -> FloatSsimMeans: ...
@overload
def float_ssim(
    x: Tensor, y: Tensor, *, bit_depth: Optional[int] = None, scale: Optional[int] = None,
    enable_db: bool = False, clip_db: bool = False, enable_lcs: Literal[False] = False,
    channel_axis: Optional[int] = None
) -> Tensor: ...
@overload
def float_ssim(
    x: Tensor, y: Tensor, *, bit_depth: Optional[int] = None, scale: Optional[int] = None,
    enable_db: bool = False, clip_db: bool = False, enable_lcs: Literal[True], channel_axis:
    Optional[int] = None
) -> FloatSsimMeans: ...

@overload
def float_ms_ssim(
    x: NDArray[Any], y: NDArray[Any], *, bit_depth: Optional[int] = None, enable_db: bool =
    False, clip_db: bool = False, enable_lcs: Literal[False] = False, channel_axis:
    Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def float_ms_ssim(
    x: NDArray[Any], y: NDArray[Any], *, bit_depth: Optional[int] = None, enable_db: bool =
    False, clip_db: bool = False, enable_lcs: Literal[True], channel_axis: Optional[int] = None
) -> FloatSsimMeans: ...
@overload
def float_ms_ssim(
    x: Tensor, y: Tensor, *, bit_depth: Optional[int] = None, enable_db: bool = False, clip_db:
    bool = False, enable_lcs: Literal[False] = False, channel_axis: Optional[int] = None
) -> Tensor: ...
@overload
def float_ms_ssim(
    x: Tensor, y: Tensor, *, bit_depth: Optional[int] = None, enable_db: bool = False, clip_db:
    bool = False, enable_lcs: Literal[True], channel_axis: Optional[int] = None
) -> FloatSsimMeans: ...

@overload
def libvmaf_psnr(
    x: NDArray[Any], y: NDArray[Any], *, bit_depth: Optional[int] = None, channel_axis:
    Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def libvmaf_psnr(
    x: Tensor, y: Tensor, *, bit_depth: Optional[int] = None, channel_axis: Optional[int] =
    None
) -> Tensor: ...

@overload
def ssimulacra2(
    reference: NDArray[Any], distorted: NDArray[Any], *, mode: Literal["exact", "fast"] =
    "exact", transfer: Literal["srgb", "linear"] = "srgb", channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def ssimulacra2(
    reference: Tensor, distorted: Tensor, *, mode: Literal["exact", "fast"] = "exact",
    transfer: Literal["srgb", "linear"] = "srgb", channel_axis: Optional[int] = None
) -> Tensor: ...
@overload
def ssimulacra2(
    reference: _J, distorted: _J, *, mode: Literal["exact", "fast"] = "exact", transfer:
    Literal["srgb", "linear"] = "srgb", channel_axis: Optional[int] = None
) -> _J: ...

@overload
def vmaf(
    reference: NDArray[Any], distorted: NDArray[Any], *, model: str = "vmaf_v0.6.1", bit_depth:
    Optional[int] = None, features: Literal[False] = False
) -> NDArray[np.float64]: ...
@overload
def vmaf(
    reference: NDArray[Any], distorted: NDArray[Any], *, model: str = "vmaf_v0.6.1", bit_depth:
    Optional[int] = None, features: Literal[True]
) -> dict[str, NDArray[np.float64]]: ...
@overload
def vmaf(
    reference: Tensor, distorted: Tensor, *, model: str = "vmaf_v0.6.1", bit_depth:
    Optional[int] = None, features: Literal[False] = False
) -> Tensor: ...
@overload
def vmaf(
    reference: Tensor, distorted: Tensor, *, model: str = "vmaf_v0.6.1", bit_depth:
    Optional[int] = None, features: Literal[True]
) -> dict[str, Tensor]: ...

@overload
def histogram(
    x: NDArray[Any], y: NDArray[Any], *, num_bins: int = 32, kernel: Literal["b_spline",
    "gaussian", "delta"] = "b_spline", sigma_ratio: float = 1.0, range: Range = "per_image",
    method: Literal["exact", "binned"] = "exact", sampling: float = 1.0, seed: int = 0, mask:
    Optional[NDArray[Any]] = None, limits: Optional[NDArray[Any]] = None, channel_axis:
    Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def histogram(
    x: Tensor, y: Tensor, *, num_bins: int = 32, kernel: Literal["b_spline", "gaussian",
    "delta"] = "b_spline", sigma_ratio: float = 1.0, range: Range = "per_image", method:
    Literal["exact", "binned"] = "exact", sampling: float = 1.0, seed: int = 0, mask:
    Optional[Tensor] = None, limits: Optional[Tensor] = None, channel_axis: Optional[int] =
    None
) -> Tensor: ...
@overload
def histogram(
    x: _J, y: _J, *, num_bins: int = 32, kernel: Literal["b_spline", "gaussian", "delta"] =
    "b_spline", sigma_ratio: float = 1.0, range: Range = "per_image", method: Literal["exact",
    "binned"] = "exact", sampling: float = 1.0, seed: int = 0, mask: Optional[_J] = None,
    limits: Optional[_J] = None, channel_axis: Optional[int] = None
) -> _J: ...

@overload
def mutual_information_from_histogram(
    histogram: NDArray[np.float64], *, sigma_ratio: float = 1.0, normalized: bool = False,
    smooth_nr: float = 0.0, smooth_dr: float = 0.0, method: Literal["exact", "binned"] =
    "exact", reduction: Literal["mean", "sum"] = "mean"
) -> np.float64: ...
@overload
def mutual_information_from_histogram(
    histogram: NDArray[np.float64], *, sigma_ratio: float = 1.0, normalized: bool = False,
    smooth_nr: float = 0.0, smooth_dr: float = 0.0, method: Literal["exact", "binned"] =
    "exact", reduction: Literal["none", "per_image", "per_channel"]
) -> NDArray[np.float64]: ...
@overload
def mutual_information_from_histogram(
    histogram: Tensor, *, sigma_ratio: float = 1.0, normalized: bool = False, smooth_nr: float
    = 0.0, smooth_dr: float = 0.0, method: Literal["exact", "binned"] = "exact", reduction:
    Literal["mean", "sum", "none", "per_image", "per_channel"] = "mean"
) -> Tensor: ...
