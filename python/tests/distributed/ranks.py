# SPDX-License-Identifier: Apache-2.0
"""Runs functions on several processes with gloo, or with NCCL on a GPU each."""

import importlib
import multiprocessing
import os
import pathlib
import runpy
import sys
import tempfile
import time
import traceback

import torch.distributed as dist

HERE = pathlib.Path(__file__).resolve().parent
# An import of torch in each of 30 ranks takes longer than what they check, and so does one of its
# compiler, which DTensor's operators look at. With GPUs they are spawned: a fork keeps no context
# of CUDA.
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(
    [
        "pytest",
        "torch",
        "torch._dynamo",
        "torch.distributed.tensor",
        "similis.distributed",
        "similis.nn",
    ]
)


class Rank:
    """A process that calls a function of a module of this folder, with torchrun's variables set."""

    def __init__(self, rank, ranks, store, device, call):
        with tempfile.NamedTemporaryFile(delete=False) as file:
            self._output = pathlib.Path(file.name)
        variables = {
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "SIMILIS_RANKS_ON": device,
            "OMP_NUM_THREADS": "1",
            "SIMILIS_NUM_THREADS": "1",
        }
        context = _server if device == "cpu" else multiprocessing.get_context("spawn")
        self._process = context.Process(
            target=_rank, args=(variables, file.name, *call), daemon=True
        )
        self._process.start()
        self._store = store

    def wait(self, seconds):
        """Its output, and its exit status; None if it is still running."""
        self._process.join(seconds)
        return self._output.read_text(), self._process.exitcode

    def end(self):
        self._process.kill()
        self._process.join()
        self._output.unlink()


def start(ranks, module, *arguments, timeout=30, device="cpu"):
    """Processes that run MODULE.main(*arguments) each, or a file of Python.

    They meet at a store of this process, as those of torchrun meet at its agent's: it listens from
    now on, so that no other program can take the port.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    call = (module, timeout, arguments)
    return [Rank(rank, ranks, store, device, call) for rank in range(ranks)]


def run(ranks, module, *arguments, limit=300, device="cpu"):
    """Runs MODULE.main(*arguments) on all ranks; returns what each printed, or fails with it."""
    processes = start(ranks, module, *arguments, device=device)
    until = time.monotonic() + limit
    try:
        ended = [each.wait(max(until - time.monotonic(), 0)) for each in processes]
    finally:
        for each in processes:
            each.end()
    failed = [
        f"rank {rank} of {ranks}, exit status {status}: {words}"
        for rank, (words, status) in enumerate(ended)
        if status != 0
    ]
    assert not failed, "\n".join(failed)
    return [words for words, _ in ended]


def _rank(variables, output, module, timeout, arguments):
    os.environ.update(variables)
    with open(output, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.path.insert(0, str(HERE))
    import torch
    import torch.distributed as dist

    import similis.distributed

    torch.set_num_threads(1)
    try:
        if module.endswith(".py"):
            runpy.run_path(module, run_name="__main__")
        else:
            called = importlib.import_module(module)
            backend = "gloo" if os.environ["SIMILIS_RANKS_ON"] == "cpu" else None
            similis.distributed.init(timeout=timeout, backend=backend)
            called.main(*arguments)
            dist.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
