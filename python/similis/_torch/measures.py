# SPDX-License-Identifier: Apache-2.0
"""The measures of torch's tensors, with autograd around two operators.

Autograd stands in an autograd.Function outside the operators: a call then costs 5 µs less than with
torch.library.custom_op and 25 µs less than with register_autograd. The operators exist for those
who look between autograd and the library: graphs, traces, modes, subclasses. If there is nobody,
their implementation is called directly, which costs 3 µs less each time. torch.func's transforms,
forward mode and derivatives of gradients are computed by decomposition into torch's own operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .._library import measures, range_warning
from .._library.refusals import require_extents, require_same_dtype, require_same_shape
from . import decomposition, elsewhere, gradient_scaling
from .binding import CONVERTED_DTYPES, DTYPES, USUAL_DTYPES, scale
from .devices import is_elsewhere
from .measure_operators import compute_gradient, compute_value, gradient_op, value_op
from .registry import applied_plainly, differentiate
from .tensors import (
    TELLS_KEYS,
    are_memory,
    is_memory,
    is_traced,
    is_transformed,
    is_usual,
    nobody_looks,
    refuse_tensor,
    require_same_device,
)


def _is_plain(x: Tensor, y: Tensor, mask: Optional[Tensor], valid_mask: Optional[Tensor]) -> bool:
    """True if no mode, trace, profiler or tensor needs to see the operators."""
    return (
        TELLS_KEYS
        and nobody_looks()
        and are_memory((x, y, mask, valid_mask))
    )


def _shape_if_plain(x: Any, y: Any) -> Optional[torch.Size]:
    """The shape of images that _checked() would return as they are, else None: the fast path.

    A tensor that is nothing but memory is strided and lies on the CPU or on a GPU.
    """
    if x is None or y is None or not (TELLS_KEYS and nobody_looks() and are_memory((x, y))):
        return None
    shape: torch.Size = x.shape
    if (
        x.dtype in USUAL_DTYPES
        and x.dtype is y.dtype
        and shape == y.shape
        and x.get_device() == y.get_device()
        and x.numel() != 0
    ):
        return shape
    return None


def _mask_if_plain(mask: Tensor, x: Tensor) -> Optional[Tensor]:
    """The mask as _checked_mask() would return it, if it is nothing but memory, else None."""
    if not are_memory((mask,)):
        return None
    if mask.dtype is torch.bool:
        mask = mask.view(torch.uint8)
    is_right = mask.dtype in DTYPES and mask.get_device() == x.get_device()
    return mask if is_right and not mask.requires_grad else None


# Images' shape, and their masks, in the fast path.
Plain = tuple[torch.Size, Optional[Tensor], Optional[Tensor]]


def if_plain(
    x: Any, y: Any, mask: Optional[Tensor], valid_mask: Optional[Tensor]
) -> Optional[Plain]:
    """The fast path's arguments, or None for images or masks that have to be checked in full."""
    shape = _shape_if_plain(x, y)
    if shape is None:
        return None
    if mask is not None and (mask := _mask_if_plain(mask, x)) is None:
        return None
    if valid_mask is not None and (valid_mask := _mask_if_plain(valid_mask, x)) is None:
        return None
    return shape, mask, valid_mask


def is_usual_shape(shape: torch.Size) -> bool:
    """is_usual() of plain images, in less time."""
    rank = len(shape)
    return rank < 2 or rank > 4 or (rank == 4 and shape[3] != 3 and shape[3] != 4)


class Plan(NamedTuple):
    """A call of _Evaluation without its tensors. plain: the answer of _is_plain()."""

    measure: str
    of_x: bool
    of_y: bool
    gradient_scale: Optional[float]
    plain: bool


