# SPDX-License-Identifier: Apache-2.0
"""The package's hints, which users' own checks rest on: mypy --strict, as pyproject.toml has it."""

import pathlib

import pytest

api = pytest.importorskip("mypy.api", reason="`make check` installs mypy")
pytest.importorskip("torch", reason="`make check-python` installs torch")
pytest.importorskip("jax", reason="`make check-python` installs jax")
ROOT = pathlib.Path(__file__).parents[2]


def test_hints(monkeypatch):
    monkeypatch.chdir(ROOT)
    words, errors, status = api.run(["--cache-dir=build/mypy", "--no-error-summary"])
    assert status == 0, words + errors


def test_hints_are_looked_at(monkeypatch, tmp_path):
    """Unknown options and wrong types do not pass."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import similis, similis.nn as nn\nsimilis.ssim(1.0, 1.0, padding=3)\nnn.SSIM(window=3)\n"
    )
    monkeypatch.chdir(ROOT / "python")
    words, _, status = api.run(["--cache-dir", str(ROOT / "build/mypy"), str(wrong)])
    assert status == 1 and 'Argument "padding"' in words and '"window"' in words, words
