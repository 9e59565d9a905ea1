# SPDX-License-Identifier: Apache-2.0
"""Fixtures that the tests share: images, and the devices there are.

PYTHONPATH=build/python .venv/bin/python -m pytest
"""

import math
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the device of its arrays
# Processes inherit that SIGINT is ignored, as it is behind & in a script, and tests interrupt them.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header():
    import similis

    return f"similis {similis.__version__} from {similis.__file__}"


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """Each device that torch and the library can use."""
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return torch.device(request.param)


@pytest.fixture
def images(device):
    """images(shape): x and y of smooth waves and noise in [0, 1], the same at each call."""
    import torch

    def make(*shape, dtype=torch.float32, requires_grad=()):
        generator = torch.Generator().manual_seed(math.prod(shape))
        waves = torch.linspace(0, 7 * len(shape), math.prod(shape)).sin().reshape(shape)
        x = 0.5 + 0.2 * waves + 0.25 * torch.rand(shape, generator=generator)
        y = x + 0.1 * torch.rand(shape, generator=generator) - 0.05
        pair = [image.clamp(0, 1).to(device=device, dtype=dtype) for image in (x, y)]
        for name in requires_grad:
            pair["xy".index(name)].requires_grad_()
        return pair

    return make


@pytest.fixture
def relative_l2():
    def distance(actual, expected):
        """A gradient that was forgotten is 1 away."""
        return ((actual.double() - expected.double()).norm() / expected.double().norm()).item()

    return distance


@pytest.fixture
def run_python(tmp_path):
    """run_python(code): in an interpreter of its own, in an empty folder; what it printed."""

    import similis

    package = pathlib.Path(similis.__file__).parent.parent

    def run(code, **variables):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(code))
        finished = subprocess.run(
            [sys.executable, str(script)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(package), **variables},
            capture_output=True,
            text=True,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    return run
