# SPDX-License-Identifier: Apache-2.0
"""Rows of a GPU's benchmark: each is printed as it is measured, with peers, floor and target, and the
file is written anew, so that a run that is cut short leaves what it has."""

import datetime
import json
import subprocess
import sys

import torch

import rows
import torch_step
from gpu_time import captured, side_by_side


class Report:
    def __init__(self, output, commit, versions, subject=None):
        driver = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=True).stdout.split()[0]
        date = datetime.date.today().isoformat()
        self.content = {"device": torch.cuda.get_device_name(), "driver": driver,
                        "cuda": torch.version.cuda, "commit": commit, "date": date,
                        "versions": {**versions, "torch": torch.__version__}, "rows": []}
        package = sys.modules.get("similis._torch")
        if package:  # calls by ctypes take three times as long
            self.content["versions"]["binding"] = package.BINDING
        if subject:
            self.content["subject"] = subject
        name = "-".join([self.content["device"], date] + ([subject] if subject else []))
        self.output = output or rows.FOLDER / f"{name.replace(' ', '-').lower()}.json"
        self.output.parent.mkdir(exist_ok=True)

    def note(self, sentence):
        """Adds a note for readers of the rows."""
        self.content["note"] = sentence
        print(sentence)

    def add_ways(self, case, calls, pairs, target=None, of_torch=None, alone=None,
                 without_autograd=None):
        """Adds rows of a call as it is made, of the work alone, "_in_a_graph", and of the same
        without autograd if there is such a call, all measured in turn.

        calls: {who: call}, of which similis, or else `alone`, is captured. of_torch: how many times
        faster than torch is aimed at; torch is then captured too.
        """
        graphs = {"similis": captured(alone or calls["similis"], pairs[0])}
        if of_torch:
            graphs["torch"] = captured(calls["torch"], pairs[0])
        contenders = {(who, ""): call for who, call in calls.items()}
        contenders |= {(who, "_in_a_graph"): call for who, call in graphs.items()}
        if without_autograd:
            contenders["similis", "_without_autograd"] = without_autograd
        times = side_by_side(contenders, pairs)
        if of_torch:
            target = times["torch", ""] / of_torch
        operation, kind, rest = case.split("/", 2)
        for way in "", "_in_a_graph", "_without_autograd":
            if ("similis", way) not in times:
                continue
            of = "" if way == "_without_autograd" else way  # torch has one way with autograd
            others = {who: time for (who, by), time in times.items()
                      if by == of and who != "similis"}
            self.add(f"{operation}/{kind}{way}/{rest}", "ms", times["similis", way], others,
                     target=None if way else target)

    def add_empty_function(self, shape):
        """A row of what eager autograd takes on this host for a function that computes nothing."""
        pair = [torch.rand(shape, device="cuda") for _ in range(2)]
        call = torch_step.step(torch_step.Empty.apply, None, (True, False))
        self.add(f"empty_function/value_and_gradient/{'x'.join(map(str, shape))}/f32", "ms",
                 side_by_side({"": call}, [pair])[""])

    def add(self, case, unit, value, measured=None, floor=None, target=None):
        """measured: {peer: its figure}."""
        measured = measured or {}
        peer, peer_value = min(measured.items(), key=lambda item: item[1], default=(None, None))
        row = rows.row(case, None, unit, value, peer, peer_value, floor=floor, target=target)
        row["peers"] = measured
        self.content["rows"].append(row)
        self.output.write_text(json.dumps(self.content, indent=1, ensure_ascii=False) + "\n")
        ratio = f", {peer_value / value:.2f}x" if peer_value else ""
        share = f", floor {floor} ({floor / value:.0%})" if floor else ""
        aim = f", target {target}" if target else ""
        others = "".join(f"; {name} {each:.4f}" for name, each in measured.items())
        print(f"{case}: {value:.4f} {unit}{ratio}{share}{aim}{others}", flush=True)
