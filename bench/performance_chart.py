# SPDX-License-Identifier: Apache-2.0
"""The chart of docs/performance.md, drawn from the rows of bench/results: how many times longer than
similis each peer takes. performance_page.py writes it."""

import math
from xml.sax.saxutils import escape

import rows

# (what a reader calls it, case, number of threads)
CASES = (
    ("SSIM, value and gradient", "ssim/value_and_gradient/5x5x1080x1920/f32", None),
    ("MS-SSIM, value and gradient", "ms_ssim/value_and_gradient/5x5x1080x1920/f32", None),
    ("SSIMULACRA 2 of 4K frames", "ssimulacra2/host/3840x2160/u8", None),
    ("LNCC, value and gradient", "lncc/value_and_gradient/1x1x384x320x448/f32", None),
    ("Mutual information, value and gradient",
     "mutual_information/value_and_gradient/1x1x384x320x448/f32", None),
    ("sample, gradient to the displacement",
     "sample/value_and_gradient_displacement/1x1x384x320x448/f32", None),
    ("compose, value and gradient", "compose/value_and_gradient/384x320x448/f32", None),
    ("libvmaf's SSIM, one thread", "integer_ssim/value/1080x1920/u8", 1),
    ("SSIM, value and gradient, one thread", "ssim/value_and_gradient/1x3x1080x1920/f32", 1),
    ("LNCC, value and gradient, one thread", "lncc/value_and_gradient/1x1x96x96x96/f32", 1),
)
WIDTH, LEFT, RIGHT = 900, 170, 130  # of the picture; beside the bars, for names and figures
BAR, GAP, HEADING, TOP = 16, 4, 22, 64
INK, FAINT, OURS, PEERS, RULE = "#1f2328", "#57606a", "#0969da", "#afb8c1", "#d8dee4"
FONT = "system-ui,'DejaVu Sans',sans-serif"


def _text(x, y, text, size=12, anchor="start", fill=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'font-weight="{weight}" fill="{fill}" font-family="{FONT}">{escape(text)}</text>')


def _bar(y, width, fill):
    return f'<rect x="{LEFT}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" fill="{fill}"/>'


def groups(results):
    """[(heading, [(who, milliseconds)], similis first)], of the newest results that have a peer."""
    found = []
    for name, case, threads in CASES:
        device, chosen = next((result["device"], [each for each in result["rows"] if
                                                  (each["case"], each["threads"]) == (case, threads)
                                                  and each["peer"]])
                              for result in reversed(results)
                              if any((each["case"], each["threads"]) == (case, threads) and
                                     each["peer"] for each in result["rows"]))
        peers = {}
        for each in chosen:
            peers |= each.get("peers") or {each["peer"]: each["peer_value"]}
        shape, dtype = case.split("/")[2:4]
        in_order = sorted(peers.items(), key=lambda peer: peer[1])
        found.append((f"{name}: {shape.replace('x', '×')} {dtype}, {device}",
                      [("similis", chosen[0]["value"]), *in_order]))
    return found


def chart(results):
    """The picture as SVG. Bars end on a logarithmic scale, since ratios reach from 1 to 1000."""
    drawn = groups(results)
    longest = max(value / bars[0][1] for _, bars in drawn for _, value in bars)
    decades = math.log10(longest)
    span = WIDTH - LEFT - RIGHT
    base = 8  # the length of a bar of 1

    def length(ratio):
        return base + (span - base) * math.log10(max(1.0, ratio)) / decades

    height = TOP + sum(HEADING + len(bars) * (BAR + GAP) + 10 for _, bars in drawn) + 10
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             f'width="{WIDTH}" height="{height}" role="img" '
             'aria-label="Time of other libraries, in multiples of the time of similis">',
             f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
             _text(16, 24, "Time in multiples of the time of similis", 15, weight="bold"),
             _text(16, 42, "Shorter is faster. The scale is logarithmic. Figures are milliseconds.",
                   fill=FAINT)]
    for ratio in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        if ratio > longest:
            break
        x = LEFT + length(ratio)
        parts += [f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{height - 8}" stroke="{RULE}"/>',
                  _text(x, TOP - 8, f"{ratio}×", 11, "middle", FAINT)]
    y = TOP
    for heading, bars in drawn:
        parts.append(_text(16, y + 15, heading, 12.5, weight="bold"))
        y += HEADING
        ours = bars[0][1]
        for who, value in bars:
            ratio = value / ours
            is_ours = who == "similis"
            parts += [_text(LEFT - 8, y + 12.5, who, anchor="end", fill=INK if is_ours else FAINT),
                      _bar(y, length(ratio), OURS if is_ours else PEERS),
                      _text(LEFT + length(ratio) + 6, y + 12.5,
                            rows.figure(value, "ms") + ("" if is_ours else f", {ratio:.1f}×"),
                            11.5, fill=INK if is_ours else FAINT)]
            y += BAR + GAP
        y += 10
    return "\n".join(parts + ["</svg>"]) + "\n"
