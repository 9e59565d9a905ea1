# SPDX-License-Identifier: Apache-2.0
"""similis on torch's tensors and stream: through its Python package, as a training step calls it, and
through its C interface, where its own work is measured."""

import ctypes

import torch

import gpu_peers
import libsimilis

ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, libsimilis.Device,
                            ctypes.c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                           libsimilis.Device, ctypes.c_void_p)


def tensor(array):
    code, bits = {torch.float32: (2, 32), torch.float16: (2, 16), torch.uint8: (1, 8),
                  torch.float64: (2, 64)}[array.dtype]
    shape = (ctypes.c_int64 * max(1, array.dim()))(*array.shape)
    result = libsimilis.Tensor.__new__(libsimilis.Tensor)
    ctypes.Structure.__init__(
        result, data=array.data_ptr(), device=libsimilis.Device(2, array.device.index or 0),
        ndim=array.dim(), dtype=libsimilis.DType(code, bits, 1), shape=shape)
    result.kept = (array, shape)
    return result


class Similis:
    """The library on torch's stream; its workspace from the stream's pool, or from torch. A call makes
    its outputs as a framework would. The descriptors of inputs are kept, as ctypes takes longer to
    make one than a compiled binding takes for a call."""

    def __init__(self, path, torch_memory=False):
        self.library = ctypes.CDLL(str(path))
        self.library.similis_last_error.restype = ctypes.c_char_p
        self.library.similis_version.restype = ctypes.c_char_p
        self.allocate = ALLOCATE(lambda context, size, device, stream:
                                 torch.cuda.caching_allocator_alloc(max(size, 1)))
        self.release = RELEASE(lambda context, pointer, size, device, stream:
                               torch.cuda.caching_allocator_delete(pointer))
        self.execution = libsimilis.Execution(struct_size=ctypes.sizeof(libsimilis.Execution))
        if torch_memory:
            self.execution.allocator = libsimilis.Allocator(
                ctypes.cast(self.allocate, ctypes.c_void_p),
                ctypes.cast(self.release, ctypes.c_void_p), None)
        self.known = {}

    def described(self, array):
        """A pointer to the array's descriptor."""
        key = (array.data_ptr(), array.shape, array.dtype)
        if key not in self.known:
            descriptor = tensor(array)
            descriptor.kept = descriptor.kept[1:]  # whoever calls keeps the array
            self.known[key] = ctypes.byref(descriptor)
        return self.known[key]

    def function(self, operation, kind, **changes):
        """The function of a pair that takes x and y and returns value and gradient. `changes` are
        the operation's options; a mask is a tensor."""
        tables, options = libsimilis.Tables(self.library), None
        masks = {name: tensor(each) for name, each in changes.items() if torch.is_tensor(each)}
        if changes:
            numbers = {name: each for name, each in changes.items() if name not in masks}
            pointers = {name: ctypes.addressof(each) for name, each in masks.items()}
            options = tables.options(operation, **numbers, **pointers)
        if operation == "l1_ssim":
            options = tables.options("ssim", ssim_weight=0.2, l1_weight=0.8, form="loss")
        if kind.startswith("map"):
            options = tables.options("ssim", reduction="none")
        entry = getattr(self.library, {"ms_ssim": "similis_ms_ssim", "mse": "similis_mse"}.get(
            operation, "similis_ssim"))
        options_pointer = ctypes.byref(options) if options else None
        execution, execution_pointer = self.execution, ctypes.byref(self.execution)
        kept = options, masks

        def call(x, y):
            value_shape = [*x.shape[:2], *(side - 10 for side in x.shape[2:])] if "map" in kind else ()
            value = torch.empty(value_shape, device=x.device)
            gradient = torch.empty_like(x) if "gradient" in kind else None
            execution.stream = torch.cuda.current_stream().cuda_stream
            status = entry(self.described(x), self.described(y), options_pointer, None,
                           self.described(value),
                           None if gradient is None else self.described(gradient), None,
                           execution_pointer)
            if status != 0:
                raise RuntimeError(self.library.similis_last_error().decode())
            return value, gradient, kept
        return call

    def integer_ssim(self, x, y):
        """libvmaf's `ssim` of planes [H,W] or [N,H,W] of bytes."""
        value = torch.empty(x.shape[:-2], dtype=torch.float64, device=x.device)
        self.execution.stream = torch.cuda.current_stream().cuda_stream
        status = self.library.similis_integer_ssim(
            self.described(x), self.described(y), None, self.described(value),
            ctypes.byref(self.execution))
        if status != 0:
            raise RuntimeError(self.library.similis_last_error().decode())
        return value


def package():
    """The Python package, or None where it is not installed."""
    try:
        import similis
    except ImportError:
        return None
    return similis


def as_called(similis, operation, kind, **options):
    """The call of a training step or an evaluation: by the package, through autograd if there is
    a gradient."""
    measure = getattr(similis, operation)
    if kind.startswith("map"):
        options["reduction"] = "none"
    return gpu_peers.with_autograd(lambda x, y, train: measure(x, y, **options))(kind)
