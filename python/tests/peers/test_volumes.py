# SPDX-License-Identifier: Apache-2.0
"""Volumes and maps of space, against SimpleITK, nibabel and the program."""

import os
import pathlib
import subprocess
import zlib

import pytest

numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
import similis
from similis import volumes
from similis.volumes.compression import gzip_member

PROGRAM = pathlib.Path(similis.__file__).parent / "native/similis"


def rotation(axis, angle):
    matrix, (u, v) = numpy.eye(3), ((axis + 1) % 3, (axis + 2) % 3)
    matrix[u, u] = matrix[v, v] = numpy.cos(angle)
    matrix[v, u], matrix[u, v] = numpy.sin(angle), -numpy.sin(angle)
    return matrix


def grid_of(size, spacing, turned=0.2):
    matrix = numpy.eye(4)
    matrix[:3, :3] = rotation(2, turned) @ rotation(0, -0.1) * spacing
    matrix[:3, 3] = -matrix[:3, :3] @ (numpy.array(size) - 1) / 2 + [3.0, -2.0, 1.0]
    return volumes.Grid(size, matrix)


def volume_of(grid, seed=1, dtype="float32"):
    z, y, x = numpy.indices(grid.shape)
    waves = numpy.sin(0.4 * x + 0.1 * seed) + numpy.cos(0.3 * y) * numpy.sin(0.25 * z)
    values = 100 * (2 + waves) + numpy.random.default_rng(seed).random(grid.shape)
    return volumes.Volume(values.astype(dtype)[None, None].astype("float32"), grid, dtype)


FIXED = grid_of((22, 19, 17), (1.0, 1.2, 1.5))
MOVING = grid_of((25, 21, 16), (1.1, 1.0, 1.4), turned=-0.1)


def affine():
    matrix = numpy.eye(4)
    matrix[:3, :3] = rotation(1, 0.15) * [1.05, 0.95, 1.0]
    matrix[:3, 3] = [1.5, -0.7, 0.4]
    return volumes.Affine(matrix)


