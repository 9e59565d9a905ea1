#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files that include several sources each, so that headers are compiled once for all of them.

    scripts/batches.py ROOT PREFIX SIZE SOURCE…

ROOT is the folder that sources are included from. PREFIX-0.cc, PREFIX-1.cc, … (.cu, if their sources
are) get up to SIZE sources each; PREFIX-vector-0.cc, … get up to a third of SIZE with vector code, which
takes longer. They are printed, one a line, followed by the sources that found no company.

Two sources share a file if neither mentions a name that is private to the other, nor does a header
that only it includes, and both have the same using-directives. A name is private if a line without indentation declares it and other files
cannot see it: in an unnamed namespace, as a constant, a type, an alias, a template or a macro. It
reaches the sources that open its namespace or one inside that; a macro, or a name of a source with
using-directives, reaches all. The lines are as clang-format leaves them. A file whose text would not
change is not written.
"""

import functools
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
CLOSED_NAMESPACE = re.compile(r"^}  // namespace.*$", re.MULTILINE)
# A file of vector code includes itself once for each target, and so does one that includes several.
ITSELF = "#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE \"{}\"\n"
TEMPLATE = re.compile(r"^template <[^<>]*(?:<[^<>]*>[^<>]*)*>\s*")
TYPE = re.compile(r"(?:struct|class|union|enum(?: class)?)\s+(\w+)")
ALIAS = re.compile(r"(?:using (\w+) = |namespace (\w+) = |using [\w:]*::(\w+);)")
MATCHER = re.compile(r"MATCHER\w*\((\w+)")
VARIABLE = re.compile(r"(\w+)\s*(?=[={;\[])")
FUNCTION = re.compile(r"(\w+)\(")
NAMESPACE = re.compile(r"(?:inline )?namespace(?: ([\w:]+))? \{$")
HIDDEN = re.compile(r"constexpr |const |static |inline |template |using |namespace |struct |class |"
                    r"union |enum |typedef |MATCHER")


def declared(line):
    """{name: text} of what a declaration's first line declares. The text is that of an alias, which
    two sources may share, and else empty."""
    if match := ALIAS.match(line):
        return {next(filter(None, match.groups())): line}
    line = TEMPLATE.sub("", line)
    if match := MATCHER.match(line) or TYPE.match(line):
        return {match.group(1): ""}
    called = FUNCTION.search(line)
    if called and "=" not in line[:called.start()]:
        names = [called.group(1)]
    else:
        names = VARIABLE.findall(line) or re.findall(r"\w+", line)[-1:]
    return {name: "" for name in names if not name.isupper() and name != "operator"}


@functools.cache
def header(path, root):
    return Source(path, root)


class Source:
    def __init__(self, path, root):
        self.path = path
        text = path.read_text()
        # This text names things in the namespaces that it opens; so each header is one of its own.
        self.headers = set()
        for name in INCLUDE.findall(text):
            for file in root / name, root / "include" / name:
                if file.suffix in (".h", ".hpp", ".cuh") and file.exists():
                    self.headers |= {header(file, root)} | header(file, root).headers
        self.is_vector = "foreach_target.h" in text
        text = COMMENT_OR_TEXT.sub("", CLOSED_NAMESPACE.sub("}namespace", text))
        self.names = set(re.findall(r"[A-Za-z_]\w*", text))
        self.private = set()  # (name, text of an alias, namespaces around it)
        self.directives, self.namespaces = set(re.findall(r"using namespace [\w:]+", text)), {()}
        around, opened_before = [()], 0  # namespaces that are open; lines since the last was opened
        is_unnamed = []
        for line in map(str.rstrip, text.splitlines()):
            opened_before += 1
            if match := NAMESPACE.match(line):
                names = tuple(match.group(1).split("::")) if match.group(1) else ()
                around.append(around[-1] + names)
                is_unnamed.append(not names)
                self.namespaces.add(around[-1])
                opened_before = 0
            elif line.startswith("}namespace") or line == "}" and opened_before == 2 and is_unnamed:
                around.pop()
                is_unnamed.pop()
            elif line.startswith("#define HWY_TARGET_INCLUDE"):
                continue
            elif macro := re.match(r"#\s*define\s+(\w+)", line):
                self.private.add((macro.group(1), "", ()))
            elif re.match(r"\w", line) and (any(is_unnamed) or HIDDEN.match(line)):
                if not line.startswith(("namespace ", "using namespace ")) or "=" in line:
                    scope = () if self.directives else around[-1]
                    self.private.update((name, alias, scope) for name, alias in declared(line).items())

    def opens(self, scope):
        """True if names in it are found without naming it: it is open here, or around what is."""
        return any(mine[:len(scope)] == scope for mine in self.namespaces)

    def fits(self, other):
        if self.directives != other.directives:
            return False
        return not any(name in text.names and text.opens(scope)
                       and not (alias and (name, alias, scope) in text.private)
                       for mine, theirs in ((self, other), (other, self))
                       for text in (theirs, *(theirs.headers - mine.headers))
                       for name, alias, scope in mine.private)


def batches_of(sources, size):
    batches = []
    for source in sources:
        for batch in batches:
            if len(batch) < size and all(source.fits(each) for each in batch):
                batch.append(source)
                break
        else:
            batches.append([source])
    return batches


def text_of(batch, file, root):
    includes = "".join(f'#include "{each.path.relative_to(root)}"\n' for each in batch)
    if not batch[0].is_vector:
        return includes
    return ITSELF.format(file) + '#include "hwy/foreach_target.h"\n' + includes + ITSELF.format(file)


def main():
    root, prefix, size = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    sources = [Source(root / path, root) for path in sys.argv[4:]]
    vectors = [each for each in sources if each.is_vector]
    # Neighbours are of one room, and take long together.
    count = -(-len(vectors) // max(size // 3, 1)) or 1
    dealt = [each for first in range(count) for each in vectors[first::count]]
    alone = []
    pathlib.Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    for name, batches in (("", batches_of([each for each in sources if not each.is_vector], size)),
                          ("-vector", batches_of(dealt, size // 3))):
        alone += [batch[0] for batch in batches if len(batch) == 1]
        for number, batch in enumerate(batch for batch in batches if len(batch) > 1):
            file = pathlib.Path(f"{prefix}{name}-{number}{batch[0].path.suffix}")
            text = text_of(batch, file, root)
            if not file.exists() or file.read_text() != text:
                file.write_text(text)
            print(file)
    for each in alone:
        print(each.path)


if __name__ == "__main__":
    main()
