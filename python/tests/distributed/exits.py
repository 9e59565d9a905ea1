# SPDX-License-Identifier: Apache-2.0
"""Processes that end in many ways while a monitor looks at a communication.

Python ends a thread that comes back from a library's code while the interpreter ends; if that code
is C++ the process aborts ("terminate called without an active exception"). torch is imported once;
each case is a fork, which ends as a process of its own does.
"""

import atexit
import datetime
import gc
import os
import select
import signal
import sys
import tempfile
import threading
import time

import torch.distributed as dist

from similis.distributed import failure, monitor

REPETITIONS = 2


def wait_in_cpp(seconds):
    """Stays in C++ without the interpreter's lock, as a question to a GPU does."""
    try:
        dist.HashStore().wait(["nobody sets it"], datetime.timedelta(seconds=seconds))
    except RuntimeError:  # it was not set in time
        pass


class Busy:
    """A communication that does not end. Most of the time the monitor's thread asks for it."""

    def is_completed(self):
        wait_in_cpp(0.005)
        return False


def watching(abort=lambda: None, timeout=30.0):
    found = monitor.Monitor(timeout, abort)
    monitor._LONGEST_PAUSE = 1e-4
    found.watch(Busy())
    return found


def ends(k):
    watching()
    time.sleep(0.002 * k)


def raises(k):
    ends(k)
    raise KeyError("a mistake")


def exits(k):
    ends(k)
    sys.exit(5)


def leaves_at_once(k):
    ends(k)
    os._exit(6)


def is_told_to_end(k):
    ends(k)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)


def is_interrupted(k):
    ends(k)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)


def is_lost(k):
    """Raises while the monitor's thread aborts a communicator, which takes longer than a look."""
    aborting = threading.Event()

    def abort():
        aborting.set()
        wait_in_cpp(1.3)

    found = watching(abort, timeout=0.01)
    assert aborting.wait(20)
    assert found.lost is not None
    raise failure.LostRank(found.lost)


def begins_more(k):
    """A handler that was registered before the monitor's runs behind it, and communicates."""
    found = monitor.Monitor(30.0, lambda: None)
    atexit.register(lambda: [found.watch(Busy()) for _ in range(3)])
    monitor._LONGEST_PAUSE = 1e-4
    found.watch(Busy())


def begins_at_the_end(k):
    """The first communication is one of a handler of exits."""
    atexit.register(watching)


# The exit status of each way to end, or the negative of a signal.
WAYS = {
    ends: 0,
    raises: 1,
    exits: 5,
    leaves_at_once: 6,
    is_told_to_end: -signal.SIGTERM,
    is_interrupted: -signal.SIGINT,
    is_lost: 1,
    begins_more: 0,
    begins_at_the_end: 0,
}


def begin():
    """A child, its pid and what it writes. Returns in the child too, with pid 0."""
    words = tempfile.TemporaryFile("w+")
    pid = os.fork()
    if pid == 0:
        os.dup2(words.fileno(), 2)
    return pid, words


def status_of(pid, seconds=60):
    handle = os.pidfd_open(pid)
    ended = select.select([handle], [], [], seconds)[0]
    os.close(handle)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return "no end"
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main():
    wrong = []
    gc.freeze()  # a child's end would walk through torch's objects for a second and a half
    for way, expected in WAYS.items():
        for k in range(1 if way == is_lost else REPETITIONS):
            pid, words = begin()
            if pid == 0:
                way(k)
                return
            status = status_of(pid)
            words.seek(0)
            said = words.read()
            if status != expected or "terminate" in said:
                wrong.append(f"{way.__name__} {k}: {status} for {expected}: {said}")
    print("\n".join(wrong) or "all ended as they should", flush=True)


main()
