# SPDX-License-Identifier: Apache-2.0
"""The package's hints, which users' own checks rest on: mypy --strict and pyright's standard rules,
as pyproject.toml has them, over the package, the examples, and files of right and wrong uses."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import similis

api = pytest.importorskip("mypy.api", reason="`make check` installs mypy")
pytest.importorskip("torch", reason="`make check-python` installs torch")
pytest.importorskip("jax", reason="`make check-python` installs jax")
ROOT = pathlib.Path(__file__).parents[2]
USES = ROOT / "python/tests/types"


def checked(monkeypatch, *arguments):
    monkeypatch.chdir(ROOT / "python")  # where `similis` is the package
    given = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / "build/mypy")]
    return api.run([*given, "--no-error-summary", *arguments])


def test_hints(monkeypatch):
    monkeypatch.chdir(ROOT)
    words, errors, status = api.run(["--cache-dir=build/mypy", "--no-error-summary"])
    assert status == 0, words + errors


def test_correct_code_passes(monkeypatch):
    examples = map(str, sorted((ROOT / "examples").glob("*.py")))
    words, errors, status = checked(monkeypatch, str(USES / "right.py"), *examples)
    assert status == 0, words + errors


def wrong_lines():
    """The lines of wrong.py that say so: they are to be reported, and no other."""
    lines = (USES / "wrong.py").read_text().splitlines()
    return {i for i, line in enumerate(lines, start=1) if line.endswith("# wrong")}


def test_wrong_code_does_not(monkeypatch):
    words, _, _ = checked(monkeypatch, "--hide-error-context", str(USES / "wrong.py"))
    reported = {int(line) for line in re.findall(r"wrong\.py:(\d+): error", words)}
    assert reported == wrong_lines(), words


def pyright(*files):
    """What pyright reports: (file, line, sentence). Without files, of those of pyproject.toml."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("`make check` installs basedpyright")
    given = ["--pythonpath", sys.executable, "--outputjson", *(files or ["-p", str(ROOT)])]
    finished = subprocess.run(
        [sys.executable, "-m", "basedpyright", *given], cwd=ROOT, capture_output=True, text=True
    )
    assert finished.stdout, finished.stderr
    report = json.loads(finished.stdout)
    assert report["summary"]["filesAnalyzed"] > 0
    return [
        (each["file"], each["range"]["start"]["line"] + 1, each["message"])
        for each in report["generalDiagnostics"]
    ]


def test_pyright_accepts_correct_code():
    assert pyright() == []


def test_pyright_reports_wrong_code():
    reported = pyright(str(USES / "wrong.py"))
    assert {line for _, line, _ in reported} == wrong_lines(), reported


def test_stubs_are_current():
    pytest.importorskip("torchmetrics", reason="`make check` installs torchmetrics")
    finished = subprocess.run(
        [sys.executable, ROOT / "scripts/python_stubs.py", "--check"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(similis.__file__).parent.parent)},
    )
    assert finished.returncode == 0, finished.stderr
