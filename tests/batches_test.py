#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sources that would get in each other's way share no file of scripts/batches.py.

    tests/batches_test.py
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts/batches.py"
UNNAMED = "namespace similis {{\nnamespace {{\n\n{}\n\n}}  // namespace\n\n{}\n\n}}  // namespace similis\n"
USER = UNNAMED.format("int other() { return 1; }", "int used() { return helper(2); }")

# {what a source declares: whether it may stand in one file with USER, which calls helper()}
CASES = {
    "int helper(int x) { return x; }": False,
    "std::string helper(const std::string& name,\n    int count) {\n  return name;\n}": False,
    "template <class T>\nT helper(const std::vector<T>& x) {\n  return x[0];\n}": False,
    "template <class T> T helper(T x) { return x; }": False,
    "constexpr int kFirst = 1, helper = 2;": False,
    "struct helper {\n  int x;\n};": False,
    "enum class helper : int { a, b };": False,
    "const int helper[] = {1, 2};": False,
    "#define helper(x) x": False,
    "MATCHER_P(helper, x, \"\") { return arg == x; }": False,
    "int other() { return 2; }": False,
    "int another(int x) {\n  int helper = x;\n  return helper;\n}": True,
    "// The helper is in another file.\nconst char* text() { return \"helper\"; }": True,
}


def batched(*texts):
    """The number of files that the texts, each a source, are compiled as."""
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{number}.cc" for number in range(len(texts))]
        for name, text in zip(names, texts):
            (pathlib.Path(folder) / name).write_text(text)
        printed = subprocess.run([SCRIPT, folder, f"{folder}/made/batch", "12", *names],
                                 capture_output=True, text=True, check=True).stdout.splitlines()
        sources = [(pathlib.Path(folder) / line).read_text() for line in printed]
        held = sum(1 if text in texts else len(re.findall(r'#include "\d', text)) for text in sources)
        assert held == len(texts), f"{texts} became {sources}"
        return len(printed)


def header_case():
    """The number of files of two sources: one declares helper for itself, the other's header uses it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {
                "types.h": "namespace similis {\nstruct helper {};\n}  // namespace similis\n",
                "header.h": '#include "types.h"\nnamespace similis {\nint size();\n}  // namespace similis\n',
                "0.cc": UNNAMED.format("struct helper {};", "helper made();"),
                "1.cc": '#include "header.h"\n' + UNNAMED.format("", "int other();")}.items():
            (pathlib.Path(folder) / name).write_text(text)
        printed = subprocess.run([SCRIPT, folder, f"{folder}/made/batch", "12", "0.cc", "1.cc"],
                                 capture_output=True, text=True, check=True).stdout
        return len(printed.splitlines())


def main():
    wrong = []
    for declaration, may_share in CASES.items():
        shared = batched(UNNAMED.format(declaration, ""), USER) == 1
        if shared != may_share:
            wrong.append(f"shares a file with a caller of helper(): {shared}\n{declaration}")
    first = UNNAMED.format("using Json = int;", "Json a();")
    if batched(first, UNNAMED.format("using Json = int;", "Json b();")) != 1:
        wrong.append("two sources with the same alias do not share a file")
    if batched(first, UNNAMED.format("using Json = long;", "Json b();")) != 2:
        wrong.append("two sources share a file whose aliases differ")
    directive = "using namespace std;\n"
    if batched(directive + UNNAMED.format("", "int a();"), UNNAMED.format("", "int b();")) != 2:
        wrong.append("a using-directive reaches another source")
    rooms = [f"namespace similis::{room} {{\nnamespace {{\n\nint helper(int x) {{ return x; }}\n\n"
             "}  // namespace\n\nint " + room + "() { return helper(2); }\n\n}  // namespace\n"
             for room in ("first", "second", "first::inner")]
    if batched(*rooms[:2]) != 1:
        wrong.append("the same name in two namespaces keeps sources apart")
    if batched(rooms[0], rooms[2]) != 2:
        wrong.append("a name of a namespace reaches the one inside it, and they share a file")
    if batched(rooms[0], USER) != 1 or batched(UNNAMED.format("int helper(int x);", ""), rooms[0]) != 2:
        wrong.append("an outer namespace does not see an inner one's names, and the inner the outer's")
    if batched("#define helper(x) x\n" + rooms[0], rooms[1]) != 2:
        wrong.append("a macro is seen in every namespace")
    if header_case() != 2:
        wrong.append("a name that a header declares is private to another source, and they share a file")
    remark = UNNAMED.format("int helper(int x);", "int c();").replace("{\n\n", "{  // as they are\n\n", 1)
    if batched(remark, USER) != 2:
        wrong.append("a remark behind a namespace hides its names")
    vectors = [f"#define HWY_TARGET_INCLUDE \"{number}.cc\"\n#include \"hwy/foreach_target.h\"\n"
               + UNNAMED.format("", f"int g{number}();") for number in range(8)]
    if batched(vectors[0], UNNAMED.format("", "int b();")) != 2:
        wrong.append("vector code shares a file with other code")
    if batched(*vectors) != 2:
        wrong.append("8 sources of vector code are not 4 and 4")
    if batched(*(UNNAMED.format("", f"int f{number}();") for number in range(13))) != 2:
        wrong.append("13 sources are not 12 and 1")
    print("\n".join(wrong) or f"{len(CASES) + 12} cases")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
