#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of pytorch-msssim, fused-ssim and fussim on similis.compat.

FOLDER holds checkouts of VainF/pytorch-msssim, rahul-goel/fused-ssim and OpsiClear/fussim, under
those last names. Their test files are copied and run as they are, but for the import, how often
they repeat what they time, three tolerances, and a picture that they download, for which one of
waves and noise stands. Those of fused-ssim and fussim need a GPU. docs/python.md says which cannot
pass.

    scripts/peer_tests.py FOLDER [--seconds 300]
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import torch

HAS_GPU = torch.cuda.is_available()

# Tolerances below what the tests' own references are wrong by: the taps of their windows, rounded
# to f32, sum to 1 - 7e-8, or 1 - 1e-7 in three dimensions, which moves their SSIM by 2e-7.
WIDENED = {
    "torch.isclose(og_ssim_val, mine_ssim_val_same)":
        "torch.isclose(og_ssim_val, mine_ssim_val_same, atol=5e-7)",
    "torch.allclose(og_ssim_val, mine_ssim_val_same, rtol=1e-6, atol=1e-8)":
        "torch.allclose(og_ssim_val, mine_ssim_val_same, rtol=1e-6, atol=5e-7)",
    "torch.isclose(ref_ssim, fused_ssim_val)":
        "torch.isclose(ref_ssim, fused_ssim_val, atol=5e-7)",
}


def rewritten(text, package):
    """With the names of similis.compat, and two repetitions of each measurement.

    fussim's own tests import a name that it has not, `fussim`, and call fused_ssim.
    """
    text = text.replace("from fussim import fussim", "from fussim import fused_ssim")
    for narrow, wide in WIDENED.items():
        text = text.replace(narrow, wide)
    text = re.sub(rf"\bfrom {package} import", f"from similis.compat.{package} import", text)
    text = re.sub(r"^( *)(iterations|N_repeat) = \d+$", r"\1\2 = 2", text, flags=re.MULTILINE)
    return re.sub(r"range\(500\)", "range(20)", text)


def copy_tests(checkout, package, folder):
    shutil.copytree(checkout / "tests", folder)
    for file in folder.glob("*.py"):
        file.write_text(rewritten(file.read_text(), package))


def draw_picture(file):
    """768 x 512 in colour, in the place of kodim10.png."""
    from PIL import Image

    generator = torch.Generator().manual_seed(1)
    waves = torch.linspace(0, 4000, 512 * 768 * 3).sin().reshape(512, 768, 3)
    noise = torch.rand((512, 768, 3), generator=generator)
    picture = (127 + 90 * waves + 60 * (noise - 0.5)).clamp(0, 255).to(torch.uint8)
    Image.frombytes("RGB", (768, 512), bytes(picture.flatten().tolist())).save(file)


def run(name, command, folder, seconds):
    """Whether it passed; its last lines otherwise."""
    try:
        finished = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        print(f"TIME    {name}: {seconds} s", flush=True)
        return False
    lines = (finished.stdout + finished.stderr).strip().splitlines()
    passed = finished.returncode == 0
    print(f"{'passed' if passed else 'FAILED'}  {name}", flush=True)
    told = re.compile(r"FAILED|ERROR|SKIPPED|\d+ (passed|failed)")
    summary = [line for line in lines if told.match(line)]
    for line in summary or ([] if passed else lines[-4:]):
        print(f"        {line[:200]}", flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=300, help="for each file")
    arguments = parser.parse_args()
    scratch = pathlib.Path(tempfile.mkdtemp())
    packages = {
        "pytorch_msssim": "pytorch-msssim",
        "fused_ssim": "fused-ssim",
        "fussim": "fussim",
    }
    for package, checkout in packages.items():
        copy_tests(arguments.folder / checkout, package, scratch / package)
    draw_picture(scratch / "pytorch_msssim" / "kodim10.png")
    cpu = ["tests_comparisons_skimage.py", "tests_comparisons_2d3d.py", "tests_loss.py"]
    scripts = [("pytorch_msssim", file) for file in cpu]
    if HAS_GPU:
        scripts += [("pytorch_msssim", "tests_cuda.py")]
        scripts += [("fused_ssim", "test.py"), ("fused_ssim", "test_3D.py")]
    results = [
        run(f"{package}/{file}", [sys.executable, file], scratch / package, arguments.seconds)
        for package, file in scripts
    ]
    if HAS_GPU:
        pytest = [sys.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider"]
        os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        results.append(run("fussim", pytest, scratch / "fussim", arguments.seconds))
    else:
        print("there is no GPU: the tests of fused-ssim and fussim were left out")
    shutil.rmtree(scratch)
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
