#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the stubs that type checkers and editors read: what each function returns for which arrays,
the words that an option takes, and the constructors of nn and metrics with their defaults.

    PYTHONPATH=build/python .venv/bin/python scripts/python_stubs.py [--check]

They follow from the functions' signatures and the library's table of options. With --check nothing
is written, and the exit status says whether they are current.
"""

import argparse
import inspect
import pathlib
import re
import sys
import textwrap

import similis
from similis._library.schema import TABLES

ROOT = pathlib.Path(__file__).parents[1] / "python/similis"
HEAD = "# SPDX-License-Identifier: Apache-2.0\n# Written by scripts/python_stubs.py.\n"
IMPORTS = """\
from collections.abc import Callable, Sequence
from typing import Any, Literal, Optional, Protocol, TypeVar, Union, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from similis._library.measures import PerAxisFloat, PerAxisInt, Range
from similis._library.values import DataRange
"""
KINDS = """
_T = TypeVar("_T", bound=np.generic)
_F = TypeVar("_F", bound=np.floating[Any])

class _JaxArray(Protocol):
    \"\"\"A method that only jax.Array has, which tells it from other libraries' arrays.\"\"\"

    def block_until_ready(self) -> Any: ...

_J = TypeVar("_J", bound=_JaxArray)
Coordinates = Optional[Sequence[float]]
"""

MEASURES = "ssim l1_ssim ms_ssim lncc ncc mutual_information mse mae psnr".split()
LOSSES = "ssim_loss ms_ssim_loss lncc_loss ncc_loss mutual_information_loss".split()
SCORES = (
    "integer_ssim float_ssim float_ms_ssim libvmaf_psnr ssimulacra2 vmaf histogram "
    "mutual_information_from_histogram"
).split()
TRANSFORMS = (
    "sample compose affine_grid sample_labels exponentiate invert jacobian_determinant smooth"
).split()
FAMILIES = {"measures": MEASURES, "losses": LOSSES, "scores": SCORES, "transforms": TRANSFORMS}

ONE_NUMBER = ("mean", "sum")  # reductions to a numpy.float64
HAND_WRITTEN = '''
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
'''
ELSEWHERE = {
    "DeviceError": "_library.c_abi",
    "VmafScorer": "_functions.vmaf",
    "__version__": "_library.c_abi",
    "get_num_threads": "_library.threads",
    "set_num_threads": "_library.threads",
    "register": "_functions.register",
}
OF_VOLUMES = ("Volume", "read_transform", "read_volume", "write_transform", "write_volume")
SUBMODULES = ("compat", "metrics", "nn", "volumes")


def words_of(function, option):
    """The words that an option takes; () if it takes others."""
    name = function.__name__.removesuffix("_loss")
    table = TABLES.get({"l1_ssim": "ssim"}.get(name, name))
    row = table.options.get(option) if table else None
    if row is not None and row.words and row.type == "choice":
        return tuple(row.taken)
    return ()


def literal(words):
    return f"Literal[{', '.join(repr(each) for each in words)}]".replace("'", '"')


def written(value):
    """A default as it stands in a signature."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def signature(name, parameters, returns, is_overload=True):
    """One declaration in lines of at most 100 columns."""
    text = ", ".join(parameters)
    head = f"def {name}("
    lines = textwrap.wrap(
        text, 95, initial_indent="    ", subsequent_indent="    ", break_long_words=False
    )
    one = f"{head}{text}) -> {returns}: ..."
    body = one if len(one) <= 100 else f"{head}\n" + "\n".join(lines) + f"\n) -> {returns}: ..."
    return ("@overload\n" if is_overload else "") + body


def parameters_of(function, array, replaced=(), required=()):
    """The parameters' texts, with this type for arrays, and other types for some."""
    texts, named_only = [], False
    for each in inspect.signature(function).parameters.values():
        if each.kind == each.VAR_KEYWORD:
            continue
        if each.kind == each.KEYWORD_ONLY and not named_only:
            named_only = True
            texts.append("*")
        words = words_of(function, each.name)
        hint = str(each.annotation)
        hint = literal(words) if words else re.sub(r"\bArray\b", array, hint)
        if hint == "Any":
            hint = array if each.default is each.empty else f"Optional[{array}]"
        hint = dict(replaced).get(each.name, hint)
        default = "" if each.default is each.empty or each.name in required else each.default
        texts.append(
            f"{each.name}: {hint}" + (f" = {written(default)}" if default != "" else "")
        )
    return texts


