# SPDX-License-Identifier: Apache-2.0
"""torch's tensors: two operators, and autograd around them.

    similis::value     the result
    similis::gradient  gradients to x, y or both, and the result with them if asked: one pass

Autograd stands in an autograd.Function outside the operators, which costs a call 5 µs less than
torch.library.custom_op and 25 µs less than register_autograd. The operators are for whoever looks at
them between autograd and the library: graphs, traces, modes, subclasses. Where there is nobody, what
they call is called by itself, which costs 3 µs less each time. Under torch.func's transforms and in
forward mode, and for derivatives of gradients, the measures are composed of torch's operators.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .._library import c_abi, measures
from . import decomposition, gradient_scaling

_DTYPES = {getattr(torch, name): name for name in c_abi.DTYPES if hasattr(torch, name)}
_DEVICES = ("cpu", "cuda", "meta")

_ops = torch.library.Library("similis", "DEF")
_ops.define(
    "value(Tensor x, Tensor y, Tensor? mask, Tensor? valid_mask, str measure) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_ops.define(
    "gradient(Tensor x, Tensor y, Tensor? mask, Tensor? valid_mask, Tensor? upstream, "
    "bool with_value, bool of_x, bool of_y, str measure) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def _c_tensor(tensor: Optional[Tensor]) -> Optional[c_abi.Tensor]:
    if tensor is None:
        return None
    device = c_abi.Device(c_abi.CUDA, tensor.device.index) if tensor.is_cuda else c_abi.Device(c_abi.CPU, 0)
    return c_abi.tensor(
        tensor.data_ptr(), tensor.shape, tensor.stride(), _DTYPES[tensor.dtype], device
    )


def _stream_of(tensor: Tensor) -> int:
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else 0


def _run_by_ctypes(measure: measures.Measure, x: Tensor, *others: Optional[Tensor]) -> None:
    tensors = [_c_tensor(tensor) for tensor in (x, *others)]
    c_abi.run(measure.operation, measure.options, tensors, _stream_of(x))


def _scale_by_ctypes(tensor: Tensor, factor: Tensor) -> None:
    described, by = _c_tensor(tensor), _c_tensor(factor)
    c_abi.scale(described, by, _stream_of(tensor))  # type: ignore[arg-type]


def _tvm_ffi_functions() -> dict[str, Any]:
    import tvm_ffi

    module = tvm_ffi.load_module(str(c_abi.NATIVE / "similis_tvm_ffi.so"))
    others = ("integer_ssim", "ssimulacra2", "histogram", c_abi.OF_HISTOGRAM, "scale")
    return {name: getattr(module, name) for name in (*c_abi.WITH_GRADIENTS, *c_abi.TRANSFORMS, *others)}


def _run_by_tvm_ffi(functions: dict[str, Any]) -> Callable[..., None]:
    def run(measure: measures.Measure, *tensors: Optional[Tensor]) -> None:
        function = functions.get(measure.operation)
        if function is None:  # what takes milliseconds on the CPU is left to ctypes
            return _run_by_ctypes(measure, *tensors)  # type: ignore[arg-type]
        status = function(measure.options_address, *tensors)
        if status != 0:
            c_abi.raise_last_error(status)

    return run


def _scale_by_tvm_ffi(functions: dict[str, Any]) -> Callable[[Tensor, Tensor], None]:
    function = functions["scale"]

    def scale(tensor: Tensor, factor: Tensor) -> None:
        status = function(tensor, factor)
        if status != 0:
            c_abi.raise_last_error(status)

    return scale


def _choose_binding() -> tuple[str, dict[str, Any]]:
    """SIMILIS_BINDING forces tvm_ffi or ctypes. Where torch does not lend its tensors in C, tvm-ffi
    asks for them in Python or compiles an extension on import; ctypes is then the faster."""
    wanted = os.environ.get("SIMILIS_BINDING", "auto")
    if wanted not in ("auto", "tvm_ffi", "ctypes"):
        raise ValueError(f"SIMILIS_BINDING is {wanted!r}; it must be auto, tvm_ffi or ctypes")
    if wanted == "ctypes":
        return "ctypes", {}
    lends = any(
        hasattr(Tensor, name) for name in ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")
    )
    if wanted == "auto" and not lends:
        return "ctypes", {}
    try:
        return "tvm_ffi", _tvm_ffi_functions()
    except (ImportError, OSError, RuntimeError):
        if wanted == "tvm_ffi":
            raise
        return "ctypes", {}


binding, _functions = _choose_binding()
_run = _run_by_tvm_ffi(_functions) if _functions else _run_by_ctypes
_scale = _scale_by_tvm_ffi(_functions) if _functions else _scale_by_ctypes


def _empty_value(x: Tensor, measure: measures.Measure) -> Tensor:
    is_wide = measure.in_float64 or x.dtype == torch.float64
    dtype = torch.float64 if is_wide else torch.float32
    shape = () if measure.is_scalar else measure.result_shape(x.shape)
    return x.new_empty(shape, dtype=dtype)


def _value(
    x: Tensor, y: Tensor, mask: Optional[Tensor], valid_mask: Optional[Tensor], measure: str
) -> Tensor:
    parsed = measures.parse(measure)
    result = _empty_value(x, parsed)
    _run(parsed, x, y, mask, valid_mask, None, result, None, None)
    return result


def _gradient(
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
    upstream: Optional[Tensor],
    with_value: bool,
    of_x: bool,
    of_y: bool,
    measure: str,
) -> list[Tensor]:
    parsed = measures.parse(measure)
    value = _empty_value(x, parsed) if with_value else None
    x_gradient = torch.empty_like(x) if of_x else None
    y_gradient = torch.empty_like(y) if of_y else None
    _run(parsed, x, y, mask, valid_mask, upstream, value, x_gradient, y_gradient)
    return [each for each in (value, x_gradient, y_gradient) if each is not None]


def _value_shape(
    x: Tensor, y: Tensor, mask: Optional[Tensor], valid_mask: Optional[Tensor], measure: str
) -> Tensor:
    return _empty_value(x, measures.parse(measure))


def _gradient_shapes(
    x: Tensor,
    y: Tensor,
    mask: Optional[Tensor],
    valid_mask: Optional[Tensor],
    upstream: Optional[Tensor],
    with_value: bool,
    of_x: bool,
    of_y: bool,
    measure: str,
) -> list[Tensor]:
    value = [_empty_value(x, measures.parse(measure))] if with_value else []
    return value + [torch.empty_like(of) for of, wanted in ((x, of_x), (y, of_y)) if wanted]


for _device in "CPU", "CUDA":
    _ops.impl("value", _value, _device)
    _ops.impl("gradient", _gradient, _device)
torch.library.register_fake("similis::value", _value_shape, lib=_ops)
torch.library.register_fake("similis::gradient", _gradient_shapes, lib=_ops)
_value_op = torch.ops.similis.value.default
_gradient_op = torch.ops.similis.gradient.default

_PLAIN = (Tensor, torch.nn.Parameter)
_TELLS_KEYS = hasattr(torch._C.DispatchKeySet, "raw_repr")  # 2.4 does not
_dispatch_keys = torch._C._dispatch_keys


@functools.lru_cache(maxsize=4)
def _keys_of_memory(is_cuda: bool) -> int:
    """How torch dispatches a tensor that is nothing but memory on this device."""
    return _dispatch_keys(torch.empty(0, device="cuda" if is_cuda else "cpu")).raw_repr()


def _is_memory(tensor: Tensor) -> bool:
    """Whether it is that: no subclass, negated when read, left behind by a transform or the like."""
    return type(tensor) in _PLAIN and _dispatch_keys(tensor).raw_repr() == _keys_of_memory(
        tensor.is_cuda
    )


def _is_plain(x: Tensor, y: Tensor, mask: Optional[Tensor], valid_mask: Optional[Tensor]) -> bool:
    """Whether no mode, trace, profiler or tensor needs to see the operators."""
    return (
        _TELLS_KEYS
        and _nobody_looks()
        and _is_memory(x)
        and _is_memory(y)
        and (mask is None or _is_memory(mask))
        and (valid_mask is None or _is_memory(valid_mask))
    )


def _nobody_looks() -> bool:
    return (
        not torch.compiler.is_compiling()  # which cannot trace _is_memory(): ask this first
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._get_tracing_state() is None
        and not torch._C._autograd._profiler_enabled()
    )


def _are_plain_images(x: Any, y: Any) -> bool:
    """Whether _checked() would take them as they are, asked in fewer words: what is nothing but memory
    is strided, and on the CPU or on a GPU."""
    return (
        _is_plain(x, y, None, None)
        and x.dtype in _DTYPES
        and x.dtype is y.dtype
        and x.shape == y.shape
        and x.get_device() == y.get_device()
        and x.numel() != 0
    )


class _Evaluation(torch.autograd.Function):
    """The value, with gradients to the images that ask for one.

    With a `lift` (_lift()) both are computed in the forward pass, which reads the images once. The
    gradients then wait here, lift times as large, not among the saved tensors, and the first backward
    pass scales them where they are; a second one computes them anew, in the same bits. `plain` is
    _is_plain()'s.
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
        lift: Optional[float],
        plain: bool,
    ) -> Tensor:
        ctx.measure, ctx.of_x, ctx.of_y = measure, of_x, of_y
        ctx.save_for_backward(x, y, mask, valid_mask)
        ctx.lift, ctx.plain, ctx.gradients = lift, plain, None
        if lift is None:
            evaluate = _value if plain else _value_op
            return evaluate(x, y, mask, valid_mask, measure)
        differentiate = _gradient if plain else _gradient_op
        value, *ctx.gradients = differentiate(
            x, y, mask, valid_mask, _as_upstream(lift, x), True, of_x, of_y, measure
        )
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        saved = ctx.saved_tensors  # an error if they changed, or are no longer there
        if torch.is_grad_enabled():
            return *_differentiable_gradients(ctx, upstream), *_NO_GRADIENTS
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            factor = upstream if ctx.lift is None else _as_upstream(ctx.lift, saved[0])
            gradients = _gradient_op(*saved, factor, False, ctx.of_x, ctx.of_y, ctx.measure)
        if ctx.lift is not None:
            factor = upstream if ctx.lift == 1 else upstream / ctx.lift
            gradients = [_multiplied(gradient, factor, ctx.plain) for gradient in gradients]
        return *_in_places(gradients, ctx.of_x, ctx.of_y), *_NO_GRADIENTS


