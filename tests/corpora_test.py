#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis compare --pairs` and `similis merge`: lists, rows, what is continued after kills, shards,
and the cost of many pairs.

    corpora_test.py PROGRAM SCRATCH_FOLDER
"""

import collections
import fcntl
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import png

PROGRAM, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
WIDTH, HEIGHT, PICTURES = 16, 16, 40
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def run(*arguments, status=0, **options):
    done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=FOLDER, capture_output=True,
                          text=True, timeout=300, **options)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def compare(*arguments, status=0):
    return run("compare", "-m", "mse", *arguments, status=status)


def rows_of(name):
    lines = (FOLDER / name).read_text().split("\n")
    assert lines[-1] == "", "the last line is whole"
    return [json.loads(line) for line in lines[1:-1]]


def write_list(name, pairs):
    with open(FOLDER / name, "w") as file:
        for pair in pairs:
            file.write(json.dumps(pair) + "\n")
    return name


def listed(count=PICTURES):
    return [{"reference": f"r{i}.png", "distorted": f"d{i}.png", "id": f"pair {i}"}
            for i in range(count)]


@test
def lists_have_three_forms():
    expected = {}
    for i, name in enumerate(("one,\"two\".png", "zwölf.png", "three.png")):
        shutil.copy(FOLDER / f"d{i}.png", FOLDER / name)
        expected[name] = json.loads(
            run("compare", f"r{i}.png", name, "-m", "mse", "--format", "json").stdout)["metrics"]
    quoted = 'reference,distorted,id\nr0.png,"one,""two"".png",x\nr1.png,zwölf.png,y\n'
    (FOLDER / "list.csv").write_text(quoted + "r2.png,three.png,z\n")
    (FOLDER / "list.tsv").write_text('id\tdistorted\treference\nx\tone,"two".png\tr0.png\n'
                                     "y\tzwölf.png\tr1.png\nz\tthree.png\tr2.png\n")
    write_list("list.jsonl", [
        {"id": "x", "reference": "r0.png", "distorted": 'one,"two".png'},
        {"id": "y", "reference": "r1.png", "distorted": "zwölf.png", "other": 3},
        {"id": "z", "reference": "r2.png", "distorted": "three.png"}])
    for form in "csv", "tsv", "jsonl":
        compare("--pairs", f"list.{form}", "-o", f"of_{form}.jsonl")
        rows = {row["id"]: row for row in rows_of(f"of_{form}.jsonl")}
        assert set(rows) == {"x", "y", "z"}
        for row in rows.values():
            assert row["metrics"] == expected[row["distorted"]], row
    (FOLDER / "inside").mkdir(exist_ok=True)
    (FOLDER / "inside/list.csv").write_text("reference,distorted\n../r0.png,../d0.png\n")
    compare("--pairs", "inside/list.csv", "-o", "inside.jsonl")
    assert rows_of("inside.jsonl")[0]["id"] == "../r0.png\t../d0.png"


@test
def wrong_lists_are_usage_errors():
    write_list("twice.jsonl", [listed()[0], listed()[0], listed()[1]])
    done = compare("--pairs", "twice.jsonl", "-o", "twice_out.jsonl")
    assert "1 pair listed more than once" in done.stderr and len(rows_of("twice_out.jsonl")) == 2
    write_list("clash.jsonl", [listed()[0], {**listed()[1], "id": "pair 0"}])
    done = compare("--pairs", "clash.jsonl", "-o", "clash_out.jsonl", status=2)
    assert 'the id "pair 0" is given to two pairs' in done.stderr, done.stderr
    assert not (FOLDER / "clash_out.jsonl").exists()
    (FOLDER / "bad.jsonl").write_text('{"reference": "a"}\n')
    assert "line 1: it has no distorted" in compare("--pairs", "bad.jsonl", "-o", "x.jsonl",
                                                    status=2).stderr
    compare("--pairs", "twice.jsonl", status=2)
    compare("--pairs", "twice.jsonl", "-o", "x.json", status=2)
    compare("--pairs", "twice.jsonl", "-o", "x.jsonl", "r0.png", "d0.png", status=2)
    compare("--pairs", "twice.jsonl", "-o", "x.jsonl", "--shard", "3/2", status=2)


@test
def the_same_command_continues():
    write_list("all.jsonl", listed())
    compare("--pairs", "all.jsonl", "-o", "scores.jsonl")
    whole = (FOLDER / "scores.jsonl").read_bytes()
    assert compare("--pairs", "all.jsonl", "-o", "scores.jsonl").stderr == ""
    assert (FOLDER / "scores.jsonl").read_bytes() == whole
    lines = whole.split(b"\n")
    kept = b"\n".join(lines[:11]) + b"\n"
    for torn in b"", lines[11][:30], lines[11]:
        (FOLDER / "scores.jsonl").write_bytes(kept + torn)
        compare("--pairs", "all.jsonl", "-o", "scores.jsonl")
        now = (FOLDER / "scores.jsonl").read_bytes()
        assert now.startswith(kept) and sorted(now.split(b"\n")) == sorted(lines)
    for cut in 0, 5, len(lines[0]):
        (FOLDER / "scores.jsonl").write_bytes(whole[:cut])
        compare("--pairs", "all.jsonl", "-o", "scores.jsonl")
        assert sorted((FOLDER / "scores.jsonl").read_bytes().split(b"\n")) == sorted(lines)


@test
def other_settings_and_other_files_are_left_alone():
    write_list("all.jsonl", listed())
    compare("--pairs", "all.jsonl", "-o", "kept.jsonl")
    for content in (FOLDER / "kept.jsonl").read_bytes(), b"my diary\n", b"my diary":
        (FOLDER / "kept.jsonl").write_bytes(content)
        done = run("compare", "-m", "mae", "--pairs", "all.jsonl", "-o", "kept.jsonl", status=2)
        assert "choose another name" in done.stderr, done.stderr
        assert (FOLDER / "kept.jsonl").read_bytes() == content


@test
def a_second_process_is_refused():
    write_list("all.jsonl", listed())
    compare("--pairs", "all.jsonl", "-o", "locked.jsonl")
    with open(FOLDER / "locked.jsonl") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = compare("--pairs", "all.jsonl", "-o", "locked.jsonl", status=1)
    assert "is being written by another process" in done.stderr, done.stderr


@test
def broken_pairs_are_rows_and_are_tried_again():
    write_list("some.jsonl", [*listed(3), {"reference": "r0.png", "distorted": "late.png",
                                           "id": "late"}])
    done = compare("--pairs", "some.jsonl", "-o", "some_out.jsonl", "--retries", "0", status=1)
    assert "cannot read late.png" in done.stderr and "1 of 4 pairs" in done.stderr, done.stderr
    rows = {row["id"]: row for row in rows_of("some_out.jsonl")}
    assert "error" in rows["late"] and len(rows) == 4
    good = [line for line in (FOLDER / "some_out.jsonl").read_text().splitlines()
            if "error" not in line]
    shutil.copy(FOLDER / "d0.png", FOLDER / "late.png")
    compare("--pairs", "some.jsonl", "-o", "some_out.jsonl")
    lines = (FOLDER / "some_out.jsonl").read_text().splitlines()
    assert lines[:len(good)] == good and len(rows_of("some_out.jsonl")) == 4
    (FOLDER / "late.png").unlink()


@test
def files_that_come_late_are_tried_again_at_once():
    write_list("wait.jsonl", [{"reference": "r0.png", "distorted": "soon.png", "id": "soon"}])
    process = subprocess.Popen([PROGRAM, "compare", "-m", "mse", "--pairs", "wait.jsonl", "-o",
                                "wait_out.jsonl", "--retries", "60"], cwd=FOLDER)
    time.sleep(0.3)
    assert process.poll() is None, "it waits for the file"
    shutil.copy(FOLDER / "d0.png", FOLDER / "soon.tmp")
    (FOLDER / "soon.tmp").rename(FOLDER / "soon.png")
    assert process.wait(timeout=60) == 0 and "metrics" in rows_of("wait_out.jsonl")[0]
    # A file that decodes wrongly is not tried again: 100 tries would take longer than the test may.
    (FOLDER / "soon.png").write_bytes((FOLDER / "d0.png").read_bytes()[:60])
    compare("--pairs", "wait.jsonl", "-o", "torn_out.jsonl", "--retries", "100", status=1)
    assert "error" in rows_of("torn_out.jsonl")[0]


@test
def rows_have_frames_on_request_and_names_any_letters():
    name = "two\nlines\t\u200bü.png"
    shutil.copy(FOLDER / "d0.png", FOLDER / name)
    write_list("letters.jsonl", [{"reference": "r0.png", "distorted": name}])
    compare("--pairs", "letters.jsonl", "-o", "plain.jsonl")
    compare("--pairs", "letters.jsonl", "-o", "framed.jsonl", "--frames-in-rows")
    (plain,), (framed,) = rows_of("plain.jsonl"), rows_of("framed.jsonl")
    assert plain["distorted"] == name and plain["id"] == f"r0.png\t{name}", plain
    assert "frames" not in plain and len(framed["frames"]) == 1, framed
    assert framed["frames"][0]["mse"] == plain["metrics"]["mse"]["mean"], framed


@test
def after_any_kills_each_id_has_one_row():
    chance = random.Random(7)
    write_list("all.jsonl", listed())
    for kill in range(20):
        process = subprocess.Popen([PROGRAM, "compare", "-m", "mse,psnr", "--pairs", "all.jsonl",
                                    "-o", "killed.jsonl", "--threads", "2"], cwd=FOLDER,
                                   stderr=subprocess.DEVNULL)
        time.sleep(chance.random() * 0.15)
        process.kill()
        process.wait()
        if kill % 4 == 3 and (FOLDER / "killed.jsonl").exists():  # fewer rows, so that it goes on
            content = (FOLDER / "killed.jsonl").read_bytes()
            (FOLDER / "killed.jsonl").write_bytes(content[:chance.randrange(len(content) + 1)])
    run("compare", "-m", "mse,psnr", "--pairs", "all.jsonl", "-o", "killed.jsonl")
    counts = collections.Counter(row["id"] for row in rows_of("killed.jsonl"))
    assert counts == collections.Counter(pair["id"] for pair in listed()), counts


@test
def a_signal_leaves_whole_rows():
    write_list("long.jsonl", [{"reference": f"r{i % PICTURES}.png",
                               "distorted": f"d{i % PICTURES}.png", "id": str(i)}
                              for i in range(60000)])
    process = subprocess.Popen([PROGRAM, "compare", "-m", "mse", "--pairs", "long.jsonl", "-o",
                                "long_out.jsonl"], cwd=FOLDER, stderr=subprocess.PIPE)
    while not (FOLDER / "long_out.jsonl").exists() or (
            (FOLDER / "long_out.jsonl").read_bytes().count(b"\n") < 20):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    start = time.monotonic()
    err = process.communicate(timeout=20)[1].decode()
    assert process.returncode == 143 and time.monotonic() - start < 10, err
    assert "interrupted by SIGTERM" in err, err
    assert all("error" not in row for row in rows_of("long_out.jsonl"))


CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
/* Time runs FASTER times as fast; each wait for the disk is a line of SYNCED. */
int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  static struct timespec start;
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  const int status = real(clock, now);
  if (clock != CLOCK_MONOTONIC) return status;
  if (start.tv_sec == 0) start = *now;
  const long long passed = ((now->tv_sec - start.tv_sec) * 1000000000LL + now->tv_nsec - start.tv_nsec) *
                           atoi(getenv("FASTER"));
  now->tv_sec = start.tv_sec + passed / 1000000000LL;
  now->tv_nsec = passed % 1000000000LL;
  return status;
}
int fdatasync(int file) {
  FILE* log = fopen(getenv("SYNCED"), "a");
  fprintf(log, "%ld\n", (long)lseek(file, 0, SEEK_END));
  fclose(log);
  return fsync(file);
}
"""