def measure(name):
    """By the kind of the arrays, the dtype and the reduction."""
    function = getattr(similis, name)
    reductions = words_of(function, "reduction")
    many = [each for each in reductions if each not in ONE_NUMBER]
    one = literal([each for each in reductions if each in ONE_NUMBER])
    declarations = [
        signature(name, parameters_of(function, "NDArray[Any]", {"reduction": one}), "np.float64")
    ]
    for images, result in (
        ("NDArray[np.float64]", "NDArray[np.float64]"),
        ("NDArray[Any]", "NDArray[np.float32]"),
    ):
        given = parameters_of(
            function, "NDArray[Any]", {"reduction": literal(many), "x": images, "y": images},
            ("reduction",),
        )
        declarations.append(signature(name, given, result))
    return [*declarations, *_others(function, ("Tensor", "_J"))]


def _others(function, kinds):
    return [signature(function.__name__, parameters_of(function, each), each) for each in kinds]


def score(name):
    """Numbers in f64; float_ssim() and vmaf() return more if they are asked to."""
    function, declarations = getattr(similis, name), []
    numbers = "NDArray[np.float64]"
    if name == "mutual_information_from_histogram":
        reductions = words_of(function, "reduction")
        one = {"reduction": literal([each for each in reductions if each in ONE_NUMBER])}
        many = {"reduction": literal([each for each in reductions if each not in ONE_NUMBER])}
        return [
            signature(name, parameters_of(function, numbers, one), "np.float64"),
            signature(name, parameters_of(function, numbers, many, ("reduction",)), numbers),
            *_others(function, ("Tensor",)),
        ]
    for array, result in (("NDArray[Any]", numbers), ("Tensor", "Tensor")):
        own = inspect.signature(function).parameters
        flag = next((each for each in ("enable_lcs", "features") if each in own), None)
        if flag is None:
            declarations.append(signature(name, parameters_of(function, array), result))
            continue
        more = "FloatSsimMeans" if flag == "enable_lcs" else f"dict[str, {result}]"
        for value, returned in (("False", result), ("True", more)):
            given = parameters_of(
                function, array, {flag: f"Literal[{value}]"}, (flag,) * (value == "True")
            )
            declarations.append(signature(name, given, returned))
    if name == "ssimulacra2" or name == "histogram":
        declarations += _others(function, ("_J",))
    return declarations


def transform(name):
    """Declarations of a transform, which returns the type of its first array."""
    function = getattr(similis, name)
    returned = str(inspect.signature(function).return_annotation)
    first = next(iter(inspect.signature(function).parameters))
    declarations = []
    for array, own in (("NDArray[Any]", "NDArray[_T]"), ("Tensor", "Tensor"), ("_J", "_J")):
        if name == "sample_labels":
            for value, result in (("False", own), ("True", f"tuple[{own}, {array}]")):
                given = {"return_weight": f"Literal[{value}]", first: own}
                required = ("return_weight",) * (value == "True")
                texts = parameters_of(function, array, given, required)
                declarations.append(signature(name, texts, result))
            continue
        result = re.sub(r"\bArray\b", own, returned)
        if name == "jacobian_determinant":
            result = re.sub(r"\bArray\b", array, returned)
            own = array
        declarations.append(signature(name, parameters_of(function, array, {first: own}), result))
    return declarations


MAKERS = {"measures": measure, "losses": measure, "scores": score, "transforms": transform}


def family(kind):
    parts = [HEAD + IMPORTS]
    if kind == "scores":
        parts[0] += "from similis._functions.scores import FloatSsimMeans\n"
    if kind == "transforms":
        parts[0] += "from similis._library.warp import Pair\n"
    parts[0] += KINDS
    for name in FAMILIES[kind]:
        parts.append("\n".join(MAKERS[kind](name)))
    if kind == "measures":
        parts.append(HAND_WRITTEN.strip())
    return "\n\n".join(parts) + "\n"