def _multiplied(gradient: Tensor, factor: Tensor, plain: bool) -> Tensor:
    """In place. The factor is 1 in most training steps: the library then leaves the memory alone.

    plain: whether the images were, and so the gradient is."""
    if plain and _nobody_looks() and _is_memory(factor):
        _scale(gradient, factor)
        return gradient
    if gradient.dtype in _FULL:
        return gradient.mul_(factor)
    return gradient.copy_(gradient.float() * factor)  # on a GPU mul_ rounds the factor, to 0


_FULL = (torch.float32, torch.float64)


def _lift(text: str, x: Tensor, has_mask: bool) -> Optional[float]:
    """What a gradient is multiplied by while it waits for its upstream one; None: it is computed in the
    backward pass. f16 alone has not the range of f32."""
    return 1.0 if x.dtype != torch.float16 else gradient_scaling.lift(text, x.shape, has_mask)


def _as_upstream(lift: float, x: Tensor) -> Optional[Tensor]:
    """Filled on the device, which a graph can capture."""
    return None if lift == 1 else x.new_full((), lift, dtype=torch.float32)


_NO_GRADIENTS = (None,) * 7  # of what stands behind the images

# What Function.apply() calls, without its search for what transforms have left over: 1.5 µs.
_apply_plainly = super(torch.autograd.Function, _Evaluation).apply


