# SPDX-License-Identifier: Apache-2.0
"""Runs functions on several processes with gloo, which are started once for each number of them."""

import importlib
import os
import pathlib
import socket
import subprocess
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(ranks, module, timeout=30):
    """Processes that run MODULE.main() each, with torch's variables set."""
    port = free_port()
    processes = []
    for rank in range(ranks):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
            "SIMILIS_NUM_THREADS": "1",
        }
        processes.append(
            subprocess.Popen(
                [sys.executable, str(HERE / "ranks.py"), module, str(timeout)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return processes


def run(ranks, module, limit=300):
    """Runs MODULE.main() on all ranks and fails with the words of those that fail."""
    processes = start(ranks, module)
    words = []
    try:
        for rank, process in enumerate(processes):
            output, _ = process.communicate(timeout=limit)
            if process.returncode != 0:
                words.append(f"rank {rank} of {ranks}: {output}")
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
    assert not words, "\n".join(words)


def main():
    import torch
    import torch.distributed as dist

    import similis.distributed

    torch.set_num_threads(1)
    sys.path.insert(0, str(HERE))
    module = importlib.import_module(sys.argv[1])
    similis.distributed.init(timeout=float(sys.argv[2]), backend="gloo")
    try:
        module.main()
    except BaseException:
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
