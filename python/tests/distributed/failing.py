# SPDX-License-Identifier: Apache-2.0
"""The last rank is killed, raises or stalls in a loop, between calls or where it should send rows;
the others say when they raised."""

import os
import signal
import time

import torch.distributed as dist
from cases import noise

import similis.distributed as sd
from similis.distributed import LostRank, Slabs, transport


def main(failure):
    slabs = Slabs.even(12)
    x = noise(1, 1, slabs.stop - slabs.start, 8, 9, seed=slabs.rank).requires_grad_()
    y = noise(1, 1, slabs.stop - slabs.start, 8, 9, seed=slabs.rank + 9)
    begun = time.monotonic()
    try:
        for step in range(10**6):
            if step == 3 and slabs.rank == slabs.ranks - 1:
                how, _, where = failure.partition(" ")
                if where:  # the others have its word by then, and wait for its rows
                    transport._start = lambda *_: fail(how)
                else:
                    fail(how)
            loss = sd.lncc_loss(x, y, slabs, window_size=5)
            loss.backward()
            float(loss.detach())
            if step < 3:
                begun = time.monotonic()
    except LostRank as error:
        print(f"LOST after {time.monotonic() - begun:.1f} s: {error}", flush=True)
        dist.destroy_process_group()
        os._exit(7)


def fail(how):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise KeyError("a mistake")
    time.sleep(40)
    os._exit(3)
