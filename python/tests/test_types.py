# SPDX-License-Identifier: Apache-2.0
"""The package's hints, which users' own checks rest on: mypy --strict and pyright's standard rules,
as pyproject.toml has them, over the package, the examples, and files of right and wrong uses."""

import functools
import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

api = pytest.importorskip("mypy.api", reason="`make check` installs mypy")
for name in ("torch", "jax"):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"`make check-python` installs {name}", allow_module_level=True)
ROOT = pathlib.Path(__file__).parents[2]
USES = ROOT / "python/tests/types"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@functools.cache
def mypy_reports():
    """mypy's errors as (file, line, words), from one run over everything: it reads torch once."""
    files = [str(each.relative_to(ROOT)) for each in (ROOT / "python/similis", *EXAMPLES, USES)]
    given = [f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={ROOT / 'build/mypy'}"]
    finished = subprocess.run(
        [sys.executable, "-m", "mypy", *given, "--no-error-summary", "--output=json", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert finished.stdout.startswith("{"), finished.stdout + finished.stderr
    reports = map(json.loads, finished.stdout.splitlines())
    return [
        (ROOT / each["file"], each["line"], each["message"])
        for each in reports
        if each["severity"] == "error"
    ]


@functools.cache
def pyright_reports():
    """pyright's reports, likewise; of the package it reads the stubs, as pyproject.toml says."""
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("`make check` installs basedpyright")
    files = [*EXAMPLES, *USES.glob("*.py"), *(ROOT / "python/similis").glob("*.pyi")]
    given = ["--pythonpath", sys.executable, "--outputjson", *map(str, files)]
    finished = subprocess.run(
        [sys.executable, "-m", "basedpyright", *given], cwd=ROOT, capture_output=True, text=True
    )
    assert finished.stdout, finished.stderr
    report = json.loads(finished.stdout)
    assert report["summary"]["filesAnalyzed"] == len(files)
    return [
        (pathlib.Path(each["file"]), each["range"]["start"]["line"] + 1, each["message"])
        for each in report["generalDiagnostics"]
    ]


CHECKERS = pytest.mark.parametrize("reports", [mypy_reports, pyright_reports])


@CHECKERS
def test_the_package_and_correct_code_pass(reports):
    assert [each for each in reports() if each[0] != USES / "wrong.py"] == []


@CHECKERS
def test_wrong_code_does_not(reports):
    """The lines of wrong.py that say so are to be reported, and no other."""
    lines = (USES / "wrong.py").read_text().splitlines()
    wrong = {i for i, line in enumerate(lines, start=1) if line.endswith("# wrong")}
    reported = [each for each in reports() if each[0] == USES / "wrong.py"]
    assert {line for _, line, _ in reported} == wrong, reported


def test_stubs_are_current():
    pytest.importorskip("torchmetrics", reason="`make check` installs torchmetrics")
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "scripts/python_stubs.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert [path.name for path, _ in script.outdated()] == [], "run scripts/python_stubs.py"
