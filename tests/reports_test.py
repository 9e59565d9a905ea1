#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of `similis compare --report`, `similis report` and `similis register`: what stands in
them, and, where there is Chromium, what they show and do, without a request, by keyboard, in both
themes, on a phone.

    reports_test.py PROGRAM SCRATCH_FOLDER

The folder keeps a screenshot of each page, for people to look at.
"""

import base64
import hashlib
import json
import math
import pathlib
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys

import browser
import png
import report_inputs
from report_inputs import LONG_FRAMES, values_of

PROGRAM, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
TESTS = []
MOST_BYTES, MOST_MS = 5_000_000, 2000
BROWSER = None


def test(function):
    TESTS.append(function)
    return function


def in_browser(function):
    def run():
        if BROWSER:
            function(BROWSER)
    run.__name__ = function.__name__
    TESTS.append(run)
    return function


def similis(*arguments, status=0):
    done = subprocess.run([PROGRAM, *arguments], cwd=FOLDER, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def data_of(name):
    page = (FOLDER / name).read_text()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])["sections"]


def make_pages():
    similis("compare", "r.png", "d.png", "-m", "psnr,ssim", "--report", "picture.html")
    similis("compare", "r.y4m", "e3.y4m", "--report", "clip.html", "-o", "clip.json")
    similis("compare", "r.y4m", "-m", "psnr,ssim", "--curve", "a=e2.y4m,e3.y4m,e5.y4m,e8.y4m",
            "--report", "ladder.html", "-o", "ladder.json")
    similis("compare", "left", "right", "-m", "psnr,ssim,mse", "--report", "directory.html", "-o", "directory.json")
    similis("compare", "r.nii", "d.nii", "-m", "ssim,mse", "--report", "volume.html")
    similis(*REGISTER)
    report_inputs.write_long(FOLDER / "long.json")
    similis("report", "long.json", "-o", "long.html")


PAGES = "picture", "clip", "ladder", "directory", "volume", "long", "registration_report"
REGISTER = ("register", "fixed.nii", "moving.nii", "-o", "registration_", "--levels", "2x1", "--iterations", "14x8",
            "--no-compress")


# ---- what stands in the pages ----


@test
def our_own_script_is_short():
    for name in PAGES:
        script = (FOLDER / f"{name}.html").read_text().rsplit("<script>", 1)[1].split("</script>")[0]
        assert name == "registration_report" or script.count("\n") < 300, (name, script.count("\n"))
        assert ("function registrationOf(" in script) == (name == "registration_report"), name


@test
def pages_are_small_and_whole():
    for name in PAGES:
        text = (FOLDER / f"{name}.html").read_text()
        assert len(text.encode()) <= MOST_BYTES, (name, len(text))
        assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>"), name
        assert "{{" not in text.replace("{{}}", "").split("<script>")[0], name
        assert "default-src 'none'" in text and "Permission is hereby granted" in text, name
        assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!data:)", text.split("<script type")[0]), name


@test
def a_page_names_its_files_and_its_command():
    section, = data_of("picture.html")
    for file in section["files"]:
        content = (FOLDER / file["path"]).read_bytes()
        assert file["bytes"] == len(content) and file["sha256"] == hashlib.sha256(content).hexdigest(), file
    assert section["command"] == "similis compare r.png d.png -m psnr,ssim --report picture.html", section["command"]
    assert section["document"]["settings"]["metrics"]["ssim"]["window_size"] == 11, section["document"]["settings"]


@test
def pictures_are_carried_without_loss_and_maps_with_their_histogram():
    section, = data_of("picture.html")
    images = section["images"]
    assert images["shrunk"] == 1 and (images["width"], images["height"]) == (240, 160), images["shrunk"]
    for side in "reference", "distorted":
        (FOLDER / "back.png").write_bytes(base64.b64decode(images[side].split(",")[1]))
        mse = json.loads(similis("compare", f"{side[0]}.png", "back.png", "-m", "mse", "--format", "json").stdout)
        assert mse["metrics"]["mse"]["mean"] == 0, (side, mse)
    (map_,) = images["maps"]
    shares = map_["histogram"]["shares"]
    assert map_["name"] == "ssim" and abs(sum(shares) - 1) < 1e-9, map_["histogram"]
    assert 0.3 < shares[0] < 0.6, shares  # the left half is equal


@test
def a_sequence_has_its_worst_pictures_and_its_sum():
    for i in range(3):
        for side in "r", "d":
            shutil.copy(FOLDER / f"{side}.png", FOLDER / f"seq_{side}{i}.png")
    shutil.copy(FOLDER / "r.png", FOLDER / "seq_d0.png")
    similis("compare", "seq_r%d.png", "seq_d%d.png", "-m", "ssim,mse", "--report", "sequence.html")
    section, = data_of("sequence.html")
    assert [(shown["name"], shown["frame"]) for shown in section["worst"]] == [("ssim", 1), ("mse", 1)]
    assert all(shown["map"].startswith("data:image/png") for shown in section["worst"])
    content = b"".join((FOLDER / f"seq_d{i}.png").read_bytes() for i in range(3))
    file = section["files"][1]
    assert file["path"] == "seq_d%d.png (3 files, one after the other)", file
    assert file["sha256"] == hashlib.sha256(content).hexdigest() and file["bytes"] == len(content), file


@test
def large_pictures_are_shrunk_and_the_page_says_so():
    noise = random.Random(1).randbytes(1800 * 1200 * 3)
    (FOLDER / "noise.png").write_bytes(png.encode(noise, 1800, 3))
    similis("compare", "noise.png", "noise.png", "-m", "psnr", "--report", "noise.html")
    section, = data_of("noise.html")
    assert (FOLDER / "noise.html").stat().st_size <= MOST_BYTES
    assert section["images"]["shrunk"] > 1, section["images"]["shrunk"]
    packed = base64.b64decode(section["images"]["reference"].split(",")[1])
    assert struct.unpack(">2I", packed[16:24])[0] == -(-1800 // section["images"]["shrunk"])


@test
def curves_have_the_frames_scores():
    section, = data_of("clip.html")
    series, = section["series"]
    scores = json.loads((FOLDER / "clip.json").read_text())
    assert series["bits"] == 32 and series["count"] == 30 and (series["first"], series["step"]) == (0, 1), series
    assert abs(series["seconds"] - 1 / 24) < 1e-12, series["seconds"]
    for name in scores["metrics"]:
        for got, row in zip(values_of(series, name), scores["frames"], strict=True):
            want = row[name]
            assert (math.isnan(got) if want is None else abs(got - want) <= 1e-6 * abs(want)), (name, row)
    assert "frames" not in section["document"]


@test
def a_long_clips_curves_are_exact_to_their_step():
    section, = data_of("long.html")
    series, = section["series"]
    rows = json.loads((FOLDER / "long.json").read_text())["frames"]
    assert series["bits"] == 16 and series["per"] == 1 and series["count"] == LONG_FRAMES and "1/65534" in series["note"]
    for name in "psnr-y", "ms-ssim":
        scores = [row[name] for row in rows]
        step = (max(scores) - min(scores)) / 65534
        assert all(abs(a - b) <= 0.51 * step for a, b in zip(values_of(series, name), scores, strict=True)), name


@test
def worst_frames_are_shown():
    section, = data_of("clip.html")
    shown = {entry["name"]: entry for entry in section["worst"]}
    worst = json.loads((FOLDER / "clip.json").read_text())["worst"]
    assert shown["ssim-y"]["frame"] == 17 == next(w["frame"] for w in worst if "ssim-y" in w), worst
    assert all(shown["ssim-y"][key].startswith("data:image/png") for key in ("reference", "distorted", "map"))
    assert shown["ssim-y"]["map_name"] == "ssim" and "map" not in shown["psnr-y"], shown.keys()


@test
def a_registration_shows_slices_that_agree():
    section, = data_of("registration_report.html")
    assert section["document"] == json.loads((FOLDER / "registration_report.json").read_text())
    slices = section["registration"]["slices"]
    assert [(s["across"], s["width"], s["height"]) for s in slices] == [("z", 30, 28), ("y", 30, 26), ("x", 28, 26)]
    for shown in slices:
        for name in "fixed", "before", "warped", "edges", "grid", "jacobian":
            content = base64.b64decode(shown[name].split(",")[1])
            (FOLDER / f"{name}.png").write_bytes(content)
            size, own = struct.unpack(">2I", content[16:24]), (shown["width"], shown["height"])
            zoom = size[0] // own[0]  # the lines of the grid are thinner than voxels
            assert size == (own[0] * zoom, own[1] * zoom) and (zoom > 1) == (name == "grid"), (name, size)

        def error(name):
            scores = json.loads(similis("compare", "fixed.png", name, "-m", "mse", "--format", "json").stdout)
            return scores["metrics"]["mse"]["mean"]
        assert error("warped.png") < 0.2 * error("before.png"), (shown["across"], error("warped.png"), error("before.png"))
    limit = section["registration"]["jacobian_limit"]
    assert 0.1 <= limit < 2 and section["registration"]["grid_step"] == 2, limit


@test
def a_registration_names_commands_that_run():
    section, = data_of("registration_report.html")
    commands = [command["text"] for command in section["commands"]]
    assert commands[0] == "similis " + " ".join(REGISTER), commands[0]
    for text in commands[1:3]:
        similis(*shlex.split(text)[1:])
    scores = json.loads(similis("compare", "registration_Warped.nii", "warped.nii.gz", "-m", "mse", "--format", "json").stdout)
    assert scores["metrics"]["mse"]["mean"] < 1e-3, scores
    assert commands[3].startswith("antsApplyTransforms -d 3 -i moving.nii -r fixed.nii -t registration_1Warp.nii -t reg"), commands[3]
    assert {file["path"] for file in section["files"]} == {"fixed.nii", "moving.nii"}
    similis(*REGISTER[:5], "--stages", "rigid", "--no-report")


@test
def results_and_pages_of_saved_results_agree():
    for name in "clip", "ladder", "directory":
        similis("report", f"{name}.json", "-o", "saved.html")
        saved, = data_of("saved.html")
        whole, = data_of(f"{name}.html")
        assert saved["document"] == whole["document"] and saved.get("series") == whole.get("series"), name
        assert "images" not in saved and "worst" not in saved, name
    similis("report", "clip.json", "ladder.json", "-o", "saved.html")
    assert len(data_of("saved.html")) == 2


@test
def json_lines_make_pages():
    similis("compare", "r.y4m", "e3.y4m", "-o", "clip.jsonl")
    similis("report", "clip.jsonl", "-o", "lines.html")
    lines, whole = data_of("lines.html")[0], data_of("clip.html")[0]
    assert lines["series"] == whole["series"] and lines["document"]["metrics"] == whole["document"]["metrics"]
    similis("compare", "left", "right", "-m", "psnr", "-o", "rows.jsonl")
    similis("report", "rows.jsonl", "-o", "rows.html")
    assert [pair["id"] for pair in data_of("rows.html")[0]["document"]["pairs"]], "no pairs"


@test
def a_list_too_long_for_a_page_keeps_the_worst():
    report_inputs.write_many(FOLDER / "many.jsonl")
    similis("report", "many.jsonl", "-o", "many.html")
    section, = data_of("many.html")
    assert (FOLDER / "many.html").stat().st_size <= MOST_BYTES
    pairs = section["document"]["pairs"]
    assert pairs[0]["metrics"]["ssim"]["mean"] == 0 and "of 60000 pairs" in section["notes"][0], section["notes"]


@test
def what_makes_no_page_is_refused():
    for name, content, words in (
            ("no.json", "{}", "no.json holds no results of similis compare: line 1 has no"),
            ("no.txt", "hello", "no.txt holds no results of similis compare: line 1 is not a JSON object"),
            ("torn.jsonl", '{"similis": "0", "settings": {}}\n{"frame": 0, "psnr": 1}', "it has no summary"),
            ("none.json", '{"similis": "0", "metrics": 3}', "none.json has no scores")):
        (FOLDER / name).write_text(content + "\n")
        done = similis("report", name, "-o", "no.html", status=1)
        assert words in done.stderr and not (FOLDER / "no.html").exists(), (name, done.stderr)
    done = similis("report", "missing.json", "-o", "no.html", status=1)
    assert "cannot read missing.json" in done.stderr, done.stderr
    done = similis("report", "clip.json", "-o", "clip.json", status=2)
    assert "clip.json" in done.stderr, done.stderr
    done = similis("compare", "r.png", "d.png", "--report", "d.png", status=2)
    assert "--report" in done.stderr, done.stderr
    done = similis("compare", "left", "right", "-o", "x.jsonl", "--report", "x.html", status=2)
    assert "similis report" in done.stderr, done.stderr


@test
def an_incomplete_run_leaves_a_partial_page():
    content = (FOLDER / "e3.y4m").read_bytes()
    (FOLDER / "cut.y4m").write_bytes(content[:len(content) // 2])
    similis("compare", "r.y4m", "cut.y4m", "-m", "psnr", "--report", "cut.html", status=1)
    assert not (FOLDER / "cut.html").exists()
    assert "cut.y4m" in data_of("cut.html.partial")[0]["document"]["error"]


@test
def hostile_names_stay_text():
    name = "</script><img src=x onerror=alert(1)>.png".replace("/", "_")
    shutil.copy(FOLDER / "d.png", FOLDER / name)
    similis("compare", "r.png", name, "-m", "psnr", "--report", "hostile.html")
    assert "<img src=x" not in (FOLDER / "hostile.html").read_text()
    assert data_of("hostile.html")[0]["document"]["distorted"] == name
    if BROWSER:
        BROWSER.open(FOLDER / "hostile.html")
        assert BROWSER.evaluate("document.querySelectorAll('img[src=x]').length") == 0


# ---- what a browser makes of them ----


@in_browser
def pages_draw_in_both_themes_and_widths_without_a_request(page):
    backgrounds = set()
    for name in PAGES:
        for width, scheme in (1280, "light"), (1280, "dark"), (360, "light"), (360, "dark"), (2560, "light"):
            url = page.open(FOLDER / f"{name}.html", width, 900, scheme)
            assert not page.errors, (name, page.errors)
            assert page.requests == [url], (name, page.requests)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
            backgrounds.add((scheme, page.evaluate("getComputedStyle(document.body).backgroundColor")))
            if width < 2560:
                page.screenshot(FOLDER / f"{name}-{width}-{scheme}.png")
    assert len(backgrounds) == 2, backgrounds


@in_browser
def two_hours_open_within_two_seconds_and_zoom(page):
    page.call("Performance.enable", timeDomain="threadTicks")  # a busy machine counts no extra
    before = page.processor_ms()
    page.open(FOLDER / "long.html")
    processor = page.processor_ms() - before
    opened = int(page.evaluate("document.documentElement.dataset.ready"))
    size = (FOLDER / "long.html").stat().st_size
    print(f"172,800 frames: {size} bytes; {opened} ms to open, {processor:.0f} of the processor")
    assert processor <= MOST_MS, processor
    assert "frames 0 to 172799" in page.evaluate("document.body.textContent")
    shown = "Chart.getChart(document.querySelector('canvas')).data.datasets[0].data"
    least = page.evaluate(f"Math.min(...{shown}.map(point => point.y))")
    scores = [row["psnr-y"] for row in json.loads((FOLDER / "long.json").read_text())["frames"]]
    assert abs(least - min(scores)) < 1e-3, (least, min(scores))  # the one bad frame is not lost
    assert page.evaluate(f"{shown}.length") < 5000
    page.evaluate("document.querySelector('canvas').focus()")
    for _ in range(9):
        page.press("+", "Equal")
    span = page.evaluate("(s => s.max - s.min)(Chart.getChart(document.querySelector('canvas')).scales.x)")
    assert abs(span - (LONG_FRAMES - 1) / 512) < 1, span
    for point in page.evaluate(f"{shown}.slice(0, 50)"):  # exact when zoomed
        assert abs(point["y"] - scores[point["x"]]) < 1e-3, point
    page.press("0", "Digit0")
    assert "frames 0 to 172799" in page.evaluate("document.querySelector('[role=status]').textContent")
    place = page.evaluate("(r => [r.left, r.top, r.width])(document.querySelector('canvas').getBoundingClientRect())")
    for kind, share in ("mousePressed", 0.4), ("mouseMoved", 0.5), ("mouseReleased", 0.6):
        page.call("Input.dispatchMouseEvent", type=kind, x=place[0] + place[2] * share, y=place[1] + 100,
                  button="left", buttons=0 if kind == "mouseReleased" else 1, clickCount=1)
    span = page.evaluate("(s => s.max - s.min)(Chart.getChart(document.querySelector('canvas')).scales.x)")
    assert 0.15 < span / LONG_FRAMES < 0.3, span


@in_browser
def the_slider_works_by_keyboard(page):
    page.open(FOLDER / "picture.html")
    page.evaluate("document.querySelector('input[type=range]').focus()")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("edge between")
    before = page.evaluate("getComputedStyle(document.querySelector('.over')).clipPath")
    for _ in range(4):
        page.press("ArrowRight")
    after = page.evaluate("getComputedStyle(document.querySelector('.over')).clipPath")
    assert before == "inset(0px 0px 0px 50%)" and after == "inset(0px 0px 0px 52%)", (before, after)
    assert page.evaluate("document.activeElement.getAttribute('aria-valuetext')") == "52 % of the width"
    page.evaluate("document.querySelector('input[value=difference]').click()")
    assert page.evaluate("getComputedStyle(document.querySelector('.over')).mixBlendMode") == "difference"
    assert page.evaluate("getComputedStyle(document.querySelector('.compare')).filter") == "brightness(4)"


@in_browser
def a_registration_switches_between_its_views(page):
    page.open(FOLDER / "registration_report.html")
    shown = data_of("registration_report.html")[0]["registration"]["slices"]
    layer = "document.querySelector('.compare {}')"
    views = {"slider": ("fixed", "warped"), "checkerboard": ("fixed", "warped"), "edges": ("warped", "edges"),
             "warped grid": ("warped", "grid"), "log-Jacobian": ("jacobian", None)}
    for across, pictures in zip("zyx", shown):
        page.evaluate(f"document.querySelector('input[name=registration-plane][value={across}]').click()")
        assert page.evaluate(f"{layer.format('img')}.clientHeight <= {layer.format('')}.clientHeight + 1"), across
        for mode, (under, over) in views.items():
            page.evaluate(f"document.querySelector('input[value=\"{mode}\"]').click()")
            assert page.evaluate(layer.format("img") + ".src") == pictures[under], (across, mode)
            hidden = page.evaluate(layer.format("img.over") + ".hidden")
            assert hidden == (over is None), mode
            assert over is None or page.evaluate(layer.format("img.over") + ".src") == pictures[over], (across, mode)
            assert page.evaluate("document.querySelector('.scale').hidden") == (mode != "log-Jacobian"), mode
            mask = page.evaluate(f"getComputedStyle({layer.format('img.over')}).maskImage")
            assert mask.startswith("repeating-conic-gradient") == (mode == "checkerboard"), (mode, mask)
    labels = page.evaluate("document.querySelector('.scale').textContent")
    limit = data_of("registration_report.html")[0]["registration"]["jacobian_limit"]
    assert labels.startswith(f"-{limit:.3g}"[:5]) and "det 1" in labels, labels
    page.evaluate("document.querySelector('input[value=slider]').click()")
    page.evaluate("document.querySelector('input[type=range]').focus()")
    page.press("ArrowRight")
    assert page.evaluate(layer.format(".over") + ".style.clipPath") == "inset(0px 0px 0px 50.5%)"
    curves = page.evaluate("[...document.querySelectorAll('canvas')].map(c => Chart.getChart(c).data.datasets.map(d => [d.label, d.data.map(p => p.y)]))")
    stages = data_of("registration_report.html")[0]["document"]["stages"]
    losses = [level["loss"] for stage in stages for level in stage["levels"]]
    assert [losses for chart in curves for _, losses in chart] == losses
    assert [label for label, _ in curves[1]] == ["deformable, 1/2", "deformable, 1/1"], curves[1]
    text = page.evaluate("document.body.innerText")
    assert "[object" not in text and "similis register fixed.nii" in text, text


@in_browser
def tables_sort_and_are_named(page):
    page.open(FOLDER / "directory.html")
    column = "[...document.querySelectorAll('table')].find(t => t.querySelector('th button'))"
    page.evaluate(f"{column}.querySelectorAll('th button')[2].focus()")
    page.evaluate("document.activeElement.click()")
    cells = page.evaluate(f"[...{column}.querySelectorAll('tbody tr')].map(r => Number(r.cells[2].textContent))")
    assert cells == sorted(cells) and len(set(cells)) > 3, cells
    assert page.evaluate(f"{column}.querySelectorAll('thead th')[2].getAttribute('aria-sort')") == "ascending"
    for name in PAGES:
        page.open(FOLDER / f"{name}.html")
        unnamed = page.evaluate(
            "[...document.querySelectorAll('table:not(:has(caption)), canvas:not([aria-label]), img:not([alt]),"
            " input:not([aria-label])')].filter(e => !e.closest('label') || e.tagName !== 'INPUT').map(e => e.outerHTML.slice(0, 80))")
        assert not unnamed, (name, unnamed)
        assert page.evaluate("document.querySelectorAll('h1').length") == 1, name
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = {node.get("role", {}).get("value") for node in tree}
    assert {"table", "columnheader", "rowheader", "main", "heading"} <= roles, roles


@in_browser
def tables_show_names_of_files_and_whole_paths_on_hovering(page):
    (FOLDER / "a/deep").mkdir(parents=True)
    (FOLDER / "b").mkdir()
    for path in "a/deep/one.png", "a/two.png", "b/two.png":
        shutil.copy(FOLDER / "d.png", FOLDER / path)
    similis("compare", "r.png", "a/deep/one.png", "a/two.png", "b/two.png", "d.png", "-m", "psnr", "--report", "paths.html")
    page.open(FOLDER / "paths.html")
    column = "[...document.querySelectorAll('table')].find(t => t.querySelector('th button'))"
    shown = page.evaluate(f"[...{column}.querySelectorAll('tbody th')].map(c => [c.textContent, c.title])")
    assert shown == [["one.png", "a/deep/one.png"], ["a/two.png", "a/two.png"], ["b/two.png", "b/two.png"],
                     ["d.png", "d.png"]], shown
    page.evaluate(f"{column}.querySelector('th button').click()")
    sorted_ = page.evaluate(f"[...{column}.querySelectorAll('tbody th')].map(c => c.textContent)")
    assert sorted_ == ["a/two.png", "b/two.png", "d.png", "one.png"], sorted_


@in_browser
def the_ladder_draws_its_curve(page):
    page.open(FOLDER / "ladder.html")
    curve = page.evaluate("Chart.getChart([...document.querySelectorAll('canvas')].find(c => c.ariaLabel.startsWith('quality by rate')))"
                          ".data.datasets.map(d => [d.label, d.data.length])")
    assert curve == [["a", 4]], curve


@in_browser
def a_directory_draws_two_scores_that_can_be_picked(page):
    page.open(FOLDER / "directory.html")
    points = ("Chart.getChart([...document.querySelectorAll('canvas')].find(c => c.ariaLabel === 'two scores of each pair'))"
              ".data.datasets[0].data.map(p => [p.x, p.y])")
    pairs = data_of("directory.html")[0]["document"]["pairs"]
    names = list(pairs[0]["metrics"])
    means = {name: [pair["metrics"][name]["mean"] for pair in pairs] for name in names}
    assert page.evaluate(points) == [list(pair) for pair in zip(means[names[0]], means[names[1]])], names
    page.evaluate(f"(s => {{ s.value = {json.dumps(names[-1])}; s.dispatchEvent(new Event('change')); }})"
                  "(document.querySelectorAll('select')[0])")
    assert page.evaluate(points) == [list(pair) for pair in zip(means[names[-1]], means[names[1]])], names


@in_browser
def paper_has_charts_and_tables_but_no_controls(page):
    page.open(FOLDER / "clip.html", scheme="dark")
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("[...document.querySelectorAll('button, select, input, .hint')].every(e => e.offsetParent === null)")
    assert page.evaluate("[...document.querySelectorAll('canvas, table')].every(e => e.offsetParent !== null)")
    page.call("Emulation.setEmulatedMedia", media="")


def main():
    global BROWSER
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    report_inputs.make(FOLDER)
    done = subprocess.run([PROGRAM, "compare", "r.png", "d.png", "--report", "x.html"], cwd=FOLDER, capture_output=True, text=True)
    if "has no Chart.js" in done.stderr:
        print("this build has no Chart.js")
        sys.exit(77)
    make_pages()
    if browser.chromium():
        BROWSER = browser.Browser()
    else:
        print("there is no Chromium: pages are made, not opened")
    failed = 0
    for function in TESTS:
        try:
            function()
        except Exception as error:  # all tests run
            failed += 1
            print(f"FAILED {function.__name__}: {type(error).__name__}: {error}")
    if BROWSER:
        BROWSER.__exit__()
    print(f"{len(TESTS) - failed} of {len(TESTS)} passed")
    sys.exit(failed > 0)


main()
