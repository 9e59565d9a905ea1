#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times similis on a GPU beside its peers, on the same images in one process, and writes the JSON.

Needs torch with CUDA; peers that are not installed are left out and named. similis, where its Python
package is installed, and peers are called as their users call them, forward and backward through
autograd; without the package similis is called through its C interface. Device events after a
warm-up, the smallest of ten medians; images are noise, and take turns where they would fit the cache. Memory is what
torch's allocator holds at its peak beyond the images.

    bench/compare_peers_gpu.py --library build/lib/libsimilis.so
"""

import argparse
import pathlib

import gpu_integer_ssim
import gpu_peers
import gpu_similis
import gpu_ssim
import libsimilis
from gpu_report import Report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, default=libsimilis.LIBRARY)
    parser.add_argument("--optimized-fused-ssim", type=pathlib.Path, metavar="FOLDER",
                        help="where that package lies; it has the name of another")
    parser.add_argument("--commit", default="")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    similis = gpu_similis.Similis(arguments.library, torch_memory=True)
    package = gpu_similis.package()
    others, missing = gpu_peers.find(arguments.optimized_fused_ssim)
    for each in missing:
        print(f"left out: {each}")
    report = Report(arguments.output, arguments.commit,
                    {"similis": similis.library.similis_version().decode()})
    if package is None:
        report.note("similis is called through its C interface, its peers through torch's autograd, "
                    "which adds up to 0.1 ms to a training step.")
    gpu_ssim.agreement(similis, others)
    gpu_ssim.compare(report, similis, package, others)
    gpu_integer_ssim.compare(report, similis)
    print(f"wrote {report.output}")


if __name__ == "__main__":
    main()
