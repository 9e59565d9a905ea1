# SPDX-License-Identifier: Apache-2.0
"""Gives up communications on GPUs that do not end in time.

NCCL's wait is the stream's, which no exception leaves, and torch's own watchdog ends the process. A
thread looks at the communications under way instead: if one is older than the timeout, because
another rank was killed, has ended or stalls, it aborts the communicator, so that the GPU goes on,
and the next call in this process raises LostRank.
"""

from __future__ import annotations

import atexit
import collections
import threading
import time
import weakref
from typing import Any, Callable, Optional

import torch

_OFTEN = 20  # looks in a timeout
_LONGEST_PAUSE = 1.0  # seconds
_LONGEST_END = 10.0  # that Python's end waits for a look or an abort under way


class Monitor:
    def __init__(self, timeout: float, abort: Callable[[], None]) -> None:
        """timeout: seconds that a communication may take. abort: ends those under way."""
        self.lost: Optional[str] = None  # why the group is of no more use
        self._timeout, self._abort = timeout, abort
        self._under_way: collections.deque[tuple[float, Any]] = collections.deque()
        self._thread: Optional[threading.Thread] = None
        self._wakes, self._ends = threading.Event(), threading.Event()
        self._giving_up, self._starting = threading.Lock(), threading.Lock()
        if _python_ends:
            self._ends.set()
        _all.add(self)

    def watch(self, work: Any) -> None:
        """Follows a communication that has just begun; not while Python ends."""
        with self._starting:
            if self._ends.is_set():
                return
            self._under_way.append((time.monotonic(), work))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._look, name="similis monitor", daemon=True
                )
                self._thread.start()
        self._wakes.set()

    def end(self) -> None:
        """Ends the thread, and waits for what it does."""
        with self._starting:
            self._ends.set()
        self._wakes.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_END)

    def give_up(self, reason: str) -> None:
        """Ends what is under way, once."""
        with self._giving_up:
            if self.lost is None:
                self.lost = reason
                self._abort()

    def _look(self) -> None:
        pause = min(self._timeout / _OFTEN, _LONGEST_PAUSE)
        while self.lost is None and not self._ends.is_set():
            if not self._under_way:  # sleeps while nothing is under way
                self._wakes.clear()
                if not self._under_way and not self._ends.is_set():
                    self._wakes.wait()
                continue
            begun, work = self._under_way[0]
            if self._has_ended(work):
                self._under_way.popleft()
            elif time.monotonic() - begun > self._timeout:
                self.give_up(f"a communication has not ended in {self._timeout:g} s")
            else:
                self._ends.wait(pause)
        self._under_way.clear()

    @staticmethod
    def _has_ended(work: Any) -> bool:
        try:
            return bool(work.is_completed())
        except RuntimeError:  # it has failed, which its wait tells
            return True


_all: weakref.WeakSet[Monitor] = weakref.WeakSet()
_python_ends = False


def _end_all() -> None:
    """Python ends a thread that comes back from C++ after this, and C++ then aborts the process."""
    global _python_ends
    _python_ends = True
    for each in list(_all):
        each.end()


# Now, not with the first thread: what is registered while exits are handled is not called.
atexit.register(_end_all)


class _OnGpu:
    """The end of a communication as the GPU sees it. torch's own word for it is also true of one
    that has failed or is late, whose kernel the GPU still runs."""

    _streams: dict[int, Any] = {}  # of each device; nothing but waits is on them

    def __init__(self, work: Any) -> None:
        device = torch.cuda.current_device()
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        with torch.cuda.stream(self._streams[device]):
            work.wait()
            self._end = torch.cuda.Event()
            self._end.record()

    def is_completed(self) -> bool:
        return self._end.query()


def watch(monitor: Monitor, work: Any) -> None:
    """Follows a communication of NCCL; one in a graph that is being recorded has no end."""
    if not torch.cuda.is_current_stream_capturing():
        monitor.watch(_OnGpu(work))


def abort_of(group: Any) -> Callable[[], None]:
    """Ends the communications of a group on GPUs, without waiting for other ranks."""

    def abort() -> None:
        group._get_backend(torch.device("cuda")).abort()

    return abort
