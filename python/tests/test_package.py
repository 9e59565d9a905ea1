# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed: versions, types, and the program it brings."""

import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import similis

HEADER = pathlib.Path(__file__).resolve().parent.parent.parent / "include/similis/version.h"


def test_versions_agree():
    (version,) = re.findall(r'SIMILIS_VERSION "([^"]+)"', HEADER.read_text())
    assert similis.__version__ == version
    try:
        assert importlib.metadata.version("similis") == version
    except importlib.metadata.PackageNotFoundError:
        pass  # imported from the build folder


def test_everything_public_is_typed_and_described():
    folder = pathlib.Path(similis.__file__).parent
    assert (folder / "py.typed").exists()
    for name in similis.__all__:
        each = getattr(similis, name)
        if callable(each) and not isinstance(each, type):
            assert each.__doc__ and each.__annotations__["return"], name


def test_the_program():
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "similis", *arguments],
            cwd=pathlib.Path(similis.__file__).parent.parent,
            capture_output=True,
            text=True,
        )

    version = run("--version")
    assert version.returncode == 0 and similis.__version__ in version.stdout, version.stderr
    missing = run("compare", "none.png", "none.png")
    assert missing.returncode != 0 and "none.png" in missing.stderr


def test_the_program_takes_the_ffmpeg_of_imageio(tmp_path):
    """The package's ffmpeg is used if PATH has none and nobody has named another."""
    ffmpeg = tmp_path / "binaries" / "ffmpeg-linux"
    ffmpeg.parent.mkdir()
    ffmpeg.write_text("#!/bin/sh\necho ffmpeg version 77 Copyright\n")
    ffmpeg.chmod(0o755)
    (tmp_path / "imageio_ffmpeg.py").write_text(f"def get_ffmpeg_exe(): return {str(ffmpeg)!r}\n")
    package = pathlib.Path(similis.__file__).parent.parent

    def info(**variables):
        finished = subprocess.run(
            [sys.executable, "-m", "similis", "info"],
            env={"PYTHONPATH": f"{package}:{tmp_path}", "PATH": str(tmp_path), **variables},
            capture_output=True,
            text=True,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    assert "ffmpeg 77" in info()
    assert "ffmpeg 77" not in info(SIMILIS_FFMPEG="/nowhere/ffmpeg")
    (tmp_path / "ffmpeg").write_text("#!/bin/sh\necho ffmpeg version 88 Copyright\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    assert "ffmpeg 88" in info()


def test_without_its_library_the_package_says_what_is_missing(run_python, tmp_path):
    package = tmp_path / "copy" / "similis"
    shutil.copytree(
        pathlib.Path(similis.__file__).parent,
        package,
        ignore=shutil.ignore_patterns("native", "__pycache__"),
    )
    printed = run_python(
        """
        try:
            import similis
        except ImportError as error:
            print(error)
        """,
        PYTHONPATH=str(tmp_path / "copy"),
    )
    assert printed.startswith(f"similis: there is no libsimilis.so in {package / 'native'}")


def test_a_torch_that_lends_nothing_in_c(run_python):
    pytest.importorskip("torch", reason="`make check-python` installs torch")
    printed = {
        wanted: run_python(
            """
            import torch
            if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
                del torch.Tensor.__dlpack_c_exchange_api__
            try:
                from similis._torch import binding
                print(binding.BINDING)
            except ImportError as error:
                print(error)
            """,
            SIMILIS_BINDING=wanted,
        )
        for wanted in ("auto", "direct")
    }
    assert printed["auto"].strip() == "ctypes"
    assert printed["direct"].startswith("SIMILIS_BINDING is direct, and torch ")


def test_fireants_names_stand_in_one_package():
    from similis.compat import fireants

    for name in fireants.interpolator.__all__:
        assert getattr(fireants, name) is getattr(fireants.interpolator, name)
        assert name in fireants.__all__
