# SPDX-License-Identifier: Apache-2.0
"""`python -m similis` and the script `similis`: the command line program.

If there is no ffmpeg on PATH, that of the package imageio-ffmpeg, which `pip install
similis[video]` brings, reads video.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import sys
from typing import NoReturn


def _choose_ffmpeg() -> None:
    if os.environ.get("SIMILIS_FFMPEG") or shutil.which("ffmpeg"):
        return
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        return
    import imageio_ffmpeg

    try:
        os.environ["SIMILIS_FFMPEG"] = imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError:  # a build of the package that brings none
        pass


def program() -> pathlib.Path:
    """The program's path. Raises FileNotFoundError if the package was built without it."""
    path = pathlib.Path(__file__).parent / "native" / "similis"
    if not path.exists():
        raise FileNotFoundError(
            f"similis: the program is not at {path}; this package was built without it")
    _choose_ffmpeg()
    return path


def main() -> NoReturn:
    try:
        path = program()
    except FileNotFoundError as error:
        sys.exit(str(error))
    os.execv(path, ["similis", *sys.argv[1:]])


if __name__ == "__main__":
    main()
