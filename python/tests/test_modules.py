# SPDX-License-Identifier: Apache-2.0
"""The package's modules: no cycle of imports, and losses with their measures' signatures."""

import ast
import inspect
import os
import pathlib

import pytest

import similis

FOLDER = pathlib.Path(similis.__file__).parent


def _modules():
    """The path of each module by its name."""
    found = {}
    for folder, _, files in os.walk(FOLDER, followlinks=True):
        for file in files:
            path = pathlib.Path(folder, file)
            parts = ["similis", *path.relative_to(FOLDER).with_suffix("").parts]
            if path.suffix == ".py":
                found[".".join(parts[:-1] if file == "__init__.py" else parts)] = path
    return found


def _imports(name, path, modules):
    """The package's modules that a module imports, at its top or inside a function."""
    is_package = path.name == "__init__.py"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        if not isinstance(node, ast.ImportFrom):
            continue
        base = name.split(".")
        base = base[: len(base) - node.level + is_package] if node.level else []
        source = ".".join([*base, *(node.module or "").split(".")]).strip(".")
        for each in node.names:
            if f"{source}.{each.name}" in modules:
                yield f"{source}.{each.name}"
            elif source in modules:
                yield source


def test_imports_have_no_cycle():
    modules = _modules()
    assert {"similis", "similis.nn", "similis._torch.measures"} <= set(modules)
    imports = {name: set(_imports(name, path, modules)) for name, path in modules.items()}
    assert "similis._torch" in imports["similis._functions.dispatch"]  # inside a function
    left = dict(imports)
    while left:
        free = [name for name, needs in left.items() if not needs & set(left)]
        assert free, f"these modules import each other, or depend on a cycle: {sorted(left)}"
        for name in free:
            del left[name]


@pytest.mark.parametrize("measure", ["ssim", "ms_ssim", "lncc", "ncc", "mutual_information"])
def test_losses_have_their_measures_signatures(measure):
    function, loss = getattr(similis, measure), getattr(similis, f"{measure}_loss")
    assert inspect.signature(loss) == inspect.signature(function)
    assert loss.__name__ == f"{measure}_loss" and f"{measure}()" in loss.__doc__
    with pytest.raises(TypeError, match=f"{measure}_loss.*(no option size|unexpected keyword argument 'size')"):
        loss(None, None, size=3)
    with pytest.raises(TypeError, match=f"{measure}_loss.. missing 1 required positional argument"):
        loss(None)
