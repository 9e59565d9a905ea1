#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs a build into an empty folder, moves the folder, and uses what is there as a stranger would.

C++ finds it with find_package(), shared and static, C with pkg-config; both and the installed program
must print the same SSIM of the same pictures.
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import png  # noqa: E402
WIDTH, HEIGHT = 97, 61


def output_of(*command, **environment):
    result = subprocess.run([str(part) for part in command], check=True, text=True,
                            stdout=subprocess.PIPE, env={**os.environ, **environment})
    return result.stdout.strip()


def pixels(noise):
    """Slopes and stripes in RGB, plus noise from a linear congruential generator."""
    state, samples = 12345, bytearray()
    for row in range(HEIGHT):
        for column in range(WIDTH):
            for channel in range(3):
                state = (1103515245 * state + 12345) % 2**31
                value = 2 * column + row * (channel + 1) % 64 + noise * (state >> 16) // 2**15
                samples.append(min(255, value))
    return bytes(samples)


def write_pictures(folder):
    for name, noise in ("x", 0), ("y", 40):
        samples = pixels(noise)
        (folder / f"{name}.ppm").write_bytes(b"P6\n%d %d\n255\n" % (WIDTH, HEIGHT) + samples)
        (folder / f"{name}.png").write_bytes(png.encode(samples, WIDTH, channels=3))


def installed(build, folder):
    """The tree is moved after the install, so that nothing may rely on where it was made."""
    output_of("cmake", "--install", build, "--prefix", folder / "first")
    return (folder / "first").rename(folder / "prefix")


def library_folder(prefix):
    return next(prefix.rglob("libsimilis.so")).parent


def cpp_consumers(prefix, folder):
    output_of("cmake", "-S", HERE, "-B", folder / "cpp", f"-DCMAKE_PREFIX_PATH={prefix}")
    output_of("cmake", "--build", folder / "cpp")
    return [folder / "cpp" / "consumer_shared", folder / "cpp" / "consumer_static"]


def c_consumer(prefix, folder):
    packages = {"PKG_CONFIG_PATH": str(library_folder(prefix) / "pkgconfig")}
    flags = shlex.split(output_of("pkg-config", "--cflags", "--libs", "similis", **packages))
    program = folder / "consumer_c"
    output_of("cc", "-std=c11", HERE / "consumer.c", "-o", program, *flags)
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    folder = arguments.scratch.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_pictures(folder)
    prefix = installed(arguments.build, folder)

    found = {"LD_LIBRARY_PATH": str(library_folder(prefix))}
    numbers = {}
    for program in [*cpp_consumers(prefix, folder), c_consumer(prefix, folder)]:
        numbers[program.name] = float(
            output_of(program, folder / "x.ppm", folder / "y.ppm", **found))
    report = output_of(prefix / "bin" / "similis", "compare", folder / "x.png", folder / "y.png",
                       "-m", "ssim", "--format", "json")
    printed = json.loads(report)["metrics"]["ssim"]["mean"]
    print(numbers, f"similis compare: {printed}")
    # The program prints f64, of which the library's default for u8 is the nearest f32.
    nearest = struct.unpack("f", struct.pack("f", printed))[0]
    if set(numbers.values()) != {nearest} or not 0.1 < printed < 0.999:
        sys.exit("All must print the same number, between 0.1 and 0.999.")


if __name__ == "__main__":
    main()