def displacement(grid=FIXED, dtype="float32"):
    z, y, x = numpy.indices(grid.shape)
    vectors = numpy.stack([numpy.sin(0.3 * y), numpy.cos(0.2 * z), numpy.sin(0.25 * x)], -1)
    return volumes.Displacement(1.5 * vectors.astype(dtype), grid)


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32", "float64"])
def test_files_keep_all(tmp_path, name, dtype):
    volume = volume_of(FIXED, dtype=dtype)
    volume = volumes.Volume(numpy.rint(volume.values) / 4 if "f" in dtype else volume.values // 4, FIXED, dtype)
    similis.write_volume(tmp_path / name, volume)
    read = similis.read_volume(tmp_path / name)
    assert (read.dtype, read.grid.size) == (dtype, FIXED.size)
    assert read.values.dtype == ("float64" if dtype in ("int32", "float64") else "float32")
    numpy.testing.assert_array_equal(read.values, volume.values)
    numpy.testing.assert_allclose(read.grid.voxel_to_world, FIXED.voxel_to_world, atol=1e-6)


def test_rounding_of_half_a_turn_does_not_turn_an_image(tmp_path):
    """y and z exchanged: the float nearest to √½ leaves 3e-8 for the square of a quaternion's a."""
    matrix = numpy.array([[-3.0, 0, 0, 5], [0, 0, 4, 6], [0, 2, 0, 7], [0, 0, 0, 1]])
    similis.write_volume(tmp_path / "a.nii", volume_of(volumes.Grid((5, 6, 7), matrix)))
    content = bytearray((tmp_path / "a.nii").read_bytes())
    content[254:256] = bytes(2)  # no sform
    (tmp_path / "a.nii").write_bytes(content)
    read = similis.read_volume(tmp_path / "a.nii")
    numpy.testing.assert_allclose(read.grid.voxel_to_world, matrix, atol=1e-6)


def test_files_are_nibabels(tmp_path):
    nibabel = pytest.importorskip("nibabel", reason="`make check` installs nibabel")
    volume = volume_of(FIXED)
    similis.write_volume(tmp_path / "a.nii.gz", volume)
    image = nibabel.load(tmp_path / "a.nii.gz")
    numpy.testing.assert_array_equal(image.get_fdata(), volume.values[0, 0].T)
    numpy.testing.assert_allclose(image.affine, FIXED.voxel_to_world, atol=1e-5)
    numpy.testing.assert_allclose(image.header.get_qform(), FIXED.voxel_to_world, atol=1e-4)
    both = [similis.read_volume(each) for each in (tmp_path / "a.nii.gz", image)]
    numpy.testing.assert_array_equal(both[0].values, both[1].values)
    numpy.testing.assert_allclose(both[1].to_nibabel().affine, image.affine)
    series = nibabel.Nifti1Image(numpy.arange(2 * 3 * 4 * 5, dtype="int16").reshape(2, 3, 4, 5), numpy.diag([1, 2, 3, 1]))
    series.header.set_slope_inter(0.5, 10)
    series.header.set_xyzt_units("mm", "msec")
    nibabel.save(series, tmp_path / "b.nii")
    read = similis.read_volume(tmp_path / "b.nii")
    assert read.values.shape == (1, 5, 4, 3, 2) and read.dtype == "int16" and read.is_scaled
    numpy.testing.assert_array_equal(read.values[0], nibabel.load(tmp_path / "b.nii").get_fdata().T)
    assert read.image.shape == (1, 5, 4, 3, 2) and read.frame_seconds == pytest.approx(1e-3)
    second = nibabel.Nifti2Image(volume.values[0, 0].T, FIXED.voxel_to_world)
    nibabel.save(second, tmp_path / "c.nii")
    numpy.testing.assert_array_equal(similis.read_volume(tmp_path / "c.nii").values, volume.values)


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_threads_compress_one_member_with_the_same_bytes(size):
    random = numpy.random.default_rng(1)
    data = (numpy.arange(size) // 1000 + random.integers(0, 7, size)).astype("uint8").tobytes()
    compressed = gzip_member(data)
    reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    assert reader.decompress(compressed) == data and reader.eof and not reader.unused_data
    threads = similis.get_num_threads()
    try:
        for count in (1, 3):
            similis.set_num_threads(count)
            assert gzip_member(data) == compressed
    finally:
        similis.set_num_threads(threads)


def test_images_of_simple_itk():
    pytest.importorskip("SimpleITK", reason="`make check` installs SimpleITK")
    volume = volume_of(FIXED)
    back = volumes.as_volume(volume.to_sitk())
    numpy.testing.assert_array_equal(back.values, volume.values)
    numpy.testing.assert_allclose(back.grid.voxel_to_world, FIXED.voxel_to_world, atol=1e-12)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("kinds", ["", "affine", "field", "field affine", "affine field"])
def test_warps_are_simple_itks(kinds, mode):
    sitk = pytest.importorskip("SimpleITK", reason="`make check` installs SimpleITK")
    moving = volume_of(MOVING)
    transforms, parts, composite = [], [], sitk.CompositeTransform(3)
    for kind in kinds.split():
        transforms.append(affine() if kind == "affine" else displacement())
        if kind == "affine":
            itk = sitk.AffineTransform(3)
            itk.SetMatrix(affine().matrix[:3, :3].ravel().tolist())
            itk.SetTranslation(affine().matrix[:3, 3].tolist())
        else:
            vectors = numpy.moveaxis(displacement().vectors, -1, 0)[:, None]
            image = volumes.Volume(vectors, FIXED).to_sitk()
            itk = sitk.DisplacementFieldTransform(sitk.Cast(image, sitk.sitkVectorFloat64))
        parts.append(itk)
    for itk in reversed(parts):  # a composite applies the last first
        composite.AddTransform(itk)
    fixed = volume_of(FIXED).to_sitk()
    interpolator = {"linear": sitk.sitkLinear, "nearest": sitk.sitkNearestNeighbor}[mode]
    expected = sitk.GetArrayFromImage(
        sitk.Resample(moving.to_sitk(), fixed, composite, interpolator, 7.0)
    )
    result = volumes.warp(moving, FIXED, transforms, mode=mode, background=7.0).values[0, 0]
    difference = abs(result - expected)
    assert (difference > 1e-3).mean() < 1e-3  # rounding decides about a voxel at the rim
    assert (expected != 7).mean() > 0.5


@pytest.mark.parametrize("options", [{}, {"mode": "nearest"}, {"mode": "cubic"}, {"padding": "border"},
                                     {"padding": "reflection"}, {"background": -3.0}], ids=str)
def test_warps_are_the_programs(tmp_path, options):
    if not PROGRAM.exists():
        pytest.skip("this package lacks the program")
    moving = volume_of(MOVING)
    files = {name: tmp_path / name for name in ("m.nii", "f.nii", "u.nii.gz", "a.mat", "o.nii")}
    similis.write_volume(files["m.nii"], moving)
    similis.write_volume(files["f.nii"], volume_of(FIXED))
    similis.write_transform(files["u.nii.gz"], displacement())
    similis.write_transform(files["a.mat"], affine())
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    subprocess.run(
        [PROGRAM, "warp", files["m.nii"], "--reference", files["f.nii"], "-t", files["u.nii.gz"],
         "-t", files["a.mat"], "-o", files["o.nii"], *words],
        check=True, env={**os.environ, "SIMILIS_NUM_THREADS": "1"},
    )
    expected = similis.read_volume(files["o.nii"])
    moving, fixed = (similis.read_volume(files[name]) for name in ("m.nii", "f.nii"))
    result = volumes.warp(moving, fixed, [files["u.nii.gz"], files["a.mat"]], **options)
    assert result.dtype == expected.dtype
    numpy.testing.assert_allclose(result.values, expected.values, rtol=1e-6, atol=1e-4)


def test_transforms_are_simple_itks(tmp_path):
    sitk = pytest.importorskip("SimpleITK", reason="`make check` installs SimpleITK")
    euler = sitk.Euler3DTransform((1.0, 2.0, 3.0), 0.1, -0.2, 0.3, (4.0, 5.0, 6.0))
    zyx = sitk.Euler3DTransform(euler)
    zyx.SetComputeZYX(True)
    similarity = sitk.Similarity3DTransform(1.1, (0.0, 0.6, 0.8), 0.4, (1.0, 2.0, 3.0), (2.0, 1.0, 0.0))
    versor = sitk.VersorRigid3DTransform((0.6, 0.0, 0.8), 0.3, (1.0, -2.0, 3.0), (2.0, 1.0, 0.0))
    flat = sitk.Similarity2DTransform(1.2, 0.3, (1.0, 2.0), (3.0, 4.0))
    shift = sitk.TranslationTransform(3, (1.0, 2.0, 3.0))
    scale = sitk.ScaleTransform(3, (1.1, 0.9, 1.3))
    composite = sitk.CompositeTransform([euler, similarity, shift])
    for index, transform in enumerate((euler, zyx, similarity, versor, flat, shift, scale, composite)):
        endings = (".txt", ".tfm") + ((".mat",) if transform is not composite else ())
        for ending in endings:
            file = str(tmp_path / f"{index}{ending}")
            sitk.WriteTransform(transform, file)
            matrix = similis.read_transform(file).matrix
            inverse = similis.read_transform(file, inverse=True).matrix
            numpy.testing.assert_allclose(matrix @ inverse, numpy.eye(4), atol=1e-12)
            for point in ((0.0, 0.0, 0.0), (3.0, -4.0, 5.0)):
                rank = transform.GetDimension()
                expected = transform.TransformPoint(point[:rank])
                numpy.testing.assert_allclose((matrix @ [*point, 1])[:rank], expected, atol=1e-9)


@pytest.mark.parametrize("ending", [".mat", ".txt", ".tfm"])
def test_written_transforms_are_read(tmp_path, ending):
    file = tmp_path / f"a{ending}"
    similis.write_transform(file, affine())
    numpy.testing.assert_array_equal(similis.read_transform(file).matrix, affine().matrix)
    sitk = pytest.importorskip("SimpleITK", reason="`make check` installs SimpleITK")
    point = sitk.ReadTransform(str(file)).TransformPoint((3.0, -4.0, 5.0))
    numpy.testing.assert_allclose(point, (affine().matrix @ [3, -4, 5, 1])[:3], atol=1e-9)


def test_fields_in_files(tmp_path):
    similis.write_transform(tmp_path / "u.nii.gz", displacement())
    read = similis.read_transform(tmp_path / "u.nii.gz")
    numpy.testing.assert_array_equal(read.vectors, displacement().vectors)
    sitk = pytest.importorskip("SimpleITK", reason="`make check` installs SimpleITK")
    image = sitk.ReadImage(str(tmp_path / "u.nii.gz"), sitk.sitkVectorFloat64)
    numpy.testing.assert_allclose(sitk.GetArrayFromImage(image), displacement().vectors, atol=1e-6)
    h5py = pytest.importorskip("h5py", reason="`make check` installs h5py")
    assert h5py
    composite = sitk.CompositeTransform(3)
    composite.AddTransform(sitk.AffineTransform(affine().matrix[:3, :3].ravel().tolist(), affine().matrix[:3, 3].tolist()))
    composite.AddTransform(sitk.DisplacementFieldTransform(image))
    sitk.WriteTransform(composite, str(tmp_path / "c.h5"))
    parts = similis.read_transform(tmp_path / "c.h5")
    assert [type(each) for each in parts] == [volumes.Displacement, volumes.Affine]
    numpy.testing.assert_allclose(parts[1].matrix, affine().matrix)
    numpy.testing.assert_allclose(parts[0].vectors, displacement().vectors, atol=1e-6)


def test_an_affine_is_its_grid():
    grid = volumes.coordinates(FIXED, MOVING, affine())
    between = volumes.affine_between(FIXED, MOVING, affine())
    image = volume_of(MOVING).image.astype("float64")
    numpy.testing.assert_allclose(
        similis.sample(image, affine=between, out_shape=FIXED.shape),
        similis.sample(image, grid=grid),
        atol=1e-9,
    )
    back = volumes.transform_of(between, FIXED, MOVING)
    numpy.testing.assert_allclose(back.matrix, affine().matrix, atol=1e-9)


def test_units_of_displacements():
    rng = numpy.random.default_rng(1)
    u = rng.random((1, *FIXED.shape, 3)) - 0.5
    numpy.testing.assert_allclose(volumes.from_world(volumes.to_world(u, FIXED), FIXED), u)
    for order in ("xyz", "zyx"):
        voxels = volumes.to_voxels(u, order)
        numpy.testing.assert_allclose(volumes.from_voxels(voxels, order), u)
    numpy.testing.assert_allclose(voxels[..., 0], u[..., 2] * (FIXED.size[2] - 1) / 2)
    field = volumes.displacement_of(0.1 * u, FIXED)
    image = volume_of(FIXED).image.astype("float64")
    inside = numpy.s_[..., 3:-3, 3:-3, 3:-3]
    grid = volumes.coordinates(FIXED, FIXED, field)
    numpy.testing.assert_allclose(
        similis.sample(image, grid=grid)[inside],
        similis.sample(image, displacement=0.1 * u)[inside],
        atol=1e-8,
    )


def test_units_of_torchs_displacements():
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    u = torch.rand(1, 5, 6, 2, dtype=torch.float64, requires_grad=True)
    back = volumes.from_voxels(volumes.to_voxels(u, "yx"), "yx")
    torch.testing.assert_close(back, u)
    back.sum().backward()
    assert (u.grad == 1).all()


def test_files_are_registered(run_python, tmp_path):
    """The example finds a hidden map between two files of other sizes and spacings."""
    pytest.importorskip("torch", reason="`make check-python` installs torch")
    fixed = volume_of(FIXED)
    hidden = volumes.Affine(volumes.grids.TURN @ numpy.linalg.inv(affine().matrix) @ volumes.grids.TURN)
    similis.write_volume(tmp_path / "fixed.nii.gz", fixed)
    wide = volumes.Grid((28, 26, 24), FIXED.voxel_to_world @ numpy.array(
        [[1, 0, 0, -3], [0, 1, 0, -3], [0, 0, 1, -3], [0, 0, 0, 1.0]]))
    moved = volumes.warp(fixed, wide, hidden, padding="border")
    similis.write_volume(tmp_path / "moving.nii.gz", moved)
    script = pathlib.Path(__file__).resolve().parents[3] / "examples/register_files.py"
    printed = run_python(f"""
        import runpy, sys
        sys.argv = ["register_files.py", "fixed.nii.gz", "moving.nii.gz", "out", "--steps", "40"]
        runpy.run_path({str(script)!r}, run_name="__main__")
    """)
    before, after = (float(line.split("LNCC ")[1]) for line in printed.splitlines()[:2])
    assert after > before + 0.1 and after > 0.7, printed
    assert " 0 voxels fold" in printed
    assert similis.read_volume(tmp_path / "out/warped.nii.gz").grid.size == FIXED.size


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "it is empty"),
        (b"text", "it is neither an ITK transform"),
        (b"#Insight Transform File V1.0\nTransform: Odd_double_3_3\n", "has the type Odd_double_3_3"),
        (b"#Insight Transform File V1.0\nTransform: AffineTransform_double_3_3\nParameters: 1 2\n",
         "has 2 parameters; it must have 12"),
        (b"#Insight Transform File V1.0\nwords\n", 'a line begins with "words"'),
    ],
)
def test_transforms_that_are_none(tmp_path, data, words):
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(ValueError, match=f"cannot read .*a.txt: .*{words}"):
        similis.read_transform(tmp_path / "a.txt")


def test_volumes_that_are_none(tmp_path):
    similis.write_volume(tmp_path / "a.nii", volume_of(FIXED))
    data = (tmp_path / "a.nii").read_bytes()
    for name, content, words in [
        ("b.nii", data[:-5], "it is cut off: its header promises"),
        ("c.nii", b"nothing", "it is not NIfTI"),
        ("d.nii", data[:70] + b"\x20\x00" + data[72:], "complex numbers are not supported"),
        ("e.nii", data[:40] + b"\x09\x00" + data[42:], "it has 9 dimensions"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=words):
            similis.read_volume(tmp_path / name)
    with pytest.raises(ValueError, match="must end in .nii or .nii.gz"):
        similis.write_volume(tmp_path / "a.png", volume_of(FIXED))
    with pytest.raises(ValueError, match="which uint8 cannot represent"):
        similis.write_volume(tmp_path / "f.nii", volume_of(FIXED), dtype="uint8")
    assert not (tmp_path / "f.nii").exists()
    with pytest.raises(TypeError, match="as_volume: image is of type numpy.ndarray"):
        similis.read_volume(numpy.ones((3, 3, 3)))
