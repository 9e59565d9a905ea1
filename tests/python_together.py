#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs several files of Python tests in one process, since each would import torch anew.

    tests/python_together.py REPORT FILE…

Prints pytest's words and what each file's tests came to. REPORT gets a test for each file, which
scripts/check.py counts as ctest would count the file alone: failed if a test of it failed, skipped if
all of them were.
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree

import pytest


class Outcomes:
    """The outcomes of pytest's tests: {file: {"passed", "failed" or "skipped": names of tests}}."""

    def __init__(self, files):
        self.of_files = {file.stem: collections.defaultdict(list) for file in files}

    def add(self, report, kind):
        self.of_files[pathlib.Path(report.nodeid.split("::")[0]).stem][kind].append(report.nodeid)

    def pytest_collectreport(self, report):  # a file that cannot be read, or is skipped as a whole
        if report.failed or report.skipped:
            self.add(report, report.outcome)

    def pytest_runtest_logreport(self, report):
        if report.failed or report.skipped or report.when == "call":
            self.add(report, report.outcome)


def outcome(names):
    """A file that did not get its turn, as after an interrupt, has failed."""
    if names["failed"] or not any(names.values()):
        return "failed"
    return "passed" if names["passed"] else "skipped"


def main():
    report, *files = (pathlib.Path(argument) for argument in sys.argv[1:])
    outcomes = Outcomes(files)
    code = pytest.main(["-q", "-rs", "-p", "no:cacheprovider", "--continue-on-collection-errors",
                        *map(str, files)], plugins=[outcomes])
    suite = xml.etree.ElementTree.Element("testsuite", name="python")
    for file, names in outcomes.of_files.items():
        kind = outcome(names)
        counts = ", ".join(f"{len(names[each])} {each}" for each in ("passed", "failed", "skipped"))
        print(f"{file}: {counts}")
        case = xml.etree.ElementTree.SubElement(
            suite, "testcase", classname="python", name=file, status="run")
        if kind != "passed":
            mark = "failure" if kind == "failed" else "skipped"
            xml.etree.ElementTree.SubElement(case, mark, message=" ".join(names["failed"]))
    report.parent.mkdir(exist_ok=True)
    xml.etree.ElementTree.ElementTree(suite).write(report)
    return code


if __name__ == "__main__":
    sys.exit(main())
