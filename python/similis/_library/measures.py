# SPDX-License-Identifier: Apache-2.0
"""A measure as text: an operation and all its options in one line.

torch's operators take this text, and compiled graphs hold it, so that a graph means the same in
every process. Options are checked when the text is written; parse() turns it into the
struct of the C interface and knows the shape of the result.

    ssim data_range=0.0 window_size=11,11,11 sigma=1.5,1.5,1.5 … padding=valid reduction=mean
"""

from __future__ import annotations

import ctypes
import functools
import math
import numbers
import operator
from collections.abc import Sequence
from typing import Any, Final, Optional, Union

from . import c_abi
from .refusals import type_name

PADDINGS: Final = ("valid", "same", "reflect", "replicate", "renormalize")
REDUCTIONS: Final = ("mean", "sum", "none", "per_image", "per_channel")
DOWNSAMPLES: Final = ("vainf", "ceil", "floor", "piq")
MODES: Final = ("exact", "fast")
TRANSFERS: Final = ("srgb", "linear")
FORMS: Final = ("similarity", "loss")
LNCC_PADDINGS: Final = ("valid", "same", "renormalize")
WINDOWS: Final = ("box", "gaussian")
LNCC_GRADIENTS: Final = ("exact", "ants")
KERNELS: Final = ("b_spline", "gaussian", "delta")
RANGES: Final = ("per_image", "common", "fixed", "unit_or_common")
METHODS: Final = ("exact", "binned")
PAPER_WEIGHTS: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)

DATA_RANGES: Final = {"uint8": 255.0, "uint16": 65535.0}  # 1 for all others

PerAxisInt = Union[int, Sequence[int]]
PerAxisFloat = Union[float, Sequence[float]]


def number(operation: str, name: str, value: Any) -> float:
    """A plain number; a tensor is refused, as its value may lie on a GPU."""
    if not isinstance(value, (int, float, numbers.Real)) or isinstance(value, bool):
        hint = f", such as {name}.item()" if hasattr(value, "item") else ""
        raise TypeError(f"{operation}: {name} is {_shown(value)}; it must be a number{hint}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{operation}: {name} is above float64's largest number") from None


def integer(operation: str, name: str, value: Any) -> int:
    """An integer of Python or NumPy, or a traced size, which becomes a constant of the graph."""
    is_integer = isinstance(value, (int, numbers.Integral)) or (
        type(value).__name__ == "SymInt" and hasattr(value, "__index__")
    )
    if not is_integer or isinstance(value, bool):
        raise TypeError(f"{operation}: {name} is {_shown(value)}; it must be an integer")
    result = operator.index(value)
    if abs(result) >= 2**31:
        raise ValueError(f"{operation}: {name} is {value!r}; it must be below {2**31}")
    return result


def _shown(value: Any) -> str:
    """The value in one line, or the type of an array."""
    return f"of type {type_name(value)}" if hasattr(value, "ndim") else repr(value)


def _positive(operation: str, name: str, value: Any) -> float:
    result = number(operation, name, value)
    if not 0 < result < math.inf:
        raise ValueError(f"{operation}: {name} is {value!r}; it must be a number above 0")
    return result


def flag(operation: str, name: str, value: Any) -> int:
    if not isinstance(value, bool):
        raise TypeError(f"{operation}: {name} is {_shown(value)}; it must be True or False")
    return int(value)


def _data_range(operation: str, value: Optional[float]) -> float:
    """The C interface takes 0 for the default of the images' dtype."""
    if value is None:
        return 0.0
    result = number(operation, "data_range", value)
    if not result > 0:
        raise ValueError(f"{operation}: data_range is {value!r}; it must be a number above 0")
    return result


def _per_axis(operation: str, name: str, value: Any, spatial: int, convert: Any) -> str:
    """Three numbers, along z, y and x."""
    if isinstance(value, (tuple, list)):
        if len(value) != spatial:
            raise ValueError(
                f"{operation}: {name} has {len(value)} numbers; it takes one, or one for each of "
                f"the {spatial} axes"
            )
        given = [convert(operation, name, each) for each in value]
        zyx = [given[0]] * (3 - spatial) + given
    else:
        zyx = [convert(operation, name, value)] * 3
    return f"{zyx[0]!r},{zyx[1]!r},{zyx[2]!r}"


