#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the reference: Doxygen and Breathe for C++ and C, autodoc for Python; warnings are errors.

    scripts/reference.py BUILD_FOLDER   # pages in BUILD_FOLDER/reference/html

It runs under the Python that has Sphinx and imports the package from BUILD_FOLDER/python. Each
public header becomes a page, so a new header needs no line here. Exits with 77 and a sentence where
Doxygen, Sphinx, Breathe or the built package is missing.
"""

import collections
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs/reference"
INCLUDE = ROOT / "include/similis"
SKIPPED = 77
sys.path.insert(0, str(SOURCES))
import plain_text  # noqa: E402


def missing(build):
    """A sentence that names the first tool that this machine lacks, or None."""
    if shutil.which("doxygen") is None:
        return "there is no doxygen; `make docs` installs it"
    for module in "sphinx", "breathe":
        if importlib.util.find_spec(module) is None:
            return f"{sys.executable} has no {module}; `make docs` installs it into .venv"
    if not (build / "python/similis/native").exists():
        return "the Python package is not built; `make docs` builds it"
    return None


def run_doxygen(folder):
    configuration = (SOURCES / "Doxyfile").read_text() + f'OUTPUT_DIRECTORY = "{folder}"\n'
    done = subprocess.run(["doxygen", "-"], cwd=ROOT, input=configuration, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)  # Doxygen has named the line


def introduction(header):
    """The first comment of a header, without its licence line and comment marks."""
    lines = []
    for line in header.read_text().splitlines():
        if not line.startswith(("//", "/*", " *")):
            break
        text = line.removesuffix("*/").rstrip()
        for mark in "// ", "//", "/* ", " * ", " *":
            if text.startswith(mark):
                text = text[len(mark):]
                break
        if not text.startswith("SPDX-"):
            lines.append(text)
    return plain_text.restructured(lines)


def cpp_entities(folder):
    """{header: [(line, directive, name)]} of all that namespace similis holds."""
    found = collections.defaultdict(list)
    compounds = [*folder.glob("struct*.xml"), *folder.glob("class*.xml")]
    for compound in map(compound_of, compounds):
        name = compound.findtext("compoundname")
        if name.startswith("similis::") and name.count("::") == 1:
            place = compound.find("location")
            found[place.get("file")].append(
                (int(place.get("line")), f"doxygen{compound.get('kind')}", name))
    members = list(compound_of(folder / "namespacesimilis.xml").iter("memberdef"))
    counts = collections.Counter(member.findtext("name") for member in members)
    for member in members:
        place, name = member.find("location"), member.findtext("name")
        if counts[name] > 1:  # Breathe chooses between overloads by the types of their parameters
            types = ["".join(type.itertext()) for type in member.iterfind("param/type")]
            name += f"({', '.join(types)})"
        found[place.get("file")].append(
            (int(place.get("line")), f"doxygen{member.get('kind')}", f"similis::{name}"))
    return found


def compound_of(file):
    return xml.etree.ElementTree.parse(file).getroot().find("compounddef")


def cpp_directives(header, entities):
    place = header.relative_to(INCLUDE.parent).as_posix()
    for _, directive, name in sorted(entities.get(place, [])):
        yield f".. {directive}:: {name}"
        yield from ["   :members:", ""] if directive in ("doxygenstruct", "doxygenclass") else [""]


def write_page(folder, header, directives):
    title = f"<{header.relative_to(INCLUDE.parent).as_posix()}>"
    (folder / f"{header.stem}.rst").write_text(
        "\n".join([title, "=" * len(title), "", *introduction(header), "", *directives, ""]))


def write_index(folder, title):
    names = sorted(page.stem for page in folder.iterdir())
    (folder / "index.rst").write_text("\n".join(
        [title, "=" * len(title), "", ".. toctree::", "   :maxdepth: 1", "",
         *(f"   {name}" for name in names), ""]))


def write_pages(source, doxygen_xml):
    """One page a header: what it declares, in its order."""
    entities = cpp_entities(doxygen_xml)
    for folder, title in (source / "cpp", "C++"), (source / "c", "C"):
        folder.mkdir()
        headers = INCLUDE.glob("*.hpp") if title == "C++" else (INCLUDE / "c").glob("*.h")
        for header in headers:
            if title == "C":
                write_page(folder, header, [f".. doxygenfile:: {header.name}"])
            elif directives := list(cpp_directives(header, entities)):
                write_page(folder, header, directives)
        write_index(folder, title)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if reason := missing(build):
        print(f"skipped: {reason}")
        return SKIPPED
    folder = build / "reference"
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    shutil.copytree(SOURCES, source, ignore=shutil.ignore_patterns("__pycache__", "Doxyfile"))
    shutil.copy(INCLUDE / "version.h", source / "similis_version.h")
    run_doxygen(folder)
    write_pages(source, folder / "xml")
    environment = {**os.environ, "SIMILIS_DOXYGEN_XML": str(folder / "xml"),
                   "PYTHONPATH": os.pathsep.join([str(build / "python"), str(source)])}
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d",
         folder / "doctrees", source, folder / "html"], cwd=source, env=environment)
    if done.returncode == 0:
        print(f"the reference is at {folder / 'html/index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