@test
def rows_reach_the_disk_every_five_seconds_and_a_line_tells_of_progress_each_minute():
    compiler = shutil.which("cc") or shutil.which("clang")
    if not compiler:
        print("  (no compiler: not tested)")
        return
    (FOLDER / "clock.c").write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "clock.so", "clock.c", "-ldl"], cwd=FOLDER,
                   check=True)
    count = 4
    for i in range(count):  # each pair waits until its picture is written
        os.mkfifo(FOLDER / f"slow{i}.png")
    write_list("slow.jsonl", [{"reference": f"r{i}.png", "distorted": f"slow{i}.png", "id": str(i)}
                              for i in range(count)])
    for faster, pause, syncs, lines in (1, 0.1, 1, 0), (20, 0.4, count + 1, 0), (600, 0.2, count + 1, count):
        for name in "slow_out.jsonl", "synced":
            (FOLDER / name).unlink(missing_ok=True)
        start = time.monotonic()
        process = subprocess.Popen(
            [PROGRAM, "compare", "-m", "mse", "--pairs", "slow.jsonl", "-o", "slow_out.jsonl", "--threads", "1"],
            cwd=FOLDER, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "LD_PRELOAD": str((FOLDER / "clock.so").resolve()), "FASTER": str(faster),
                 "SYNCED": "synced", "ASAN_OPTIONS": "verify_asan_link_order=0"})
        for i in range(count):
            time.sleep(pause)
            (FOLDER / f"slow{i}.png").write_bytes((FOLDER / f"d{i}.png").read_bytes())
        err = process.communicate(timeout=60)[1]
        assert process.returncode == 0 and len(rows_of("slow_out.jsonl")) == count, err
        sizes = [int(size) for size in (FOLDER / "synced").read_text().split()]
        assert len(sizes) == syncs and sizes[-1] == (FOLDER / "slow_out.jsonl").stat().st_size, sizes
        told = [line for line in err.splitlines() if "pairs" in line]
        assert len(told) == lines or time.monotonic() - start > 60 / faster > 1, (faster, err)
        for i, line in enumerate(told if lines else [], 1):
            assert re.fullmatch(rf"similis: note: {i}/{count} pairs, [0-9.]+/min, .+ left, 0 failed", line), line
    for i in range(count):
        (FOLDER / f"slow{i}.png").unlink()


