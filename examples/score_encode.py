#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encodes a video at several qualities, scores each encode, and names its worst frames.

    score_encode.py                                  # a clip that ffmpeg draws
    score_encode.py --reference film.mkv --crf 20 26 32

Each line of the table is one encode: its bitrate, its PSNR and SSIM of luma, and its SSIMULACRA 2,
on average and for the worst twentieth of its frames, which an average hides. The drawn clip is two
seconds long, and noisy from frame 20 to frame 29, so that its worst frames are known beforehand.
Needs the program `similis` and an ffmpeg with libx264, both on PATH or named.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

DRAWN_CLIP = ("testsrc2=size=320x180:rate=25:duration=2,"
              "noise=alls=60:allf=t:enable='between(n,20,29)'")
METRICS = "psnr", "ssim", "ssimulacra2"


def run(*command: object) -> str:
    """Returns the text that a command printed; if it failed, ends this program with its words."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def draw_clip(ffmpeg: str, path: pathlib.Path) -> None:
    run(ffmpeg, "-v", "error", "-f", "lavfi", "-i", DRAWN_CLIP, "-pix_fmt", "yuv420p", path)


def encode(ffmpeg: str, reference: pathlib.Path, crf: int, path: pathlib.Path) -> None:
    run(ffmpeg, "-v", "error", "-i", reference, "-an", "-c:v", "libx264", "-preset", "fast",
        "-crf", crf, path)


def score(similis: str, reference: pathlib.Path, path: pathlib.Path) -> dict[str, Any]:
    """The report of `similis compare` as a dictionary: metrics, and the scores of each frame."""
    metrics = [word for name in METRICS for word in ("-m", name)]
    printed = run(similis, "compare", reference, path, *metrics, "--format", "json")
    report: dict[str, Any] = json.loads(printed)
    return report


def kilobits_per_second(ffprobe: str, path: pathlib.Path) -> float:
    seconds = float(run(ffprobe, "-v", "error", "-show_entries", "format=duration", "-of",
                        "csv=p=0", path))
    return 8 * path.stat().st_size / 1000 / seconds


def worst_frames(report: dict[str, Any], count: int) -> list[tuple[int, float]]:
    frames = sorted(report["frames"], key=lambda frame: frame["ssimulacra2"])
    return [(frame["frame"], frame["ssimulacra2"]) for frame in frames[:count]]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--reference", type=pathlib.Path, help="a video; by default one is drawn")
    parser.add_argument("--crf", type=int, nargs="+", default=[18, 28, 38])
    parser.add_argument("--worst", type=int, default=3, help="number of frames to name")
    parser.add_argument("--similis", default="similis")
    parser.add_argument("--ffmpeg", default="ffmpeg")
    parser.add_argument("--ffprobe", default="ffprobe")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        reference = arguments.reference or folder / "reference.y4m"
        if not arguments.reference:
            draw_clip(arguments.ffmpeg, reference)
        print(f"{'crf':>4} {'kbit/s':>8} {'psnr-y':>8} {'ssim-y':>8} {'ssimulacra2':>12} "
              f"{'worst 5 %':>10}  worst frames")
        for crf in arguments.crf:
            encoded = folder / f"crf{crf}.mkv"
            encode(arguments.ffmpeg, reference, crf, encoded)
            report = score(arguments.similis, reference, encoded)
            metrics = report["metrics"]
            worst = ", ".join(f"{frame} ({value:.1f})"
                              for frame, value in worst_frames(report, arguments.worst))
            print(f"{crf:4} {kilobits_per_second(arguments.ffprobe, encoded):8.0f} "
                  f"{metrics['psnr-y']['mean']:8.2f} {metrics['ssim-y']['mean']:8.4f} "
                  f"{metrics['ssimulacra2']['mean']:12.2f} {metrics['ssimulacra2']['p5']:10.2f}"
                  f"  {worst}")


if __name__ == "__main__":
    main()
