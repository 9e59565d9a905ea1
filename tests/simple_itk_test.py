#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis warp` and `similis register` against ITK: files of every format, transforms of every kind,
their files, order and inverses, on oblique grids, and on the tutorial volumes where ../shared has them. Exits with 77 where SimpleITK is missing.

    simple_itk_test.py PROGRAM SCRATCH_FOLDER
"""

import gzip
import json
import math
import pathlib
import struct
import subprocess
import sys

try:
    import numpy
    import SimpleITK as sitk
except ImportError as error:
    print(f"skipped: {error}; `make check` installs SimpleITK into .venv")
    sys.exit(77)

TOLERANCE = 1e-3  # of the image's range
VOLUMES = pathlib.Path(__file__).resolve().parents[2] / "shared/data/volumes"
MODES = {"linear": sitk.sitkLinear, "nearest": sitk.sitkNearestNeighbor, "cubic": sitk.sitkBSpline}


def oblique(size, spacing, origin, angles, values):
    image = sitk.GetImageFromArray(values.astype(numpy.float32))
    assert image.GetSize() == size
    image.SetSpacing(spacing)
    image.SetOrigin(origin)
    turn = sitk.Euler3DTransform((0, 0, 0), *angles)
    image.SetDirection(turn.GetMatrix())
    return image


def synthetic(folder):
    """A fixed and a moving volume on grids of their own, and labels on the moving one's."""
    random = numpy.random.default_rng(1)
    z, y, x = numpy.mgrid[:21, :25, :33]
    waves = 900 * numpy.sin(x / 4.0) * numpy.cos(y / 5.0 + z / 3.0) + 30 * random.normal(size=x.shape)
    moving = oblique((33, 25, 21), (1.5, 2, 2.5), (-20, 10, -30), (0.2, -0.1, 0.3), waves)
    fixed = oblique((30, 28, 20), (1.7, 1.6, 2.2), (-15, 5, -28), (0.1, 0.15, 0.1),
                    numpy.zeros((20, 28, 30)))
    labels = oblique((33, 25, 21), (1.5, 2, 2.5), (-20, 10, -30), (0.2, -0.1, 0.3),
                     numpy.rint((waves + 1100) / 300))
    labels = sitk.Cast(labels, sitk.sitkUInt8)
    files = {}
    for name, image in ("fixed", fixed), ("moving", moving), ("labels", labels):
        files[name] = folder / f"{name}.nii.gz"
        sitk.WriteImage(image, str(files[name]))
    return files


def about_centre(transform, image):
    transform.SetCenter(image.TransformContinuousIndexToPhysicalPoint(
        [(extent - 1) / 2 for extent in image.GetSize()]))
    return transform


