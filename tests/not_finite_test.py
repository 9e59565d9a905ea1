#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values that are not finite, in volumes and pictures of floats: refused, or left out with --nan
mask.

    not_finite_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import math
import random
import struct

from clips import FOLDER, compare, run_all, test

SIZE = 13, 12, 11
VOXELS = SIZE[0] * SIZE[1] * SIZE[2]
NAN, INFINITE = {5, 700}, {41}


def nifti(name, values):
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<4h", header, 40, 3, *SIZE)
    struct.pack_into("<2h", header, 70, 16, 32)
    struct.pack_into("<4f", header, 76, 1, 1, 1, 1)
    struct.pack_into("<f", header, 108, 352)
    struct.pack_into("<4s", header, 344, b"n+1")
    (FOLDER / name).write_bytes(bytes(header) + struct.pack(f"<{VOXELS}f", *values))


def volumes(spoiled):
    noise = random.Random(2)
    x = [100 + 60 * math.sin(i % 13 / 3) + i // 143 for i in range(VOXELS)]
    y = [value + noise.uniform(-9, 9) for value in x]
    if spoiled:
        for i in NAN:
            x[i] = math.nan
        for i in INFINITE:
            y[i] = math.inf
    nifti("x.nii", x)
    nifti("y.nii", y)
    return [(struct.unpack("<f", struct.pack("<f", a))[0], struct.unpack("<f", struct.pack("<f", b))[0])
            for i, (a, b) in enumerate(zip(x, y)) if i not in NAN | INFINITE or not spoiled]


def scores(*arguments):
    return json.loads(compare(*arguments, "--format", "json").stdout)


@test
def they_are_refused_with_their_number_and_place():
    volumes(spoiled=True)
    done = compare("x.nii", "y.nii", "-m", "mse", status=1)
    assert done.stdout == "" and done.stderr == (
        "similis: x.nii has 2 values that are not finite, the first at x 5, y 0, z 0\n"
    ), done.stderr
    assert compare("x.nii", "y.nii", "-m", "mse", "--nan", "error", status=1).stderr == done.stderr
    done = compare("x.nii", "y.nii", "--nan", "drop", status=2)
    assert done.stderr == 'similis: --nan is "drop"; it must be error or mask\n', done.stderr


@test
def masked_voxels_do_not_count():
    left = volumes(spoiled=True)
    document = scores("x.nii", "y.nii", "-m", "mse,mae,psnr,ncc,mi,ssim,lncc", "--nan", "mask")
    frame = document["frames"][0]
    n = len(left)
    mse = sum((a - b) ** 2 for a, b in left) / n
    assert abs(frame["mse"] - mse) < 1e-6 * mse, frame
    assert abs(frame["mae"] - sum(abs(a - b) for a, b in left) / n) < 1e-6, frame
    span = max(a for a, _ in left) - min(a for a, _ in left)
    assert abs(frame["psnr"] - 10 * math.log10(span ** 2 / mse)) < 1e-6, frame
    mean_x, mean_y = (sum(pair[i] for pair in left) / n for i in (0, 1))
    xy = sum((a - mean_x) * (b - mean_y) for a, b in left)
    xx, yy = (sum((pair[i] - mean) ** 2 for pair in left) for i, mean in ((0, mean_x), (1, mean_y)))
    assert abs(frame["ncc"] - xy / math.sqrt(xx * yy)) < 1e-6, frame
    assert 0 < frame["ssim"] < 1 and 0 < frame["lncc"] < 1 and frame["mi"] > 0, frame
    done = document["settings"]["done"]
    assert done == [{"side": "both", "step": "nan", "count": 3, "words":
                     "left out 3 voxels with values that are not finite on one side or both"}], done
    table = compare("x.nii", "y.nii", "-m", "mse", "--nan", "mask")
    assert "y.nii: left out 3 voxels with values" in table.stderr, table.stderr


@test
def finite_values_score_as_without_the_option():
    volumes(spoiled=False)
    both = [scores("x.nii", "y.nii", "-m", "mse,ssim,lncc,ncc,mi,psnr", *option)
            for option in ([], ["--nan", "mask"])]
    assert both[0] == both[1], both


@test
def a_map_has_no_value_where_a_voxel_is_left_out():
    volumes(spoiled=True)
    for metric in "mse", "ssim", "lncc":
        compare("x.nii", "y.nii", "-m", metric, "--nan", "mask", "--map", f"{metric}=map.npy", "--map",
                f"{metric}=map.png")
        content = (FOLDER / "map.npy").read_bytes()
        values = struct.unpack(f"<{VOXELS}f", content[-4 * VOXELS:])
        assert {i for i, value in enumerate(values) if math.isnan(value)} == NAN | INFINITE, metric


@test
def what_cannot_leave_pixels_out_says_so():
    volumes(spoiled=True)
    done = compare("x.nii", "y.nii", "-m", "ms-ssim=weights=1:window_size=3", "--nan", "mask", status=1)
    assert done.stderr == (
        "similis: y.nii: ms-ssim cannot leave out values that are not finite\n"), done.stderr
    done = compare("x.nii", "y.nii", "--nan", "mask")
    assert "ms-ssim skipped: ms-ssim cannot leave out" in done.stderr and "ssim" in done.stdout
    nifti("none.nii", [math.nan] * VOXELS)
    done = compare("none.nii", "y.nii", "-m", "mse", "--nan", "mask", status=1)
    assert "no voxel has finite values on both sides" in done.stderr, done.stderr


@test
def pictures_of_floats_are_masked_too():
    side = 24
    noise = random.Random(4)
    x = [noise.random() for _ in range(side * side)]
    y = [value + noise.uniform(-0.05, 0.05) for value in x]
    x[30], y[100] = math.nan, -math.inf
    for name, samples in ("x.pfm", x), ("y.pfm", y):
        rows = [samples[i:i + side] for i in range(0, len(samples), side)]
        flat = [sample for row in reversed(rows) for sample in row]
        (FOLDER / name).write_bytes(f"Pf\n{side} {side}\n-1.0\n".encode()
                                    + struct.pack(f"<{len(flat)}f", *flat))
    done = compare("x.pfm", "y.pfm", "-m", "mse", status=1)
    assert "x.pfm has 1 value that is not finite, the first at x 6, y 1" in done.stderr, done.stderr
    document = scores("x.pfm", "y.pfm", "-m", "mse,ssim", "--nan", "mask")
    left = [(a, b) for a, b in zip(x, y) if math.isfinite(a) and math.isfinite(b)]
    mse = sum((a - b) ** 2 for a, b in left) / len(left)
    assert abs(document["frames"][0]["mse"] - mse) < 1e-6 * mse, document["frames"]
    assert "left out 2 pixels" in document["settings"]["done"][0]["words"], document["settings"]


run_all()