class _CompiledEvaluation(torch.autograd.Function):
    """The same for torch.compile, which wants no state beside the saved tensors; lift is 1 or None."""

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
        lift: Optional[float],
        plain: bool,
    ) -> Tensor:
        ctx.measure, ctx.of_x, ctx.of_y, ctx.lift = measure, of_x, of_y, lift
        if lift is None:
            ctx.save_for_backward(x, y, mask, valid_mask)
            return _value_op(x, y, mask, valid_mask, measure)
        results = _gradient_op(x, y, mask, valid_mask, None, True, of_x, of_y, measure)
        ctx.save_for_backward(*results[1:])
        return results[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Optional[Tensor], ...]:
        if ctx.lift is not None:
            gradients = [gradient * upstream for gradient in ctx.saved_tensors]
        else:
            gradients = _gradient_op(
                *ctx.saved_tensors, upstream, False, ctx.of_x, ctx.of_y, ctx.measure
            )
        x_gradient, y_gradient = _in_places(gradients, ctx.of_x, ctx.of_y)
        return x_gradient, y_gradient, None, None, None, None, None, None, None


def _in_places(
    gradients: Sequence[Tensor], of_x: bool, of_y: bool
) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """Those that were computed, x's first, and None for the other."""
    return gradients[0] if of_x else None, gradients[-1] if of_y else None


def _differentiable_gradients(
    ctx: Any, upstream: Tensor
) -> tuple[Optional[Tensor], Optional[Tensor]]:
    x, y, mask, valid_mask = ctx.saved_tensors
    variables = [image for image, wanted in ((x, ctx.of_x), (y, ctx.of_y)) if wanted]
    value = decomposition.evaluate(x, y, mask, valid_mask, measures.parse(ctx.measure))
    gradients = torch.autograd.grad(value, variables, upstream, create_graph=True)
    return _in_places(gradients, ctx.of_x, ctx.of_y)


