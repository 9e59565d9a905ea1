# SPDX-License-Identifier: Apache-2.0
"""similis.distributed with gloo on 1 to 4 processes, and with NCCL on 1 and 2 GPUs; what each rank
checks is in distributed/."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import types

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)
sys.path.insert(0, str(pathlib.Path(__file__).parent / "distributed"))
import ranks

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_split_gives_the_whole(count):
    ranks.run(count, "suite")


@pytest.mark.parametrize("count", [1, 3])
def test_files(count, tmp_path):
    ranks.run(count, "files", tmp_path)


def _gpus():
    """The number of GPUs for NCCL, found without a context of CUDA in this process."""
    if not torch.distributed.is_nccl_available():
        return 0
    return torch.cuda.device_count()


needs_two_gpus = pytest.mark.skipif(_gpus() < 2, reason="there are no two GPUs and NCCL")


@needs_two_gpus
@pytest.mark.parametrize("count", [1, 2])
def test_every_split_gives_the_whole_on_gpus(count):
    ranks.run(count, "suite", device="cuda")


DEVICES = ["cpu", pytest.param("cuda", marks=needs_two_gpus)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("failure", ["kill", "raise", "stall", "kill sending", "stall sending"])
def test_a_lost_rank_raises_on_all_others(failure, device):
    timeout, count = 3, 3 if device == "cpu" else 2
    processes = ranks.start(count, "failing", failure, timeout=timeout, device=device)
    try:
        for process in processes[:-1]:
            output, status = process.wait(120)
            assert status == 7, output
            waited = re.search(r"LOST after ([\d.]+) s: similis.distributed: rank", output)
            assert waited and float(waited.group(1)) < timeout + 15, output
    finally:
        for process in processes:
            process.end()


class Work:
    """A communication of a fake NCCL, which ends when its event is set."""

    def __init__(self, has_ended=False):
        self.end = threading.Event()
        if has_ended:
            self.end.set()

    def is_completed(self):
        return self.end.is_set()


def test_a_monitor_gives_up_what_does_not_end(monkeypatch):
    from similis.distributed import failure, monitor

    done, stuck = Work(has_ended=True), Work()
    watching = monitor.Monitor(0.4, stuck.end.set)
    monkeypatch.setattr(failure, "monitor_of", lambda slabs: watching)
    slabs = types.SimpleNamespace(rank=0, ranks=2)
    watching.watch(done)
    time.sleep(0.6)
    failure.require_group(slabs)  # one that ended is not missed
    begun = time.monotonic()
    watching.watch(stuck)
    said = "rank 0 lost another of 2 ranks, .* a communication has not ended in 0.4 s"
    with pytest.raises(failure.LostRank, match=said):
        with failure.reported(slabs):
            assert stuck.end.wait(15)  # as a GPU's queue, until the communicator is aborted
    assert 0.4 <= time.monotonic() - begun < 10
    with pytest.raises(failure.LostRank, match=said):
        with failure.reported(slabs):
            pytest.fail("a call of a lost group begins")


def test_a_gather_waits_until_its_tensors_are_let_go(monkeypatch):
    """gloo's thread holds them for some time after the wait has ended, as a view holds its base."""
    from similis.distributed import gathering

    held = []

    def all_gather(results, mine, **_):
        results[0].copy_(mine)
        held.extend([results[0][1:], mine[1:]])
        letting_go = threading.Timer(0.2, held.clear)
        return types.SimpleNamespace(wait=letting_go.start)

    monkeypatch.setattr(gathering.dist, "all_gather", all_gather)
    monkeypatch.setattr(gathering, "on_wire", lambda slabs, tensor: tensor.device)
    monkeypatch.setattr(gathering, "reported", lambda slabs: contextlib.nullcontext())
    slabs = types.SimpleNamespace(rank=0, ranks=1, group=None)
    (found,) = gathering.gathered(slabs, torch.arange(3.0))
    assert found.tolist() == [0, 1, 2] and not held


def test_processes_end_while_a_monitor_looks():
    done = subprocess.run(
        [sys.executable, str(ROOT / "python/tests/distributed/exits.py")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "all ended as they should\n" and done.returncode == 0, done


def test_init_refuses():
    import similis.distributed as sd

    with pytest.raises(ValueError, match="init: timeout is 0; it must be a number above 0"):
        sd.init(timeout=0)
    for wrong in ("mpi2", "cpu:mpi2", "gloo,", "gloo,gloo", "cpu:gloo,cuda", "", 3):
        said = rf"init: backend is {wrong!r}; it must be one that this torch has \(gloo, .*\), or one for"
        with pytest.raises(ValueError, match=said):
            sd.init(backend=wrong)
    assert not torch.distributed.is_initialized()
    with pytest.raises(ValueError, match="call similis.distributed.init"):
        sd.Slabs([3])


def test_the_page_runs(tmp_path):
    page = (ROOT / "docs/distributed.md").read_text()
    (code,) = re.findall(r"^```python distributed\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    script = tmp_path / "page.py"
    script.write_text(
        code.replace("timeout=60", 'timeout=60, backend="gloo"') + "print('loss', float(loss))\n"
    )
    losses = [re.findall(r"loss (-?[\d.]+)", each) for each in ranks.run(2, str(script))]
    assert len(losses[0]) == 1 and losses[0] == losses[1], losses


def test_volumes_are_aligned():
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--standalone", "--local-addr", "127.0.0.1"),
            *(str(ROOT / "examples/align_slabs.py"), "--size", "20", "--steps", "15"),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1", "SIMILIS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stdout}{done.stderr}"
    found = re.search(r"2 ranks: LNCC ([\d.]+) to ([\d.]+)", done.stdout)
    before, after = map(float, found.groups())
    assert before < 0.8 and after > before + 0.15, done.stdout