def _one_of(operation: str, name: str, value: Any, choices: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{operation}: {name} is {_shown(value)}; it must be a string")
    if value not in choices:
        listed = ", ".join(choices[:-1])
        raise ValueError(f"{operation}: {name} is {value!r}; it must be {listed} or {choices[-1]}")
    return value


def _windowed(
    operation: str,
    spatial: int,
    data_range: Optional[float],
    window_size: PerAxisInt,
    sigma: PerAxisFloat,
    k1: float,
    k2: float,
    padding: str,
    reduction: str,
) -> str:
    """The options that SSIM and MS-SSIM have in common."""
    return (
        f"data_range={_data_range(operation, data_range)!r} "
        f"window_size={_per_axis(operation, 'window_size', window_size, spatial, integer)} "
        f"sigma={_per_axis(operation, 'sigma', sigma, spatial, number)} "
        f"k1={number(operation, 'k1', k1)!r} k2={number(operation, 'k2', k2)!r} "
        f"padding={_one_of(operation, 'padding', padding, PADDINGS)} "
        f"reduction={_one_of(operation, 'reduction', reduction, REDUCTIONS)}"
    )


def ssim_text(
    spatial: int,
    data_range: Optional[float],
    window_size: PerAxisInt,
    sigma: PerAxisFloat,
    k1: float,
    k2: float,
    padding: str,
    reduction: str,
    form: str,
) -> str:
    common = _windowed("ssim", spatial, data_range, window_size, sigma, k1, k2, padding, reduction)
    return f"ssim {common} ssim_weight=1.0 l1_weight=0.0 form={form}"


def l1_ssim_text(
    spatial: int,
    weight: float,
    data_range: Optional[float],
    window_size: PerAxisInt,
    sigma: PerAxisFloat,
    k1: float,
    k2: float,
    padding: str,
    reduction: str,
) -> str:
    of_ssim = number("l1_ssim", "weight", weight)
    if not 0 <= of_ssim <= 1:
        raise ValueError(f"l1_ssim: weight is {weight!r}; it must be a number from 0 to 1")
    common = _windowed(
        "l1_ssim", spatial, data_range, window_size, sigma, k1, k2, padding, reduction
    )
    return f"ssim {common} ssim_weight={of_ssim!r} l1_weight={1 - of_ssim!r} form=loss"


def ms_ssim_text(
    spatial: int,
    data_range: Optional[float],
    window_size: PerAxisInt,
    sigma: PerAxisFloat,
    k1: float,
    k2: float,
    padding: str,
    reduction: str,
    weights: Optional[Sequence[float]],
    downsample: str,
    form: str,
) -> str:
    common = _windowed(
        "ms_ssim", spatial, data_range, window_size, sigma, k1, k2, padding, reduction
    )
    if weights is None:
        weights = PAPER_WEIGHTS
    if not isinstance(weights, (tuple, list)):
        raise TypeError(
            f"ms_ssim: weights is {_shown(weights)}; it must be a tuple or list of numbers, one "
            "for each level"
        )
    listed = ",".join([repr(number("ms_ssim", "weights", each)) for each in weights])
    rule = _one_of("ms_ssim", "downsample", downsample, DOWNSAMPLES)
    return f"ms_ssim {common} weights={listed} downsample={rule} form={form}"


def lncc_text(
    spatial: int,
    window_size: PerAxisInt,
    window: str,
    sigma: PerAxisFloat,
    padding: str,
    reduction: str,
    smooth_nr: float,
    smooth_dr: float,
    signed: bool,
    gradient: str,
    weight: float,
) -> str:
    """weight: the factor of the correlation, -1 in a loss."""
    return (
        f"lncc window_size={_per_axis('lncc', 'window_size', window_size, spatial, integer)} "
        f"window={_one_of('lncc', 'window', window, WINDOWS)} "
        f"sigma={_per_axis('lncc', 'sigma', sigma, spatial, _positive)} "
        f"padding={_one_of('lncc', 'padding', padding, LNCC_PADDINGS)} "
        f"reduction={_one_of('lncc', 'reduction', reduction, REDUCTIONS)} "
        f"smooth_nr={number('lncc', 'smooth_nr', smooth_nr)!r} "
        f"smooth_dr={number('lncc', 'smooth_dr', smooth_dr)!r} "
        f"signed={flag('lncc', 'signed', signed)} "
        f"gradient={_one_of('lncc', 'gradient', gradient, LNCC_GRADIENTS)} "
        f"weight={weight!r}"
    )


def ncc_text(reduction: str, weight: float) -> str:
    """weight: the factor of the correlation, -1 in a loss."""
    return f"ncc reduction={_one_of('ncc', 'reduction', reduction, REDUCTIONS)} weight={weight!r}"


def pixel_error_text(operation: str, data_range: Optional[float], reduction: str) -> str:
    """operation: mse, mae or psnr."""
    return (
        f"{operation} data_range={_data_range(operation, data_range)!r} "
        f"reduction={_one_of(operation, 'reduction', reduction, REDUCTIONS)}"
    )


def _bit_depth(operation: str, bit_depth: Optional[int]) -> str:
    """The C interface takes 0 for the default of the planes' dtype."""
    depth = 0 if bit_depth is None else integer(operation, "bit_depth", bit_depth)
    if bit_depth is not None and depth not in (8, 10, 12, 16):
        raise ValueError(f"{operation}: bit_depth is {bit_depth!r}; it must be 8, 10, 12 or 16")
    return f"bit_depth={depth} in_float64=1"


def of_planes_text(operation: str, bit_depth: Optional[int]) -> str:
    """operation: integer_ssim or libvmaf_psnr."""
    return f"{operation} {_bit_depth(operation, bit_depth)}"


def float_ssim_text(
    operation: str, bit_depth: Optional[int], scale: Optional[int], enable_db: bool, clip_db: bool
) -> str:
    """operation: float_ssim or float_ms_ssim, which has no scale."""
    shrunk_by = 0 if scale is None else integer(operation, "scale", scale)
    if scale is not None and not 0 <= shrunk_by <= 10:
        raise ValueError(f"{operation}: scale is {scale!r}; it must be a whole number from 0 to 10")
    return (
        f"{operation} {_bit_depth(operation, bit_depth)} scale={shrunk_by} "
        f"enable_db={flag(operation, 'enable_db', enable_db)} "
        f"clip_db={flag(operation, 'clip_db', clip_db)}"
    )


def ssimulacra2_text(mode: str, transfer: str) -> str:
    return (
        f"ssimulacra2 mode={_one_of('ssimulacra2', 'mode', mode, MODES)} "
        f"transfer={_one_of('ssimulacra2', 'transfer', transfer, TRANSFERS)} in_float64=1"
    )


Range = Union[str, Sequence[float]]


def _range(operation: str, value: Any) -> str:
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ValueError(f"{operation}: range is {value!r}; it must be (low, high)")
        low, high = [number(operation, "range", each) for each in value]
        return f"range=fixed low={low!r} high={high!r}"
    if isinstance(value, str) and value in RANGES and value != "fixed":
        return f"range={value} low=0.0 high=1.0"
    raise ValueError(
        f"{operation}: range is {value!r}; it must be (low, high), per_image or common"
    )


def mutual_information_text(
    operation: str,
    num_bins: int,
    kernel: str,
    sigma_ratio: float,
    range: Range,
    normalized: bool,
    smooth_nr: float,
    smooth_dr: float,
    method: str,
    sampling: float,
    seed: int,
    reduction: str,
    form: str,
) -> str:
    """operation: mutual_information, histogram or mutual_information_from_histogram."""
    bins = integer(operation, "num_bins", num_bins)
    if not 4 <= bins <= 256:
        raise ValueError(f"{operation}: num_bins is {num_bins!r}; it must be a whole number from 4 to 256")
    chosen = integer(operation, "seed", seed)
    if chosen < 0:
        raise ValueError(f"{operation}: seed is {seed!r}; it must be a whole number of 0 or more")
    return (
        f"{operation} num_bins={bins} "
        f"kernel={_one_of(operation, 'kernel', kernel, KERNELS)} "
        f"sigma_ratio={number(operation, 'sigma_ratio', sigma_ratio)!r} "
        f"{_range(operation, range)} "
        f"normalized={flag(operation, 'normalized', normalized)} "
        f"smooth_nr={number(operation, 'smooth_nr', smooth_nr)!r} "
        f"smooth_dr={number(operation, 'smooth_dr', smooth_dr)!r} "
        f"method={_one_of(operation, 'method', method, METHODS)} "
        f"sampling={number(operation, 'sampling', sampling)!r} seed={chosen} "
        f"reduction={_one_of(operation, 'reduction', reduction, REDUCTIONS)} form={form}"
        + ("" if operation == "mutual_information" else " in_float64=1")
    )


def psnr_error_text(data_range: Optional[float], reduction: str) -> str:
    """The mean squared error, of which PSNR takes the logarithm."""
    if _one_of("psnr", "reduction", reduction, REDUCTIONS) in ("sum", "none"):
        raise ValueError(
            f"psnr: reduction is {reduction!r}; it must be mean, per_image or per_channel"
        )
    return f"mse{pixel_error_text('psnr', data_range, reduction)[4:]}"


def _three(kind: Any, text: str) -> list[Any]:
    return [kind(each) for each in text.split(",")]


_OF_PLANES: Final = ("integer_ssim", "float_ssim", "float_ms_ssim", "libvmaf_psnr")


class Measure:
    """An operation and its options, as the C interface takes them."""

    def __init__(self, text: str) -> None:
        self.operation, *pairs = text.split(" ")
        given = dict(pair.split("=", 1) for pair in pairs)
        self.data_range = float(given.get("data_range", 0))
        self.reduction = given.get("reduction", "")
        self.bit_depth = int(given.get("bit_depth", 0))
        self.scale = int(given.get("scale", 0))
        self.decibels = [int(given.get(name, 0)) for name in ("enable_db", "clip_db")]
        self.mode, self.transfer = given.get("mode", ""), given.get("transfer", "")
        self.padding = given.get("padding", "")
        self.form = given.get("form", "loss")
        self.window_size: list[int] = _three(int, given.get("window_size", "1,1,1"))
        self.sigma: list[float] = _three(float, given.get("sigma", "1,1,1"))
        self.k1, self.k2 = float(given.get("k1", 0)), float(given.get("k2", 0))
        self.ssim_weight = float(given.get("ssim_weight", 1))
        self.l1_weight = float(given.get("l1_weight", 0))
        self.weights = [float(each) for each in given.get("weights", "").split(",") if each]
        self.downsample = given.get("downsample", "")
        self.window = given.get("window", "gaussian")
        self.smooth_nr = float(given.get("smooth_nr", 0))
        self.smooth_dr = float(given.get("smooth_dr", 0))
        self.signed = given.get("signed") == "1"
        self.gradient = given.get("gradient", "exact")
        self.weight = float(given.get("weight", 1))
        self.is_scalar = is_scalar(text) and self.operation != "histogram"
        self.in_float64 = "in_float64" in given  # the result, whatever the images are
        self.num_bins = int(given.get("num_bins", 0))
        self.of_histogram = given if "num_bins" in given else {}
        self.options = self._struct()
        self.options_address = ctypes.addressof(self.options)

    def _struct(self) -> ctypes.Structure:
        if self.operation == "ssim":
            return self._ssim_options()
        if self.operation == "ms_ssim":
            return self._ms_ssim_options()
        if self.operation == "lncc":
            return self._lncc_options()
        if self.operation == "ncc":
            size, reduction = ctypes.sizeof(c_abi.NccOptions), REDUCTIONS.index(self.reduction)
            return c_abi.NccOptions(size, self.weight, reduction)
        if self.of_histogram:
            return self._mutual_information_options(self.of_histogram)
        if self.operation == "integer_ssim":
            return c_abi.IntegerSsimOptions(ctypes.sizeof(c_abi.IntegerSsimOptions), self.bit_depth)
        if self.operation == "libvmaf_psnr":
            return c_abi.LibvmafPsnrOptions(ctypes.sizeof(c_abi.LibvmafPsnrOptions), self.bit_depth)
        if self.operation == "float_ssim":
            size = ctypes.sizeof(c_abi.FloatSsimOptions)
            return c_abi.FloatSsimOptions(size, self.bit_depth, self.scale, *self.decibels)
        if self.operation == "float_ms_ssim":
            size = ctypes.sizeof(c_abi.FloatMsSsimOptions)
            return c_abi.FloatMsSsimOptions(size, self.bit_depth, *self.decibels)
        if self.operation == "ssimulacra2":
            return c_abi.Ssimulacra2Options(
                ctypes.sizeof(c_abi.Ssimulacra2Options),
                MODES.index(self.mode),
                TRANSFERS.index(self.transfer),
            )
        return c_abi.PixelErrorOptions(
            ctypes.sizeof(c_abi.PixelErrorOptions),
            self.data_range,
            REDUCTIONS.index(self.reduction),
        )

    def _ssim_options(self) -> c_abi.SsimOptions:
        options = c_abi.SsimOptions(struct_size=ctypes.sizeof(c_abi.SsimOptions))
        self._fill_window(options)
        options.ssim_weight, options.l1_weight = self.ssim_weight, self.l1_weight
        return options

    def _ms_ssim_options(self) -> c_abi.MsSsimOptions:
        options = c_abi.MsSsimOptions(struct_size=ctypes.sizeof(c_abi.MsSsimOptions))
        self._fill_window(options)
        self._weights = (ctypes.c_double * max(1, len(self.weights)))(*self.weights)
        options.weights = ctypes.cast(self._weights, ctypes.POINTER(ctypes.c_double))
        options.weight_count = len(self.weights)
        options.downsample = DOWNSAMPLES.index(self.downsample)
        return options

    def _lncc_options(self) -> c_abi.LnccOptions:
        options = c_abi.LnccOptions(struct_size=ctypes.sizeof(c_abi.LnccOptions))
        options.sigma = (ctypes.c_double * 3)(*self.sigma)
        options.smooth_nr, options.smooth_dr = self.smooth_nr, self.smooth_dr
        options.weight = self.weight
        options.window_size = (ctypes.c_int32 * 3)(*self.window_size)
        options.window = WINDOWS.index(self.window)
        options.padding = PADDINGS.index(self.padding)
        options.reduction = REDUCTIONS.index(self.reduction)
        options.is_signed = int(self.signed)
        options.gradient = LNCC_GRADIENTS.index(self.gradient)
        return options

    def _mutual_information_options(self, given: dict[str, str]) -> c_abi.MutualInformationOptions:
        return c_abi.MutualInformationOptions(
            struct_size=ctypes.sizeof(c_abi.MutualInformationOptions),
            sigma_ratio=float(given["sigma_ratio"]),
            low=float(given["low"]),
            high=float(given["high"]),
            smooth_nr=float(given["smooth_nr"]),
            smooth_dr=float(given["smooth_dr"]),
            sampling=float(given["sampling"]),
            seed=int(given["seed"]),
            num_bins=self.num_bins,
            kernel=KERNELS.index(given["kernel"]),
            range=RANGES.index(given["range"]),
            normalized=int(given["normalized"]),
            method=METHODS.index(given["method"]),
            reduction=REDUCTIONS.index(self.reduction),
            form=int(self.form == "loss"),
        )

    def _fill_window(self, options: Any) -> None:
        options.data_range = self.data_range
        options.sigma = (ctypes.c_double * 3)(*self.sigma)
        options.k1, options.k2 = self.k1, self.k2
        options.window_size = (ctypes.c_int32 * 3)(*self.window_size)
        options.padding = PADDINGS.index(self.padding)
        options.reduction = REDUCTIONS.index(self.reduction)
        options.form = FORMS.index(self.form)

    def result_shape(self, shape: Sequence[int]) -> list[int]:
        """The shape of the result for images of this shape, if the library takes them."""
        if self.operation in _OF_PLANES:
            return list(shape[:-2])
        if self.operation == "ssimulacra2":
            return list(shape[:-3])
        if self.operation == "histogram":
            return list(shape[:2]) + [self.num_bins, self.num_bins]
        if self.reduction in ("mean", "sum"):
            return []
        if self.reduction == "per_image":
            return list(shape[:1])
        if self.reduction == "per_channel" or self.of_histogram:
            return list(shape[:2])
        if self.padding != "valid":
            return list(shape)
        sizes = self.window_size[-(len(shape) - 2) :]
        return list(shape[:2]) + [max(n - size + 1, 1) for n, size in zip(shape[2:], sizes)]


def is_scalar(text: str) -> bool:
    """True if the result is one number. It reads the text, as torch.compile traces no struct."""
    return " reduction=mean" in text or " reduction=sum" in text


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Measure:
    return Measure(text)