@test
def shards_are_stable_and_merge():
    write_list("all.jsonl", listed())
    parts = []
    for i in 1, 2, 3:
        parts.append(f"part{i}.jsonl")
        compare("--pairs", "all.jsonl", "--shard", f"{i}/3", "-o", parts[-1])
    where = {row["id"]: part for part in parts for row in rows_of(part)}
    assert len(where) == PICTURES and min(collections.Counter(where.values()).values()) > 3
    write_list("shuffled.jsonl", listed()[::-1] + [
        {"reference": "r1.png", "distorted": "d2.png", "id": "new"}])
    compare("--pairs", "shuffled.jsonl", "--shard", "2/3", "-o", "again.jsonl")
    assert {row["id"] for row in rows_of("again.jsonl")} - {"new"} == {
        name for name, part in where.items() if part == "part2.jsonl"}

    run("merge", *parts, "--pairs", "all.jsonl", "-o", "merged.jsonl")
    assert [row["id"] for row in rows_of("merged.jsonl")] == [pair["id"] for pair in listed()]
    compare("--pairs", "all.jsonl", "-o", "alone.jsonl")
    assert sorted((FOLDER / "alone.jsonl").read_text().splitlines()) == sorted(
        (FOLDER / "merged.jsonl").read_text().splitlines())
    run("merge", *parts, "--pairs", "all.jsonl", "-o", "merged.json")
    assert json.loads((FOLDER / "merged.json").read_text())["pairs"] == rows_of("merged.jsonl")
    run("merge", *parts, "--pairs", "all.jsonl", "-o", "merged.csv")
    lines = (FOLDER / "merged.csv").read_text().splitlines()
    first = rows_of("merged.jsonl")[0]
    assert lines[0] == "id,reference,distorted,mse"
    assert lines[1].split(",")[:3] == ["pair 0", "r0.png", "d0.png"]
    assert float(lines[1].split(",")[3]) == first["metrics"]["mse"]["mean"]

    done = run("merge", *parts, "--pairs", "all.jsonl", "-o", "merged.xml", status=2)
    assert "its ending must be .jsonl, .json or .csv" in done.stderr, done.stderr
    done = run("merge", *parts[:2], "--pairs", "all.jsonl", "-o", "none.jsonl", status=1)
    missing = sum(part == "part3.jsonl" for part in where.values())
    assert f"{missing} pairs of {PICTURES} missing; nothing is written" in done.stderr, done.stderr
    assert not (FOLDER / "none.jsonl").exists()
    run("compare", "-m", "mae", "--pairs", "all.jsonl", "--shard", "3/3", "-o", "mae.jsonl")
    done = run("merge", *parts[:2], "mae.jsonl", "--pairs", "all.jsonl", status=2)
    assert "mae.jsonl has other settings than part1.jsonl" in done.stderr, done.stderr
    text = (FOLDER / "part1.jsonl").read_text()
    (FOLDER / "changed.jsonl").write_text(text.replace('"mean": ', '"mean": 1'))
    done = run("merge", *parts, "changed.jsonl", "--pairs", "all.jsonl", status=2)
    assert "has different rows in" in done.stderr, done.stderr