def displacement_field(fixed):
    """Smooth, up to 4 mm, on a grid that is coarser than the fixed image's and covers part of it."""
    size = [max(4, extent * 2 // 5) for extent in fixed.GetSize()]
    z, y, x = numpy.mgrid[:size[2], :size[1], :size[0]]
    values = numpy.stack([4 * numpy.sin(x / 2 + y / 3), 3 * numpy.cos(z / 2 + x / 5), 2 * numpy.sin(y / 2)], -1)
    field = sitk.GetImageFromArray(values.astype(numpy.float64), isVector=True)
    field.SetSpacing([2.1 * step for step in fixed.GetSpacing()])
    field.SetOrigin(fixed.TransformContinuousIndexToPhysicalPoint([2.2, 1.3, 1.1]))
    field.SetDirection(fixed.GetDirection())
    return field


def transform_files(folder, fixed):
    """Name → (what --transform is given, ITK's transform)."""
    affine = about_centre(sitk.AffineTransform(3), fixed)
    affine.SetMatrix([1.05, 0.1, -0.05, -0.08, 0.95, 0.07, 0.02, 0.1, 1.1])
    affine.SetTranslation((3, -2, 1.5))
    quarter = about_centre(sitk.Euler3DTransform(), fixed)
    quarter.SetRotation(0, 0, math.pi / 2)
    tilted = about_centre(sitk.Euler3DTransform(), fixed)
    tilted.SetRotation(0.2, -0.3, 0.1)
    tilted.SetTranslation((1, 2, -1))
    zyx = sitk.Euler3DTransform(tilted)
    zyx.SetComputeZYX(True)
    versor = about_centre(sitk.VersorRigid3DTransform(), fixed)
    versor.SetRotation((0.1, 0.2, 0.3), 0.4)
    versor.SetTranslation((2, 1, 0))
    similarity = about_centre(sitk.Similarity3DTransform(), fixed)
    similarity.SetRotation((0.3, 0.2, 0.1), 0.3)
    similarity.SetScale(1.1)
    scale = about_centre(sitk.ScaleTransform(3), fixed)
    scale.SetScale((0.9, 1.1, 1.05))
    plain = {"identity": sitk.Transform(), "quarter": quarter, "affine": affine, "tilted": tilted,
             "zyx": zyx, "versor": versor, "similarity": similarity, "scale": scale,
             "shift": sitk.TranslationTransform(3, (1.5, -2.5, 3.5))}
    files = {}
    for number, (name, transform) in enumerate(plain.items()):
        path = folder / f"{name}.{('mat', 'txt', 'tfm')[number % 3]}"
        sitk.WriteTransform(transform, str(path))
        files[name] = str(path), transform
    composite = sitk.CompositeTransform([affine, tilted])
    sitk.WriteTransform(composite, str(folder / "composite.tfm"))
    files["composite"] = str(folder / "composite.tfm"), composite
    files["inverse"] = f"[{files['affine'][0]},1]", affine.GetInverse()
    sitk.WriteTransform(composite, str(folder / "composite.h5"))
    files["affine h5"] = str(folder / "composite.h5"), composite
    path = folder / "field.nii.gz"
    sitk.WriteImage(displacement_field(fixed), str(path))
    field = sitk.DisplacementFieldTransform(sitk.ReadImage(str(path), sitk.sitkVectorFloat64))
    files["field"] = str(path), field
    mixed = sitk.CompositeTransform([affine, tilted, field, versor])
    sitk.WriteTransform(mixed, str(folder / "mixed.h5"))
    files["mixed h5"] = str(folder / "mixed.h5"), mixed
    sitk.WriteTransform(field, str(folder / "field.h5"))
    files["field h5"] = str(folder / "field.h5"), field
    files["right and front"] = str(turned_field(path, folder / "dispvect.nii")), field
    return files


def turned_field(path, turned):
    """The same field as NIfTI's own displacement vectors, which point to the right and the front."""
    content = bytearray(gzip.decompress(path.read_bytes()))
    struct.pack_into("<h", content, 68, 1006)  # NIFTI_INTENT_DISPVECT
    offset, = struct.unpack_from("<f", content, 108)
    values = numpy.frombuffer(content, "<f8", offset=int(offset)).copy()
    values[:len(values) // 3 * 2] *= -1
    turned.write_bytes(content[:int(offset)] + values.tobytes())
    return turned


def expected(fixed, moving, transforms, interpolator, background):
    composite = sitk.CompositeTransform(3)
    for transform in reversed(transforms):  # ITK applies the one that was added last first
        composite.AddTransform(transform)
    return sitk.Resample(moving, fixed, composite, interpolator, background)


class Check:
    def __init__(self, program, folder):
        self.program, self.folder, self.worst = program, folder, 0

    def __call__(self, files, chosen, mode="linear", background=0, moving="moving"):
        """Warps with the program and with ITK; nearly all voxels must agree.

        If a point lies on a border between voxels, or on the image's edge, the last bit decides
        which side it is on: a few voxels in a thousand may differ there."""
        out = self.folder / "out.nii.gz"
        arguments = [self.program, "warp", files[moving], "-r", files["fixed"], "-o", out, "--mode",
                     mode, "--background", str(background)]
        for text, _ in chosen:
            arguments += ["-t", text]
        subprocess.run(arguments, check=True, stdout=subprocess.PIPE)
        fixed, image = (sitk.ReadImage(str(files[name])) for name in ("fixed", moving))
        interpolator = sitk.sitkLabelLinear if mode == "label" else MODES[mode]
        theirs = expected(fixed, image, [transform for _, transform in chosen], interpolator,
                          background)
        ours = sitk.ReadImage(str(out))
        assert ours.GetSize() == theirs.GetSize()
        for name in "GetSpacing", "GetOrigin", "GetDirection":
            assert numpy.allclose(getattr(ours, name)(), getattr(theirs, name)(), atol=1e-4), name
        a, b = (sitk.GetArrayFromImage(each).astype(float) for each in (ours, theirs))
        source = sitk.GetArrayFromImage(image)
        differences = numpy.abs(a - b) / (source.max() - source.min())
        case = f"{mode} of {pathlib.Path(files[moving]).name} by {[text for text, _ in chosen]}"
        apart = numpy.mean(differences > TOLERANCE)
        allowed = 1e-3 if mode in ("linear", "cubic") else 5e-3
        assert apart <= allowed, f"{case}: {apart:.2%} of the voxels differ"
        assert numpy.mean(b != background) > 0.1, f"{case}: nothing to compare"
        self.worst = max(self.worst, numpy.quantile(differences, 1 - allowed))


def blobs(size, spacing, origin, angles, moved):
    """Soft shapes about the world's origin, on an oblique grid or, of 2 sides, in the plane; moved: 1 for
    shapes that are shifted and bent, else 0."""
    if len(size) == 2:
        image = sitk.Image(size, sitk.sitkFloat32)
        image.SetSpacing(spacing)
        image.SetOrigin(origin)
        image.SetDirection(sitk.Euler2DTransform((0, 0), angles[0]).GetMatrix())
    else:
        image = oblique(size, spacing, origin, angles, numpy.zeros(size[::-1]))
    n = len(size)
    index = numpy.stack(numpy.meshgrid(*map(numpy.arange, size), indexing="ij"), -1)
    frame = numpy.array(image.GetDirection()).reshape(n, n) * spacing
    p = numpy.zeros((*size, 3))
    p[..., :n] = index @ frame.T + origin
    x, y, z = numpy.moveaxis(p + (3 * numpy.sin(p[..., [1, 2, 0]] / 14) + (5, -4, 3)) * moved, -1, 0)
    body = 1 / (1 + numpy.exp(8 * (numpy.sqrt((x / 32)**2 + (y / 28)**2 + (z * (n == 3) / 30)**2) - 1)))
    values = 100 * body * (1 + 0.4 * numpy.sin(x / 6 + 1) * numpy.cos(y / 7) * numpy.cos(z * (n == 3) / 8))
    filled = sitk.GetImageFromArray(values.T.astype(numpy.float32))
    filled.CopyInformation(image)
    return filled


# The grids of FIXED and MOVING: size, spacing, origin, angles.
REGISTRATIONS = {
    "oblique": (((36, 30, 26), (2.2, 2.5, 3), (-45, -32, -36), (0.1, 0.15, 0.1)),
                ((34, 33, 30), (2.4, 2.3, 2.6), (-38, -36, -38), (0.2, -0.1, 0.3))),
    "anisotropic": (((56, 52, 18), (1.5, 1.6, 4.5), (-42, -40, -38), (0, 0, 0)),
                    ((20, 60, 44), (4, 1.4, 1.8), (-40, -42, -39), (0, 0, 0))),
    "plane": (((40, 36), (2, 2.2), (-35, -42), (0.1,)), ((46, 31), (1.8, 2.7), (-50, -30), (-0.15,))),
}


def check_registration(program, folder, case, stages):
    """The files of `similis register`: ITK's composite of them gives the warped images that the program
    wrote, and the inverse undoes the map. `similis warp` reads that composite from HDF5."""
    files = {"fixed": folder / "f.nii.gz", "moving": folder / "m.nii.gz"}
    fixed, moving = (blobs(*grid, moved) for moved, grid in enumerate(REGISTRATIONS[case]))
    for name, image in ("fixed", fixed), ("moving", moving):
        sitk.WriteImage(image, str(files[name]))
    prefix = f"{folder / 'registered'}/"
    subprocess.run([program, "register", files["fixed"], files["moving"], "-o", prefix, "--levels",
                    "2x1", "--iterations", "20x15", "--stages", stages, "--no-report"], check=True,
                   stdout=subprocess.PIPE)
    affine = sitk.ReadTransform(prefix + "0GenericAffine.mat")
    warp, inverse = [sitk.DisplacementFieldTransform(sitk.ReadImage(
        prefix + f"{name}.nii.gz", sitk.sitkVectorFloat64)) for name in ("1Warp", "1InverseWarp")]
    there, back = sitk.CompositeTransform([affine, warp]), sitk.CompositeTransform(
        [inverse, affine.GetInverse()])
    sitk.WriteTransform(there, prefix + "Composite.h5")
    subprocess.run([program, "warp", "-d", str(fixed.GetDimension()), "-i", files["moving"], "-r", files["fixed"],
                    "-t", prefix + "Composite.h5", "-n", "Linear", "-o", prefix + "OfComposite.nii.gz"],
                   check=True, stderr=subprocess.PIPE)
    for name, source, target, transform in (("Warped", moving, fixed, there),
                                            ("OfComposite", moving, fixed, there),
                                            ("InverseWarped", fixed, moving, back)):
        ours = sitk.GetArrayFromImage(sitk.ReadImage(prefix + name + ".nii.gz"))
        theirs = sitk.GetArrayFromImage(sitk.Resample(source, target, transform))
        scale = numpy.ptp(sitk.GetArrayFromImage(source))
        apart = numpy.mean(numpy.abs(ours - theirs) > TOLERANCE * scale)
        assert apart <= 1e-3, f"{case}, {name}: {apart:.2%} of the voxels differ"
        picture = sitk.GetArrayFromImage(target)
        alike = numpy.corrcoef(picture.ravel(), ours.ravel())[0, 1]
        assert alike > 0.97, f"{case}, {name}: correlation {alike}"
    errors = []
    for share in 0.3, 0.5, 0.68:
        p = fixed.TransformContinuousIndexToPhysicalPoint([share * (extent - 1) for extent in fixed.GetSize()])
        errors.append(math.dist(p, back.TransformPoint(there.TransformPoint(p))))
    assert max(errors) < 0.15, f"{case}: the inverse misses by {max(errors)} mm"
    print(f"register, {case}, {stages}: the inverse misses by {max(errors):.3f} mm at most")


def check_formats(program, folder):
    """A volume is the same one, in the same place, in every format that ITK writes."""
    random = numpy.random.default_rng(5)
    for pixel in "uint8", "int16", "float32", "float64":
        values = random.integers(0, 200, (9, 11, 13)).astype(pixel)
        image = sitk.Cast(oblique((13, 11, 9), (1.5, 2, 2.5), (-20, 10, -30), (0.2, -0.1, 0.3), values),
                          {"uint8": sitk.sitkUInt8, "int16": sitk.sitkInt16, "float32": sitk.sitkFloat32,
                           "float64": sitk.sitkFloat64}[pixel])
        nifti = folder / "format.nii.gz"
        sitk.WriteImage(image, str(nifti))
        for suffix in "mha", "mhd", "nrrd", "nhdr":
            for is_compressed in False, True:
                path = folder / f"format_{pixel}_{is_compressed}.{suffix}"
                sitk.WriteImage(image, str(path), is_compressed)
                done = subprocess.run([program, "compare", nifti, path, "-m", "mse", "--format", "json"],
                                      capture_output=True, text=True)
                assert done.returncode == 0, f"{path.name}: {done.stderr}"
                assert json.loads(done.stdout)["frames"][0]["mse"] == 0, f"{path.name}: {done.stdout}"
                assert not done.stderr, f"{path.name}: {done.stderr}"


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    check_formats(program, folder)
    check = Check(program, folder)
    files = synthetic(folder)
    transforms = transform_files(folder, sitk.ReadImage(str(files["fixed"])))
    for name, chosen in transforms.items():
        check(files, [chosen], background=-1000)
    for mode in MODES:
        check(files, [transforms["affine"]], mode)
        check(files, [transforms["field"], transforms["tilted"]], mode)
    check(files, [transforms["tilted"], transforms["field"], transforms["shift"]])
    check(files, [transforms["affine"], transforms["tilted"]], "nearest", moving="labels")
    if hasattr(sitk, "sitkLabelLinear"):
        check(files, [transforms["affine"]], "label", moving="labels")
    for case in REGISTRATIONS:
        check_registration(program, folder, case, "rigid,affine,deformable")
    check_registration(program, folder, "oblique", "rigid,affine,symmetric")
    paths = sorted(VOLUMES.glob("*.nii.gz"))
    if len(paths) == 2:
        files = dict(zip(("fixed", "moving"), paths))
        transforms = transform_files(folder, sitk.ReadImage(str(paths[0])))
        for name in "identity", "quarter", "affine", "field":
            check(files, [transforms[name]])
        check(files, [transforms["field"], transforms["affine"]], "cubic")
    else:
        print(f"the tutorial volumes are not in {VOLUMES}")
    print(f"largest difference {check.worst:.2g} of the range")


if __name__ == "__main__":
    main()