class _Evaluation(torch.autograd.Function):
    """The value, with gradients to the images that ask for one.

    With a `gradient_scale`, of _gradient_scale(), both are computed in the forward pass, which
    reads the images once. The gradients wait in ctx, multiplied by the scale, and not among the
    saved tensors. The first backward pass multiplies them by the upstream gradient in place; a
    second one computes them anew, with the same bits.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        mask: Optional[Tensor],
        valid_mask: Optional[Tensor],
        plan: Plan,
    ) -> Tensor:
        measure, of_x, of_y, gradient_scale, plain = plan
        gradients: Optional[list[Tensor]] = None
        if gradient_scale is None:
            evaluate = compute_value if plain else value_op
            value = evaluate(x, y, mask, valid_mask, measure)
        else:
            differentiate = compute_gradient if plain else gradient_op
            value, *gradients = differentiate(
                x, y, mask, valid_mask, _as_upstream(gradient_scale, x), True, of_x, of_y, measure
            )
        # While a GPU is at work.
        ctx.save_for_backward(x, y, mask, valid_mask)
        ctx.plan, ctx.gradients = plan, gradients
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        saved = ctx.saved_tensors  # raises if they have changed or been freed
        gradients = None
        if not torch.is_grad_enabled():
            gradients, ctx.gradients = ctx.gradients, None
        return *differentiated(saved, ctx.plan, upstream, gradients), *_NO_GRADIENTS


def differentiated(
    saved: Sequence[Any],
    plan: Plan,
    upstream: Tensor,
    gradients: Optional[Sequence[Tensor]] = None,
) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """The gradients to x and y, differentiable where autograd records them.

    saved: x, y, mask and valid_mask. gradients: those that were computed ahead and not used yet.
    """
    measure, of_x, of_y, gradient_scale, plain = plan
    if torch.is_grad_enabled():
        return _in_places(_differentiable_gradients(saved, plan, upstream), of_x, of_y)
    if gradients is None:
        factor: Optional[Tensor] = upstream
        if gradient_scale is not None:
            factor = _as_upstream(gradient_scale, saved[0])
        gradients = gradient_op(*saved, factor, False, of_x, of_y, measure)
    if gradient_scale is not None:
        by = upstream if gradient_scale == 1 else upstream / gradient_scale
        gradients = [_multiplied(gradient, by, plain) for gradient in gradients]
    return _in_places(gradients, of_x, of_y)


def _multiplied(gradient: Tensor, factor: Tensor, plain: bool) -> Tensor:
    """Multiplies in place. In most training steps the factor is 1, and no memory is touched.

    plain: True if the images were plain, and the gradient therefore is.
    """
    if plain and nobody_looks() and is_memory(factor):
        scale(gradient, factor)
        return gradient
    if gradient.dtype in _FULL:
        return gradient.mul_(factor)
    return gradient.copy_(gradient.float() * factor)  # on a GPU mul_ rounds the factor, to 0


_FULL = (torch.float32, torch.float64)


def _gradient_scale(text: str, x: Tensor, has_mask: bool) -> Optional[float]:
    """The factor of a gradient that waits for its upstream gradient, or None if the gradient has to
    be computed in the backward pass. Only f16 has a smaller range than f32."""
    if x.dtype != torch.float16:
        return 1.0
    return gradient_scaling.power_of_two(text, x.shape, has_mask)


def _as_upstream(gradient_scale: float, x: Tensor) -> Optional[Tensor]:
    """Fills the tensor on its device, which a CUDA graph can capture."""
    return None if gradient_scale == 1 else x.new_full((), gradient_scale, dtype=torch.float32)


_NO_GRADIENTS = (None,) * 3  # for the arguments after the images

_apply_plainly = applied_plainly(_Evaluation)


class _CompiledEvaluation(torch.autograd.Function):
    """_Evaluation for torch.compile, which wants no state beside the saved tensors.

    gradient_scale is 1 or None.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        mask: Optional[Tensor],
        valid_mask: Optional[Tensor],
        measure: str,
        of_x: bool,
        of_y: bool,
        gradient_scale: Optional[float],
    ) -> Tensor:
        ctx.measure, ctx.of_x, ctx.of_y, ctx.gradient_scale = measure, of_x, of_y, gradient_scale
        if gradient_scale is None:
            ctx.save_for_backward(x, y, mask, valid_mask)
            return value_op(x, y, mask, valid_mask, measure)
        results = gradient_op(x, y, mask, valid_mask, None, True, of_x, of_y, measure)
        ctx.save_for_backward(*results[1:])
        return results[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        if ctx.gradient_scale is not None:
            gradients = [gradient * upstream for gradient in ctx.saved_tensors]
        else:
            gradients = gradient_op(
                *ctx.saved_tensors, upstream, False, ctx.of_x, ctx.of_y, ctx.measure
            )
        x_gradient, y_gradient = _in_places(gradients, ctx.of_x, ctx.of_y)
        return x_gradient, y_gradient, None, None, None, None, None, None


def _in_places(
    gradients: Sequence[Tensor], of_x: bool, of_y: bool
) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """The gradients to x and to y, from the list of those that were computed."""
    return gradients[0] if of_x else None, gradients[-1] if of_y else None


def _differentiable_gradients(
    saved: Sequence[Any], plan: Plan, upstream: Tensor
) -> Sequence[Tensor]:
    x, y, mask, valid_mask = saved
    variables = [image for image, wanted in ((x, plan.of_x), (y, plan.of_y)) if wanted]
    measure = measures.parse(plan.measure)
    value = decomposition.evaluate(x, y, mask, valid_mask, measure, in_float32=True)
    return torch.autograd.grad(value, variables, upstream, create_graph=True)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """The operator's saved state if no function stands around it, in a graph of torch.jit."""
    *images_and_masks, measure = inputs
    _, _, *of_masks, _ = ctx.needs_input_grad
    if any(of_masks):
        operation = measure.split(" ", 1)[0]
        raise ValueError(f"{operation}: a mask asks for a gradient; only x and y can have one")
    of_x, of_y = ctx.needs_input_grad[:2]
    ctx.save_for_backward(*images_and_masks)
    ctx.plan, ctx.gradients = Plan(measure, of_x, of_y, None, False), None


def _backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
    x_gradient, y_gradient, *_ = _Evaluation.backward(ctx, upstream)
    return x_gradient, y_gradient, None, None, None


differentiate("value", _backward, _remember)


def _checked(operation: str, names: tuple[str, str], x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Returns the images. Under autocast their dtypes may differ; both then have the wider one."""
    refuse_tensor(operation, names[0], x)
    if isinstance(y, Tensor) and y.dtype in CONVERTED_DTYPES:
        require_same_dtype(operation, names, str(x.dtype), str(y.dtype))
    refuse_tensor(operation, names[1], y)
    require_same_shape(operation, names, x.shape, y.shape)
    require_extents(operation, names[0], x.shape)
    require_same_device(operation, names[1], y, names[0], x)
    if x.dtype != y.dtype and torch.is_autocast_enabled(x.device.type):
        wider = torch.promote_types(x.dtype, y.dtype)
        return x.to(wider), y.to(wider)
    return x, y


def _checked_mask(operation: str, name: str, mask: Optional[Tensor], x: Tensor) -> Optional[Tensor]:
    if mask is None:
        return None
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        mask = mask.view(torch.uint8)
    refuse_tensor(operation, name, mask)
    require_same_device(operation, name, mask, "x", x)
    if mask.requires_grad:
        raise ValueError(f"{operation}: {name} asks for a gradient; only x and y can have one")
    return mask


def evaluate(
    operation: str,
    text: str,
    x: Any,
    y: Any,
    mask: Optional[Tensor] = None,
    valid_mask: Optional[Tensor] = None,
    one_pass: bool = True,
    names: tuple[str, str] = ("x", "y"),
    usual_only: bool = False,
) -> Any:
    """The value of a measure, a tensor.

    Args:
        operation, names: the names of the function and of its images in error messages.
        text: the measure and its options, as the library's measures.py writes them.
        one_pass: compute gradients of a mean together with the mean if an image asks for one.
        usual_only: return None for images that are not is_usual().
    """
    found = if_plain(x, y, mask, valid_mask)
    plain = found is not None
    if usual_only and not (is_usual(x) if found is None else is_usual_shape(found[0])):
        return None
    is_compiling = not plain and torch.compiler.is_compiling()
    if found is not None:
        _, mask, valid_mask = found
    else:
        x, y = _checked(operation, names, x, y)
        mask = _checked_mask(operation, "mask", mask, x)
        valid_mask = _checked_mask(operation, "valid_mask", valid_mask, x)
    of_x = of_y = False
    if torch.is_grad_enabled():
        of_x, of_y = x.requires_grad, y.requires_grad
    if not plain and is_elsewhere(x):
        has_mask = mask is not None or valid_mask is not None
        composed = is_compiling or is_transformed()
        if composed or not elsewhere.has_kernel(operation, text, x, has_mask):
            return elsewhere.evaluate(operation, text, x, y, mask, valid_mask)
    if is_compiling:
        pass
    elif is_transformed():
        refused_or_not = torch.zeros((), dtype=x.dtype, device=x.device).expand(x.shape)
        value_op(refused_or_not, refused_or_not, None, None, text)
        return decomposition.evaluate(x, y, mask, valid_mask, measures.parse(text))
    elif not plain:
        plain = _is_plain(x, y, mask, valid_mask)
    if usual_only and plain and x.numel() >= range_warning.LOOK_FROM and x.is_cpu:
        if range_warning.wants_look(operation, x.numel(), DTYPES[x.dtype]):
            range_warning.look(operation, text, largest, x=x, y=y)
    if not (of_x or of_y) or (not plain and is_traced()):
        return (compute_value if plain else value_op)(x, y, mask, valid_mask, text)
    gradient_scale = None
    if one_pass and measures.is_scalar(text) and (x.dtype in _FULL or not is_compiling):
        gradient_scale = _gradient_scale(text, x, mask is not None or valid_mask is not None)
    apply: Any = _CompiledEvaluation.apply
    if is_compiling:
        return apply(x, y, mask, valid_mask, text, of_x, of_y, gradient_scale)
    apply = _apply_plainly if plain else _Evaluation.apply
    return apply(x, y, mask, valid_mask, Plan(text, of_x, of_y, gradient_scale, plain))


def is_plain(x: Tensor, y: Tensor) -> bool:
    """True for tensors whose values can be looked at while nobody notices."""
    return _is_plain(x, y, None, None) and not is_transformed()


def largest(image: Tensor) -> float:
    """The largest value of a tensor on the CPU, by NumPy, as torch's threads take longer to wake.
    In 16-bit floats, which neither reads in vectors, it looks at every 64th row."""
    image = image.detach()
    if image.dtype not in _FULL:
        image = image[..., ::64, :].float()
    try:
        return float(image.numpy().max())
    except RuntimeError:  # there is no NumPy
        return image.amax().item()
