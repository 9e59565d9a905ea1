#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the `sh` blocks of docs/registration.md on two scans of heads, and compares what the page says
they print. Ends with status 77 where ../shared/data has no volumes and SIMILIS_TEST_DATA names no
folder that has.

    tutorial_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
DATA = pathlib.Path(os.environ.get("SIMILIS_TEST_DATA", ROOT.parent / "shared/data")) / "volumes"
SCANS = {"fixed.nii.gz": "atlas_2mm_1000_3.nii.gz", "moving.nii.gz": "atlas_2mm_1001_3.nii.gz"}


def main():
    missing = [name for name in SCANS.values() if not (DATA / name).exists()]
    if missing:
        print(f"{DATA} has no {missing[0]}; SIMILIS_TEST_DATA may name another folder")
        sys.exit(77)
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "bin").mkdir(parents=True)
    (FOLDER / "bin/similis").symlink_to(PROGRAM)
    for name, scan in SCANS.items():
        (FOLDER / name).symlink_to(DATA / scan)
    page = (ROOT / "docs/registration.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert blocks, "docs/registration.md shows no command"
    environment = {**os.environ, "PATH": f"{FOLDER.resolve() / 'bin'}:{os.environ['PATH']}"}
    for block in blocks:
        done = subprocess.run(["sh", "-eu", "-c", block], cwd=FOLDER, env=environment,
                              capture_output=True, text=True)
        assert done.returncode == 0, (block, done.stdout, done.stderr)
    # Each row of figures that the page shows, within what another vector target may change.
    shown = re.findall(r"^(ncc|mi|lncc) +(\d\.\d+) +(\d\.\d+) +(\d\.\d+)$", page, re.MULTILINE)
    assert len(shown) == 3, shown
    report = json.loads((FOLDER / "result/report.json").read_text())
    for name, *numbers in shown:
        for when, number in zip(("before", "affine", "after"), numbers):
            own = report["similarity"][name][when]
            assert abs(own - float(number)) < 0.004, (name, when, own, number)
    assert report["folds"] == 0 and report["corner_jacobian_min"] >= 0.1, report["corner_jacobian_min"]
    assert report["jacobian"]["min"] > 0 and report["warnings"] == [], report["warnings"]
    assert (FOLDER / "result/report.html").stat().st_size < 5_000_000
    again = json.loads((FOLDER / "again.json").read_text())["metrics"]["ncc"]["mean"]
    assert abs(again - report["similarity"]["ncc"]["after"]) < 1e-5, again
    assert not (FOLDER / "rigid/1Warp.nii.gz").exists() and not (FOLDER / "mi/report.html").exists()
    print(f"{len(blocks)} blocks ran; NCC {again:.4f}")


main()
