# SPDX-License-Identifier: Apache-2.0
"""The package without libsimilis.so, as it is installed on macOS: torch's tensors, and nothing else.

Its files are linked into a folder whose native/ has the tables of options and the kernels' text.
"""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import similis

PACKAGE = pathlib.Path(similis.__file__).parent
pytest.importorskip("torch", reason="`make check-python` installs torch")


@pytest.fixture(scope="module")
def hidden(tmp_path_factory):
    """run(code): in an interpreter that finds the package without its library."""
    if not (PACKAGE / "native" / "schema.json").exists():
        pytest.skip("the tables of options are made by the target similis_python")
    folder = tmp_path_factory.mktemp("hidden")
    package = folder / "similis"
    (package / "native").mkdir(parents=True)
    for each in PACKAGE.iterdir():
        if each.name not in ("native", "__pycache__"):
            (package / each.name).symlink_to(each.resolve())
    for name in ("schema.json", "kernels"):
        if (PACKAGE / "native" / name).exists():
            (package / "native" / name).symlink_to((PACKAGE / "native" / name).resolve())

    def run(code):
        finished = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{folder}:{pathlib.Path(__file__).parent}"},
            capture_output=True,
            text=True,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    return run


def test_import_and_version(hidden):
    assert hidden("import similis; print(similis.__version__)").strip() == similis.__version__


def test_measures_of_torchs_tensors(hidden):
    code = """
        import warnings, torch, similis
        torch.manual_seed(0)
        x = torch.rand(1, 3, 32, 33, dtype=torch.float64, requires_grad=True)
        y = torch.rand(1, 3, 32, 33, dtype=torch.float64)
        warnings.simplefilter("error")
        try:
            similis.ssim(x, y)
        except UserWarning as warned:
            print(warned)
        warnings.simplefilter("ignore")
        value = similis.ssim(x, y)
        value.backward()
        print(repr(value.item()), repr(x.grad.norm().item()))
        print(repr(similis.nn.LNCCLoss(window_size=5)(x, y).item()))
        print(repr(similis.compat.fused_ssim.fused_ssim(x, y).item()))
        print(repr(similis.sample(x, affine=torch.eye(2, 3)[None]).sum().item()))
    """
    expected = {}
    exec(textwrap.dedent(code), {"print": lambda *each: expected.setdefault(len(expected), each)})
    warned, *lines = hidden(code).splitlines()
    assert warned == (
        "ssim: there is no kernel for this call on cpu without the library; it runs as torch's own "
        "operators, which take more time and memory"
    )
    for line, wanted in zip(lines, expected.values()):
        for found, number in zip(line.split(), wanted):
            assert abs(float(found) - float(number)) <= 1e-9 * abs(float(number))


def test_graphs_of_torch_compile(hidden):
    said = hidden("""
        import warnings, torch, similis
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        x = torch.rand(1, 2, 24, 25, requires_grad=True)
        y, u = torch.rand(1, 2, 24, 25), 0.1 * torch.rand(1, 24, 25, 2)

        def loss(x, y, u):
            moved = similis.smooth(similis.sample(x, displacement=u), 1.0)
            return similis.ssim_loss(moved, y) + similis.lncc_loss(moved, y)

        plain = loss(x, y, u)
        (wanted,) = torch.autograd.grad(plain, x)
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(x, y, u)
        (found,) = torch.autograd.grad(compiled, x)
        print(abs(compiled - plain).item() < 1e-6, ((found - wanted).norm() / wanted.norm()).item() < 1e-6)
    """)
    assert said.split() == ["True", "True"]


@pytest.mark.parametrize(
    "call, words",
    [
        ("similis.ssim(numpy.ones((1, 1, 12, 12)), numpy.ones((1, 1, 12, 12)))",
         "DeviceError similis: this package has no library for this system, so it takes torch's"),
        ("similis.vmaf(numpy.ones((1, 40, 40), 'uint8'), numpy.ones((1, 40, 40), 'uint8'))",
         "DeviceError similis: this package has no library for this system"),
        ("similis.register(numpy.ones((9, 9)), numpy.ones((9, 9)))",
         "DeviceError similis: this package has no library for this system"),
        ("similis.integer_ssim(torch.ones(20, 20, dtype=torch.uint8), "
         "torch.ones(20, 20, dtype=torch.uint8))",
         "ValueError integer_ssim: x is on cpu without the library, which has neither a kernel"),
        ("similis.set_num_threads(2)",
         "DeviceError similis: this package has no library for this system"),
    ],
)
def test_what_needs_the_library_says_so(hidden, call, words):
    pytest.importorskip("numpy")
    said = hidden(f"""
        import numpy, torch, similis
        try:
            {call}
        except Exception as error:
            print(type(error).__name__, error)
    """)
    assert said.startswith(words)


def test_the_program_says_that_it_is_missing(hidden):
    said = hidden("""
        import sys, similis.__main__
        try:
            similis.__main__.main()
        except SystemExit as error:
            print(error)
    """)
    assert "this package was built without it" in said
