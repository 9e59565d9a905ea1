#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis compare` called in ways that nobody means: each is refused in one line before anything is scored,
and no file is touched.

    unusual_calls_test.py PROGRAM SCRATCH_FOLDER
"""

from clips import FOLDER, run, run_all, test


def refused(status, words, *arguments):
    before = sorted(path.name for path in FOLDER.iterdir())
    done = run("compare", "r.y4m", "d.y4m", "-m", "ssim", *arguments)
    assert done.returncode == status and done.stdout == "", (arguments, done)
    assert done.stderr == f"similis: {words}\n", (arguments, done.stderr)
    assert sorted(path.name for path in FOLDER.iterdir()) == before, arguments


@test
def outputs_have_files_of_their_own():
    refused(2, "--map ssim and --map mse would both write ./a.png", "--map", "ssim=a.png", "--map",
            "mse=./a.png")
    refused(2, "-o and --report would both write ../" + FOLDER.name + "/x.html", "-o", "x.html",
            "--report", f"../{FOLDER.name}/x.html")
    refused(2, "--report and --map ssim would both write a.png", "--report", "a.png", "--map",
            "ssim=a.png")
    done = run("compare", "r.y4m", "d.y4m", "-m", "ssim", "-o", "/dev/null", "--report", "/dev/null")
    assert done.returncode == 0, done


@test
def a_directory_is_no_output():
    (FOLDER / "folder").mkdir(exist_ok=True)
    for option in "-o", "--report":
        refused(1, f"{option} folder is a directory; it must be a file", option, "folder")
    refused(1, "-o nowhere/x.json: nowhere is not a directory", "-o", "nowhere/x.json")


@test
def options_of_lists_are_for_lists():
    for option in ["--shard", "1/2"], ["--retries", "3"], ["--frames-in-rows"]:
        refused(2, f"{option[0]} is for --pairs, and for directories with -o FILE.jsonl", *option)


@test
def names_of_metrics_are_not_empty():
    for text in "psnr,", ",psnr", "psnr,,mse":
        refused(2, f"-m {text}: a metric's name is empty", "-m", text)


run_all()
