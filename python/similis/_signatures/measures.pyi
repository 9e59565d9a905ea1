# SPDX-License-Identifier: Apache-2.0
# Written by scripts/python_stubs.py.
from collections.abc import Callable, Sequence
from typing import Any, Literal, Optional, Protocol, TypeVar, Union, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from similis._library.measures import PerAxisFloat, PerAxisInt, Range
from similis._library.values import DataRange

_T = TypeVar("_T", bound=np.generic)
_F = TypeVar("_F", bound=np.floating[Any])

class _JaxArray(Protocol):
    """A method that only jax.Array has, which tells it from other libraries' arrays."""

    def block_until_ready(self) -> Any: ...

_J = TypeVar("_J", bound=_JaxArray)
Coordinates = Optional[Sequence[float]]


@overload
def ssim(
    x: NDArray[Any], y: NDArray[Any], *, data_range: DataRange = None, window_size: PerAxisInt
    = 11, window: Literal["box", "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float
    = 0.01, k2: float = 0.03, sample_covariance: bool = False, padding: Literal["valid",
    "same", "reflect", "replicate", "renormalize"] = "valid", reduction: Literal["mean", "sum"]
    = "mean", rows: Optional[Sequence[int]] = None, sums: bool = False, mask:
    Optional[NDArray[Any]] = None, valid_mask: Optional[NDArray[Any]] = None, channel_axis:
    Optional[int] = None
) -> np.float64: ...
@overload
def ssim(
    x: NDArray[np.float64], y: NDArray[np.float64], *, data_range: DataRange = None,
    window_size: PerAxisInt = 11, window: Literal["box", "gaussian"] = "gaussian", sigma:
    PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03, sample_covariance: bool = False,
    padding: Literal["valid", "same", "reflect", "replicate", "renormalize"] = "valid",
    reduction: Literal["none", "per_image", "per_channel"], rows: Optional[Sequence[int]] =
    None, sums: bool = False, mask: Optional[NDArray[Any]] = None, valid_mask:
    Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def ssim(
    x: NDArray[Any], y: NDArray[Any], *, data_range: DataRange = None, window_size: PerAxisInt
    = 11, window: Literal["box", "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float
    = 0.01, k2: float = 0.03, sample_covariance: bool = False, padding: Literal["valid",
    "same", "reflect", "replicate", "renormalize"] = "valid", reduction: Literal["none",
    "per_image", "per_channel"], rows: Optional[Sequence[int]] = None, sums: bool = False,
    mask: Optional[NDArray[Any]] = None, valid_mask: Optional[NDArray[Any]] = None,
    channel_axis: Optional[int] = None
) -> NDArray[np.float32]: ...
@overload
def ssim(
    x: Tensor, y: Tensor, *, data_range: DataRange = None, window_size: PerAxisInt = 11,
    window: Literal["box", "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float =
    0.01, k2: float = 0.03, sample_covariance: bool = False, padding: Literal["valid", "same",
    "reflect", "replicate", "renormalize"] = "valid", reduction: Literal["mean", "sum", "none",
    "per_image", "per_channel"] = "mean", rows: Optional[Sequence[int]] = None, sums: bool =
    False, mask: Optional[Tensor] = None, valid_mask: Optional[Tensor] = None, channel_axis:
    Optional[int] = None
) -> Tensor: ...
@overload
def ssim(
    x: _J, y: _J, *, data_range: DataRange = None, window_size: PerAxisInt = 11, window:
    Literal["box", "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2:
    float = 0.03, sample_covariance: bool = False, padding: Literal["valid", "same", "reflect",
    "replicate", "renormalize"] = "valid", reduction: Literal["mean", "sum", "none",
    "per_image", "per_channel"] = "mean", rows: Optional[Sequence[int]] = None, sums: bool =
    False, mask: Optional[_J] = None, valid_mask: Optional[_J] = None, channel_axis:
    Optional[int] = None
) -> _J: ...

@overload
def l1_ssim(
    x: NDArray[Any], y: NDArray[Any], *, weight: float = 0.2, data_range: DataRange = None,
    window_size: PerAxisInt = 11, window: Literal["box", "gaussian"] = "gaussian", sigma:
    PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03, sample_covariance: bool = False,
    padding: Literal["valid", "same", "reflect", "replicate", "renormalize"] = "valid",
    reduction: Literal["mean", "sum"] = "mean", rows: Optional[Sequence[int]] = None, sums:
    bool = False, mask: Optional[NDArray[Any]] = None, valid_mask: Optional[NDArray[Any]] =
    None, channel_axis: Optional[int] = None
) -> np.float64: ...
@overload
def l1_ssim(
    x: NDArray[np.float64], y: NDArray[np.float64], *, weight: float = 0.2, data_range:
    DataRange = None, window_size: PerAxisInt = 11, window: Literal["box", "gaussian"] =
    "gaussian", sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03,
    sample_covariance: bool = False, padding: Literal["valid", "same", "reflect", "replicate",
    "renormalize"] = "valid", reduction: Literal["none", "per_image", "per_channel"], rows:
    Optional[Sequence[int]] = None, sums: bool = False, mask: Optional[NDArray[Any]] = None,
    valid_mask: Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def l1_ssim(
    x: NDArray[Any], y: NDArray[Any], *, weight: float = 0.2, data_range: DataRange = None,
    window_size: PerAxisInt = 11, window: Literal["box", "gaussian"] = "gaussian", sigma:
    PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03, sample_covariance: bool = False,
    padding: Literal["valid", "same", "reflect", "replicate", "renormalize"] = "valid",
    reduction: Literal["none", "per_image", "per_channel"], rows: Optional[Sequence[int]] =
    None, sums: bool = False, mask: Optional[NDArray[Any]] = None, valid_mask:
    Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float32]: ...
@overload
def l1_ssim(
    x: Tensor, y: Tensor, *, weight: float = 0.2, data_range: DataRange = None, window_size:
    PerAxisInt = 11, window: Literal["box", "gaussian"] = "gaussian", sigma: PerAxisFloat =
    1.5, k1: float = 0.01, k2: float = 0.03, sample_covariance: bool = False, padding:
    Literal["valid", "same", "reflect", "replicate", "renormalize"] = "valid", reduction:
    Literal["mean", "sum", "none", "per_image", "per_channel"] = "mean", rows:
    Optional[Sequence[int]] = None, sums: bool = False, mask: Optional[Tensor] = None,
    valid_mask: Optional[Tensor] = None, channel_axis: Optional[int] = None
) -> Tensor: ...
@overload
def l1_ssim(
    x: _J, y: _J, *, weight: float = 0.2, data_range: DataRange = None, window_size: PerAxisInt
    = 11, window: Literal["box", "gaussian"] = "gaussian", sigma: PerAxisFloat = 1.5, k1: float
    = 0.01, k2: float = 0.03, sample_covariance: bool = False, padding: Literal["valid",
    "same", "reflect", "replicate", "renormalize"] = "valid", reduction: Literal["mean", "sum",
    "none", "per_image", "per_channel"] = "mean", rows: Optional[Sequence[int]] = None, sums:
    bool = False, mask: Optional[_J] = None, valid_mask: Optional[_J] = None, channel_axis:
    Optional[int] = None
) -> _J: ...

@overload
def ms_ssim(
    x: NDArray[Any], y: NDArray[Any], *, data_range: DataRange = None, window_size: PerAxisInt
    = 11, sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03, padding:
    Literal["valid", "same", "reflect", "replicate", "renormalize"] = "valid", reduction:
    Literal["mean", "sum"] = "mean", weights: Optional[Sequence[float]] = None, downsample:
    Literal["vainf", "ceil", "floor", "piq"] = "vainf", mask: Optional[NDArray[Any]] = None,
    channel_axis: Optional[int] = None
) -> np.float64: ...
@overload
def ms_ssim(
    x: NDArray[np.float64], y: NDArray[np.float64], *, data_range: DataRange = None,
    window_size: PerAxisInt = 11, sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2: float =
    0.03, padding: Literal["valid", "same", "reflect", "replicate", "renormalize"] = "valid",
    reduction: Literal["per_image", "per_channel"], weights: Optional[Sequence[float]] = None,
    downsample: Literal["vainf", "ceil", "floor", "piq"] = "vainf", mask:
    Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def ms_ssim(
    x: NDArray[Any], y: NDArray[Any], *, data_range: DataRange = None, window_size: PerAxisInt
    = 11, sigma: PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03, padding:
    Literal["valid", "same", "reflect", "replicate", "renormalize"] = "valid", reduction:
    Literal["per_image", "per_channel"], weights: Optional[Sequence[float]] = None, downsample:
    Literal["vainf", "ceil", "floor", "piq"] = "vainf", mask: Optional[NDArray[Any]] = None,
    channel_axis: Optional[int] = None
) -> NDArray[np.float32]: ...
@overload
def ms_ssim(
    x: Tensor, y: Tensor, *, data_range: DataRange = None, window_size: PerAxisInt = 11, sigma:
    PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03, padding: Literal["valid", "same",
    "reflect", "replicate", "renormalize"] = "valid", reduction: Literal["mean", "sum",
    "per_image", "per_channel"] = "mean", weights: Optional[Sequence[float]] = None,
    downsample: Literal["vainf", "ceil", "floor", "piq"] = "vainf", mask: Optional[Tensor] =
    None, channel_axis: Optional[int] = None
) -> Tensor: ...
@overload
def ms_ssim(
    x: _J, y: _J, *, data_range: DataRange = None, window_size: PerAxisInt = 11, sigma:
    PerAxisFloat = 1.5, k1: float = 0.01, k2: float = 0.03, padding: Literal["valid", "same",
    "reflect", "replicate", "renormalize"] = "valid", reduction: Literal["mean", "sum",
    "per_image", "per_channel"] = "mean", weights: Optional[Sequence[float]] = None,
    downsample: Literal["vainf", "ceil", "floor", "piq"] = "vainf", mask: Optional[_J] = None,
    channel_axis: Optional[int] = None
) -> _J: ...

@overload
def lncc(
    x: NDArray[Any], y: NDArray[Any], *, window_size: PerAxisInt = 3, window: Literal["box",
    "gaussian"] = "box", sigma: PerAxisFloat = 1.5, padding: Literal["valid", "same",
    "renormalize"] = "same", reduction: Literal["mean", "sum"] = "mean", rows:
    Optional[Sequence[int]] = None, sums: bool = False, smooth_nr: float = 1e-05, smooth_dr:
    float = 1e-05, signed: bool = False, gradient: Literal["exact", "ants"] = "exact",
    workspace: Literal["auto", "small"] = "auto", mask: Optional[NDArray[Any]] = None,
    valid_mask: Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> np.float64: ...
@overload
def lncc(
    x: NDArray[np.float64], y: NDArray[np.float64], *, window_size: PerAxisInt = 3, window:
    Literal["box", "gaussian"] = "box", sigma: PerAxisFloat = 1.5, padding: Literal["valid",
    "same", "renormalize"] = "same", reduction: Literal["none", "per_image", "per_channel"],
    rows: Optional[Sequence[int]] = None, sums: bool = False, smooth_nr: float = 1e-05,
    smooth_dr: float = 1e-05, signed: bool = False, gradient: Literal["exact", "ants"] =
    "exact", workspace: Literal["auto", "small"] = "auto", mask: Optional[NDArray[Any]] = None,
    valid_mask: Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def lncc(
    x: NDArray[Any], y: NDArray[Any], *, window_size: PerAxisInt = 3, window: Literal["box",
    "gaussian"] = "box", sigma: PerAxisFloat = 1.5, padding: Literal["valid", "same",
    "renormalize"] = "same", reduction: Literal["none", "per_image", "per_channel"], rows:
    Optional[Sequence[int]] = None, sums: bool = False, smooth_nr: float = 1e-05, smooth_dr:
    float = 1e-05, signed: bool = False, gradient: Literal["exact", "ants"] = "exact",
    workspace: Literal["auto", "small"] = "auto", mask: Optional[NDArray[Any]] = None,
    valid_mask: Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float32]: ...
@overload
def lncc(
    x: Tensor, y: Tensor, *, window_size: PerAxisInt = 3, window: Literal["box", "gaussian"] =
    "box", sigma: PerAxisFloat = 1.5, padding: Literal["valid", "same", "renormalize"] =
    "same", reduction: Literal["mean", "sum", "none", "per_image", "per_channel"] = "mean",
    rows: Optional[Sequence[int]] = None, sums: bool = False, smooth_nr: float = 1e-05,
    smooth_dr: float = 1e-05, signed: bool = False, gradient: Literal["exact", "ants"] =
    "exact", workspace: Literal["auto", "small"] = "auto", mask: Optional[Tensor] = None,
    valid_mask: Optional[Tensor] = None, channel_axis: Optional[int] = None
) -> Tensor: ...
@overload
def lncc(
    x: _J, y: _J, *, window_size: PerAxisInt = 3, window: Literal["box", "gaussian"] = "box",
    sigma: PerAxisFloat = 1.5, padding: Literal["valid", "same", "renormalize"] = "same",
    reduction: Literal["mean", "sum", "none", "per_image", "per_channel"] = "mean", rows:
    Optional[Sequence[int]] = None, sums: bool = False, smooth_nr: float = 1e-05, smooth_dr:
    float = 1e-05, signed: bool = False, gradient: Literal["exact", "ants"] = "exact",
    workspace: Literal["auto", "small"] = "auto", mask: Optional[_J] = None, valid_mask:
    Optional[_J] = None, channel_axis: Optional[int] = None
) -> _J: ...

@overload
def ncc(
    x: NDArray[Any], y: NDArray[Any], *, reduction: Literal["mean", "sum"] = "mean",
    channel_axis: Optional[int] = None
) -> np.float64: ...
@overload
def ncc(
    x: NDArray[np.float64], y: NDArray[np.float64], *, reduction: Literal["per_image",
    "per_channel"], channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def ncc(
    x: NDArray[Any], y: NDArray[Any], *, reduction: Literal["per_image", "per_channel"],
    channel_axis: Optional[int] = None
) -> NDArray[np.float32]: ...
@overload
def ncc(
    x: Tensor, y: Tensor, *, reduction: Literal["mean", "sum", "per_image", "per_channel"] =
    "mean", channel_axis: Optional[int] = None
) -> Tensor: ...
@overload
def ncc(
    x: _J, y: _J, *, reduction: Literal["mean", "sum", "per_image", "per_channel"] = "mean",
    channel_axis: Optional[int] = None
) -> _J: ...

@overload
def mutual_information(
    x: NDArray[Any], y: NDArray[Any], *, num_bins: int = 32, kernel: Literal["b_spline",
    "gaussian", "delta"] = "b_spline", sigma_ratio: float = 1.0, range: Range = "per_image",
    normalized: bool = False, smooth_nr: float = 0.0, smooth_dr: float = 0.0, method:
    Literal["exact", "binned"] = "exact", sampling: float = 1.0, seed: int = 0, reduction:
    Literal["mean", "sum"] = "mean", mask: Optional[NDArray[Any]] = None, histogram:
    Optional[NDArray[Any]] = None, limits: Optional[NDArray[Any]] = None, channel_axis:
    Optional[int] = None
) -> np.float64: ...
@overload
def mutual_information(
    x: NDArray[np.float64], y: NDArray[np.float64], *, num_bins: int = 32, kernel:
    Literal["b_spline", "gaussian", "delta"] = "b_spline", sigma_ratio: float = 1.0, range:
    Range = "per_image", normalized: bool = False, smooth_nr: float = 0.0, smooth_dr: float =
    0.0, method: Literal["exact", "binned"] = "exact", sampling: float = 1.0, seed: int = 0,
    reduction: Literal["none", "per_image", "per_channel"], mask: Optional[NDArray[Any]] =
    None, histogram: Optional[NDArray[Any]] = None, limits: Optional[NDArray[Any]] = None,
    channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def mutual_information(
    x: NDArray[Any], y: NDArray[Any], *, num_bins: int = 32, kernel: Literal["b_spline",
    "gaussian", "delta"] = "b_spline", sigma_ratio: float = 1.0, range: Range = "per_image",
    normalized: bool = False, smooth_nr: float = 0.0, smooth_dr: float = 0.0, method:
    Literal["exact", "binned"] = "exact", sampling: float = 1.0, seed: int = 0, reduction:
    Literal["none", "per_image", "per_channel"], mask: Optional[NDArray[Any]] = None,
    histogram: Optional[NDArray[Any]] = None, limits: Optional[NDArray[Any]] = None,
    channel_axis: Optional[int] = None
) -> NDArray[np.float32]: ...
@overload
def mutual_information(
    x: Tensor, y: Tensor, *, num_bins: int = 32, kernel: Literal["b_spline", "gaussian",
    "delta"] = "b_spline", sigma_ratio: float = 1.0, range: Range = "per_image", normalized:
    bool = False, smooth_nr: float = 0.0, smooth_dr: float = 0.0, method: Literal["exact",
    "binned"] = "exact", sampling: float = 1.0, seed: int = 0, reduction: Literal["mean",
    "sum", "none", "per_image", "per_channel"] = "mean", mask: Optional[Tensor] = None,
    histogram: Optional[Tensor] = None, limits: Optional[Tensor] = None, channel_axis:
    Optional[int] = None
) -> Tensor: ...
@overload
def mutual_information(
    x: _J, y: _J, *, num_bins: int = 32, kernel: Literal["b_spline", "gaussian", "delta"] =
    "b_spline", sigma_ratio: float = 1.0, range: Range = "per_image", normalized: bool = False,
    smooth_nr: float = 0.0, smooth_dr: float = 0.0, method: Literal["exact", "binned"] =
    "exact", sampling: float = 1.0, seed: int = 0, reduction: Literal["mean", "sum", "none",
    "per_image", "per_channel"] = "mean", mask: Optional[_J] = None, histogram: Optional[_J] =
    None, limits: Optional[_J] = None, channel_axis: Optional[int] = None
) -> _J: ...

@overload
def mse(
    x: NDArray[Any], y: NDArray[Any], *, reduction: Literal["mean", "sum"] = "mean", mask:
    Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> np.float64: ...
@overload
def mse(
    x: NDArray[np.float64], y: NDArray[np.float64], *, reduction: Literal["per_image",
    "per_channel"], mask: Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def mse(
    x: NDArray[Any], y: NDArray[Any], *, reduction: Literal["per_image", "per_channel"], mask:
    Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float32]: ...
@overload
def mse(
    x: Tensor, y: Tensor, *, reduction: Literal["mean", "sum", "per_image", "per_channel"] =
    "mean", mask: Optional[Tensor] = None, channel_axis: Optional[int] = None
) -> Tensor: ...
@overload
def mse(
    x: _J, y: _J, *, reduction: Literal["mean", "sum", "per_image", "per_channel"] = "mean",
    mask: Optional[_J] = None, channel_axis: Optional[int] = None
) -> _J: ...

@overload
def mae(
    x: NDArray[Any], y: NDArray[Any], *, reduction: Literal["mean", "sum"] = "mean", mask:
    Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> np.float64: ...
@overload
def mae(
    x: NDArray[np.float64], y: NDArray[np.float64], *, reduction: Literal["per_image",
    "per_channel"], mask: Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def mae(
    x: NDArray[Any], y: NDArray[Any], *, reduction: Literal["per_image", "per_channel"], mask:
    Optional[NDArray[Any]] = None, channel_axis: Optional[int] = None
) -> NDArray[np.float32]: ...
@overload
def mae(
    x: Tensor, y: Tensor, *, reduction: Literal["mean", "sum", "per_image", "per_channel"] =
    "mean", mask: Optional[Tensor] = None, channel_axis: Optional[int] = None
) -> Tensor: ...
@overload
def mae(
    x: _J, y: _J, *, reduction: Literal["mean", "sum", "per_image", "per_channel"] = "mean",
    mask: Optional[_J] = None, channel_axis: Optional[int] = None
) -> _J: ...

@overload
def psnr(
    x: NDArray[Any], y: NDArray[Any], *, data_range: DataRange = None, reduction:
    Literal["mean"] = "mean", mask: Optional[NDArray[Any]] = None, channel_axis: Optional[int]
    = None
) -> np.float64: ...
@overload
def psnr(
    x: NDArray[np.float64], y: NDArray[np.float64], *, data_range: DataRange = None, reduction:
    Literal["per_image", "per_channel"], mask: Optional[NDArray[Any]] = None, channel_axis:
    Optional[int] = None
) -> NDArray[np.float64]: ...
@overload
def psnr(
    x: NDArray[Any], y: NDArray[Any], *, data_range: DataRange = None, reduction:
    Literal["per_image", "per_channel"], mask: Optional[NDArray[Any]] = None, channel_axis:
    Optional[int] = None
) -> NDArray[np.float32]: ...
@overload
def psnr(
    x: Tensor, y: Tensor, *, data_range: DataRange = None, reduction: Literal["mean",
    "per_image", "per_channel"] = "mean", mask: Optional[Tensor] = None, channel_axis:
    Optional[int] = None
) -> Tensor: ...
@overload
def psnr(
    x: _J, y: _J, *, data_range: DataRange = None, reduction: Literal["mean", "per_image",
    "per_channel"] = "mean", mask: Optional[_J] = None, channel_axis: Optional[int] = None
) -> _J: ...

@overload
def value_and_gradient(
    measure: Callable[..., Any],
    x: NDArray[_F],
    y: NDArray[_F],
    *,
    wrt: Literal["x", "y"] = "x",
    **options: Any,
) -> tuple[Any, NDArray[_F]]: ...
@overload
def value_and_gradient(
    measure: Callable[..., Any],
    x: NDArray[_F],
    y: NDArray[_F],
    *,
    wrt: Literal["both"],
    **options: Any,
) -> tuple[Any, NDArray[_F], NDArray[_F]]: ...
@overload
def value_and_gradient(
    measure: Callable[..., Any],
    x: Tensor,
    y: Tensor,
    *,
    wrt: Literal["x", "y"] = "x",
    **options: Any,
) -> tuple[Tensor, Tensor]: ...
@overload
def value_and_gradient(
    measure: Callable[..., Any],
    x: Tensor,
    y: Tensor,
    *,
    wrt: Literal["both"],
    **options: Any,
) -> tuple[Tensor, Tensor, Tensor]: ...
