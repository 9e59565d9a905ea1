#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every relative link to a file of the repository, and every page to a link that leads to it.

    tests/links_test.py
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)")


def pages():
    for folder, pattern in (".", "*.md"), ("docs", "**/*.md"), ("examples", "**/*.md"):
        yield from (ROOT / folder).glob(pattern)


def main():
    wrong, linked = [], {ROOT / "README.md"}
    for page in pages():
        for target in LINK.findall(page.read_text()):
            path = (page.parent / target).resolve()
            linked.add(path)
            if not path.exists():
                wrong.append(f"{page.relative_to(ROOT)}: {target} does not exist")
    wrong += [f"{page.relative_to(ROOT)}: no page links to it; docs/README.md lists the pages"
              for page in pages() if page not in linked]
    print("\n".join(wrong) or f"{len(linked)} files are linked")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
