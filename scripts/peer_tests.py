#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of scikit-image, torchmetrics, MONAI, pytorch-msssim, fused-ssim, fussim and
FireANTs' fused operations on similis.compat.

FOLDER holds checkouts of Lightning-AI/torchmetrics, Project-MONAI/MONAI (as monai; PyPI's source
lacks what the tests of mutual information import), rahul-goel/fused-ssim, OpsiClear/fussim and
rohitrango/FireANTs, under those last names; what is not there is left out. The tests of MONAI and
pytorch-msssim are downloaded into it from PyPI; those of scikit-image come with the package. Test
files are copied and run as they are, but for the import, how often they repeat what they time,
seven tolerances, and a picture that they download, for which one of waves and noise stands.
FireANTs' tests compare with torch's own operators in float32; each runs a second time with these in
float64, which tells whose error it is. fused-ssim, fussim and FireANTs need a GPU, and FireANTs'
its Python package. CANNOT_PASS has the tests that fail, and docs/python.md says why.

    scripts/peer_tests.py FOLDER [--seconds 600] [--jobs 8] [--only fussim]
"""

import argparse
import concurrent.futures
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import torch

HAS_GPU = torch.cuda.is_available()

# Tests that hold what similis does otherwise, or what this machine lacks; docs/python.md says why.
CANNOT_PASS = (
    "test_rejects_cpu_tensors",
    "test_training_throughput_small",
    "test_structural_similarity_nD",
    "test_ssim_invalid_inputs",
    "test_bspline",
)

# Comparisons narrower than what their references are wrong by: the taps of their windows (and of
# pytorch-msssim's), rounded to f32, sum to 1 - 7e-8, or 1 - 1e-7 in three dimensions, which moves
# their SSIM by 2e-7, with f64 images too: 2e-4 of the SSIM of noise.
NARROW = (
    "isclose(og_ssim_val, mine_ssim_val_same",
    "isclose(mine_ssim_val_valid, pm_ssim_val",
    "isclose(ref_ssim, fused_ssim_val",
    "isclose(pm_val, fused_val",
    "isclose(our_result, pm_result, rtol=1e-4",
    "allclose(og_ssim_val, mine_ssim_val_same, rtol=1e-6",
    "allclose(mine_ssim_val_valid, pm_ssim_val, rtol=1e-6",
)


def rewritten(text, package):
    """With the names of similis.compat, and two repetitions of each measurement.

    fussim's own tests import a name that it has not, `fussim`, and call fused_ssim.
    """
    text = text.replace("from fussim import fussim", "from fussim import fused_ssim")
    for narrow in NARROW:
        text = re.sub(
            rf"torch\.{re.escape(narrow)}(, atol=1e-8)?\)", f"torch.{narrow}, atol=5e-7)", text
        )
    text = re.sub(rf"\bfrom {package} import", f"from similis.compat.{package} import", text)
    text = re.sub(r"^( *)(iterations|N_repeat) = \d+$", r"\1\2 = 2", text, flags=re.MULTILINE)
    return re.sub(r"range\(500\)", "range(20)", text)


# The modules that take FireANTs' names, and its oracles made wide.
FIREANTS = {
    "fireants.interpolator.fused_grid_sample_genericlabel": "similis.compat.fireants.interpolator",
    "fireants.interpolator.fused_grid_sample": "similis.compat.fireants.interpolator",
    "fireants.losses.fusedcc": "similis.compat.fireants",
    "fireants.losses.fusedmi": "similis.compat.fireants",
}
IN_FLOAT64 = """
def in_float64(function):
    def wide(value):
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
    return lambda *operands, **options: function(
        *map(wide, operands), **{name: wide(value) for name, value in options.items()})
