#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis compare` as an encoding engineer calls it: results that stream, signals, devices as
outputs, thresholds, worst frames.

    encodes_test.py PROGRAM SCRATCH_FOLDER
"""

import json
import math
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import time

import png
from clips import FOLDER, HEIGHT, PROGRAM, WIDTH, compare, frame, run, run_all, shell, test, y4m

# Processes inherit that a signal is ignored, as SIGINT is behind & in a script and SIGHUP behind nohup.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


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


@test
def a_second_signal_ends_at_once():
    width, height = 4096, 2304
    plane = bytes(range(256)) * (width * height // 256)
    with open(FOLDER / "large.y4m", "wb") as file:
        file.write(f"YUV4MPEG2 W{width} H{height} F24:1 Cmono\n".encode())
        for _ in range(2):
            file.write(b"FRAME\n" + plane)
    process = subprocess.Popen([PROGRAM, "compare", "large.y4m", "large.y4m", "-m", "ms-ssim", "--threads",
                                "1", "--format", "csv"], cwd=FOLDER, stdout=subprocess.PIPE)
    while process.stdout.readline()[:2] not in (b"0,", b""):  # the second frame is at hand
        pass
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) in (-signal.SIGINT, -signal.SIGTERM), process.returncode


@test
def a_link_stays_and_its_file_is_replaced():
    (FOLDER / "target.csv").write_text("older")
    (FOLDER / "link.csv").symlink_to("target.csv")
    compare("r.y4m", "d.y4m", "-m", "mse", "-o", "link.csv")
    assert (FOLDER / "link.csv").is_symlink()
    assert (FOLDER / "target.csv").read_text().startswith("frame,"), "the link's file has the scores"


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
def thresholds_are_of_each_pair():
    for side, errors in ("limit_r", (0, 0)), ("limit_d", (2, 9)):
        (FOLDER / side).mkdir(exist_ok=True)
        for name, error in zip("ab", errors):
            y4m(f"{side}/{name}.y4m", 3, error)
    done = compare("limit_r", "limit_d", "-m", "psnr", "--fail-below", "psnr-y=40", status=3)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and "limit_d/b.y4m: mean of psnr-y is " in lines[0], lines
    assert "\na.y4m" in done.stdout and "\nb.y4m" in done.stdout, done.stdout
    # A picture among clips has a score of other names: each pair is judged by its own.
    for side, error in ("limit_r", 0), ("limit_d", 30):
        (FOLDER / side / "c.png").write_bytes(png.encode(frame(error, 0, error)[:WIDTH * HEIGHT], WIDTH, 1))
    done = compare("limit_r", "limit_d", "-m", "psnr", "--fail-below", "psnr=40", status=3)
    told = [line.split(" is ")[0] for line in done.stderr.splitlines()]
    assert told == ["similis: limit_d/b.y4m: mean of psnr-y", "similis: limit_d/c.png: mean of psnr"], told
    done = compare("limit_r", "limit_d", "-m", "psnr", "--fail-below", "psnr-y=30", status=3)
    assert done.stderr == "similis: limit_d/c.png: it has no psnr-y\n", done.stderr


@test
def thresholds_that_can_not_be_are_usage_errors():
    for option, words in (("psnr-hvs=3", "psnr-hvs is not scored; ask for it with -m"),
                          ("psnr.=3", 'there is no statistic ""'), ("psnr=nan", "METRIC[.STAT]=NUMBER"),
                          ("mse.harmonic_mean=3", "mse is an error, which has no harmonic mean")):
        done = compare("r.y4m", "d.y4m", "-m", "psnr,mse", "--fail-below", option, status=2)
        assert words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    compare("r.y4m", "d.y4m", "-m", "integer_ssim", "--fail-below", "integer_ssim.p5=0.1")
    compare("r.y4m", "d.y4m", "-m", "psnr-hvs", "--fail-below", "psnr-hvs-cb=1")


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


@test
def the_values_of_a_map_go_to_other_programs():
    names = "map.npy", "map.pfm", "map.tiff"
    options = [option for name in names for option in ("--map", f"ssim@3={name}")]
    done = compare("r.y4m", "e9.y4m", "-m", "ssim=padding=same", *options, "--format", "json")
    score = json.loads(done.stdout)["frames"][3]["ssim-y"]
    npy, pfm, tiff = ((FOLDER / name).read_bytes() for name in names)
    size = 4 * WIDTH * HEIGHT
    assert npy.startswith(b"\x93NUMPY\1\0") and f"({HEIGHT}, {WIDTH}, )".encode() in npy, npy[:128]
    values = struct.unpack(f"<{WIDTH * HEIGHT}f", npy[-size:])
    assert abs(sum(values) / len(values) - score) < 1e-6 and min(values) < score < max(values), score
    assert pfm.startswith(f"Pf\n{WIDTH} {HEIGHT}\n-1.0\n".encode())
    rows = [npy[-size:][i:i + 4 * WIDTH] for i in range(0, size, 4 * WIDTH)]
    assert pfm[-size:] == b"".join(reversed(rows)) and tiff[8:8 + size] == npy[-size:]
    both = json.loads(compare("map.pfm", "map.tiff", "-m", "mse", "--format", "json").stdout)
    assert both["frames"][0]["mse"] == 0, both  # similis reads them itself
    done = compare("r.y4m", "e9.y4m", "-m", "ssim", "--map", "ssim=map.nii.gz", status=1)
    assert "NIfTI is for maps of volumes" in done.stderr, done.stderr


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
             "p010le": words(luma + pairs(cb, cr), 6),
             "p016le": b"".join((sample << 8).to_bytes(2, "little") for sample in luma + pairs(cb, cr)),
             "yuv420p16le": b"".join((sample << 8).to_bytes(2, "little") for sample in luma + cb + cr),
             "gray": luma, "gray10le": words(luma, 0)}
    for name, content in files.items():
        (FOLDER / f"{name}.yuv").write_bytes(content)
    (FOLDER / "raw.y4m").write_bytes(
        f"YUV4MPEG2 W{WIDTH} H{HEIGHT} C420\nFRAME\n".encode() + files["yuv420p"])
    (FOLDER / "raw10.y4m").write_bytes(
        f"YUV4MPEG2 W{WIDTH} H{HEIGHT} C420p10\nFRAME\n".encode() + files["yuv420p10le"])
    for name, tag in ("yuv420p16le", "C420p16"), ("gray", "Cmono"), ("gray10le", "Cmono10"):
        (FOLDER / f"{name}.y4m").write_bytes(
            f"YUV4MPEG2 W{WIDTH} H{HEIGHT} {tag}\nFRAME\n".encode() + files[name])
    references = {"p016le": "yuv420p16le.y4m", "yuv420p16le": "yuv420p16le.y4m", "gray": "gray.y4m",
                  "gray10le": "gray10le.y4m"}
    for name in files:
        reference = references.get(name, "raw10.y4m" if "10" in name else "raw.y4m")
        done = compare(reference, f"{name}.yuv", "--size", f"{WIDTH}x{HEIGHT}", "--pix-fmt", name,
                       "-m", "mse", "--format", "csv")
        expected = "frame,mse-y\n0,0\n" if "gray" in name else "frame,mse-y,mse-cb,mse-cr\n0,0,0,0\n"
        assert done.stdout == expected, (name, done.stdout)


# ---- psnr ----


def psnr_of(mse):
    return 10 * math.log10(255 ** 2 / mse)


@test
def psnr_is_pooled_from_the_mean_error_on_request():
    y4m("uneven.y4m", 8, errors={0: 1, 1: 3, 2: 9, 3: 20, 4: 30, 5: 2, 6: 5, 7: 14})
    document = json.loads(compare("r.y4m", "uneven.y4m", "-m", "psnr=pool=mse", "-m", "psnr", "-m",
                                  "mse", "--format", "json").stdout)
    errors = [entry["mse-y"] for entry in document["frames"]]
    pooled, plain = (document["metrics"][f"{name}-y"] for name in ("psnr=pool=mse", "psnr"))
    assert abs(pooled["mean"] - psnr_of(sum(errors) / 8)) < 1e-9, pooled
    assert abs(plain["mean"] - sum(map(psnr_of, errors)) / 8) < 1e-9, plain
    assert pooled["mean"] < plain["mean"] - 1 and pooled["min"] == plain["min"], (pooled, plain)
    assert document["settings"]["metrics"]["psnr=pool=mse"]["pool"] == "mse"
    alone = compare("r.y4m", "uneven.y4m", "-m", "psnr=pool=mse").stdout.splitlines()
    assert alone[1].split()[1] == f"{pooled['mean']:.6f}", alone
    compare("r.y4m", "uneven.y4m", "-m", "psnr=pool=mse", "--fail-below",
            f"psnr-y={pooled['mean'] + 0.01}", status=3)
    if shutil.which("ffmpeg"):
        done = subprocess.run(["ffmpeg", "-i", "uneven.y4m", "-i", "r.y4m", "-lavfi", "psnr", "-f",
                               "null", "-"], cwd=FOLDER, capture_output=True, text=True)
        theirs = re.search(r"PSNR y:([0-9.]+)", done.stderr)
        assert abs(float(theirs[1]) - pooled["mean"]) < 1e-5, (theirs[1], pooled)
    done = compare("r.y4m", "d.y4m", "-m", "psnr=pool=max", status=2)
    assert 'pool is "max"; it must be mean or mse' in done.stderr, done.stderr


@test
def psnr_yuv_weighs_the_planes():
    chance = random.Random(5)
    content = (FOLDER / "r.y4m").read_bytes()
    header = content.index(b"\n") + 1
    changed = bytearray(content)
    for at in range(header, len(changed)):
        if changed[at] > 60 and chance.random() < 0.2 and b"FRAME" not in content[at - 6:at + 6]:
            changed[at] -= chance.randrange(1, 9)
    (FOLDER / "colour.y4m").write_bytes(changed)
    frames = json.loads(compare("r.y4m", "colour.y4m", "-m", "psnr,psnr-yuv", "--format",
                                "json").stdout)["frames"]
    for entry in frames:
        expected = (6 * entry["psnr-y"] + entry["psnr-cb"] + entry["psnr-cr"]) / 8
        assert abs(entry["psnr-yuv"] - expected) < 1e-9, entry
    (FOLDER / "grey.y4m").write_bytes(
        f"YUV4MPEG2 W{WIDTH} H{HEIGHT} Cmono\nFRAME\n".encode() + bytes(WIDTH * HEIGHT))
    done = compare("grey.y4m", "grey.y4m", "-m", "psnr-yuv", status=1)
    assert "psnr-yuv weighs the planes of 4:2:0 video 6:1:1; this one has chroma 400" in done.stderr
    compare("r.y4m", "colour.y4m", "-m", "psnr,psnr-yuv", "--fail-below", "psnr=20")


# ---- words ----


@test
def notes_can_be_silenced():
    y4m("short.y4m", 5, 2)
    assert "note:" in compare("r.y4m", "short.y4m", "-m", "mse").stderr
    assert compare("r.y4m", "short.y4m", "-m", "mse", "-q").stderr == ""
    assert compare("r.y4m", "short.y4m", "-m", "mse", "--quiet").stderr == ""
    assert "cannot read none.y4m" in compare("r.y4m", "none.y4m", "-q", status=1).stderr
    version = run("--version").stdout
    assert version.startswith("similis ") and run("compare", "-V").stdout == version




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
def a_simd_target_that_there_is_not_is_refused_by_every_feature():
    for feature in "motion", "vif", "psnr_hvs", "ciede", "psnr":
        done = shell(f'SIMILIS_SIMD_TARGET=none "$S" vmaf -r r.y4m -d d.y4m -n --feature {feature}'
                     " -o scores.xml")
        assert 'SIMILIS_SIMD_TARGET is "none"' in done.stderr, (feature, done)


@test
def names_of_metrics_are_met_halfway():
    for text, words in (("SSIM", "did you mean ssim?"), ("ms_ssin", "did you mean ms-ssim?"),
                        ("butteraugli", "similis has no butteraugli; libjxl's butteraugli_main"),
                        ("LPIPS", "similis has no LPIPS; the Python package lpips"),
                        ("xpsnr", "similis has no xpsnr; ffmpeg's filter xpsnr computes it"),
                        ("cvvdp", "similis has no cvvdp"), ("lpips", "similis has no lpips"),
                        ("ciede2000", "similis calls this metric ciede")):
        done = compare("r.y4m", "d.y4m", "-m", text, status=2)
        assert words in done.stderr, done.stderr
    assert compare("r.y4m", "d.y4m", "-m", "mse,mae").stdout.count("mae-y") == 1
    same = [compare("r.y4m", "d.y4m", "-m", metric).stdout.splitlines()[1:] for metric in
            ("integer-ssim,ssim", "integer_ssim,ssim")]
    assert same[0] == same[1] and same[0], same
    compare("r.y4m", "d.y4m", "-m", "ssim=window-size=7")
    twice = compare("r.y4m", "d.y4m", "-m", "integer_ssim,integer-ssim", status=2)
    assert twice.stderr == "similis: -m integer-ssim is given twice\n", twice.stderr
    assert run("help", "compare").stdout == run("compare", "--help").stdout != ""
    assert run("help").stdout == run("--help").stdout != ""
    assert run("help", "comapre").stderr == run("comapre").stderr != ""


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


run_all()
