# SPDX-License-Identifier: Apache-2.0
"""The number of threads that calls use, and what decides it. The library's threads are those named
"similis" in /proc/self/task of a process of its own: NumPy, torch and GPU drivers start others, as
many as the machine has cores and GPUs."""

import os
import subprocess
import sys
import textwrap

import pytest

numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
import similis

PRELUDE = """
import os, numpy
x = numpy.random.default_rng(0).random((1, 3, 512, 512), dtype="float32")
def name(task):
    try:
        return open(f"/proc/self/task/{task}/comm").read()
    except OSError:  # it has ended
        return ""
def threads():
    return [name(task) for task in os.listdir("/proc/self/task")].count("similis\\n")
"""


def printed(script, **environment):
    """The output of a Python process with the library's defaults and this environment."""
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("there is no /proc")
    kept = {
        name: each
        for name, each in os.environ.items()
        if name not in ("SIMILIS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    }
    kept["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        env={**kept, **environment},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


OF_NUMPY = """
import similis
similis.ssim(x, x)
print(similis.get_num_threads(), threads())
"""


def test_the_environment_decides():
    cores = os.cpu_count()
    assert printed(OF_NUMPY) == [str(cores), str(cores - 1)]
    assert printed(OF_NUMPY, SIMILIS_NUM_THREADS="5") == ["5", "4"]
    assert printed(OF_NUMPY, OMP_NUM_THREADS="4") == ["4", "3"]
    assert printed(OF_NUMPY, OMP_NUM_THREADS="3,2") == ["3", "2"]
    assert printed(OF_NUMPY, OMP_NUM_THREADS="1", SIMILIS_NUM_THREADS="2") == ["2", "1"]
    assert printed(OF_NUMPY, OMP_NUM_THREADS="many") == [str(cores), str(cores - 1)]


def test_a_function_sets_it():
    assert printed(
        """
        import similis
        values = set()
        for wanted in 3, 6, 2, 1:
            similis.set_num_threads(wanted)
            values.add(float(similis.ssim(x, x[..., ::-1])))
            print(similis.get_num_threads(), threads())
        similis.set_num_threads(0)
        print(similis.get_num_threads(), len(values))
        """,
        SIMILIS_NUM_THREADS="4",
    ) == "3 2 6 5 2 5 1 5 4 1".split()  # threads that have started sleep


def test_numbers_that_are_none():
    with pytest.raises(ValueError, match="^set_num_threads: threads is 1025; it must be from 1 to 1024"):
        similis.set_num_threads(1025)
    with pytest.raises(ValueError, match="^set_num_threads: threads is -1; it must be from 1 to 1024"):
        similis.set_num_threads(-1)
    with pytest.raises(TypeError, match="^set_num_threads: threads is 2.0; it must be an integer"):
        similis.set_num_threads(2.0)


def test_torch_decides_for_its_tensors():
    pytest.importorskip("torch", reason="`make check-python` installs torch")
    script = """
        import torch, similis
        torch.set_num_threads(1)
        a = torch.from_numpy(x).requires_grad_()
        u = torch.zeros(1, 64, 64, 2)
        frame = torch.zeros(2, 270, 480, dtype=torch.uint8)
        similis.ssim(a, a.detach().flip(3)).backward()
        (2 * similis.mse(a, a.detach().flip(3))).backward()  # the gradient is scaled in place
        similis.sample(a.detach(), displacement=torch.zeros(1, 512, 512, 2))
        similis.invert(u)
        similis.smooth(a, 2).sum().backward()
        similis.vmaf(frame, frame)
        print(threads())
        torch.set_num_threads(2)
        similis.mse(a.detach(), a.detach().flip(3))
        print(threads())
        torch.set_num_threads(3)
        similis.smooth(a.detach(), 2)
        print(threads())
        torch.set_num_threads(4)
        similis.vmaf(frame, frame)
        print(threads())
        """
    for binding in "direct", "ctypes":
        found = printed(script, SIMILIS_NUM_THREADS="5", SIMILIS_BINDING=binding)
        assert found == "0 1 2 3".split()


def test_workers_of_a_data_loader_have_one_thread_each():
    pytest.importorskip("torch", reason="`make check-python` installs torch")
    script = """
        import torch, similis
        similis.ssim(x, x)  # the main process has its threads before it forks

        class Scores(torch.utils.data.Dataset):
            def __len__(self):
                return 32

            def __getitem__(self, index):
                similis.ssim(x, x)
                similis.ssim(torch.from_numpy(x), torch.from_numpy(x))
                if index >= 16:
                    similis.set_num_threads(2)
                return os.getpid(), threads(), similis.get_num_threads()

        loader = torch.utils.data.DataLoader(Scores(), batch_size=1, num_workers=16)
        rows = [[int(each) for each in row] for row in loader]
        print(len({row[0] for row in rows}), sum(row[1] for row in rows[:16]), {row[2] for row in rows[:16]})
        print({row[2] for row in rows[16:]})
        """
    found = printed(script, SIMILIS_NUM_THREADS="2")
    assert found == ["16", "0", "{1}", "{2}"]
