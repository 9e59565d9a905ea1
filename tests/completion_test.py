#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion in bash, zsh and fish, each shell asked itself where it is installed.

    completion_test.py PROGRAM SCRATCH_FOLDER
"""

import os
import pty
import select
import shutil
import subprocess
import time

from clips import FOLDER, run, run_all, shell, test

COMPLETED = {"similis compare --rep": "--report", "similis compare --map-m": "--map-max",
             "similis compare --ov": "--overlay", "similis compare --no-l": "--no-legend",
             "similis compare --nan m": "mask", "similis compare --qu": "--quiet",
             "similis compare --pai": "--pairs", "similis rep": "report"}


def script_for(name):
    path = FOLDER / f"completion.{name}"
    path.write_text(run("completion", name).stdout)
    return path.resolve()


def options():
    return {name for line in run("compare", "--help").stdout.splitlines() if line.startswith("  -")
            for name in line.split()[0].split(",") if name.startswith("--")}


@test
def every_option_is_in_every_script():
    assert {"--report", "--curve", "--pairs", "--fail-below", "--map-max", "--overlay",
            "--no-legend", "--nan", "--quiet", "--version"} <= options(), options()
    for name in "bash", "zsh", "fish":
        script = script_for(name).read_text()
        missing = [o for o in options() if (f"-l {o[2:]}" if name == "fish" else o) not in script]
        assert not missing, (name, missing)
        if shutil.which(name):
            done = subprocess.run([name, "-n", script_for(name)], capture_output=True, text=True)
            assert done.returncode == 0, done


@test
def bash_completes():
    script_for("bash")
    for words, expected in COMPLETED.items():
        done = shell(f'source completion.bash; COMP_LINE="{words}"; COMP_WORDS=({words});'
                     ' COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_POINT=${#COMP_LINE};'
                     " f=$(complete -p similis | sed 's/.*-F \\([^ ]*\\).*/\\1/'); $f similis;"
                     ' echo "${COMPREPLY[@]}"')
        assert expected in done.stdout.split(), (words, done)


@test
def fish_completes():
    if not shutil.which("fish"):
        print("  (no fish: not asked)")
        return

    def completed(words):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{words}'"],
                              capture_output=True, text=True, timeout=60)
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    script = script_for("fish")
    assert options() <= completed("similis compare --"), options() - completed("similis compare --")
    for words, expected in COMPLETED.items():
        assert expected in completed(words), (words, completed(words))


def typed(terminal, expected, seconds=60):
    """The text that the terminal shows, once it holds the expected one."""
    text, end = "", time.monotonic() + seconds
    while expected not in text:
        assert time.monotonic() < end, (expected, text)
        if select.select([terminal], [], [], 0.2)[0]:
            text += os.read(terminal, 1 << 16).decode(errors="replace")
    return text


@test
def zsh_completes():
    if not shutil.which("zsh"):
        print("  (no zsh: not asked)")
        return
    terminal, end = pty.openpty()
    zsh = subprocess.Popen(["zsh", "-f", "-i"], stdin=end, stdout=end, stderr=end, cwd=FOLDER,
                           start_new_session=True, env={**os.environ, "TERM": "dumb", "PS1": ""})
    try:
        os.write(terminal, (f"autoload -U compinit; compinit -u -d zsh_dump; source {script_for('zsh')};"
                            " print rea''dy\n").encode())
        typed(terminal, "ready\r\n")
        for words, expected in COMPLETED.items():
            os.write(terminal, f"{words}\t".encode())  # Tab
            typed(terminal, expected + " ")
            os.write(terminal, b"\x15")  # takes the line away
    finally:
        zsh.kill()
        zsh.wait()


run_all()
