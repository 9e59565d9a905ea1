# SPDX-License-Identifier: Apache-2.0
"""similis.register against the program, which calls the library in C++; its results, its refusals,
and its end by a callback or by Ctrl-C."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import similis
from similis import volumes

PROGRAM = pathlib.Path(similis.__file__).parent / "native/similis"
SHORT = {"levels": (2, 1), "iterations": (12, 8)}


def shapes(size=(26, 28, 30), shift=0.0, wave=0.0):
    """Soft shapes in voxels of 4 mm, moved along x."""
    z, y, x = np.indices(size, dtype=float)
    z, y, x = z - (size[0] - 1) / 2, y - (size[1] - 1) / 2, x - (size[2] - 1) / 2
    x = x - shift / 4 + wave * np.sin(y / 5)
    body = 1 / (1 + np.exp((np.sqrt((x / 10) ** 2 + (y / 9) ** 2 + (z / 9) ** 2) - 1) * 8))
    image = 1000 * body * (0.6 + 0.4 * np.sin(x / 2.5 + 1) * np.cos(y / 3) * np.cos(z / 3.5))
    return image.astype("float32")


FIXED, MOVING = shapes(), shapes(shift=9, wave=0.8)
RAS = np.diag([-4.0, -4.0, 4.0, 1.0])
RAS[:3, 3] = [58, 54, -50]
FLAT_FIXED, FLAT_MOVING = shapes((1, 28, 30))[0], shapes((1, 28, 30), 9, 0.8)[0]


def ncc(x, y):
    return np.corrcoef(np.ravel(x), np.ravel(y))[0, 1]


@pytest.fixture(scope="module")
def found():
    return similis.register(FIXED, MOVING, fixed_affine=RAS, moving_affine=RAS, **SHORT)


def write(folder):
    for name, values in (("fixed", FIXED), ("moving", MOVING)):
        grid = volumes.Grid(values.shape[::-1], RAS)
        similis.write_volume(folder / f"{name}.nii", volumes.Volume(values[None, None], grid))


def test_has_the_bits_of_the_program(found, tmp_path):
    write(tmp_path)
    command = ["register", "fixed.nii", "moving.nii", "-o", "p_", "--no-report", "--no-compress"]
    command += ["--levels", "2x1", "--iterations", "12x8", "--threads", "1", "--format", "json"]
    done = subprocess.run([PROGRAM, *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    flip = np.array([-1, -1, 1], "float32")
    for name, own in (("1Warp", found.warp), ("1InverseWarp", found.inverse_warp)):
        field = similis.read_transform(tmp_path / f"p_{name}.nii")
        np.testing.assert_array_equal(field.vectors * flip, own)
    affine = similis.read_transform(tmp_path / "p_0GenericAffine.mat")
    turn = np.diag([-1, -1, 1, 1])
    np.testing.assert_array_equal(turn @ affine.matrix @ turn, found.affine)
    for part in ("overlap", "folds", "jacobian", "displacement_mm", "repairs", "warnings", "settings"):
        assert found.report[part] == report[part], part
    for stage, of_program in zip(found.report["stages"], report["stages"], strict=True):
        assert stage["levels"] == of_program["levels"] and stage["name"] == of_program["name"]
    by_path = similis.register(tmp_path / "fixed.nii", tmp_path / "moving.nii", **SHORT)
    np.testing.assert_array_equal(by_path.warp, found.warp)
    warped = similis.read_volume(tmp_path / "p_Warped.nii")
    np.testing.assert_array_equal(by_path.apply(tmp_path / "moving.nii").values, warped.values)
    assert isinstance(by_path.warped, similis.Volume)


def test_lays_moving_over_fixed(found):
    assert found.affine.shape == (4, 4) and found.warp.shape == (*FIXED.shape, 3)
    assert found.warped.shape == FIXED.shape and ncc(found.warped, FIXED) > 0.99 > ncc(MOVING, FIXED)
    similarity = found.report["similarity"]["ncc"]
    assert similarity["after"] == pytest.approx(ncc(found.warped, FIXED), abs=1e-5)
    assert similarity["before"] == pytest.approx(ncc(MOVING, FIXED), abs=1e-5)
    stages = [row["stage"] for row in found.history]
    assert list(dict.fromkeys(stages)) == ["rigid", "affine", "deformable"]
    last = found.history[-1]
    assert last["level"] == 1 and last["min_jacobian"] >= 0.1 and np.isfinite(last["loss"])
    levels = found.report["stages"][2]["levels"]
    assert [row["loss"] for row in found.history[-len(levels[1]["loss"]) :]] == levels[1]["loss"]


def test_maps_images_and_points(found):
    inside = (slice(5, -5),) * 3
    again = found.apply(MOVING)
    np.testing.assert_allclose(again[inside], found.warped[inside], atol=0.05)
    labels = (MOVING > 400).astype("uint8") * 7
    moved = found.apply(labels, mode="label")
    assert moved.dtype == np.uint8 and set(np.unique(moved)) == {0, 7}
    # The image moved by the displacement that sample() takes.
    sampled = similis.sample(MOVING[None, None], displacement=found.displacement())[0, 0]
    np.testing.assert_allclose(sampled[inside], found.warped[inside], atol=0.05)
    # A voxel's point goes where the affine and the warp take it, and back.
    z, y, x = 13, 15, 17
    point = RAS[:3, :3] @ [x, y, z] + RAS[:3, 3]
    target = found.affine[:3, :3] @ (point + found.warp[z, y, x]) + found.affine[:3, 3]
    np.testing.assert_allclose(found.apply_points([point])[0], target, atol=1e-4)
    back = found.inverse().apply_points(found.apply_points(point[None]))
    np.testing.assert_allclose(back[0], point, atol=0.4)
    assert ncc(found.inverse().apply(FIXED)[inside], MOVING[inside]) > 0.98


def test_world_turns_results_alone(found):
    lps = np.diag([-1.0, -1, 1, 1]) @ RAS
    other = similis.register(FIXED, MOVING, fixed_affine=lps, moving_affine=lps, world="lps", **SHORT)
    np.testing.assert_array_equal(other.warp * np.array([-1, -1, 1], "float32"), found.warp)
    point = np.array([5.0, -3, 8])
    turn = np.array([-1, -1, 1])
    np.testing.assert_allclose(other.apply_points(point * turn) * turn, found.apply_points(point), atol=1e-9)


def test_saves_files_that_the_program_applies(found, tmp_path):
    write(tmp_path)
    found.save(f"{tmp_path}/out/")
    assert sorted(os.listdir(tmp_path / "out")) == [
        "0GenericAffine.mat", "1InverseWarp.nii.gz", "1Warp.nii.gz", "InverseWarped.nii.gz", "Warped.nii.gz", "report.json"
    ]  # fmt: skip
    command = ["warp", "moving.nii", "-r", "fixed.nii", "-t", "out/1Warp.nii.gz"]
    command += ["-t", "out/0GenericAffine.mat", "-o", "there.nii"]
    subprocess.run([PROGRAM, *command], cwd=tmp_path, check=True)
    own = similis.read_volume(tmp_path / "out/Warped.nii.gz").values
    np.testing.assert_allclose(own, similis.read_volume(tmp_path / "there.nii").values, atol=0.01)
    assert json.loads((tmp_path / "out/report.json").read_text()) == found.report
    with pytest.raises(FileNotFoundError):
        found.save(tmp_path / "none" / "x_")


def test_pictures_and_channels():
    flat = similis.register(FLAT_FIXED, FLAT_MOVING, spacing=(4, 4), **SHORT)
    assert flat.warp.shape == (28, 30, 2) and ncc(flat.warped, FLAT_FIXED) > 0.99
    assert flat.apply_points([[1.0, 2.0]]).shape == (1, 2)
    sampled = similis.sample(FLAT_MOVING[None, None], displacement=flat.displacement())[0, 0]
    np.testing.assert_allclose(sampled[5:-5, 5:-5], flat.warped[5:-5, 5:-5], atol=0.05)
    stack = [np.stack([each, each**2]) for each in (FLAT_FIXED, FLAT_MOVING)]
    both = similis.register(*stack, spacing=(4, 4), stages=("rigid",))
    assert both.warped.shape == (2, 28, 30) and both.warp is None and both.inverse_warp is None


def test_masks_and_starts():
    mask = np.ones(FIXED.shape, bool)
    mask[:, :, :5] = False
    broken = FIXED.copy()
    broken[:, :, 2] = np.nan
    options = {"stages": ("deformable",), "levels": (2,), "iterations": (3,), "spacing": (4, 4, 4)}
    found = similis.register(broken, MOVING, fixed_mask=mask, init="identity", **options)
    np.testing.assert_array_equal(found.affine, np.eye(4))
    assert found.report["settings"]["fixed_mask"] is True
    # Voxels outside the masks are not compared either.
    masks = {"fixed_mask": mask, "moving_mask": mask, **options, "stages": ("translation",)}
    whole = similis.register(FIXED, MOVING, init="identity", **masks).report["similarity"]
    wrong = np.where(mask, MOVING, 1e6)
    again = similis.register(broken, wrong, init="identity", **masks).report["similarity"]
    assert again == whole and 0 < whole["ncc"]["after"] < 1
    start = np.eye(4)
    start[:3, 3] = [9, 0, 0]
    given = similis.register(FIXED, MOVING, init=start, **options)
    np.testing.assert_allclose(given.affine, start)
    assert given.report["settings"]["init"] == "given"


def test_labels(found, tmp_path):
    """Their overlap is the program's, and they are what apply() gives."""
    labels = [(2 * (each > 400) + (each > 700)).astype("uint8") for each in (FIXED, MOVING)]
    options = {"fixed_affine": RAS, "moving_affine": RAS, **SHORT}
    result = similis.register(FIXED, MOVING, fixed_labels=labels[0], moving_labels=labels[1], **options)
    np.testing.assert_array_equal(result.warp, found.warp)
    np.testing.assert_array_equal(result.labels, found.apply(labels[1], mode="label"))
    assert result.labels.dtype == np.uint8 and found.labels is None and "dice" not in found.report
    assert list(result.report["dice"]) == ["2", "3"]
    for label, overlap in result.report["dice"].items():
        own, warped = (each == int(label) for each in (labels[0], result.labels))
        assert overlap["after"] == 2 * (own & warped).sum() / (own.sum() + warped.sum())
        assert overlap["before"] < overlap["after"] and overlap["after"] > 0.8
    write(tmp_path)
    grid = volumes.Grid(FIXED.shape[::-1], RAS)
    for name, values in zip(("own", "other"), labels):
        similis.write_volume(tmp_path / f"{name}.nii", volumes.Volume(values[None, None].astype("f4"), grid, "uint8"))
    command = ["register", "fixed.nii", "moving.nii", "-o", "p_", "--no-report", "--levels", "2x1", "--iterations"]
    command += ["12x8", "--fixed-labels", "own.nii", "--moving-labels", "other.nii", "--format", "json"]
    done = subprocess.run([PROGRAM, *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dice"] == result.report["dice"]
    result.save(f"{tmp_path}/s_")
    saved, own = (similis.read_volume(tmp_path / f"{name}Labels.nii.gz") for name in ("s_", "p_"))
    np.testing.assert_array_equal(saved.values, own.values)
    assert saved.dtype == own.dtype == "uint8"
    files = {f"{name}_labels": tmp_path / f"{file}.nii" for name, file in (("fixed", "own"), ("moving", "other"))}
    of_files = similis.register(tmp_path / "fixed.nii", tmp_path / "moving.nii", **files, **SHORT)
    np.testing.assert_array_equal(of_files.labels.values, own.values)
    assert of_files.labels.dtype == "uint8"


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_labels_keep_their_type(dtype, tmp_path):
    """Those of files, volumes and arrays, beside images of either kind."""
    grid = volumes.Grid(FIXED.shape[::-1], RAS)
    options = {"fixed_affine": RAS, "moving_affine": RAS, "stages": ("translation",)}
    array = (MOVING > 400).astype(dtype)
    similis.write_volume(tmp_path / "labels.nii", volumes.Volume(array[None, None].astype("f8"), grid, dtype))
    volume = similis.read_volume(tmp_path / "labels.nii")
    assert volume.dtype == dtype
    for labels in (array, volume, tmp_path / "labels.nii"):
        found = similis.register(FIXED, MOVING, moving_labels=labels, **options)
        assert found.labels.dtype == np.dtype(dtype), type(labels)
    placed = [volumes.Volume(each[None, None].astype("f4"), grid) for each in (FIXED, MOVING)]
    found = similis.register(*placed, moving_labels=volume, stages=("translation",))
    assert found.labels.dtype == dtype
    found.save(f"{tmp_path}/s_")
    assert similis.read_volume(tmp_path / "s_Labels.nii.gz").dtype == dtype


def test_dice_of_labels():
    """Images that are noise are registered by their labels, in arrays of NumPy and torch."""
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    noise = np.random.default_rng(4)
    images = [noise.random(each.shape).astype("f4") for each in (FIXED, MOVING)]
    labels = [(2 * (each > 400)).astype("uint8") for each in (FIXED, MOVING)]
    options = {"stages": ("deformable",), "init": "identity", "metrics": ("dice",), **SHORT}
    for of in (np.asarray, torch.from_numpy):
        fixed, moving, own, other = map(of, (*images, *labels))
        result = similis.register(fixed, moving, fixed_labels=own, moving_labels=other, **options)
        overlap = result.report["dice"]["2"]
        assert overlap["before"] < 0.9 and overlap["after"] > 0.95, overlap
        assert result.report["settings"]["metrics"] == [{"name": "dice", "weight": 1.0}]


def test_torchs_tensors():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    tensors = [torch.from_numpy(each) for each in (FLAT_FIXED, FLAT_MOVING)]
    found = similis.register(*tensors, spacing=(4, 4), **SHORT)
    plain = similis.register(FLAT_FIXED, FLAT_MOVING, spacing=(4, 4), **SHORT)
    assert isinstance(found.warped, torch.Tensor) and isinstance(found.displacement(), torch.Tensor)
    np.testing.assert_array_equal(found.warp.numpy(), plain.warp)
    half = similis.register(*[each.bfloat16() for each in tensors], spacing=(4, 4), stages=("rigid",))
    assert half.warped.dtype == torch.float32


def gpu_arrays(library):
    """(fixed, moving, back to NumPy) as arrays of a library on the GPU."""
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "torch":
        if not module.cuda.is_available():
            pytest.skip("there is no GPU")
        return *[module.from_numpy(each).cuda() for each in (FIXED, MOVING)], lambda x: x.cpu().numpy()
    try:
        return *[module.asarray(each) for each in (FIXED, MOVING)], lambda x: x.get()
    except Exception as error:  # CuPy has a class for each failure of the driver
        pytest.skip(f"there is no GPU: {error}")


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_a_gpu_gives_the_cpus_map(library, tmp_path):
    fixed, moving, numpy_of = gpu_arrays(library)
    cpu = similis.register(FIXED, MOVING, fixed_affine=RAS, moving_affine=RAS, **SHORT)
    gpu = similis.register(fixed, moving, fixed_affine=RAS, moving_affine=RAS, **SHORT)
    assert type(gpu.warp) is type(fixed) and gpu.warp.device == fixed.device
    assert type(gpu.warped) is type(fixed) and gpu.report["device"] == "cuda:0"
    spacing = np.linalg.norm(RAS[:3, :3], axis=0).min()
    assert np.abs(gpu.affine - cpu.affine).max() < 0.02 * spacing
    for part in ("warp", "inverse_warp"):
        difference = numpy_of(getattr(gpu, part)) - getattr(cpu, part)
        assert np.linalg.norm(difference, axis=-1).mean() < 0.02 * spacing, part
    moved = gpu.apply(moving)
    assert type(moved) is type(fixed)
    # They end differently within a voxel of the moving image's edge.
    assert np.abs(numpy_of(moved) - numpy_of(gpu.warped)).mean() < 0.001 * FIXED.max()
    np.testing.assert_allclose(gpu.apply_points([[0, 0, 0]]), cpu.apply_points([[0, 0, 0]]), atol=0.1)
    again = similis.register(fixed, moving, fixed_affine=RAS, moving_affine=RAS, **SHORT)
    np.testing.assert_array_equal(numpy_of(again.warp), numpy_of(gpu.warp))
    gpu.save(f"{tmp_path}/")
    assert len(os.listdir(tmp_path)) == 6
    calls = []
    similis.register(fixed, moving, callback=lambda *at: len(calls.append(at) or calls) < 3, **SHORT)
    assert len(calls) == 3


def test_images_of_nibabel(found):
    nibabel = pytest.importorskip("nibabel", reason="`make check` installs nibabel")
    images = [nibabel.Nifti1Image(each.T, RAS) for each in (FIXED, MOVING)]
    of_images = similis.register(*images, **SHORT)
    np.testing.assert_array_equal(of_images.warp, found.warp)
    np.testing.assert_allclose(of_images.warped.to_nibabel().affine, RAS)


def test_a_callback_ends_it():
    calls = []

    def callback(stage, level, iteration, loss):
        calls.append((stage, level, iteration))
        return len(calls) < 4

    found = similis.register(FLAT_FIXED, FLAT_MOVING, stages=("deformable",), callback=callback, **SHORT)
    assert calls == [("deformable", 2, i) for i in range(4)]
    assert found.report["stages"][0]["levels"][0]["stopped"] == "callback"
    assert np.abs(found.warp).max() > 0.1

    def failing(*_):
        raise RuntimeError("it was enough")

    with pytest.raises(RuntimeError, match="it was enough"):
        similis.register(FLAT_FIXED, FLAT_MOVING, callback=failing)


def processor_seconds(process):
    """Processor time of all its threads, user's and system's."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("callback", ["None", "lambda *_: None"])
def test_ctrl_c_ends_it(tmp_path, callback):
    script = textwrap.dedent(f"""
        import threading
        import numpy as np, similis
        x = np.random.default_rng(1).random((112, 112, 112), "float32")  # seconds an iteration on a busy machine
        similis.register(x[:16, :16, :16], x[16:32, :16, :16], stages=("translation",))  # imports all
        try:
            print("begins", flush=True)
            similis.register(x, x[::-1].copy(), stages=("deformable",), levels=(1,), iterations=(100000,),
                             tolerance=0, step=0.002, callback={callback})
        except KeyboardInterrupt:
            print("interrupted", threading.active_count())
        else:
            print("ended by itself")
        """)
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(similis.__file__).parents[1])}
    running = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        assert running.stdout.readline() == "begins\n"
        before = processor_seconds(running.pid)
        while processor_seconds(running.pid) < before + 0.5 and running.poll() is None:
            time.sleep(0.02)  # the registration is under way once it has taken half a second
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=300)
    finally:
        running.kill()
    assert out == "interrupted 1\n" and errors == "", (out, errors)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "options, error",
    [
        ({"stages": ("affine", "rigid")}, "register: stages are out of order"),
        ({"stages": ("elastic",)}, "register: stages is 'elastic'; it must be translation, rigid"),
        ({"metrics": ("ssim",)}, "register: metrics is 'ssim'; it must be lncc, ncc, mi, mse or dice"),
        ({"metrics": (("lncc", {"bins": 4}),)}, "register: lncc has no option 'bins'; it takes weight or window_size"),
        ({"metrics": (("lncc", {"window_size": 4}),)}, "register: window_size is 4; it must be an odd number from 3 to 255"),
        ({"linear_metric": "lncc"}, "register: the linear metric is lncc"),
        ({"preset": "fast"}, "register: preset is 'fast'; it must be quick, balanced or accurate"),
        ({"init": np.zeros((4, 4))}, "register: initial is singular"),
        ({"iterations": (3, 3), "levels": (1,)}, "register: iterations has 2 numbers and levels 1"),
        ({"fluid": -1}, "register: fluid is -1; it must be from 0 to 1000"),
        ({"step": 2}, "register: step is 2; it must be above 0 and up to 1"),
        ({"seed": -1}, "register: seed is -1; it must be from 0 to 18446744073709551615"),
        ({"nan": "skip"}, "register: nan is 'skip'; it must be error or mask"),
        ({"world": "mni"}, "register: world is 'mni'; it must be ras or lps"),
        ({"spacing": (1, 1, 0)}, r"register: spacing is \(1, 1, 0\); its numbers must be above 0"),
        ({"fixed_affine": np.eye(2)}, "register: fixed_affine has shape"),
        ({"fixed_affine": np.zeros((4, 4))}, "register: fixed's map to the world is singular"),
        ({"fixed_mask": np.ones((3, 3, 3), bool)}, r"register: fixed_mask has shape \[3, 3, 3\]"),
        ({"fixed_mask": np.zeros(FIXED.shape, bool)}, "register: fixed's mask counts no voxel"),
        ({"init": "none.mat"}, "none.mat"),
        ({"fixed_labels": np.zeros(FIXED.shape, "u1")}, "register: fixed_labels are given without moving_labels"),
        ({"metrics": ("dice",)}, "register: the metric dice is given without fixed_labels and moving_labels"),
        ({"moving_labels": np.zeros((3, 3, 3), "u1")}, r"register: moving_labels has shape \[3, 3, 3\]; it must be"),
        ({"moving_labels": np.full(MOVING.shape, 0.5)}, "register: moving_labels holds 0.5; labels are integers"),
    ],
)
def test_refusals(options, error):
    with pytest.raises((ValueError, OSError), match=error):
        similis.register(FIXED, MOVING, **options)


def test_refusals_of_images(tmp_path):
    with pytest.raises(TypeError, match="register: moving is of type list; it must be a numpy.ndarray, a torch"):
        similis.register(FIXED, [1.0])
    with pytest.raises(ValueError, match="register: fixed is a volume but moving is a picture"):
        similis.register(FIXED, FLAT_MOVING)
    with pytest.raises(ValueError, match="register: fixed is 3 everywhere; it must have more than one value"):
        similis.register(np.full((4, 5, 6), 3, "int16"), MOVING)
    words = r"register: fixed has shape \[1, 1, 28, 30\]; every axis of space must have 2 voxels or more; a picture is"
    with pytest.raises(ValueError, match=words):
        similis.register(FLAT_FIXED[None, None], FLAT_MOVING[None, None])
    broken = MOVING.copy()
    broken[0, 0, 0] = np.inf
    with pytest.raises(ValueError, match="register: moving has values that are not finite in 1 voxel"):
        similis.register(FIXED, broken)
    result = similis.register(FIXED, broken, nan="mask", stages=("translation",))
    assert result.report["similarity"]["ncc"]["after"] > 0.5
    with pytest.raises(TypeError, match="register: callback is 3; it must be a function"):
        similis.register(FIXED, MOVING, callback=3)
    write(tmp_path)
    with pytest.raises(ValueError, match="fixed_affine is given, but fixed has a place of its own"):
        similis.register(tmp_path / "fixed.nii", MOVING, fixed_affine=RAS)
    series = volumes.Volume(np.zeros((1, 3, 4, 4, 4), "float32"), volumes.Grid((4, 4, 4), np.eye(4)))
    with pytest.raises(ValueError, match="moving has 3 frames with 1 component per voxel"):
        similis.register(FIXED, series)
    small = volumes.Volume(np.ones((1, 1, 4, 4, 4), "float32"), volumes.Grid((4, 4, 4), np.eye(4)))
    with pytest.raises(ValueError, match="fixed_mask lies on another grid than .*fixed.nii"):
        similis.register(tmp_path / "fixed.nii", tmp_path / "moving.nii", fixed_mask=small)
    with pytest.raises(ValueError, match="apply: image has shape"):
        similis.register(FIXED, MOVING, stages=("translation",)).apply(FIXED[:3])


