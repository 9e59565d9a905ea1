# SPDX-License-Identifier: Apache-2.0
"""Values and gradients without autograd."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

from .._arrays.kinds import is_of, kind_of
from .correlation import lncc, lncc_loss, ncc, ncc_loss
from .dispatch import WithGradient, for_torch
from .layouts import dtype_name
from .mutual_information import mutual_information, mutual_information_loss
from .pixel_error import mae, mse, psnr
from .ssim import l1_ssim, ms_ssim, ms_ssim_loss, ssim, ssim_loss

Array = TypeVar("Array")

_WITH_GRADIENT = (
    ssim,
    ssim_loss,
    l1_ssim,
    ms_ssim,
    ms_ssim_loss,
    lncc,
    lncc_loss,
    ncc,
    ncc_loss,
    mutual_information,
    mutual_information_loss,
    mse,
    mae,
    psnr,
)


def value_and_gradient(
    measure: Callable[..., Any], x: Array, y: Array, *, wrt: str = "x", **options: Any
) -> tuple[Array, ...]:
    """The value of measure(x, y, **options), and the gradients of the sum over all results.

    They are computed in one pass over the images, for arrays of NumPy and CuPy and torch's tensors;
    JAX has autograd. Gradients of tensors have the bits that backward() would give to x.grad, take
    little more than a call without a gradient, and are constants to autograd, as the value is. A
    call that needs autograd (images that have to be rearranged or converted, sums and histograms of
    a part, GPUs of Apple and Intel) uses it inside.

    Args:
        measure: similis.ssim, ssim_loss, l1_ssim, ms_ssim, ms_ssim_loss, lncc, lncc_loss,
            ncc, ncc_loss, mutual_information, mutual_information_loss, mse, mae or psnr; or
            functools.partial of one, with options by name.
        x, y: as the measure takes them, in f16, bf16, f32 or f64.
        wrt: which gradients are returned: "x", "y" or "both".
        options: those of the measure.

    Returns: (value, gradient), or (value, gradient by x, gradient by y); gradients have the shape
        and dtype of x.

    Raises:
        ValueError, TypeError: as the measure, and if the images are integers or x is a jax.Array.
    """
    if isinstance(measure, functools.partial) and not measure.args:
        options = {**measure.keywords, **options}
        measure = measure.func
    if measure not in _WITH_GRADIENT:
        names = ", ".join(each.__name__ for each in _WITH_GRADIENT)
        given = getattr(measure, "__name__", repr(measure))
        if given == "<lambda>":
            raise TypeError(
                "value_and_gradient: measure is a lambda; give the function itself, and its "
                f"options by name; it must be one of {names}"
            )
        raise TypeError(f"value_and_gradient: measure is {given}; it must be one of {names}")
    if wrt not in ("x", "y", "both"):
        raise ValueError(f"value_and_gradient: wrt is {wrt!r}; it must be x, y or both")
    of_x, of_y = wrt != "y", wrt != "x"
    if not is_of("torch", "Tensor", x):
        if is_of("jax", "Array", x):
            raise TypeError("value_and_gradient: x is a jax.Array; use jax.value_and_grad")
        kind_of("value_and_gradient", x)
        return tuple(measure(WithGradient(x, of_x, of_y), y, **options))
    image: Any = x
    if not image.is_floating_point():
        raise ValueError(
            f"{measure.__name__}: a gradient is asked for, and the images are {dtype_name(x)}; "
            "gradients need float16, bfloat16, float32 or float64"
        )
    results = measure(WithGradient(x, of_x, of_y), y, **options)
    if results is None:
        results = for_torch().by_autograd(measure, x, y, of_x, of_y, options)
    return tuple(results)