"""


def rewritten_fireants(text, in_float64):
    text = text.replace('pytest.importorskip("fireants_fused_ops")\n', "")
    for module, ours in FIREANTS.items():
        text = re.sub(rf"\bfrom {re.escape(module)} import", f"from {ours} import", text)
    oracles = re.search(
        r"^from fireants\.interpolator\.grid_sample import (.*)$", text, re.MULTILINE
    )
    if in_float64 and oracles:
        wider = "".join(f"{name} = in_float64({name})\n" for name in oracles[1].split(", "))
        text = text.replace(oracles[0], f"{oracles[0]}\n{IN_FLOAT64}{wider}", 1)
    return text


def fireants_tests(checkout, folder):
    """FireANTs' files, and those with oracles once more."""
    folder.mkdir()
    for file in sorted((checkout / "tests").glob("test_fusedops_*.py")):
        text = file.read_text()
        (folder / file.name).write_text(rewritten_fireants(text, False))
        wide = rewritten_fireants(text, True)
        if wide != (folder / file.name).read_text():
            (folder / f"{file.stem}_in_float64.py").write_text(wide)
    return sorted(folder.glob("*.py"))


def copy_tests(checkout, package, folder):
    shutil.copytree(checkout / "tests", folder)
    for file in folder.glob("*.py"):
        file.write_text(rewritten(file.read_text(), package))


# For each package that is tested where it is installed: its test files, below its tests' folder, and
# what takes the names that they import.
INSTALLED = {
    "scikit-image": (
        ["test_structural_similarity.py"],
        {"skimage.metrics import structural_similarity": "skimage import structural_similarity"},
    ),
    "torchmetrics": (
        ["unittests/image/test_ssim.py", "unittests/image/test_ms_ssim.py",
         "unittests/image/test_psnr.py"],
        {
            "torchmetrics.functional import": "torchmetrics.functional.image import",
            "torchmetrics.functional.image.ssim import": "torchmetrics.functional.image import",
            "torchmetrics.image import": "torchmetrics.image import",
            "torchmetrics.image.ssim import": "torchmetrics.image import",
        },
    ),
    "monai": (
        ["losses/image_dissimilarity/test_local_normalized_cross_correlation_loss.py",
         "losses/image_dissimilarity/test_global_mutual_information_loss.py",
         "losses/test_ssim_loss.py"],
        {
            "monai.losses.image_dissimilarity import": "monai import",
            "monai.losses.ssim_loss import": "monai import",
        },
    ),
}  # fmt: skip
OF_MONAI = "1.5.1"  # later sources on PyPI have no tests
# Their tests import these besides.
NEEDED = {"torchmetrics": ["cachier"], "monai": ["parameterized"]}


def pip(*arguments):
    subprocess.run([sys.executable, "-m", "pip", "-qq", *arguments], check=True)


def tests_of(package, checkouts):
    """The folder of a package's tests, downloaded if PyPI has them; None if they are not there."""
    if package == "scikit-image":
        import skimage

        return pathlib.Path(skimage.__file__).parent / "metrics" / "tests"
    if package == "monai" and not (checkouts / "monai").exists():
        if not (checkouts / f"monai-{OF_MONAI}").exists():
            download(f"monai=={OF_MONAI}", checkouts)
        return checkouts / f"monai-{OF_MONAI}" / "tests"
    folder = checkouts / package / "tests"
    return folder if folder.exists() else None


def download(requirement, folder):
    """A package's source, unpacked."""
    with tempfile.TemporaryDirectory() as scratch:
        # pip asks the source for its name and version; with isolation it would fetch torch for that.
        exact = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation")
        pip("download", *exact, "--dest", scratch, requirement)
        for archive in pathlib.Path(scratch).iterdir():
            tarfile.open(archive).extractall(folder, filter="data")


def installed_tests(checkouts, scratch):
    """(package, file, command) of the packages that are installed here."""
    result = []
    for package, (files, imports) in INSTALLED.items():
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        tests = tests_of(package, checkouts)
        if tests is None:
            continue
        # MONAI's files import from `tests`, and torchmetrics' from `unittests`.
        copied = scratch / package / "tests"
        shutil.copytree(tests, copied)
        if package in NEEDED:
            pip("install", "--target", str(scratch / package), *NEEDED[package])
        if not (copied / "test_utils.py").exists():  # as in MONAI's source on PyPI
            files = [file for file in files if "mutual_information" not in file]
        for file in files:
            text = (copied / file).read_text()
            for theirs, ours in imports.items():
                text = text.replace(f"\nfrom {theirs}", f"\nfrom similis.compat.{ours}")
            (copied / file).write_text(text)
            result.append((package, f"tests/{file}", pytest_command("--no-header")))
    return result


