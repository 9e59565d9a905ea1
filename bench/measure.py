# SPDX-License-Identifier: Apache-2.0
"""Time and memory of contenders for the same work, in this process, in turn."""

import contextlib
import ctypes
import pathlib
import statistics
import time

WARM_UP = 1
MINIMUM_ROUNDS = 5
MINIMUM_SECONDS = 2.0  # of the measured rounds of all contenders together


@contextlib.contextmanager
def kept_memory():
    """Freed memory stays with the process meanwhile: results lie in pages that are there, and figures do
    not hold what the kernel takes to clear new ones.
    """
    mmap_max, trim_threshold = -4, -1  # of mallopt(3), where the values below stand too
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, 2**31 - 1)
    yield
    mallopt(mmap_max, 65536)
    mallopt(trim_threshold, 128 * 1024)


def median_seconds(contenders):
    """The median wall time of each of the functions in the dictionary `contenders`.

    They take turns, so that what disturbs the machine for a while disturbs all of them.
    """
    for run in contenders.values():
        for _ in range(WARM_UP):
            run()
    seconds = {name: [] for name in contenders}
    start = time.perf_counter()
    rounds = 0
    while rounds < MINIMUM_ROUNDS or time.perf_counter() - start < MINIMUM_SECONDS:
        for name, run in contenders.items():
            before = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - before)
        rounds += 1
    return {name: statistics.median(each) for name, each in seconds.items()}


def _status_bytes(name):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {name}")


def peak_bytes(run):
    """By how many bytes resident memory at its peak during run() exceeds what it was before.

    bench/peak_memory.h measures the same for similis_bench.
    """
    run()  # makes, before the measurement, the objects that are made once and kept
    ctypes.CDLL(None).malloc_trim(0)  # memory that earlier work freed would be taken again unseen
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from VmRSS: proc(5)
    before = _status_bytes("VmRSS")
    result = run()
    peak = _status_bytes("VmHWM") - before
    del result
    return peak


class Machine:
    """Measures how busy other programs keep the processors during this object's life."""

    def __init__(self):
        self._all, self._own = self._busy_seconds(), time.process_time()
        self._start = time.perf_counter()

    @staticmethod
    def _busy_seconds():
        """Processor seconds spent so far on anything, including by the hypervisor's other guests."""
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
        return (user + nice + system + irq + softirq + steal) / 100  # ticks: USER_HZ is 100

    def others(self):
        """Processors that others kept busy on average since this object was made."""
        seconds = time.perf_counter() - self._start
        busy = self._busy_seconds() - self._all
        own = time.process_time() - self._own
        return max(0.0, busy - own) / seconds
