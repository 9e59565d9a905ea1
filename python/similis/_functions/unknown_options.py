# SPDX-License-Identifier: Apache-2.0
"""Options by the names that other libraries have for them, answered with ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable, Final, NoReturn

from .dispatch import takes_array

# their name: what to write here
_HERE: Final = {
    "K": "k1 and k2",
    "L": "data_range",
    "betas": "weights",
    "bins": "num_bins",
    "flow": "displacement",
    "filter_sigma": "sigma",
    "filter_size": "window_size",
    "gaussian_kernel": 'window="gaussian" or "box"',
    "gaussian_weights": 'window="gaussian" or "box"',
    "interp_mode": "mode",
    "interpolation": "mode",
    "kernel_sigma": "sigma",
    "kernel_size": "window_size",
    "kernel_type": 'window="box" or "gaussian"',
    "max_val": "data_range",
    "multichannel": "channel_axis",
    "num_histogram_bins": "num_bins",
    "padding": "padding_mode",
    "size": "out_shape",
    "size_average": 'reduction="mean" or "per_image"',
    "theta": "affine",
    "use_sample_covariance": "sample_covariance",
    "val_range": "data_range",
    "win_sigma": "sigma",
    "win_size": "window_size",
}


def refuse_options(called: str, given: Iterable[str], function: Callable[..., Any]) -> NoReturn:
    """Raises for the first of the given names that is no option of the function."""
    import inspect  # which would take most of the package's import

    named = inspect.signature(function).parameters.values()
    every = [each.name for each in named if each.kind == each.KEYWORD_ONLY]
    is_call = "." not in called  # a module takes options when it is made, arrays when it is called
    taken = [each for each in every if is_call or not takes_array(each)]
    name = next(each for each in given if each not in taken)
    words = f"{called}: there is no option {name}; it takes {', '.join(taken)}"
    if name in every:
        words = f"{called}: {name} is no option; give it with the images of each call"
    elif "mask" in name:
        words = f"{called}: it takes no {name} yet"
    elif name in _HERE and _HERE[name].replace("=", " ").split()[0] in taken:
        words = f"{called}: there is no option {name}; here it is {_HERE[name]}"
    raise TypeError(words)
