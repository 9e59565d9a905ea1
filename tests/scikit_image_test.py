#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis compare` against scikit-image and NumPy: 8 and 16 bits, grey and colour, odd sizes.

    scikit_image_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import pathlib
import subprocess
import sys

import numpy
import skimage.metrics

import png

SIZES = (11, 11), (37, 129), (240, 321)  # one window; odd; more than a tile

# The program's SSIM, and scikit-image's: the paper's, and scikit-image's default with its window.
SSIM_OPTIONS = {
    "ssim": {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False},
    "ssim=window=box:window_size=7:sample_covariance=true": {},
}


def picture_pair(random, height, width, channels, bits):
    """A smooth picture with edges and noise, and the same with more noise and less contrast."""
    y, x = numpy.mgrid[:height, :width]
    smooth = numpy.sin(x / 9.0) * numpy.cos(y / 7.0) + (x + y > width) * 0.7
    clean = smooth[..., None] + 0.1 * random.normal(size=(height, width, channels))
    other = 0.9 * clean + 0.05 * random.normal(size=clean.shape) + 0.03
    largest = 2**bits - 1
    return [numpy.clip(numpy.rint((p + 1.5) / 3.5 * largest), 0, largest).astype(f">u{bits // 8}")
            for p in (clean, other)]


def compare(program, folder, pair, bits):
    files = []
    for name, picture in zip("xy", pair):
        files.append(folder / f"{name}.png")
        files[-1].write_bytes(
            png.encode(picture.tobytes(), picture.shape[1], picture.shape[2], bits))
    metrics = [
        word for metric in (*SSIM_OPTIONS, "psnr", "mse", "mae") for word in ("-m", metric)
    ]
    report = subprocess.run([program, "compare", *files, *metrics, "--format", "json"], check=True,
                            text=True, stdout=subprocess.PIPE).stdout
    return {name: values["mean"] for name, values in json.loads(report)["metrics"].items()}


def expected(pair, bits):
    x, y = (picture.astype(numpy.float64) for picture in pair)
    data_range = 2**bits - 1
    mse = numpy.mean((x - y)**2)
    return {
        **{
            name: skimage.metrics.structural_similarity(
                x, y, data_range=data_range, channel_axis=-1, **options)
            for name, options in SSIM_OPTIONS.items()
        },
        "psnr": 10 * numpy.log10(data_range**2 / mse),
        "mse": mse,
        "mae": numpy.mean(numpy.abs(x - y)),
    }


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(1)
    worst = 0
    for height, width in SIZES:
        for channels in 1, 3:
            for bits in 8, 16:
                pair = picture_pair(random, height, width, channels, bits)
                ours, theirs = compare(program, folder, pair, bits), expected(pair, bits)
                assert ours.keys() == theirs.keys(), ours
                case = f"{width}x{height}, {channels} channels, {bits} bits"
                for name, value in theirs.items():
                    # SSIM to 1e-6 absolute; the others, of any size, relative.
                    error = abs(ours[name] - value) / (1 if name.startswith("ssim") else value)
                    assert error < 1e-6, f"{name} of {case}: {ours[name]}, expected {value}"
                    worst = max(worst, error)
    print(f"largest error {worst:.2g}")


if __name__ == "__main__":
    main()