def _is_transformed() -> bool:
    """Inside vmap, grad, jvp and their like, or in forward mode."""
    return (
        torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0
    )


def _refuse_image(operation: str, name: str, image: Any) -> None:
    if not isinstance(image, Tensor):
        raise TypeError(
            f"{operation}: {name} is a {type(image).__name__}; it must be a torch.Tensor"
        )
    if image.layout != torch.strided or image.is_nested:
        layout = "nested" if image.is_nested else image.layout
        raise TypeError(f"{operation}: {name} is {layout}; it must be torch.strided")
    if image.dtype not in _DTYPES:
        raise TypeError(f"{operation}: {name} is {image.dtype}; it must be {c_abi.DTYPE_NAMES}")
    if image.device.type not in _DEVICES:
        raise ValueError(f"{operation}: {name} is on {image.device}; it must be on cpu or cuda")


def _require_same_device(
    operation: str, name: str, tensor: Tensor, name_of_x: str, x: Tensor
) -> None:
    if tensor.device != x.device:
        raise ValueError(
            f"{operation}: {name} is on {tensor.device}; it must be on {x.device} as {name_of_x} is"
        )


def _checked(operation: str, names: tuple[str, str], x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """The images; under autocast, where their dtypes may differ, in the wider one of both."""
    _refuse_image(operation, names[0], x)
    _refuse_image(operation, names[1], y)
    if y.shape != x.shape:
        raise ValueError(
            f"{operation}: {names[1]} has shape {list(y.shape)}; it must be that of {names[0]}, "
            f"{list(x.shape)}"
        )
    if 0 in x.shape:
        raise ValueError(
            f"{operation}: {names[0]} has shape {list(x.shape)}; every extent must be at least 1"
        )
    _require_same_device(operation, names[1], y, names[0], x)
    if x.dtype != y.dtype and torch.is_autocast_enabled(x.device.type):
        wider = torch.promote_types(x.dtype, y.dtype)
        return x.to(wider), y.to(wider)
    return x, y


def _checked_mask(operation: str, name: str, mask: Optional[Tensor], x: Tensor) -> Optional[Tensor]:
    if mask is None:
        return None
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        mask = mask.view(torch.uint8)
    _refuse_image(operation, name, mask)
    _require_same_device(operation, name, mask, "x", x)
    if mask.requires_grad:
        raise ValueError(f"{operation}: {name} asks for a gradient; gradients are those of x and y")
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
) -> Tensor:
    """operation, names: of the function that is called and of its images, for what is refused.

    one_pass: whether gradients of a mean are computed together with it if they may be asked for."""
    is_compiling = torch.compiler.is_compiling()
    plain = mask is None and valid_mask is None and _are_plain_images(x, y)
    if not plain:
        x, y = _checked(operation, names, x, y)
        mask = _checked_mask(operation, "mask", mask, x)
        valid_mask = _checked_mask(operation, "valid_mask", valid_mask, x)
    of_x = of_y = False
    if torch.is_grad_enabled():
        of_x, of_y = x.requires_grad, y.requires_grad
    function: Any = _Evaluation
    if is_compiling:
        function = _CompiledEvaluation
    elif _is_transformed():
        refused_or_not = torch.zeros((), dtype=x.dtype, device=x.device).expand(x.shape)
        _value_op(refused_or_not, refused_or_not, None, None, text)
        return decomposition.evaluate(x, y, mask, valid_mask, measures.parse(text))
    elif not plain:
        plain = _is_plain(x, y, mask, valid_mask)
    if not (of_x or of_y):
        return (_value if plain else _value_op)(x, y, mask, valid_mask, text)
    lift = None
    if one_pass and measures.is_scalar(text) and (x.dtype in _FULL or not is_compiling):
        lift = _lift(text, x, mask is not None or valid_mask is not None)
    apply = _apply_plainly if plain else function.apply
    return apply(x, y, mask, valid_mask, text, of_x, of_y, lift, plain)


def psnr(data_range: Optional[float], reduction: str, x: Any, y: Any) -> Tensor:
    """From the MSE in float64, and differentiable as that is."""
    text = measures.psnr_error_text(data_range, reduction)
    error = evaluate("psnr", f"{text} in_float64=1", x, y)
    value_range = float(data_range or measures.DATA_RANGES.get(_DTYPES[x.dtype], 1.0))
    decibels = 10 * torch.log10(value_range * value_range / error)
    return decibels if x.dtype == torch.float64 else decibels.float()
