#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis compare` as an encoding engineer calls it: results that stream, signals, devices as
outputs, several encodes of one reference, BD-rates, thresholds, worst frames.

    encodes_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import math
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

WIDTH, HEIGHT = 48, 32
PROGRAM, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def frame(seed, step=0, error=0):
    """A smooth luma plane with noise of a given size, and grey chroma."""
    noise = random.Random(seed)
    luma = bytes(
        max(0, min(255, (x * 3 + y * 2 + step) % 200 + 20 + noise.randint(-error, error)))
        for y in range(HEIGHT)
        for x in range(WIDTH)
    )
    return luma + b"\x80" * (WIDTH * HEIGHT // 2)


def y4m(name, frames, error=0, tags="F24:1", errors={}):
    content = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} {tags} C420\n".encode()
    for i in range(frames):
        content += b"FRAME\n" + frame(1000 * error + i, i, errors.get(i, error))
    (FOLDER / name).write_bytes(content)
    return name


def run(*arguments, **options):
    return subprocess.run(
        [PROGRAM, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=120, **options
    )


def compare(*arguments, status=0):
    done = run("compare", *arguments)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def shell(script):
    return subprocess.run(
        ["bash", "-c", script], cwd=FOLDER, capture_output=True, text=True, timeout=120,
        env={**os.environ, "S": str(PROGRAM)},
    )


# ---- nothing is lost ----


@test
def standard_output_by_name_is_written_where_it_stands():
    done = shell('(echo header; "$S" compare r.y4m d.y4m -m mse --format csv -o /dev/stdout;'
                 " echo footer) > log; cat log")
    lines = done.stdout.splitlines()
    assert lines[0] == "header" and lines[1] == "frame,mse-y,mse-cb,mse-cr", done
    assert lines[-1] == "footer" and len(lines) == 2 + 8 + 1, done
    for target in "/dev/stdout", "/dev/fd/1":
        piped = shell(f'"$S" compare r.y4m d.y4m -m mse -o {target} | cat')
        assert piped.stdout.startswith("metric "), piped
    done = shell('"$S" vmaf -r r.y4m -d d.y4m -n --feature psnr --csv -o /dev/stdout | head -1')
    assert done.stdout.startswith("Frame,"), done
    log = shell('(echo before >&2; "$S" compare r.y4m d.y4m -m mse -o /dev/stderr) 2> log; cat log')
    assert log.stdout.startswith("before\nmetric"), log


@test
def fifos_and_process_substitution_are_written_to():
    done = shell('"$S" compare r.y4m d.y4m -m mse --format json -o >(cat > copy.json);'
                 " sleep 0.2; cat copy.json")
    assert len(json.loads(done.stdout)["frames"]) == 8, done
    done = shell('mkfifo pipe; cat pipe > from_pipe & "$S" compare r.y4m d.y4m -m mse -o pipe; wait;'
                 " test -p pipe; cat from_pipe")
    assert done.stdout.startswith("metric"), done


@test
def the_ending_of_the_output_chooses_its_format():
    compare("r.y4m", "d.y4m", "-m", "mse", "-o", "x.json")
    assert json.loads((FOLDER / "x.json").read_text())["metrics"]["mse-y"]["mean"] > 0
    compare("r.y4m", "d.y4m", "-m", "mse", "-o", "x.csv")
    assert (FOLDER / "x.csv").read_text().startswith("frame,")
    compare("r.y4m", "d.y4m", "-m", "mse", "--format", "table", "-o", "x.json")
    assert (FOLDER / "x.json").read_text().startswith("metric")


def feeding(arguments, frames):
    """The program with frames of r.y4m on its standard input, which stays open."""
    process = subprocess.Popen(
        [PROGRAM, "compare", "r.y4m", "-", *arguments], cwd=FOLDER, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    content = (FOLDER / "d.y4m").read_bytes()
    header = content.index(b"\n") + 1
    process.stdin.write(content[: header + frames * (len(content) - header) // 8])
    process.stdin.flush()
    return process


@test
def rows_come_when_their_frame_is_scored():
    process = feeding(["-m", "mse", "--format", "csv"], frames=3)
    lines = [process.stdout.readline().decode() for _ in range(4)]
    assert lines[0] == "frame,mse-y,mse-cb,mse-cr\n" and lines[3].startswith("2,"), lines
    process.kill()
    process.wait()
    process = feeding(["-m", "mse", "--format", "jsonl"], frames=3)
    lines = [json.loads(process.stdout.readline()) for _ in range(4)]
    assert lines[0]["settings"]["bit_depth"] == 8 and lines[0]["reference"] == "r.y4m", lines
    assert lines[3]["frame"] == 2 and lines[3]["time"] == 2 / 24, lines
    process.kill()
    process.wait()


@test
def json_lines_hold_what_the_document_does():
    document = json.loads(compare("r.y4m", "d.y4m", "-m", "psnr", "--format", "json").stdout)
    lines = [json.loads(line) for line in
             compare("r.y4m", "d.y4m", "-m", "psnr", "--format", "jsonl").stdout.splitlines()]
    assert lines[1:-1] == document["frames"]
    assert lines[-1]["summary"]["metrics"] == document["metrics"]
    compare("r.y4m", "d.y4m", "-m", "psnr", "-o", "s.jsonl")
    assert [json.loads(line) for line in (FOLDER / "s.jsonl").read_text().splitlines()] == lines


def wait_until_idle(process):
    """Until it has used no processor time for a while: it waits for input."""
    before, since = None, time.monotonic()
    while process.poll() is None and time.monotonic() - since < 0.4:
        stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        now = (stat[11], stat[12], stat[17])  # times of user and system, number of threads
        if now != before or int(stat[17]) < 3:
            before, since = now, time.monotonic()
        time.sleep(0.02)


@test
def a_signal_leaves_what_is_scored():
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        name = signal.Signals(number).name
        for form in "json", "csv", "jsonl":
            process = feeding(["-m", "mse", "--format", form, "-o", f"{name}.{form}"], frames=4)
            partial = FOLDER / f"{name}.{form}.partial"
            wait_until_idle(process)
            process.send_signal(number)
            process.wait(timeout=20)
            err = process.stderr.read()
            assert process.returncode == 128 + number, (process.returncode, err)
            assert f"interrupted by {name}".encode() in err, err
            assert not (FOLDER / f"{name}.{form}").exists()
            text = partial.read_text()
            if form == "json":
                assert len(json.loads(text)["frames"]) == 4, text
                assert json.loads(text)["error"] == f"interrupted by {name}"
            elif form == "csv":
                assert text.splitlines()[-1].startswith("3,"), text
            else:
                assert json.loads(text.splitlines()[-1])["summary"]["error"], text
    process = feeding(["-m", "mse", "--format", "json"], frames=4)
    wait_until_idle(process)
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=20)
    out = process.stdout.read()
    assert len(json.loads(out)["frames"]) == 4, out


@test
def a_signal_before_the_first_score_ends_at_once():
    process = subprocess.Popen([PROGRAM, "compare", "r.y4m", "-"], cwd=FOLDER,
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until_idle(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == -signal.SIGINT
    process.stdin.close()


# ---- several encodes ----


def pchip_slopes(x, y):
    """Fritsch and Butland's, written from the paper's formula for h and delta."""
    h = [b - a for a, b in zip(x, x[1:])]
    delta = [(b - a) / step for a, b, step in zip(y, y[1:], h)]
    inner = [0.0 if delta[k - 1] * delta[k] <= 0 else
             3 * (h[k - 1] + h[k]) / ((2 * h[k] + h[k - 1]) / delta[k - 1]
                                      + (h[k] + 2 * h[k - 1]) / delta[k])
             for k in range(1, len(delta))]

    def end(h0, h1, d0, d1):
        slope = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1)
        if math.copysign(1, slope) != math.copysign(1, d0):
            return 0.0
        if math.copysign(1, d0) != math.copysign(1, d1) and abs(slope) > abs(3 * d0):
            return 3 * d0
        return slope

    return [end(h[0], h[1], delta[0], delta[1]), *inner, end(h[-1], h[-2], delta[-1], delta[-2])]


def pchip(x, y, at):
    """The cubic Hermite interpolant in its own basis."""
    slopes = pchip_slopes(x, y)
    k = max(i for i in range(len(x) - 1) if at >= x[i])
    h = x[k + 1] - x[k]
    t = (at - x[k]) / h
    return ((1 + 2 * t) * (1 - t) ** 2 * y[k] + t * (1 - t) ** 2 * h * slopes[k]
            + t * t * (3 - 2 * t) * y[k + 1] + t * t * (t - 1) * h * slopes[k + 1])


def mean_difference(base, curve, steps=20000):
    """Of curve - base over their common interval, by the midpoint rule."""
    low, high = max(base[0][0], curve[0][0]), min(base[-1][0], curve[-1][0])
    points = [low + (high - low) * (i + 0.5) / steps for i in range(steps)]
    return sum(pchip(*zip(*curve), p) - pchip(*zip(*base), p) for p in points) / steps


def bd(base, curve):
    """BD-rate in percent and BD-quality of lists of (rate, quality), as VCEG-M33 defines them."""
    by_quality = [sorted((q, math.log10(r)) for r, q in points) for points in (base, curve)]
    by_rate = [sorted((math.log10(r), q) for r, q in points) for points in (base, curve)]
    return 100 * (10 ** mean_difference(*by_quality) - 1), mean_difference(*by_rate)


@test
def encodes_are_scored_as_pairs_are():
    names = ["e2.y4m", "e5.y4m", "e9.y4m"]
    document = json.loads(compare("r.y4m", *names, "-m", "psnr,ssim", "--format", "json").stdout)
    assert [encode["distorted"] for encode in document["encodes"]] == names
    for name, encode in zip(names, document["encodes"]):
        alone = json.loads(compare("r.y4m", name, "-m", "psnr,ssim", "--format", "json").stdout)
        assert encode["frames"] == alone["frames"] and encode["metrics"] == alone["metrics"]
        size = (FOLDER / name).stat().st_size
        assert encode["bytes"] == size
        assert abs(encode["bits_per_second"] - 8 * size * 24 / 8) < 1e-6
    for threads in "1", "5":
        again = compare("r.y4m", *names, "-m", "psnr,ssim", "--format", "json", "--threads", threads)
        assert json.loads(again.stdout) == document
    table = compare("r.y4m", *names, "-m", "psnr").stdout.splitlines()
    assert table[0].split()[:4] == ["distorted", "bytes", "kbit/s", "psnr-y"], table
    assert table[1].split()[0] == "e2.y4m"


@test
def encodes_may_differ_in_length_and_one_may_be_broken():
    y4m("short.y4m", 5, 5)
    (FOLDER / "cut.y4m").write_bytes((FOLDER / "e9.y4m").read_bytes()[:-100])
    (FOLDER / "no.y4m").write_bytes(b"nothing")
    done = compare("r.y4m", "short.y4m", "no.y4m", "cut.y4m", "e2.y4m", "-m", "mse", "--format",
                   "json", status=1)
    assert "short.y4m: has 5 frames but r.y4m has 8; scored 5 frames" in done.stderr, done.stderr
    assert "cannot read no.y4m" in done.stderr and "cut.y4m" in done.stderr, done.stderr
    frames = {e["distorted"]: len(e["frames"]) for e in json.loads(done.stdout)["encodes"]}
    assert frames == {"short.y4m": 5, "cut.y4m": 7, "e2.y4m": 8}, frames


def curve_files(name, errors, sizes):
    """Encodes whose bitrates follow from padding: y4m allows parameters in FRAME lines."""
    files = []
    for i, (error, padding) in enumerate(zip(errors, sizes)):
        content = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F24:1 C420\n".encode()
        for k in range(8):
            line = b"FRAME" + (b" X" + b"x" * (padding - 2) if padding else b"") + b"\n"
            content += line + frame(77 * i + k, k, error)
        files.append(f"{name}{i}.y4m")
        (FOLDER / files[-1]).write_bytes(content)
    return files


@test
def bd_rates_are_those_of_the_definition():
    first = curve_files("a", [14, 9, 5, 3], [0, 60, 120, 200])
    second = curve_files("b", [12, 8, 4, 2], [0, 50, 100, 180])
    document = json.loads(compare(
        "r.y4m", "--curve", "old=" + ",".join(first), "--curve", "new=" + ",".join(second), "-m",
        "psnr,ssim,mse", "--format", "json").stdout)
    encodes = {encode["distorted"]: encode for encode in document["encodes"]}
    new = document["curves"][1]
    assert new["against"] == "old" and new["interpolation"] == "PCHIP"
    for name in "psnr-y", "ssim-y", "mse-y":
        sign = -1 if name == "mse-y" else 1
        points = [[(encodes[f]["bits_per_second"], sign * encodes[f]["metrics"][name]["mean"])
                   for f in files] for files in (first, second)]
        rate, quality = bd(*points)
        found = new["metrics"][name]
        assert abs(found["bd_rate"] - rate) < 1e-5 * max(1, abs(rate)), (name, found, rate)
        assert abs(found["bd_quality"] - sign * quality) < 1e-6 * max(1, abs(quality)), (name, found)
    table = compare("r.y4m", "--curve", "old=" + ",".join(first), "--curve",
                    "new=" + ",".join(second), "-m", "psnr").stdout
    assert "against old, interpolated by PCHIP:" in table, table
    done = compare("r.y4m", "--curve", "x=a0.y4m,a1.y4m,a2.y4m", status=2)
    assert "--curve x has 3 files; a curve needs at least 4" in done.stderr


@test
def a_ladder_decodes_its_reference_once():
    if not shutil.which("ffmpeg"):
        print("  (no ffmpeg: not counted)")
        return
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", "r.y4m", "-c:v", "ffv1", "r.mkv"],
                   cwd=FOLDER, check=True)
    encodes = [f"l{i}.mkv" for i in range(6)]
    for i, name in enumerate(encodes):
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", "r.y4m", "-c:v", "mpeg4", "-qscale:v",
                        str(2 + 3 * i), name], cwd=FOLDER, check=True)
    counter = FOLDER / "count"
    counter.mkdir(exist_ok=True)
    for program in "ffmpeg", "ffprobe":
        script = counter / program
        script.write_text(f'#!/bin/sh\necho "$(basename $0) $*" >> {counter.resolve()}/calls\n'
                          f'exec {shutil.which(program)} "$@"\n')
        script.chmod(0o755)
    (counter / "calls").unlink(missing_ok=True)
    done = run("compare", "r.mkv", *encodes, "-m", "psnr", "--format", "json",
               env={**os.environ, "PATH": f"{counter.resolve()}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    calls = (counter / "calls").read_text().splitlines()
    decodes = [call for call in calls if "rawvideo" in call]
    assert sum("r.mkv" in call for call in decodes) == 1, decodes
    assert len(decodes) == 7, decodes
    assert sum("-f framecrc" in call for call in calls) == 6, calls
    document = json.loads(done.stdout)
    for name, encode in zip(encodes, document["encodes"]):
        packets = subprocess.run(
            ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=size",
             "-of", "csv=p=0", name], cwd=FOLDER, capture_output=True, text=True, check=True)
        sizes = [int(line.strip(",")) for line in packets.stdout.split()]
        assert encode["bytes"] == sum(sizes) and len(sizes) == 8
        assert abs(encode["bits_per_second"] / (8 * sum(sizes) * 24 / 8) - 1) < 0.01, encode


# ---- thresholds and worst frames ----


@test
def thresholds_decide_the_exit_status():
    compare("r.y4m", "e2.y4m", "-m", "psnr", "--fail-below", "psnr-y=30")
    done = compare("r.y4m", "e9.y4m", "-m", "psnr,mse", "--fail-below", "psnr-y.p5=60",
                   "--fail-above", "mse-y=2.5", status=3)
    assert done.stdout.startswith("metric"), done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2 and lines[0].startswith("similis: e9.y4m: p5 of psnr-y is "), lines
    assert lines[0].endswith("; it must be at least 60") and lines[1].endswith("at most 2.5"), lines
    done = compare("r.y4m", "e2.y4m", "e9.y4m", "-m", "psnr", "--fail-below", "psnr-y=40", status=3)
    assert "e9.y4m" in done.stderr and "e2.y4m" not in done.stderr, done.stderr
    done = compare("r.y4m", "d.y4m", "-m", "psnr", "--fail-below", "ssim=0.9", status=2)
    assert "ssim is not scored" in done.stderr, done.stderr
    done = compare("r.y4m", "d.y4m", "-m", "psnr", "--fail-below", "psnr.p6=1", status=2)
    assert 'there is no statistic "p6"; did you mean p' in done.stderr, done.stderr
    compare("r.y4m", "d.y4m", "-m", "psnr", "--fail-below", "psnr", status=2)
    compare("r.y4m", "r.y4m", "-m", "psnr", "--fail-below", "psnr-y=99")  # infinite


@test
def the_worst_frames_are_named_with_their_times():
    y4m("long_r.y4m", 60, tags="F24:1")
    y4m("long_d.y4m", 60, 1, tags="F24:1", errors={7: 30, 8: 29, 40: 20})
    table = compare("long_r.y4m", "long_d.y4m", "-m", "ssim,mse", "--worst", "2").stdout
    rows = [line for line in table.splitlines() if line.startswith(("ssim-y", "mse-y"))]
    assert rows[0].endswith("7 (0:00.292)"), table
    document = json.loads(compare("long_r.y4m", "long_d.y4m", "-m", "ssim,mse", "--worst", "2",
                                  "--format", "json").stdout)
    for name in "ssim-y", "mse-y":
        worst = [entry for entry in document["worst"] if name in entry]
        assert [entry["frame"] for entry in worst] == [7, 40], worst
        assert worst[0]["time"] == 7 / 24
    assert "harmonic_mean" not in document["metrics"]["mse-y"]
    for row, percentile in zip(rows, ("p5", "p95")):
        name, cells = row.split()[0], row.split()
        assert cells[3] == f"{document['metrics'][name][percentile]:.6f}", row


@test
def a_map_shows_the_worst_frame_or_the_one_asked_for():
    compare("r.y4m", "e9.y4m", "-m", "ssim", "--map", "ssim@3=three.png")
    worst = compare("r.y4m", "e9.y4m", "-m", "mse", "--map", "ssim@worst=worst.png", "--map",
                    "lncc=lncc.png")
    for name in "three.png", "worst.png", "lncc.png":
        assert (FOLDER / name).read_bytes().startswith(b"\x89PNG"), worst
    done = compare("r.y4m", "e9.y4m", "-m", "ssim", "--map", "ssim@80=x.png", status=1)
    assert "frame 80 of e9.y4m is not scored" in done.stderr, done.stderr


# ---- raw video ----


@test
def interleaved_chroma_is_put_into_planes():
    chance = random.Random(3)
    size, quarter = WIDTH * HEIGHT, WIDTH * HEIGHT // 4
    luma, cb, cr = (bytes(chance.randrange(256) for _ in range(n)) for n in (size, quarter, quarter))

    def pairs(first, second):
        return bytes(sample for both in zip(first, second) for sample in both)

    def words(samples, shift):
        return b"".join((4 * sample << shift).to_bytes(2, "little") for sample in samples)

    files = {"yuv420p": luma + cb + cr, "nv12": luma + pairs(cb, cr), "nv21": luma + pairs(cr, cb),
             "yuv420p10le": words(luma + cb + cr, 0),
             "p010le": words(luma + pairs(cb, cr), 6)}
    for name, content in files.items():
        (FOLDER / f"{name}.yuv").write_bytes(content)
    (FOLDER / "raw.y4m").write_bytes(
        f"YUV4MPEG2 W{WIDTH} H{HEIGHT} C420\nFRAME\n".encode() + files["yuv420p"])
    (FOLDER / "raw10.y4m").write_bytes(
        f"YUV4MPEG2 W{WIDTH} H{HEIGHT} C420p10\nFRAME\n".encode() + files["yuv420p10le"])
    for name in files:
        reference = "raw10.y4m" if "10" in name else "raw.y4m"
        done = compare(reference, f"{name}.yuv", "--size", f"{WIDTH}x{HEIGHT}", "--pix-fmt", name,
                       "-m", "mse", "--format", "csv")
        assert done.stdout == "frame,mse-y,mse-cb,mse-cr\n0,0,0,0\n", (name, done.stdout)


# ---- words ----


@test
def rates_and_ranges_that_differ_are_told():
    y4m("half.y4m", 4, 2, tags="F12:1")
    done = compare("r.y4m", "half.y4m", "-m", "mse", "--format", "json")
    assert "half.y4m: has 12 frames per second but r.y4m has 24" in done.stderr, done.stderr
    assert json.loads(done.stdout)["settings"]["frames_per_second"] == {
        "reference": 24, "distorted": 12}
    y4m("full.y4m", 8, 2, tags="F24:1 XCOLORRANGE=FULL")
    done = compare("r.y4m", "full.y4m", "-m", "mse", status=1)
    assert done.stderr == ("similis: r.y4m has limited range (no tag) but full.y4m has full range; "
                           "give --range match to convert, or --range as-stored if a tag is wrong\n"
                           ), done.stderr


@test
def a_selection_beyond_the_end_is_told():
    done = compare("r.y4m", "d.y4m", "-m", "mse", "--frames", "4:60")
    assert "r.y4m: has 8 frames but --frames ends at 60; scored 4 frames" in done.stderr, done.stderr
    done = compare("r.y4m", "d.y4m", "-m", "mse", "--frames", "60:", status=1)
    assert done.stderr == "similis: r.y4m has 8 frames; --frames begins at frame 60\n", done.stderr


@test
def names_of_metrics_are_met_halfway():
    for text, words in (("SSIM", "did you mean ssim?"), ("ms_ssim", "did you mean ms-ssim?"),
                        ("butteraugli", "compare has no butteraugli")):
        done = compare("r.y4m", "d.y4m", "-m", text, status=2)
        assert words in done.stderr, done.stderr
    assert compare("r.y4m", "d.y4m", "-m", "mse,mae").stdout.count("mae-y") == 1


@test
def names_of_files_cannot_reach_the_terminal_raw():
    for side in "side_r", "side_d":
        (FOLDER / side).mkdir(exist_ok=True)
        for name in "a\nb\x1b[31m.y4m", "c.y4m":
            shutil.copy(FOLDER / "d.y4m", FOLDER / side / name)
    done = compare("side_r", "side_d", "-m", "mse")
    assert "a\\nb\\x1b[31m.y4m" in done.stdout and "\x1b" not in done.stdout, done.stdout


@test
def rows_of_a_directory_are_pooled_once_each():
    for side in "pool_r", "pool_d":
        (FOLDER / side).mkdir(exist_ok=True)
    for side, error in ("pool_r", 0), ("pool_d", 3):
        y4m(f"{side}/a.y4m", 2, error)
        y4m(f"{side}/b.y4m", 7, error * 3)
    document = json.loads(compare("pool_r", "pool_d", "-m", "mse", "--format", "json").stdout)
    means = [pair["metrics"]["mse-y"]["mean"] for pair in document["pairs"]]
    by_pair = document["metrics_by_pair"]["mse-y"]
    assert abs(by_pair["mean"] - sum(means) / 2) < 1e-12 and by_pair["max"] == max(means)
    frames = [f["mse-y"] for pair in document["pairs"] for f in pair["frames"]]
    assert abs(document["metrics"]["mse-y"]["mean"] - sum(frames) / 9) < 1e-12
    table = compare("pool_r", "pool_d", "-m", "mse").stdout.splitlines()
    assert next(line for line in table if line.startswith("mean")).split()[1] == (
        f"{by_pair['mean']:.6f}"), table


# ---- help ----


@test
def each_section_of_the_help_fits_a_terminal():
    for command in "compare", "report", "merge":
        lines = run(command, "--help").stdout.splitlines()
        assert max(map(len, lines)) <= 80, (command, max(lines, key=len))
        sections, names = [0], set()
        for line in lines:
            if line and not line.startswith(" ") and line.endswith(":"):
                sections.append(0)
                names.add(line)
            sections[-1] += 1
        assert max(sections) <= 50, (command, sections)
    assert "Exit status:" in names, names


@test
def every_option_completes_in_every_shell():
    options = {word.rstrip(",") for line in run("compare", "--help").stdout.splitlines()
               for word in line.split() if line.startswith("  -") and word.startswith("--")}
    assert {"--report", "--curve", "--pairs", "--fail-below"} <= options, options
    for shell_name in "bash", "zsh", "fish":
        script = run("completion", shell_name).stdout
        missing = [o for o in options if (f"-l {o[2:]}" if shell_name == "fish" else o) not in script]
        assert not missing, (shell_name, missing)
        (FOLDER / f"completion.{shell_name}").write_text(script)
        if shutil.which(shell_name):
            done = subprocess.run([shell_name, "-n", FOLDER / f"completion.{shell_name}"],
                                  capture_output=True, text=True)
            assert done.returncode == 0, done
    for words, expected in (("similis compare --rep", "--report"), ("similis rep", "report")):
        script = (f'source completion.bash; COMP_LINE="{words}"; COMP_WORDS=({words});'
                  ' COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_POINT=${#COMP_LINE};'
                  " f=$(complete -p similis | sed 's/.*-F \\([^ ]*\\).*/\\1/'); $f similis;"
                  ' echo "${COMPREPLY[@]}"')
        done = shell(script)
        assert expected in done.stdout.split(), (words, done)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    y4m("r.y4m", 8)
    y4m("d.y4m", 8, 4)
    for error in 2, 5, 9:
        y4m(f"e{error}.y4m", 8, error)
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
