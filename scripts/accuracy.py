#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/accuracy.md from what the test programs report about themselves.

    scripts/accuracy.py            # after a build; --check compares instead, and fails if it differs

Differences are rounded up to a power of ten, so that the page does not depend on the machine.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

HEAD = """\
# Accuracy

This page is written by `scripts/accuracy.py` from the reports of the tests.

## Other libraries

The differences of `ssim` and `ms_ssim` from each library, with the options on the right, over
pictures of float64 numbers, 8-bit and 12-bit integers, in grey and in colour, of odd and even
sizes, and volumes. Every SIMD target is within them. *Slope* is the relative difference of the gradient along
y - x; scikit-image has no gradient to compare with. An empty cell on the right is the default.

"""

NOTES = """
- pytorch-msssim and piqa make their taps in float32, where they do not quite sum to 1; given taps in
  float64 they do not differ.
- kornia adds 1e-12 to a denominator unless `eps=0`; piq halves large pictures unless
  `downsample=False`.
- `multiscale_structural_similarity_index_measure()` of torchmetrics leaves the rim out of the means
  of its contrast term but not out of the mean of SSIM at the coarsest level, and averages channels
  before it takes powers. No option of similis does that. The row above is its rule for halving, with
  its own SSIM of each level.

## SSIMULACRA 2

`ssimulacra2` prints the 8 decimals of the reference program (cloudinary/ssimulacra2, which is libjxl's,
built for AVX2 or newer), and has the same bits on every vector target, number of threads and GPU. The
recursive blur of the reference never forgets a rounding, so this takes the reference's own operations in
its own order; `mode=fast` takes the 9 taps that the blur is in exact arithmetic, and is 0.0003 to 1.4
points away. JPEG is decoded by libjpeg-turbo with its defaults on both sides; other decoders move a score
by points.

Pictures in other colour spaces go through lcms2. Video has no such reference: a score depends on the
matrix, transfer, primaries, range, chroma siting and upsampling that are chosen, by up to 4 points, so all
are options and stand in the results; what is not given is what the stream says, or else BT.709's matrix
above 576 lines and BT.601's below, sRGB's transfer, BT.709's primaries, limited range, chroma on the left,
and bilinear.

## float32

The largest difference from the reference in float64: of the map, and of the gradients in relative
L2, over the paddings valid, same and renormalize and every SIMD target. The tests fail beyond the
bound.

"""

LOCAL_CORRELATION = """
## FireANTs' local cross-correlation

FireANTs' fused loss of local cross-correlation has these faults; for all but the last a test shows
similis right (`python/tests/test_lncc.py`). Values are the same.

- Gradients are off by constants: that of a mean under a box is not divided by N, the voxels of all
  images and channels; those without `use_ants_gradient` are 1 / k^d of what they should be, as windows
  are averaged instead of summed up. `gradient_scale="fireants"` brings both factors back.
- Without `use_ants_gradient` the gradient takes A / (B + dr) where the derivative of its own value,
  (A² + nr) / (BC + dr), has (A² + nr)·C / (A·(BC + dr)): 0.3 % off for textured volumes and windows of
  3³, and up to 11 % for pictures and windows of 3², where BC is near dr.
- Sums of f16 images are f16 and overflow; here all sums are f64.
- Differences of f32 sums lose what a flat background beside tissue, or an offset of 10^4, leaves:
  gradients there are wrong by orders of magnitude. Here both hold to 1e-4.
- Its memory is 36 B a voxel beyond the images; here it is the gradient.
"""

MUTUAL_INFORMATION = """
## FireANTs' mutual information

FireANTs' fused loss of mutual information has these faults; similis has none of them, as
`python/tests/test_mutual_information.py` and the room's tests show. Values are the same, to 1e-5,
but for the last two lines'.

- The gradient of B-spline weights has a wrong sign on one side of a bin's centre and lacks the
  width of a bin (measured: it is at right angles to the derivative and a hundredth of its length);
  here it passes a comparison with finite differences.
- The gradient of all channels beyond the first is 0, as it is of voxels beyond 2^32 / bins.
- Where it normalises images, the gradient lacks the factor 1 / (largest - smallest value).
- Sums of f16 images are f16 and overflow; here f16 is only read.
- With `approximate_reduction` its gradient is that of the exact form at the blurred histogram;
  similis takes the same, by `method="binned"`, and `method="exact"` is the derivative of its value.
- With `approximate_reduction`, its default, threads behind the last voxel begin again at the first:
  unless images × channels × voxels is a multiple of 512 the first voxels count twice. Six volumes of
  60,000 voxels and more were 2e-4 to 7e-4 off, exactly as much as counting them twice makes of the
  right value.
- `kernel_type="delta"` without `approximate_reduction` has another value there than whole bins
  give: 0.85 where these give 0.93.
"""


def report(program, tests):
    """The properties that the program's tests leave in its JSON report."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "report.json")
        command = [program, f"--gtest_filter={tests}", f"--gtest_output=json:{file}"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(result.stdout)
        suites = json.loads(file.read_text())["testsuites"]
    return [test for suite in suites for test in suite["testsuite"]]


def power_of_ten(number):
    """Rounded up; what float64 leaves of an equality depends on the machine and is not told."""
    number = float(number)
    return "below 1e-12" if number < 1e-12 else f"1e{math.ceil(math.log10(number))}"


def table(head, rows):
    return "\n".join(["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]])


def code(text):
    return f"`{text}`" if text else ""


def libraries(tests):
    """One row for each call of each library, with the largest differences over its pictures."""
    rows = {}
    for test in tests:
        key = test["library"], test["call"], test["options"]
        value, slope = rows.get(key, (0, None))
        value = max(value, float(test["difference"]))
        if "slope_difference" in test:
            slope = max(slope or 0, float(test["slope_difference"]))
        rows[key] = value, slope
    return table(
        ["library", "its call", "similis", "value", "slope"],
        [
            [library, code(call), code(options), power_of_ten(value),
             "" if slope is None else power_of_ten(slope)]
            for (library, call, options), (value, slope) in rows.items()
        ],
    )


def precision(tests):
    return table(
        ["pictures", "map", "gradients", "bound"],
        [
            [test["pictures"], power_of_ten(test["map"]), power_of_ten(test["gradient"]),
             test["bound"].replace("e-0", "e-")]
            for test in tests
            if "pictures" in test
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    goldens = report(arguments.programs / "ssim_test", "*SsimGolden*")
    goldens += report(arguments.programs / "ms_ssim_test", "*SsimGolden*")
    inputs = report(arguments.programs / "ssim_test", "*SsimAccuracy*")
    text = HEAD + libraries(goldens) + "\n" + NOTES + precision(inputs) + "\n"
    text += LOCAL_CORRELATION + MUTUAL_INFORMATION
    page = ROOT / "docs/accuracy.md"
    if not arguments.check:
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        sys.exit(f"docs/accuracy.md is not what the tests report; run {pathlib.Path(__file__).name}")


if __name__ == "__main__":
    main()