@test
def thresholds_are_of_each_row_whichever_run_wrote_it():
    pairs = listed(6)
    for i, pair in enumerate(pairs):
        if i < 2:
            del pair["id"]
    pairs[5]["distorted"] = "r5.png"  # equal: psnr is infinite, null in JSON
    write_list("limits.jsonl", pairs)
    command = ["compare", "-m", "psnr,mse", "--pairs", "limits.jsonl", "-o", "limits_out.jsonl"]
    run(*command)
    before = (FOLDER / "limits_out.jsonl").read_bytes()
    scores = {row["distorted"]: row["metrics"]["psnr"]["mean"] for row in rows_of("limits_out.jsonl")}
    assert scores["r5.png"] is None, scores
    limit = sorted(score for score in scores.values() if score)[2]
    low = [name for name, score in scores.items() if score and score < limit]
    names = {"d0.png": "d0.png against r0.png", "d1.png": "d1.png against r1.png",
             **{f"d{i}.png": f"pair {i}" for i in range(2, 5)}, "r5.png": "pair 5"}

    def expect(limits, lines, rows=before, status=3):
        """The lines; rows are written before, all of them, some or none."""
        (FOLDER / "limits_out.jsonl").write_bytes(rows)
        done = run(*command, *limits, "--threads", "1", status=status)
        assert sorted(done.stderr.splitlines()) == sorted(lines), (done.stderr, lines)
        assert sorted(rows_of("limits_out.jsonl"), key=str) == sorted(
            (json.loads(line) for line in before.splitlines()[1:]), key=str)

    missed = [f"similis: {names[name]}: mean of psnr is {scores[name]:.6g}; it must be at least {limit!r}"
              for name in low]
    head, *lines = before.splitlines(keepends=True)
    for rows in before, b"", head + lines[1] + lines[3]:
        expect(["--fail-below", f"psnr={limit!r}"], missed, rows)
        expect(["--fail-above", "psnr.max=1000"],
               ["similis: pair 5: max of psnr is inf; it must be at most 1000"], rows)
        expect(["--fail-below", "psnr=1", "--fail-above", "mse.p95=1e9"], [], rows, status=0)
    done = run(*command, "--fail-below", "ssim=0.9", status=2)
    assert "ssim is not scored; ask for it with -m" in done.stderr, done.stderr

    # A pair that fails decides the status; limits are told too.
    write_list("limits.jsonl", [*pairs, {"reference": "r0.png", "distorted": "gone.png"}])
    done = run(*command, "--fail-above", "psnr=1000", "--retries", "0", status=1)
    assert "could not be scored" in done.stderr and "pair 5: mean of psnr is inf" in done.stderr, done

    # Each shard judges its own rows; the merged file is judged by the same command.
    write_list("limits.jsonl", pairs)
    told = []
    for i in 1, 2:
        part = ["compare", "-m", "psnr,mse", "--pairs", "limits.jsonl", "--shard", f"{i}/2", "-o",
                f"limits{i}.jsonl", "--fail-below", f"psnr={limit!r}"]
        done = subprocess.run([PROGRAM, *part], cwd=FOLDER, capture_output=True, text=True)
        of_part = done.stderr.splitlines()
        assert done.returncode == (3 if of_part else 0), done
        told += of_part
    assert sorted(told) == sorted(missed), (told, missed)
    run("merge", "limits1.jsonl", "limits2.jsonl", "--pairs", "limits.jsonl", "-o", "limits_out.jsonl")
    expect(["--fail-below", f"psnr={limit!r}"], missed, (FOLDER / "limits_out.jsonl").read_bytes())

    for side in "r", "d":
        (FOLDER / f"limit_{side}").mkdir(exist_ok=True)
        for i in range(3):
            shutil.copy(FOLDER / f"{side}{i}.png", FOLDER / f"limit_{side}" / f"{i}.png")
    done = compare("limit_r", "limit_d", "-o", "limit_dirs.jsonl", "--fail-above", "mse=0", status=3)
    lines = sorted(done.stderr.splitlines())
    assert len(lines) == 3 and lines[0].startswith(
        "similis: limit_d/0.png against limit_r/0.png: mean of mse is "), lines


