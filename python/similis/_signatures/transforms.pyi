# SPDX-License-Identifier: Apache-2.0
# Written by scripts/python_stubs.py.
from collections.abc import Callable, Sequence
from typing import Any, Literal, Optional, Protocol, TypeVar, Union, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from similis._library.measures import PerAxisFloat, PerAxisInt, Range
from similis._library.values import DataRange
from similis._library.warp import Pair

_T = TypeVar("_T", bound=np.generic)
_F = TypeVar("_F", bound=np.floating[Any])

class _JaxArray(Protocol):
    """A method that only jax.Array has, which tells it from other libraries' arrays."""

    def block_until_ready(self) -> Any: ...

_J = TypeVar("_J", bound=_JaxArray)
Coordinates = Optional[Sequence[float]]


@overload
def sample(
    image: NDArray[_T], *, affine: Optional[NDArray[Any]] = None, displacement:
    Optional[NDArray[Any]] = None, grid: Optional[NDArray[Any]] = None, grid_affine:
    Optional[NDArray[Any]] = None, out_shape: Optional[Sequence[int]] = None, mode:
    Literal["linear", "nearest", "cubic"] = "linear", padding_mode: Literal["zeros", "border",
    "reflection"] = "zeros", align_corners: bool = True, prefilter: bool = True, min_coords:
    Coordinates = None, max_coords: Coordinates = None, rows: Pair = None, image_rows: Pair =
    None, cells: Pair = None, deterministic: Optional[bool] = None, output:
    Optional[NDArray[Any]] = None
) -> NDArray[_T]: ...
@overload
def sample(
    image: Tensor, *, affine: Optional[Tensor] = None, displacement: Optional[Tensor] = None,
    grid: Optional[Tensor] = None, grid_affine: Optional[Tensor] = None, out_shape:
    Optional[Sequence[int]] = None, mode: Literal["linear", "nearest", "cubic"] = "linear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros", align_corners: bool =
    True, prefilter: bool = True, min_coords: Coordinates = None, max_coords: Coordinates =
    None, rows: Pair = None, image_rows: Pair = None, cells: Pair = None, deterministic:
    Optional[bool] = None, output: Optional[Tensor] = None
) -> Tensor: ...
@overload
def sample(
    image: _J, *, affine: Optional[_J] = None, displacement: Optional[_J] = None, grid:
    Optional[_J] = None, grid_affine: Optional[_J] = None, out_shape: Optional[Sequence[int]] =
    None, mode: Literal["linear", "nearest", "cubic"] = "linear", padding_mode:
    Literal["zeros", "border", "reflection"] = "zeros", align_corners: bool = True, prefilter:
    bool = True, min_coords: Coordinates = None, max_coords: Coordinates = None, rows: Pair =
    None, image_rows: Pair = None, cells: Pair = None, deterministic: Optional[bool] = None,
    output: Optional[_J] = None
) -> _J: ...

@overload
def compose(
    u: NDArray[_T], v: NDArray[Any], *, affine: Optional[NDArray[Any]] = None, padding_mode:
    Literal["zeros", "border", "reflection"] = "zeros", align_corners: bool = True, min_coords:
    Coordinates = None, max_coords: Coordinates = None, rows: Pair = None, image_rows: Pair =
    None, cells: Pair = None, deterministic: Optional[bool] = None, output:
    Optional[NDArray[Any]] = None
) -> NDArray[_T]: ...
@overload
def compose(
    u: Tensor, v: Tensor, *, affine: Optional[Tensor] = None, padding_mode: Literal["zeros",
    "border", "reflection"] = "zeros", align_corners: bool = True, min_coords: Coordinates =
    None, max_coords: Coordinates = None, rows: Pair = None, image_rows: Pair = None, cells:
    Pair = None, deterministic: Optional[bool] = None, output: Optional[Tensor] = None
) -> Tensor: ...
@overload
def compose(
    u: _J, v: _J, *, affine: Optional[_J] = None, padding_mode: Literal["zeros", "border",
    "reflection"] = "zeros", align_corners: bool = True, min_coords: Coordinates = None,
    max_coords: Coordinates = None, rows: Pair = None, image_rows: Pair = None, cells: Pair =
    None, deterministic: Optional[bool] = None, output: Optional[_J] = None
) -> _J: ...

