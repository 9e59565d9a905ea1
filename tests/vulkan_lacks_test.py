#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines without Vulkan, and devices that lack something: what cannot run says so in one sentence,
and what can run has the same scores.

    vulkan_lacks_test.py PROGRAM SCRATCH_FOLDER C_COMPILER VULKAN_INCLUDE

vulkan/lacking.c, which the test builds, stands before the machine's loader and hides what its devices
have. Without a loader or a device on this machine the test is skipped, but for the sentences of no
loader.
"""

import os
import pathlib
import subprocess
import sys

import png

PROGRAM, FOLDER, COMPILER, INCLUDE = sys.argv[1:5]
HERE = pathlib.Path(__file__).resolve().parent
FOLDER = pathlib.Path(FOLDER)
NONE = "no Vulkan device can be used: "


def run(*arguments, **variables):
    environment = {**os.environ, **variables}
    environment.pop("SIMILIS_BACKEND", None)
    return subprocess.run(
        [PROGRAM, *arguments], cwd=FOLDER, env=environment, capture_output=True, text=True
    )


def pictures():
    width, height = 45, 37
    for name, noise in ("x.png", 0), ("y.png", 23):
        samples = bytes(
            (3 * x + 5 * y + 40 * c + (x * y * noise) % 31) % 256
            for y in range(height) for x in range(width) for c in range(3)
        )
        (FOLDER / name).write_bytes(png.encode(samples, width, 3))
        luma = samples[: width * height]
        header = f"YUV4MPEG2 W{width} H{height} F24:1 Cmono\nFRAME\n"
        (FOLDER / name).with_suffix(".y4m").write_bytes(header.encode() + luma)


def scores(metric, device, **variables):
    ending = "y4m" if metric == "integer-ssim" else "png"  # it takes video alone
    done = run(
        "compare", f"x.{ending}", f"y.{ending}", "-m", metric, "--device", device, **variables
    )
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def refused(why, **variables):
    """`info` goes on and says why; what names the device ends in that sentence and nothing else."""
    done = run("info", **variables)
    assert done.returncode == 0 and NONE + why + "\n" in done.stdout, done
    for metric in "ssim", "ssimulacra2":
        done = run("compare", "x.png", "y.png", "-m", metric, "--device", "vulkan", **variables)
        assert done.returncode == 1 and done.stdout == "", done
        assert done.stderr == f"similis: --device vulkan: {NONE}{why}\n", done
    done = run("compare", "x.png", "y.png", "-m", "ssim", **variables)
    assert done.returncode == 0 and done.stderr == "", done


def without_a_loader():
    hidden = FOLDER / "hidden"
    hidden.mkdir(exist_ok=True)
    (hidden / "libvulkan.so.1").write_bytes(b"")  # is found first, and is no library
    why = "there is no Vulkan loader (libvulkan.so.1); install libvulkan1 and the GPU's driver"
    refused(why, LD_LIBRARY_PATH=str(hidden))


def machines_loader():
    """The path of libvulkan.so.1; None if there is none."""
    finder = ("import ctypes; ctypes.CDLL('libvulkan.so.1'); "
              "print(next(x.split()[-1] for x in open('/proc/self/maps') if 'libvulkan.so' in x))")
    done = subprocess.run([sys.executable, "-c", finder], capture_output=True, text=True)
    return done.stdout.strip() or None


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    pictures()
    without_a_loader()
    loader = machines_loader()
    if loader is None:
        print("skipped: there is no Vulkan loader; `make check` installs libvulkan1")
        return 77
    refused("the Vulkan loader finds no driver", VK_ICD_FILENAMES="/dev/null",
            VK_DRIVER_FILES="/dev/null")
    if NONE in run("info").stdout:
        print("skipped: there is no Vulkan device; `make check` installs mesa-vulkan-drivers")
        return 77

    lacking = FOLDER / "lacking"
    lacking.mkdir(exist_ok=True)
    subprocess.run(
        [COMPILER, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC",
         "-isystem", INCLUDE, str(HERE / "vulkan/lacking.c"), "-o", str(lacking / "libvulkan.so.1")],
        check=True,
    )

    def lack(what):
        return {"LD_LIBRARY_PATH": str(lacking), "VULKAN_LOADER": loader, "VULKAN_LACKS": what}

    refused("the Vulkan loader is older than Vulkan 1.2", **lack("loader 1.2"))
    refused("the Vulkan loader finds no device", **lack("devices"))
    refused("the Vulkan loader finds no device: VK_ERROR_INITIALIZATION_FAILED",
            **lack("working devices"))
    name = run("info").stdout.split("vulkan:0 is ")[1].split(" (")[0]
    for what in "Vulkan 1.2", "integers of 64 bits", "timeline semaphores", "a queue for compute":
        done = run("info", **lack(what))
        (why,) = [x for x in done.stdout.splitlines() if NONE in x]
        assert why.split(NONE)[1].startswith(name) and why.endswith(f" lacks {what}"), done
        refused(why.split(NONE)[1], **lack(what))

    # A device that does not open is an error of the call that needs it, and `info` goes on.
    why = "cannot be used: vulkan: the device cannot be opened: VK_ERROR_OUT_OF_DEVICE_MEMORY\n"
    done = run("info", **lack("memory"))
    assert done.returncode == 0 and why in done.stdout and "\nHDF5 " in done.stdout, done
    done = run("info", "--report", **lack("memory"))
    assert done.returncode == 0 and f"vulkan:0 {why}" in done.stdout, done
    done = run("compare", "x.png", "y.png", "-m", "ssim", "--device", "vulkan", **lack("memory"))
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr == (
        "similis: vulkan: the device cannot be opened: VK_ERROR_OUT_OF_DEVICE_MEMORY\n"), done

    # No storage and no arithmetic of 8 or 16 bits, and no doubles: the same scores.
    for what, doubles in ("f16", "the device's doubles"), ("doubles", "doubles in integers"):
        done = run("info", **lack(what))
        assert "exact, with " in done.stdout and doubles in done.stdout, done
        for metric in "integer-ssim", "ssimulacra2":
            assert scores(metric, "vulkan", **lack(what)) == scores(metric, "cpu"), (metric, what)
        assert scores("ssim", "vulkan", **lack(what)) == scores("ssim", "vulkan")
    return 0


if __name__ == "__main__":
    sys.exit(main())