@test
def directories_are_continued_too():
    for side in "r", "d":
        (FOLDER / f"dir_{side}").mkdir(exist_ok=True)
        for i in range(3):
            shutil.copy(FOLDER / f"{side}{i}.png", FOLDER / f"dir_{side}" / f"{i}.png")
    compare("dir_r", "dir_d", "-o", "dirs.jsonl")
    assert {row["distorted"] for row in rows_of("dirs.jsonl")} == {
        f"dir_d/{i}.png" for i in range(3)}
    before = (FOLDER / "dirs.jsonl").read_bytes()
    compare("dir_r", "dir_d", "-o", "dirs.jsonl")
    assert (FOLDER / "dirs.jsonl").read_bytes() == before


@test
def a_large_list_resumes_within_its_memory():
    count = 200000  # a fifth of a million, as tests share the machine
    compare("--pairs", write_list("one.jsonl", listed(1)), "-o", "one_out.jsonl")
    head, row = (FOLDER / "one_out.jsonl").read_text().splitlines()
    with open(FOLDER / "large.csv", "w") as pairs, open(FOLDER / "large.jsonl", "w") as results:
        pairs.write("reference,distorted,id\n")
        results.write(head + "\n")
        for i in range(count):
            pairs.write(f"r0.png,d0.png,the name of pair {i:07d}\n")
            results.write(row.replace('"pair 0"', f'"the name of pair {i:07d}"') + "\n")
    before = (FOLDER / "large.jsonl").stat().st_size
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    compare("--pairs", "large.csv", "-o", "large.jsonl")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (FOLDER / "large.jsonl").stat().st_size == before
    seconds = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    print(f"  resumed {count} pairs in {seconds:.1f} s on a processor")
    assert seconds < 30 * count / 1e6 * 3, "three times the goal, for builds without optimisation"
    small = peak_kilobytes("one.jsonl", "one_out.jsonl")
    large = peak_kilobytes("large.csv", "large.jsonl")
    print(f"  {1024 * (large - small) / count:.0f} bytes a pair")
    assert 1024 * (large - small) / count < 200


