# SPDX-License-Identifier: Apache-2.0
"""The rows of bench/results/*.json, and how they are shown.

A file is {"device", "driver", "cuda", "commit", "date", "versions", …, "rows"}, whose versions name the
"binding" where torch's tensors come directly or by ctypes, and has a "subject"
where a program of its own measured one operation, and a "note" where readers have to know more. Each row is one measurement, and smaller is better
in all of them: what was measured ("case", "threads", "unit", "value"), the same of another library in
the same run ("peer", "peer_value"), what the hardware allows ("floor") and what is aimed at
("target", and "target_ratio" where that is a multiple of the peer's speed); null where there is none.
"""

import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / "results"
NONE = "–"


def row(case, threads, unit, value, peer=None, peer_value=None, target_ratio=None, floor=None,
        target=None):
    if target_ratio:
        target = peer_value / target_ratio
    return {"case": case, "threads": threads, "unit": unit, "value": value, "peer": peer,
            "peer_value": peer_value, "floor": floor, "target": target,
            "target_ratio": target_ratio}


def newest():
    """The newest file of each device and subject, in the order of their names."""
    results = {}
    for path in sorted(FOLDER.glob("*.json")):
        result = json.loads(path.read_text())
        key = result["device"], result.get("subject", "")
        if result["date"] >= results.get(key, result)["date"]:
            results[key] = result
    return [results[key] for key in sorted(results)]


def is_compared(row):
    """True if the row's value has a peer, a target or a floor to be compared with."""
    return row["peer"] is not None or row["target"] is not None or row["floor"] is not None


def figure(value, unit):
    if value is None:
        return NONE
    return f"{value:.0f} {unit}" if value >= 1000 else f"{value:#.3g}".rstrip(".") + f" {unit}"


def _target(row):
    if row["target"] is None:
        return NONE
    if row.get("target_ratio"):
        return f"≥ {row['target_ratio']:g}×"
    return "≤ " + figure(row["target"], row["unit"])


def _met(row, in_a_graph):
    """Tells if the call as it is made meets the row's target, or only the work alone does."""
    if row["target"] is None:
        return NONE
    if row["value"] <= row["target"]:
        return "yes"
    return "no" if in_a_graph is None or in_a_graph > row["target"] else "in a graph"


def _in_a_graph(row, values):
    """The work alone of a row's call, or None if it is not known; values: {case: value}."""
    operation, kind, *rest = row["case"].split("/") + [""]
    return values.get("/".join((operation, f"{kind}_in_a_graph", *rest[:-1])))


def _values(result_rows):
    return {each["case"]: each["value"] for each in result_rows if each["unit"] == "ms"}


def compared_table(rows, all_rows=()):
    """Each row beside its peer, floor and target. "reached" is the floor's share of the value,
    "alone" the work in a captured graph, which is among all_rows."""
    lines = [("case", "threads", "similis", "alone", "peer", "its figure", "ratio", "floor",
              "reached", "target", "met")]
    values = _values(all_rows)
    for each in rows:
        alone = _in_a_graph(each, values)
        has_ratio = each["peer_value"] and each["value"]
        lines.append((
            each["case"], str(each.get("threads") or NONE), figure(each["value"], each["unit"]),
            figure(alone, "ms"), each["peer"] or NONE, figure(each["peer_value"], each["unit"]),
            f"{each['peer_value'] / each['value']:.1f}×" if has_ratio else NONE,
            figure(each["floor"], each["unit"]),
            f"{each['floor'] / each['value']:.0%}" if each["floor"] else NONE, _target(each),
            _met(each, alone)))
    return _markdown(lines)


def alone_table(rows):
    """The rows' values, a line for each case and a column for each number of threads."""
    counts = sorted({each.get("threads") or 0 for each in rows})
    headings = {0: "similis", 1: "1 thread"}
    lines = [("case", *(headings.get(count, f"{count} threads") for count in counts))]
    for case in dict.fromkeys(each["case"] for each in rows):
        figures = {each.get("threads") or 0: figure(each["value"], each["unit"])
                   for each in rows if each["case"] == case}
        lines.append((case, *(figures.get(count, NONE) for count in counts)))
    return _markdown(lines)


def _plain(case):
    """The same case in f32 and without options; its parts are measure, result, shape, dtype, options."""
    measure, result, shape, dtype, *_ = case.split("/") + [""] * 4
    return "/".join((measure, result, shape, "f32" if dtype in ("f16", "bf16") else dtype))


def options_table(results):
    """Each row with an option, or of half precision, beside the same without; "" if there is none."""
    lines = [("case", "on", "threads", "similis", "alone", "plain", "cost", "peer", "its figure",
              "target", "met")]
    for result in results:
        times = [each for each in result["rows"] if each["unit"] == "ms"]
        values = _values(times)
        plain = {(each["case"], each["threads"]): each["value"] for each in times}
        for each in times:
            of_plain = plain.get((_plain(each["case"]), each["threads"]))
            if of_plain is None or _plain(each["case"]) == each["case"]:
                continue
            alone = _in_a_graph(each, values)
            lines.append((each["case"], result["device"], str(each["threads"] or NONE),
                          figure(each["value"], "ms"), figure(alone, "ms"),
                          figure(of_plain, "ms"),
                          f"{each['value'] / of_plain:.1f}", each["peer"] or NONE,
                          figure(each["peer_value"], "ms"), _target(each),
                          _met(each, alone)))
    return _markdown(lines) if len(lines) > 1 else ""


def _markdown(lines):
    """A table, aligned; a column that would be empty is left out."""
    columns = [column for column in zip(*lines) if any(cell != NONE for cell in column[1:])]
    widths = [max(map(len, column)) for column in columns]
    is_text = [column[0] in ("case", "on", "peer", "met") for column in columns]
    rule = ["-" * width if text else "-" * (width - 1) + ":" for width, text in zip(widths, is_text)]

    def line(cells):
        padded = (cell.ljust(width) if text else cell.rjust(width)
                  for cell, width, text in zip(cells, widths, is_text))
        return "| " + " | ".join(padded) + " |"

    heading, *body = zip(*columns)
    return "\n".join([line(heading), line(rule)] + [line(cells) for cells in body])
