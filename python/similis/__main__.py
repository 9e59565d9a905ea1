# SPDX-License-Identifier: Apache-2.0
"""`python -m similis` and the script `similis`: the command line program.

Where there is no ffmpeg on PATH, that of the package imageio-ffmpeg, which `pip install
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


def main() -> NoReturn:
    program = pathlib.Path(__file__).parent / "native" / "similis"
    if not program.exists():
        sys.exit(f"similis: the program is not at {program}; this package was built without it")
    _choose_ffmpeg()
    os.execv(program, ["similis", *sys.argv[1:]])


if __name__ == "__main__":
    main()