@test
def tiny_pairs_cost_little_besides_decoding():
    times = {}
    for count in 100, 3100:
        write_list("tiny.jsonl", [{"reference": f"r{i % PICTURES}.png", "id": str(i),
                                   "distorted": f"d{i % PICTURES}.png"} for i in range(count)])
        (FOLDER / "tiny_out.jsonl").unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("compare", "-m", "psnr", "-m", "ssim", "--pairs", "tiny.jsonl", "-o", "tiny_out.jsonl",
            "--threads", "1")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times[count] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rate = 3000 / (times[3100] - times[100])
    print(f"  {rate:.0f} pairs a second of a processor, decoding included")
    assert rate > 1000, rate


def peak_kilobytes(pairs, output):
    script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    done = subprocess.run([sys.executable, "-c", script, PROGRAM, "compare", "-m", "mse", "--pairs",
                           pairs, "-o", output], cwd=FOLDER, capture_output=True, text=True,
                          check=True)
    return int(done.stdout)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    chance = random.Random(1)
    for i in range(PICTURES):
        samples = bytes(chance.randrange(200) for _ in range(WIDTH * HEIGHT))
        (FOLDER / f"r{i}.png").write_bytes(png.encode(samples, WIDTH, channels=1))
        changed = bytes(sample + chance.randrange(20) for sample in samples)
        (FOLDER / f"d{i}.png").write_bytes(png.encode(changed, WIDTH, channels=1))
    failed = 0
    for function in TESTS:
        try:
            function()
        except Exception as error:  # all tests run
            failed += 1
            print(f"FAILED {function.__name__}: {type(error).__name__}: {error}")
    print(f"{len(TESTS) - failed} of {len(TESTS)} passed")
    sys.exit(failed > 0)


main()