@overload
def affine_grid(
    affine: NDArray[_T], displacement: Optional[NDArray[Any]] = None, *, out_shape:
    Optional[Sequence[int]] = None, align_corners: bool = True, min_coords: Coordinates = None,
    max_coords: Coordinates = None, rows: Pair = None, output: Optional[NDArray[Any]] = None
) -> NDArray[_T]: ...
@overload
def affine_grid(
    affine: Tensor, displacement: Optional[Tensor] = None, *, out_shape:
    Optional[Sequence[int]] = None, align_corners: bool = True, min_coords: Coordinates = None,
    max_coords: Coordinates = None, rows: Pair = None, output: Optional[Tensor] = None
) -> Tensor: ...
@overload
def affine_grid(
    affine: _J, displacement: Optional[_J] = None, *, out_shape: Optional[Sequence[int]] =
    None, align_corners: bool = True, min_coords: Coordinates = None, max_coords: Coordinates =
    None, rows: Pair = None, output: Optional[_J] = None
) -> _J: ...

@overload
def sample_labels(
    image: NDArray[_T], *, affine: Optional[NDArray[Any]] = None, displacement:
    Optional[NDArray[Any]] = None, grid: Optional[NDArray[Any]] = None, grid_affine:
    Optional[NDArray[Any]] = None, out_shape: Optional[Sequence[int]] = None, padding_mode:
    Literal["zeros", "border", "reflection"] = "zeros", align_corners: bool = True, min_coords:
    Coordinates = None, max_coords: Coordinates = None, rows: Pair = None, image_rows: Pair =
    None, cells: Pair = None, background: float = 0, smallest_label: Optional[float] = None,
    return_weight: Literal[False] = False
) -> NDArray[_T]: ...
@overload
def sample_labels(
    image: NDArray[_T], *, affine: Optional[NDArray[Any]] = None, displacement:
    Optional[NDArray[Any]] = None, grid: Optional[NDArray[Any]] = None, grid_affine:
    Optional[NDArray[Any]] = None, out_shape: Optional[Sequence[int]] = None, padding_mode:
    Literal["zeros", "border", "reflection"] = "zeros", align_corners: bool = True, min_coords:
    Coordinates = None, max_coords: Coordinates = None, rows: Pair = None, image_rows: Pair =
    None, cells: Pair = None, background: float = 0, smallest_label: Optional[float] = None,
    return_weight: Literal[True]
) -> tuple[NDArray[_T], NDArray[Any]]: ...
@overload
def sample_labels(
    image: Tensor, *, affine: Optional[Tensor] = None, displacement: Optional[Tensor] = None,
    grid: Optional[Tensor] = None, grid_affine: Optional[Tensor] = None, out_shape:
    Optional[Sequence[int]] = None, padding_mode: Literal["zeros", "border", "reflection"] =
    "zeros", align_corners: bool = True, min_coords: Coordinates = None, max_coords:
    Coordinates = None, rows: Pair = None, image_rows: Pair = None, cells: Pair = None,
    background: float = 0, smallest_label: Optional[float] = None, return_weight:
    Literal[False] = False
) -> Tensor: ...
@overload
def sample_labels(
    image: Tensor, *, affine: Optional[Tensor] = None, displacement: Optional[Tensor] = None,
    grid: Optional[Tensor] = None, grid_affine: Optional[Tensor] = None, out_shape:
    Optional[Sequence[int]] = None, padding_mode: Literal["zeros", "border", "reflection"] =
    "zeros", align_corners: bool = True, min_coords: Coordinates = None, max_coords:
    Coordinates = None, rows: Pair = None, image_rows: Pair = None, cells: Pair = None,
    background: float = 0, smallest_label: Optional[float] = None, return_weight: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def sample_labels(
    image: _J, *, affine: Optional[_J] = None, displacement: Optional[_J] = None, grid:
    Optional[_J] = None, grid_affine: Optional[_J] = None, out_shape: Optional[Sequence[int]] =
    None, padding_mode: Literal["zeros", "border", "reflection"] = "zeros", align_corners: bool
    = True, min_coords: Coordinates = None, max_coords: Coordinates = None, rows: Pair = None,
    image_rows: Pair = None, cells: Pair = None, background: float = 0, smallest_label:
    Optional[float] = None, return_weight: Literal[False] = False
) -> _J: ...
@overload
def sample_labels(
    image: _J, *, affine: Optional[_J] = None, displacement: Optional[_J] = None, grid:
    Optional[_J] = None, grid_affine: Optional[_J] = None, out_shape: Optional[Sequence[int]] =
    None, padding_mode: Literal["zeros", "border", "reflection"] = "zeros", align_corners: bool
    = True, min_coords: Coordinates = None, max_coords: Coordinates = None, rows: Pair = None,
    image_rows: Pair = None, cells: Pair = None, background: float = 0, smallest_label:
    Optional[float] = None, return_weight: Literal[True]
) -> tuple[_J, _J]: ...

@overload
def exponentiate(v: NDArray[_T], n: int = 7, *, align_corners: bool = True) -> NDArray[_T]: ...
@overload
def exponentiate(v: Tensor, n: int = 7, *, align_corners: bool = True) -> Tensor: ...
@overload
def exponentiate(v: _J, n: int = 7, *, align_corners: bool = True) -> _J: ...

@overload
def invert(
    u: NDArray[_T], iterations: int = 30, *, align_corners: bool = True, tolerance: float =
    0.01, rows: Pair = None, u_rows: Pair = None
) -> tuple[NDArray[_T], NDArray[_T]]: ...
@overload
def invert(
    u: Tensor, iterations: int = 30, *, align_corners: bool = True, tolerance: float = 0.01,
    rows: Pair = None, u_rows: Pair = None
) -> tuple[Tensor, Tensor]: ...
@overload
def invert(
    u: _J, iterations: int = 30, *, align_corners: bool = True, tolerance: float = 0.01, rows:
    Pair = None, u_rows: Pair = None
) -> tuple[_J, _J]: ...

@overload
def jacobian_determinant(
    u: NDArray[Any], *, align_corners: bool = True, min_coords: Coordinates = None, max_coords:
    Coordinates = None, rows: Pair = None, u_rows: Pair = None
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def jacobian_determinant(
    u: Tensor, *, align_corners: bool = True, min_coords: Coordinates = None, max_coords:
    Coordinates = None, rows: Pair = None, u_rows: Pair = None
) -> tuple[Tensor, Tensor]: ...
@overload
def jacobian_determinant(
    u: _J, *, align_corners: bool = True, min_coords: Coordinates = None, max_coords:
    Coordinates = None, rows: Pair = None, u_rows: Pair = None
) -> tuple[_J, _J]: ...

@overload
def smooth(
    x: NDArray[_T], sigma: Union[float, Sequence[float]], *, field: bool = False, truncate:
    float = 3.0, padding: Literal["replicate", "zeros"] = "replicate"
) -> NDArray[_T]: ...
@overload
def smooth(
    x: Tensor, sigma: Union[float, Sequence[float]], *, field: bool = False, truncate: float =
    3.0, padding: Literal["replicate", "zeros"] = "replicate"
) -> Tensor: ...
@overload
def smooth(
    x: _J, sigma: Union[float, Sequence[float]], *, field: bool = False, truncate: float = 3.0,
    padding: Literal["replicate", "zeros"] = "replicate"
) -> _J: ...
