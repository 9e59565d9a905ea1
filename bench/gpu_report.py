# SPDX-License-Identifier: Apache-2.0
"""Rows of a GPU's benchmark: each is printed as it is measured, with peers, floor and target, and the
file is written anew, so that a run that is cut short leaves what it has."""

import datetime
import json
import subprocess

import torch

import rows


class Report:
    def __init__(self, output, commit, versions, subject=None):
        driver = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=True).stdout.split()[0]
        date = datetime.date.today().isoformat()
        self.content = {"device": torch.cuda.get_device_name(), "driver": driver,
                        "cuda": torch.version.cuda, "commit": commit, "date": date,
                        "versions": {**versions, "torch": torch.__version__}, "rows": []}
        if subject:
            self.content["subject"] = subject
        name = "-".join([self.content["device"], date] + ([subject] if subject else []))
        self.output = output or rows.FOLDER / f"{name.replace(' ', '-').lower()}.json"
        self.output.parent.mkdir(exist_ok=True)

    def note(self, sentence):
        """What readers of the rows have to know."""
        self.content["note"] = sentence
        print(sentence)

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
