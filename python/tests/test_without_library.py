# SPDX-License-Identifier: Apache-2.0
"""The wheel without libsimilis.so, as macOS gets it: torch's tensors, and nothing else.

The wheel is built and installed into an environment of its own. That environment sees torch and
NumPy of the one that runs the tests.
"""

import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import textwrap
import zipfile

import pytest

import similis

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(similis.__file__).parent
pytest.importorskip("torch", reason="`make check-python` installs torch")

# Runs each program that it is told of in a child of its own: torch, which takes seconds to import,
# is imported once, and similis by each child anew.
SERVER = """
import os, sys
import numpy, torch
for path in sys.stdin:
    child = os.fork()
    if child == 0:
        place = open(path.strip() + ".said", "w")
        for stream in (1, 2):
            os.dup2(place.fileno(), stream)
        failed = 1
        try:
            exec(compile(open(path.strip()).read(), path.strip(), "exec"), {"__name__": "__main__"})
            failed = 0
        except SystemExit:
            failed = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(failed)
    print(os.waitpid(child, 0)[1], flush=True)
"""
NO_LIBRARY = (
    "similis: this package has no library for this system, so it takes torch's tensors alone, and "
    "neither files nor scores whose bits are fixed; on Linux, install the wheel for Linux"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    builder = ROOT / "scripts" / "wheel_for_any.py"
    if not builder.exists() or not (PACKAGE / "native" / "schema.json").exists():
        pytest.skip("the wheel is made of the sources and the target similis_python")
    pytest.importorskip("scikit_build_core", reason="`make check` installs scikit-build-core")
    folder = tmp_path_factory.mktemp("wheel")
    made = subprocess.run(
        [sys.executable, str(builder), str(folder), str(PACKAGE / "native")],
        check=True,
        capture_output=True,
        text=True,
    )
    return pathlib.Path(made.stdout.strip())


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A fresh environment in which the wheel is all that is installed."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python",
         str(python), "install", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "torch_of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


@pytest.fixture(scope="module")
def run(environment, tmp_path_factory):
    """run(code): what it printed in the fresh environment."""
    folder = tmp_path_factory.mktemp("run")
    of_stand_in = str(pathlib.Path(__file__).parent / "other_gpus")
    server = subprocess.Popen(
        [str(environment / "bin" / "python"), "-c", SERVER],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": of_stand_in},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run_code(code):
        path = folder / f"{len(list(folder.iterdir()))}.py"
        path.write_text(textwrap.dedent(code))
        print(path, file=server.stdin, flush=True)
        status = server.stdout.readline().strip()
        said = pathlib.Path(f"{path}.said").read_text()
        assert status == "0", said
        return said

    yield run_code
    server.stdin.close()
    server.wait()


def test_the_wheel_has_neither_a_library_nor_a_need_of_one(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as files:
        native = [each for each in files.namelist() if each.startswith("similis/native/")]
        (metadata,) = [each for each in files.namelist() if each.endswith("/METADATA")]
        described = files.read(metadata).decode()
    assert sorted(pathlib.Path(each).suffix for each in native) == [".json"] + 3 * [".metal"]
    needs = [each for each in described.splitlines() if each.startswith("Requires-Dist")]
    assert all("extra ==" in each for each in needs)
    assert "Linux" not in described.split("\n\n")[0]


def test_import_and_version(run, environment):
    name, version = run("import similis; print(similis.__file__, similis.__version__)").split()
    assert name.startswith(str(environment))
    assert version == similis.__version__


IMAGES = """
    import json, warnings, torch, similis
    from similis.compat import fused_ssim, fussim, pytorch_msssim
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand((2, 1, 3, 44, 45), generator=generator)
    y = 0.7 * x + 0.3 * y
    calls = {
        "ssim": similis.ssim,
        "ssim_loss": lambda x, y: similis.ssim_loss(x, y, padding="reflect"),
        "l1_ssim": lambda x, y: similis.l1_ssim(x, y, padding="same"),
        "ms_ssim": lambda x, y: similis.ms_ssim(x, y, window_size=7, weights=(0.4, 0.6)),
        "fused_ssim": fused_ssim.fused_ssim,
        "fussim": lambda x, y: fussim.ssim(x, y, data_range=1.0),
        "pytorch_msssim": lambda x, y: pytorch_msssim.ssim(x, y, data_range=1.0),
        "SSIMLoss": lambda x, y: similis.nn.SSIMLoss()(x, y),
    }

    def value_and_gradient(call, x, y):
        x = x.requires_grad_()
        value = call(x, y)
        (gradient,) = torch.autograd.grad(value, x)
        return value.detach(), gradient
"""


@pytest.fixture(scope="module")
def expected():
    """{name: (value, gradient)} of IMAGES' calls, by the library in f64."""
    names = {}
    exec(textwrap.dedent(IMAGES), names)
    x, y = names["x"].double(), names["y"].double()
    return {
        name: [each.flatten().tolist() for each in names["value_and_gradient"](call, x.clone(), y)]
        for name, call in names["calls"].items()
    }


def require_near(found, expected):
    import torch

    for name, (value, gradient) in found.items():
        value_wanted, gradient_wanted = map(torch.tensor, expected[name])
        assert abs(value[0] - value_wanted[0]) < 1e-6, name
        distance = (torch.tensor(gradient) - gradient_wanted).norm() / gradient_wanted.norm()
        assert distance < 1e-5, name


def test_measures_run_as_torchs_operators_and_warn_once(run, expected):
    *warned, found = run(IMAGES + """
    from stand_in import gpu, memory_of
    del torch.mps.compile_shader  # torch 2.6 is the first that has it
    found = {}
    with warnings.catch_warnings(record=True) as warned, gpu("mps") as put:
        warnings.simplefilter("always")
        for _ in range(2):
            for name, call in calls.items():
                result = value_and_gradient(call, put(x), put(y))
                found[name] = [memory_of(each).flatten().tolist() for each in result]
    for each in warned:
        print(each.message)
    print(json.dumps(found))
    """).splitlines()
    words = (
        "{}: there is no kernel for this call on mps:0; it runs as torch's own operators, which "
        "take more time and memory"
    )
    assert warned == [words.format(each) for each in ("ssim", "l1_ssim", "ms_ssim", "fused_ssim")]
    found = json.loads(found)
    assert found.keys() == expected.keys()
    require_near(found, expected)


def test_kernels_of_the_wheel_run_without_a_warning(run, expected):
    found = run(IMAGES + """
    import metal_stub
    from stand_in import gpu, memory_of
    if metal_stub.CLANG is None:
        print("no clang")
        raise SystemExit
    torch.mps.compile_shader = metal_stub.ShaderLibrary
    warnings.simplefilter("error")
    with gpu("mps") as put:
        result = value_and_gradient(similis.ssim, put(x), put(y))
    print(json.dumps({"ssim": [memory_of(each).flatten().tolist() for each in result]}))
    """)
    if found.strip() == "no clang":
        pytest.skip("there is no clang; `make check` installs it")
    require_near(json.loads(found), expected)


def test_measures_on_the_cpu_run_as_torchs_operators(run):
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
    wanted = []
    exec(textwrap.dedent(code), {"print": lambda *each: wanted.append(each)})
    warned, *lines = run(code).splitlines()
    assert warned == (
        "ssim: there is no kernel for this call on cpu without the library; it runs as torch's own "
        "operators, which take more time and memory"
    )
    assert len(lines) == len(wanted)
    for line, numbers in zip(lines, wanted):
        for found, number in zip(line.split(), numbers):
            assert abs(float(found) - float(number)) <= 1e-9 * abs(float(number))


def test_graphs_of_torch_compile(run):
    said = run("""
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


# Calls, with arrays of NumPy, of the public functions that take something else than two images.
OTHER_CALLS = {
    "VmafScorer": "similis.VmafScorer(64, 64)",
    "affine_grid": "similis.affine_grid(x, out_shape=(4, 4))",
    "get_num_threads": "similis.get_num_threads()",
    "register": "similis.register(picture, picture)",
    "set_num_threads": "similis.set_num_threads(2)",
    "smooth": "similis.smooth(x, 1.0)",
    "value_and_gradient": "similis.value_and_gradient(similis.ssim, x, x)",
    "vmaf": "similis.vmaf(clip, clip)",
    **{
        name: f"similis.{name}(x)"
        for name in ("exponentiate", "invert", "jacobian_determinant",
                     "mutual_information_from_histogram", "sample", "sample_labels")
    },
}


def test_whatever_needs_the_library_says_so(run):
    names = [each for each in similis.__all__ if each not in ("DeviceError", "__version__")]
    calls = {name: OTHER_CALLS.get(name, f"similis.{name}(x, x)") for name in names}
    said = run(f"""
        import json, numpy, similis
        x = numpy.ones((1, 3, 24, 24), "float32")
        picture, clip = x[0, 0], numpy.ones((1, 64, 64), "uint8")
        words = {{}}
        for name, call in {calls!r}.items():
            try:
                words[name] = f"it returned {{eval(call)}}"
            except Exception as error:
                words[name] = f"{{type(error).__name__}} {{error}}"
        print(json.dumps(words))
    """)
    assert json.loads(said) == dict.fromkeys(names, f"DeviceError {NO_LIBRARY}")


def test_scores_whose_bits_are_fixed_are_refused_of_tensors(run):
    said = run("""
        import torch, similis
        x = torch.ones(20, 20, dtype=torch.uint8)
        for call in (similis.integer_ssim, similis.float_ssim, similis.libvmaf_psnr):
            try:
                call(x, x)
            except ValueError as error:
                print(error)
    """).splitlines()
    assert said == [
        f"{name}: x is on cpu without the library, which has neither a kernel for it nor operators "
        "of torch that keep its bits"
        for name in ("integer_ssim", "float_ssim", "libvmaf_psnr")
    ]


def test_the_program_says_that_it_is_missing(environment):
    finished = subprocess.run(
        [str(environment / "bin" / "similis"), "info"],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 1 and finished.stdout == ""
    assert finished.stderr.startswith("similis: the program is not at ")
    assert finished.stderr.endswith("; this package was built without it\n")
