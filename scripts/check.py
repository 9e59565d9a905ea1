#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds CMake presets with warnings as errors, runs their tests with ctest and adds up the results.

Each preset is one kind of check: release, asan+ubsan, tsan, gpu-builds. The last line is
"N passed, N failed, N skipped"; the exit status is 1 if anything failed. A configuration or a build
that fails counts as one failure.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
Outcome = collections.namedtuple("Outcome", "passed failed skipped")  # names of tests


def described(preset):
    """The preset in CMakePresets.json."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    return next(each for each in presets if each["name"] == preset)


def binary_folder(preset):
    """The folder in which CMakePresets.json puts the build of a preset."""
    return pathlib.Path(described(preset)["binaryDir"].replace("${sourceDir}", str(ROOT)))


def built(preset, folder, jobs):
    configure = [ROOT / "scripts/configure.sh", preset]
    build = ["cmake", "--build", folder, "--parallel", str(jobs)]
    if subprocess.run(configure).returncode != 0:
        return False
    if subprocess.run(build).returncode == 0:
        return True
    if not ("SIMILIS_BATCH_SIZE" in described(preset)["cacheVariables"]
            or "SIMILIS_BATCH_SIZE" in os.environ):
        return False
    # scripts/batches.py goes by names, and may put two sources together that do not go together.
    print(f"== {preset}: the build failed with several sources compiled as one; "
          "each is compiled alone now", flush=True)
    alone = [*configure, "-DSIMILIS_BATCH_SIZE=1"]
    return subprocess.run(alone).returncode == 0 and subprocess.run(build).returncode == 0


def status(case):
    """The outcome of one test in ctest's report, which says "notrun" of a missing program too."""
    if case.get("status") != "notrun":
        return {"run": "passed"}.get(case.get("status"), "failed")
    return "skipped" if case.find("skipped").get("message").startswith("SKIP_") else "failed"


def inside(preset, folder, name):
    """The outcomes of the tests inside ctest's test `name`, {outcome: names}, if it wrote a report
    of them: under a sanitizer one process runs many. Empty if it did not, or broke off."""
    report = folder / "reports" / f"{name.replace('/', '-')}.xml"
    names = collections.defaultdict(list)
    if report.exists():
        for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
            if case.get("status") == "run":
                kind = ("failed" if case.find("failure") is not None
                        else "skipped" if case.find("skipped") is not None else "passed")
                names[kind].append(f"{preset}: {case.get('classname')}.{case.get('name')}")
    return names


def tested(preset, folder, jobs):
    report = folder / "junit.xml"
    report.unlink(missing_ok=True)
    shutil.rmtree(folder / "reports", ignore_errors=True)
    # Several tests share a process, where cmake/tests.cmake and tests/CMakeLists.txt have both ways.
    subprocess.run(["ctest", "--test-dir", folder, "--build-config", "together",
                    "--label-exclude", "^alone$", "--parallel", str(jobs), "--no-tests=error",
                    "--output-on-failure", "--output-junit", report])
    names = {"passed": [], "failed": [], "skipped": []}
    if report.exists():
        for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
            cases = inside(preset, folder, case.get("name"))
            if status(case) == "failed" and not cases["failed"] or not any(cases.values()):
                cases[status(case)].append(f"{preset}: {case.get('name')}")
            for kind in names:
                names[kind] += cases[kind]
    if not any(names.values()):
        names["failed"].append(f"{preset}: ctest ran no test")
    return Outcome(**names)


def check(preset, jobs):
    print(f"== {preset}", flush=True)
    start = time.monotonic()
    folder = binary_folder(preset)
    is_built = built(preset, folder, jobs)
    end_of_build = time.monotonic()
    outcome = tested(preset, folder, jobs) if is_built else Outcome([], [f"{preset}: build"], [])
    print(f"== {preset}: {(end_of_build - start) / 60:.1f} minutes to build, "
          f"{(time.monotonic() - end_of_build) / 60:.1f} to test", flush=True)
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("presets", nargs="+")
    arguments = parser.parse_args()
    outcomes = [check(preset, arguments.jobs) for preset in arguments.presets]
    passed, failed, skipped = (sum(lists, []) for lists in zip(*outcomes))
    for kind, names in ("skipped", skipped), ("failed", failed):
        for name in names:
            print(f"{kind}  {name}")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
