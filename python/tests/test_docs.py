# SPDX-License-Identifier: Apache-2.0
"""Runs what docs/python.md, README.md and the examples show."""

import importlib.util
import pathlib
import re

import pytest

pytest.importorskip("torch", reason="`make check-python` installs torch")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def blocks(page):
    """(what it needs beside torch, code) of each block of Python."""
    text = (ROOT / page).read_text()
    found = re.findall(r"^```python ?(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, f"{page} shows no Python"
    return found


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for needed, code in blocks(page):
        if needed == "cuda" and not names["torch"].cuda.is_available():
            continue
        if needed in ("jax", "torchmetrics") and importlib.util.find_spec(needed) is None:
            continue
        exec(compile(code, page, "exec"), names)


def test_gaussians_are_fitted(run_python, tmp_path):
    script = ROOT / "examples/fit_gaussians.py"
    printed = run_python(f"""
        import runpy, sys
        sys.argv = ["fit_gaussians.py", "--size", "32", "--count", "32", "--steps", "40"]
        runpy.run_path({str(script)!r}, run_name="__main__")
    """)
    losses = [float(loss) for loss in re.findall(r"loss (\d\.\d+)", printed)]
    assert losses[-1] < losses[0] / 2
    picture = (tmp_path / "fit.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and b"\0\0\0\x40\0\0\0\x20\x08\x02" in picture


def test_volumes_are_aligned(run_python):
    """Each step raises the overlap of labels that it has not seen, and no voxel folds."""
    script = ROOT / "examples/align_volumes.py"
    printed = run_python(f"""
        import runpy, sys
        sys.argv = ["align_volumes.py", "--size", "40"]
        runpy.run_path({str(script)!r}, run_name="__main__")
    """)
    before, affine, displacement = [float(dice) for dice in re.findall(r"Dice (\d\.\d+)", printed)]
    assert before < 0.6 and affine > 0.8 and displacement > affine + 0.02, printed
    assert printed.splitlines()[-1].startswith("0 of 64000 voxels"), printed
