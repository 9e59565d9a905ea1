#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles GPU sources with hipcc, several as one, and reports on each.

    tests/hip_build_test.py ARCHITECTURE REPORT FILE OBJECT hipcc …

FILE is a source, or a file of scripts/batches.py that includes several. If that does not compile,
each source is compiled alone, and those that do not compile are the failures. REPORT gets a line for
each source, which scripts/check.py counts.
"""

import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent


def sources_in(file):
    """The sources that a file of scripts/batches.py includes; a source itself."""
    if file.suffix == ".cu":
        return [str(file.relative_to(ROOT))]
    return re.findall(r'#include "(.+)"', file.read_text())


def words(command, file, output):
    """The compiler's words if it refuses the file, or None."""
    done = subprocess.run([*command, str(file), "-o", output], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return None if done.returncode == 0 else done.stdout or f"hipcc ended with {done.returncode}"


def main():
    architecture, report, file, output = sys.argv[1:5]
    command, file = sys.argv[5:], pathlib.Path(file)
    sources = sources_in(file)
    refused = words(command, file, output)
    if refused and len(sources) > 1:
        print(f"{refused}\n{file.name} does not compile; each of its sources is compiled alone now")
        refusals = {source: words(command, source, output) for source in sources}
    else:
        refusals = dict.fromkeys(sources, refused)
    suite = xml.etree.ElementTree.Element("testsuite", name=architecture)
    for source, why in refusals.items():
        case = xml.etree.ElementTree.SubElement(
            suite, "testcase", classname=architecture, name=source, status="run")
        if why:
            print(f"{architecture}: {source} does not compile\n{why}")
            xml.etree.ElementTree.SubElement(case, "failure")
    pathlib.Path(report).parent.mkdir(exist_ok=True)
    xml.etree.ElementTree.ElementTree(suite).write(report)
    return 1 if any(refusals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
