#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis compare` on volumes against NumPy, SciPy and scikit-image, to 1e-5: a synthetic pair, and
the tutorial volumes where ../shared has them.

    volume_metrics_test.py PROGRAM SCRATCH_FOLDER
"""

import gzip
import json
import pathlib
import struct
import subprocess
import sys

import numpy
import scipy.ndimage
import skimage.metrics

TOLERANCE = 1e-5
VOLUMES = pathlib.Path(__file__).resolve().parents[2] / "shared/data/volumes"
HEADER_BYTES = 352


def encode(volume):
    """NIfTI-1 of float32, x the last axis, in voxels of 1 mm."""
    header = bytearray(HEADER_BYTES)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<4h", header, 40, 3, *volume.shape[::-1])
    struct.pack_into("<2h", header, 70, 16, 32)
    struct.pack_into("<4f", header, 76, 1, 1, 1, 1)
    struct.pack_into("<f", header, 108, HEADER_BYTES)
    struct.pack_into("<4s", header, 344, b"n+1")
    return bytes(header) + volume.astype("<f4").tobytes()


def decode(path):
    """The float32 volumes of this test and of the tutorial."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    shape = struct.unpack_from("<3h", content, 42)[::-1]
    assert struct.unpack_from("<h", content, 70) == (16,)
    voxels = numpy.frombuffer(content, "<f4", numpy.prod(shape), offset=HEADER_BYTES)
    return voxels.reshape(shape).astype(numpy.float64)


def synthetic(folder):
    random = numpy.random.default_rng(1)
    z, y, x = numpy.mgrid[:19, :23, :31]
    clean = 300 * numpy.sin(x / 5.0) * numpy.cos(y / 4.0 + z / 6.0) + 20 * random.normal(size=x.shape)
    other = 0.7 * clean + 90 + 25 * random.normal(size=x.shape)
    clean[:4] = other[:4] = 0  # a background
    paths = []
    for name, volume in ("x", clean), ("y", other):
        paths.append(folder / f"{name}.nii")
        paths[-1].write_bytes(encode(volume))
    return paths


def lncc(x, y, size=3, smooth=1e-5):
    """Squared local correlation under a box with zeros outside."""
    count = size**3

    def average(volume):
        return scipy.ndimage.uniform_filter(volume, size, mode="constant")

    a = count * (average(x * y) - average(x) * average(y))
    b = numpy.maximum(count * (average(x * x) - average(x)**2), smooth * count)
    c = numpy.maximum(count * (average(y * y) - average(y)**2), smooth * count)
    return numpy.clip((a * a + smooth * count) / (b * c + smooth * count), -1, 1).mean()


def parzen_weights(volume, bins):
    """The four bins around each voxel and their cubic B-spline weights; 0 for bins outside."""
    low, high = volume.min(), volume.max()
    at = (volume.ravel() - low) / (high - low) * bins - 0.5  # in bins from the first one's centre
    around = numpy.floor(at).astype(int) + numpy.arange(-1, 3)[:, None]
    distance = numpy.abs(at - around)
    weights = numpy.where(distance < 1, 2 / 3 - distance**2 + distance**3 / 2,
                          numpy.maximum(2 - distance, 0)**3 / 6)
    weights[(around < 0) | (around >= bins)] = 0
    return numpy.clip(around, 0, bins - 1), weights / weights.sum(axis=0)


def joint_histogram(x, y, bins=32):
    (x_bins, x_weights), (y_bins, y_weights) = (parzen_weights(each, bins) for each in (x, y))
    joint = sum(numpy.bincount(x_bins[i] * bins + y_bins[j], x_weights[i] * y_weights[j], bins**2)
                for i in range(4) for j in range(4))
    return joint.reshape(bins, bins) / x.size


def entropy(p):
    p = p[p > 0]
    return -(p * numpy.log(p)).sum()


def expected(x, y):
    data_range = x.max() - x.min()
    joint = joint_histogram(x, y)
    separate = entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1))
    mse = numpy.mean((x - y)**2)
    return {
        "mi": separate - entropy(joint),
        "nmi": separate / entropy(joint),
        "mse": mse,
        "mae": numpy.mean(numpy.abs(x - y)),
        "psnr": 10 * numpy.log10(data_range**2 / mse),
        "ssim": skimage.metrics.structural_similarity(
            x, y, gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
            data_range=data_range),
        "ncc": numpy.corrcoef(x.ravel(), y.ravel())[0, 1],
        "lncc": lncc(x, y),
    }


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    pairs = [synthetic(folder)]
    tutorial = sorted(VOLUMES.glob("*.nii.gz"))
    if len(tutorial) == 2:
        pairs.append(tutorial)
    else:
        print(f"the tutorial volumes are not in {VOLUMES}")
    worst = 0
    for paths in pairs:
        theirs = expected(*(decode(path) for path in paths))
        metrics = [word for name in theirs for word in ("-m", name)]
        report = subprocess.run([program, "compare", *paths, *metrics, "--format", "json"],
                                check=True, text=True, stdout=subprocess.PIPE).stdout
        ours = json.loads(report)["frames"][0]
        for name, value in theirs.items():
            error = abs(ours[name] - value) / max(1, abs(value))
            assert error < TOLERANCE, f"{name} of {paths}: {ours[name]}, expected {value}"
            worst = max(worst, error)
            print(f"{name:5} {ours[name]:.9g} {value:.9g} {error:.1e}")
    print(f"largest error {worst:.2g}")


if __name__ == "__main__":
    main()