def draw_picture(file, grey=False):
    """768 x 512, in the place of kodim10.png, or of einstein.png, which PyPI's source lacks."""
    from PIL import Image

    generator = torch.Generator().manual_seed(1)
    waves = torch.linspace(0, 4000, 512 * 768 * 3).sin().reshape(512, 768, 3)
    noise = torch.rand((512, 768, 3), generator=generator)
    picture = (127 + 90 * waves + 60 * (noise - 0.5)).clamp(0, 255).to(torch.uint8)
    image = Image.frombytes("RGB", (768, 512), bytes(picture.flatten().tolist()))
    (image.convert("L") if grey else image).save(file)


def run(name, command, folder, seconds):
    """True if it passed, but for CANNOT_PASS; prints its last lines otherwise."""
    paths = [str(folder), str(folder / "tests"), os.path.abspath(os.environ.get("PYTHONPATH", "."))]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        finished = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        print(f"TIME    {name}: {seconds} s", flush=True)
        return False
    lines = (finished.stdout + finished.stderr).strip().splitlines()
    failures = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    unknown = [
        line for line in failures if not any(re.search(rf"\b{each}\b", line) for each in CANNOT_PASS)
    ]
    passed = finished.returncode == 0 or bool(failures and not unknown)
    told = re.compile(r"FAILED|ERROR|SKIPPED|\d+ (passed|failed)")
    summary = [line for line in lines if told.match(line)] or ([] if passed else lines[-4:])
    said = [
        f"{'passed' if passed else 'FAILED'}  {name}",
        *[f"        {line[:200]}" for line in summary],
    ]
    print("\n".join(said), flush=True)
    return passed


def pytest_command(*arguments):
    return [sys.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider", *arguments]


def commands(checkouts, scratch):
    """(name, command, folder) of each file."""
    result = installed_tests(checkouts, scratch)
    if not (checkouts / "pytorch-msssim").exists():
        download("pytorch-msssim", checkouts)
        next(checkouts.glob("pytorch_msssim-*")).rename(checkouts / "pytorch-msssim")
    packages = {"pytorch-msssim": "pytorch_msssim", "fused-ssim": "fused_ssim", "fussim": "fussim"}
    for name, package in packages.items():
        if (checkouts / name).exists():
            copy_tests(checkouts / name, package, scratch / package)
    if (scratch / "pytorch_msssim").exists():
        draw_picture(scratch / "pytorch_msssim" / "kodim10.png")
        if not (scratch / "pytorch_msssim" / "einstein.png").exists():
            draw_picture(scratch / "pytorch_msssim" / "einstein.png", grey=True)
        for kind in ("comparisons_skimage", "comparisons_2d3d", "loss", *["cuda"] * HAS_GPU):
            result.append(("pytorch_msssim", f"tests_{kind}.py", [sys.executable]))
    if HAS_GPU and (scratch / "fused_ssim").exists():
        result += [("fused_ssim", file, [sys.executable]) for file in ("test.py", "test_3D.py")]
    if HAS_GPU and (scratch / "fussim").exists():
        files = sorted((scratch / "fussim").glob("test_*.py"))
        result += [("fussim", file.name, pytest_command()) for file in files]
    if HAS_GPU and (checkouts / "FireANTs").exists():
        files = fireants_tests(checkouts / "FireANTs", scratch / "fireants")
        result += [("fireants", file.name, pytest_command()) for file in files]
    return [
        (f"{package}/{file}", [*command, file], scratch / package)
        for package, file, command in result
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=600, help="for each file")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time")
    parser.add_argument("--only", default="", help="files with this in their names")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    scratch = pathlib.Path(tempfile.mkdtemp())
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    files = [each for each in commands(arguments.folder, scratch) if arguments.only in each[0]]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda each: run(*each, arguments.seconds), files))
    if not HAS_GPU:
        print("there is no GPU: the tests of fused-ssim, fussim and FireANTs were left out")
    shutil.rmtree(scratch)
    sys.exit(not results or not all(results))


if __name__ == "__main__":
    main()
