# SPDX-License-Identifier: Apache-2.0
"""Volumes of MetaImage and NRRD, as SimpleITK writes them."""

import numpy
import pytest

sitk = pytest.importorskip("SimpleITK", reason="`make check` installs SimpleITK")
import similis

NAMES = ["a.mha", "a.mhd", "a.nrrd", "a.nhdr"]


def image_of(size=(7, 5, 4), dtype="int16", components=1):
    values = numpy.random.default_rng(1).integers(0, 100, (*size[::-1], components)).astype(dtype)
    image = sitk.GetImageFromArray(values if components > 1 else values[..., 0], isVector=components > 1)
    image.SetSpacing([1.5, 2.0, 2.5][: len(size)])
    image.SetOrigin([3.0, -4.0, 5.0][: len(size)])
    if len(size) == 3:
        image.SetDirection(sitk.Euler3DTransform((0, 0, 0), 0.2, -0.1, 0.3).GetMatrix())
    return image


def assert_alike(read, image):
    expected = similis.volumes.as_volume(image)
    assert (read.dtype, read.grid.size, read.grid.is_flat) == (
        expected.dtype,
        expected.grid.size,
        expected.grid.is_flat,
    )
    assert read.values.dtype == expected.values.dtype
    numpy.testing.assert_array_equal(read.values, expected.values)
    numpy.testing.assert_allclose(read.grid.voxel_to_world, expected.grid.voxel_to_world, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "int32", "float32", "float64"])
def test_files_of_simpleitk(tmp_path, name, compressed, dtype):
    image = image_of(dtype=dtype)
    sitk.WriteImage(image, str(tmp_path / name), useCompression=compressed)
    assert_alike(similis.read_volume(tmp_path / name), image)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_and_pictures(tmp_path, name):
    for image in image_of(dtype="float32", components=3), image_of((6, 4)):
        sitk.WriteImage(image, str(tmp_path / name))
        assert_alike(similis.read_volume(tmp_path / name), image)


def test_other_headers(tmp_path):
    values = numpy.arange(2 * 3 * 4 * 5, dtype=">i2")
    series = (
        "NRRD0004\n# a comment\ntype: short\ndimension: 4\nspace: RAS\nsizes: 5 4 3 2\n"
        "space directions: (1,0,0) (0,2,0) (0,0,3) none\nspace origin: (1,2,3)\nendian: big\n"
        "encoding: raw\nkey:=value\n\n"
    )
    (tmp_path / "a.nrrd").write_bytes(series.encode() + values.tobytes())
    read = similis.read_volume(tmp_path / "a.nrrd")
    assert read.values.shape == (1, 2, 3, 4, 5)
    numpy.testing.assert_array_equal(read.values.ravel(), values)
    numpy.testing.assert_array_equal(
        read.grid.voxel_to_world[:3], [[1, 0, 0, 1], [0, 2, 0, 2], [0, 0, 3, 3]]
    )
    header = (
        "NDims = 3\nDimSize = 5 4 6\nElementType = MET_SHORT\nBinaryDataByteOrderMSB = True\n"
        "HeaderSize = -1\nElementDataFile = a.raw\n"
    )
    (tmp_path / "a.mhd").write_text(header)
    (tmp_path / "a.raw").write_bytes(b"lead" + values.tobytes())
    numpy.testing.assert_array_equal(similis.read_volume(tmp_path / "a.mhd").values.ravel(), values)


@pytest.mark.parametrize(
    "name, old, new, words",
    [
        ("a.mha", b"MET_SHORT", b"MET_STRING", 'its ElementType is "MET_STRING"'),
        ("a.mha", b"NDims = 3", b"NDims = 2", 'NDims is "2" but DimSize has 3 numbers'),
        ("a.mha", b"DimSize = 7", b"DimSize = 9", "it is cut off: its header promises"),
        ("a.mha", b"DimSize = 7", b"DimSize = x", 'DimSize is "x 5 4"'),
        ("a.mha", b"BinaryData = True", b"BinaryData = False", "its samples are text"),
        ("a.mha", b"ElementDataFile = LOCAL", b"Comment = 1", "it has no ElementDataFile"),
        ("a.nrrd", b"type: short", b"type: block", 'its type is "block"'),
        ("a.nrrd", b"sizes: 7", b"sizes: 9", "it is cut off: its header promises"),
        ("a.nrrd", b"encoding: raw", b"encoding: hex", 'its encoding is "hex"'),
        ("a.nrrd", b"left-posterior-superior", b"scanner-xyz", 'its space is "scanner-xyz"'),
        ("a.nrrd", b"encoding: raw", b"encoding: gzip", "its compressed samples are damaged"),
    ],
)
def test_files_that_are_damaged(tmp_path, name, old, new, words):
    path = tmp_path / name
    sitk.WriteImage(image_of(), str(path))
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    with pytest.raises(ValueError, match=f"cannot read .*{name}: .*{words}"):
        similis.read_volume(path)


def test_samples_elsewhere(tmp_path):
    header = "NDims = 3\nDimSize = 2 2 2\nElementType = MET_UCHAR\nElementDataFile = ../a.raw\n"
    (tmp_path / "a.mhd").write_text(header)
    with pytest.raises(ValueError, match="they must be in a file beside it"):
        similis.read_volume(tmp_path / "a.mhd")


def test_register_takes_their_paths(tmp_path):
    z, y, x = numpy.indices((20, 22, 24))
    values = numpy.exp(-((x - 11) ** 2 + (y - 10) ** 2 * 1.5 + (z - 9) ** 2 * 2) / 60).astype("float32")
    image = sitk.GetImageFromArray(values)
    image.SetSpacing((2, 2, 2))
    for name in "a.mha", "a.nrrd":
        sitk.WriteImage(image, str(tmp_path / name))
    paths = similis.register(tmp_path / "a.mha", tmp_path / "a.nrrd", stages=["rigid"])
    images = similis.register(image, image, stages=["rigid"])
    numpy.testing.assert_array_equal(paths.affine, images.affine)
    numpy.testing.assert_array_equal(paths.warped.values, images.warped.values)