def package():
    lines = [HEAD + "from types import ModuleType\nfrom typing import Any\n"]
    for name in SUBMODULES:
        lines.append(f"from . import {name} as {name}")
    for name, module in ELSEWHERE.items():
        lines.append(f"from .{module} import {name} as {name}")
    for kind, names in FAMILIES.items():
        own = [*names, *["value_and_gradient"] * (kind == "measures")]
        listed = "\n".join(f"    {each} as {each}," for each in own)
        lines.append(f"from ._signatures.{kind} import (\n{listed}\n)")
    listed = "\n".join(f"    {each} as {each}," for each in OF_VOLUMES)
    lines.append(f"from .volumes import (\n{listed}\n)")
    text = "\n".join(lines).replace("from types import ModuleType\nfrom typing import Any\n", "")
    undeclared = [each for each in similis.__all__ if f" as {each}" not in text]
    assert not undeclared, f"no stub declares {undeclared}"
    return text + f"\n\n__all__ = {literal(similis.__all__)[7:]}\n".replace(", ", ",\n    ")


def classes(module, base, methods):
    """The constructors of the classes of nn or metrics."""
    texts = []
    for name in module.__all__:
        made = getattr(module, name)
        function = made.function
        parameters, named_only = ["self"], False
        for each in list(inspect.signature(made.__init__).parameters.values())[1:]:
            if each.kind == each.VAR_KEYWORD:
                parameters.append("**of_metric: Any")
                continue
            if each.kind == each.KEYWORD_ONLY and not named_only:
                named_only = True
                parameters.append("*")
            words = words_of(function, each.name)
            if base == "Metric" and each.name == "reduction":
                words = ("mean", "sum", "none")
            hint = literal(words) if words else str(each.annotation)
            parameters.append(f"{each.name}: {hint} = {written(each.default)}")
        init = signature("__init__", parameters, "None", is_overload=False)
        masks = [each for each in inspect.signature(function).parameters if "mask" in each]
        images = ["self", "x: Tensor", "y: Tensor"]
        doc = inspect.getdoc(made).splitlines()[0]
        body = [f'"""{doc}"""', init]
        for method, result, star in methods:
            given = images if result != "compute" else ["self"]
            if given is images and masks:
                stars = ["*"] if star else []
                given = [*images, *stars, *(f"{each}: Optional[Tensor] = None" for each in masks)]
            body.append(
                signature(method, given, "Tensor" if result == "compute" else result, False)
            )
        if base == "Metric":
            body[1] += "  # type: ignore[override]" * 0
        texts.append(
            f"class {name}({base}):\n" + textwrap.indent("\n".join(body), "    ").rstrip()
        )
    return "\n\n".join(texts) + "\n"


def stubs():
    result = {f"_signatures/{kind}.pyi": family(kind) for kind in FAMILIES}
    result["_signatures/__init__.pyi"] = HEAD
    result["__init__.pyi"] = package()
    from similis import metrics, nn

    imports = (
        "from collections.abc import Sequence\nfrom typing import Any, Literal, Optional, Union\n\n"
        "import torch\nfrom torch import Tensor\n"
    )
    own = (
        "\nfrom similis._library.measures import PerAxisFloat, PerAxisInt, Range\n"
        "from similis._library.values import DataRange\n"
    )
    every = "\n\n__all__ = [\n" + "{}" + "]\n\n"
    result["nn.pyi"] = (
        HEAD
        + imports
        + own
        + every.format("".join(f'    "{each}",\n' for each in nn.__all__))
        + classes(
            nn, "torch.nn.Module", [("forward", "Tensor", True), ("__call__", "Tensor", True)]
        )
    )
    result["metrics.pyi"] = (
        HEAD
        + imports.replace("import torch\n", "")
        + "from torchmetrics import Metric as Metric\n"
        + own
        + every.format("".join(f'    "{each}",\n' for each in metrics.__all__))
        + "def of_batches(batches: Any) -> Tensor: ...\n\n"
        + classes(metrics, "Metric", [("update", "None", False), ("compute", "compute", False)])
    )
    return result


def outdated():
    """The stubs whose text differs from what the functions say, as (path, text)."""
    paths = ((ROOT / name, text) for name, text in stubs().items())
    return [(path, text) for path, text in paths if not path.exists() or path.read_text() != text]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    old = outdated()
    if not check:
        for path, text in old:
            path.write_text(text)
    elif old:
        names = ", ".join(str(path.relative_to(ROOT)) for path, _ in old)
        print(f"not current: {names}; run scripts/python_stubs.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
