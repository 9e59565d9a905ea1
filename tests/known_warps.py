# SPDX-License-Identifier: Apache-2.0
"""Pairs of images whose true map is known, made of a real volume from fixed seeds: FIXED(p) is the
scan at T(p), on a grid of its own, with noise and a bias field or another contrast; MOVING is the
scan itself, with other noise. T is a smooth warp of 4.4 mm on average and some 12 mm at most, and
then a turn and a shift. The logarithm of the warp's determinants deviates by 0.29: it is about as
rough as the one that lays one of the two heads over the other (0.32).
"""

import dataclasses
import pathlib

import numpy
import SimpleITK as sitk

SEED = 19
FIELD_SPACING = 4.0  # mm


@dataclasses.dataclass
class Case:
    name: str
    fixed: sitk.Image
    moving: sitk.Image
    truth: numpy.ndarray  # T(p) - p at each voxel of fixed, in mm
    tissue: numpy.ndarray  # the error is measured there
    options: tuple = ()  # of the program
    fixed_mask: sitk.Image | None = None
    lesion: numpy.ndarray | None = None  # it has no counterpart


def smooth_noise(random, scan, sigma, components):
    """Noise smoothed by sigma mm on a coarse grid over the scan: an array [..., components]. It is
    as strong at the borders as inside."""
    margin = int(3 * sigma / FIELD_SPACING)
    size = [int(n * s / FIELD_SPACING) + 2 for n, s in zip(scan.GetSize(), scan.GetSpacing())]
    noise = random.normal(size=(*(n + 2 * margin for n in size[::-1]), components))
    inside = (slice(margin, -margin),) * len(size)
    parts = []
    for c in range(components):
        image = sitk.GetImageFromArray(noise[..., c])
        soft = sitk.SmoothingRecursiveGaussian(image, sigma / FIELD_SPACING)
        parts.append(sitk.GetArrayFromImage(soft)[inside])
    return numpy.stack(parts, -1)


def on_scan(values, scan):
    """Such an array as an image over the scan."""
    image = sitk.GetImageFromArray(values.astype(float), isVector=values.ndim > scan.GetDimension())
    image.SetSpacing([FIELD_SPACING] * scan.GetDimension())
    image.SetOrigin(scan.GetOrigin())
    image.SetDirection(scan.GetDirection())
    return image


def smooth_warp(random, scan, mean, sigma):
    """A warp of `mean` mm over the scan's tissue."""
    n = scan.GetDimension()
    values = smooth_noise(random, scan, sigma, n)
    image = on_scan(values, scan)
    field = sitk.GetArrayFromImage(sitk.Resample(image, scan))
    inside = tissue_of(scan)
    values *= mean / numpy.linalg.norm(field[inside], axis=-1).mean()
    return sitk.DisplacementFieldTransform(on_scan(values, scan))


def turn(scan, degrees, shift):
    """A turn about the scan's centre, in 3D also half of it about x."""
    n = scan.GetDimension()
    centre = scan.TransformContinuousIndexToPhysicalPoint([(extent - 1) / 2 for extent in scan.GetSize()])
    angle = numpy.radians(degrees)
    if n == 2:
        return sitk.Euler2DTransform(centre, angle, shift)
    return sitk.Euler3DTransform(centre, angle / 2, 0, angle, shift)


def tissue_of(image):
    values = sitk.GetArrayFromImage(image)
    return values > 0.12 * numpy.quantile(values, 0.99)


def displacement_on(grid, transform):
    """T(p) - p at each voxel of the grid."""
    field = sitk.TransformToDisplacementField(transform, sitk.sitkVectorFloat64, grid.GetSize(),
                                              grid.GetOrigin(), grid.GetSpacing(), grid.GetDirection())
    return sitk.GetArrayFromImage(field)


def grid_of(scan, size=None, spacing=None, direction=None, centre=None):
    """An empty image about the scan's centre, or another."""
    size, spacing = size or scan.GetSize(), spacing or scan.GetSpacing()
    grid = sitk.Image([int(n) for n in size], sitk.sitkFloat32)
    grid.SetSpacing(spacing)
    grid.SetDirection(direction or scan.GetDirection())
    centre = centre or scan.TransformContinuousIndexToPhysicalPoint([(n - 1) / 2 for n in scan.GetSize()])
    middle = grid.TransformContinuousIndexToPhysicalPoint([(n - 1) / 2 for n in size])
    grid.SetOrigin([c - m for c, m in zip(centre, middle)])
    return grid


def with_values(values, grid):
    image = sitk.GetImageFromArray(values.astype(numpy.float32))
    image.CopyInformation(grid)
    return image


def noisy(random, values, share):
    scale = numpy.quantile(values, 0.99)
    return numpy.maximum(values + share * scale * random.normal(size=values.shape), 0)


def make(name, scan, seed, *, grid=None, mean=4.4, sigma=12, degrees=4, shift=(5, -4, 3), bias=0.25,
         noise=0.03, contrast=None, lesion=0, options=()):
    random = numpy.random.default_rng(seed)
    n = scan.GetDimension()
    grid = grid or grid_of(scan)
    warp = smooth_warp(random, scan, mean, sigma)
    transform = sitk.CompositeTransform([turn(scan, degrees, shift[:n]), warp])
    clean = sitk.Resample(scan, grid, transform, sitk.sitkBSpline)
    values = numpy.maximum(sitk.GetArrayFromImage(clean).astype(float), 0)
    tissue = tissue_of(clean)
    values = contrast(values / numpy.quantile(values, 0.99)) * 1000 if contrast else values
    if bias:
        field = smooth_noise(random, scan, 40, 1)
        field *= bias / numpy.abs(field).max()
        field = sitk.Resample(on_scan(field[..., 0], scan), clean, sitk.Transform(), sitk.sitkLinear)
        values = values * (1 + sitk.GetArrayFromImage(field))
    mask = damaged = None
    if lesion:
        values, damaged = with_lesion(random, values, clean, lesion)
        mask = sitk.GetImageFromArray((~damaged).astype(numpy.uint8))
        mask.CopyInformation(clean)
    moving = sitk.GetArrayFromImage(scan).astype(float)
    return Case(name, with_values(noisy(random, values, noise), clean),
                with_values(noisy(random, moving, noise), scan), displacement_on(clean, transform),
                tissue, options, mask, damaged)


def with_lesion(random, values, grid, radius):
    """A dark ball of `radius` mm to the right of the grid's middle."""
    index = numpy.stack(numpy.meshgrid(*map(numpy.arange, grid.GetSize()), indexing="ij"), -1)
    middle = (numpy.array(grid.GetSize()) - 1) / 2 + numpy.eye(len(grid.GetSize()))[0] * 30 / grid.GetSpacing()[0]
    distance = numpy.linalg.norm((index - middle) * grid.GetSpacing(), axis=-1).T
    damaged = distance < radius
    texture = 0.15 * numpy.quantile(values, 0.99) * (1 + random.random(values.shape))
    return numpy.where(damaged, texture, values), damaged


def other_contrast(v):
    """Not monotone: white matter becomes darker than grey, fluid bright."""
    return numpy.interp(v, [0, 0.08, 0.2, 0.45, 0.7, 1, 2], [0, 0.02, 0.9, 0.8, 0.35, 0.55, 0.6])


def oblique_grid(scan):
    tilt = sitk.Euler3DTransform((0, 0, 0), 0.25, -0.15, 0.3).GetMatrix()
    frame = numpy.array(tilt).reshape(3, 3) @ numpy.array(scan.GetDirection()).reshape(3, 3)
    return grid_of(scan, (112, 120, 64), (1.9, 2.1, 4.2), tuple(frame.ravel()))


def cropped_grid(scan):
    """The upper part of the head, without a margin at one side."""
    size, spacing = numpy.array(scan.GetSize()), numpy.array(scan.GetSpacing())
    first, count = size * (0.12, 0.18, 0.35) // 1, size * (0.62, 0.64, 0.48) // 1
    centre = scan.TransformContinuousIndexToPhysicalPoint((first + (count - 1) / 2).tolist())
    return grid_of(scan, tuple(count.astype(int).tolist()), tuple(spacing.tolist()), None, centre)


def slice_of(scan):
    """A coronal slice as a picture."""
    size = scan.GetSize()
    return sitk.Extract(scan, (size[0], 0, size[2]), (0, size[1] // 2, 0),
                        sitk.ExtractImageFilter.DIRECTIONCOLLAPSETOIDENTITY)


NAMES = ("warp", "contrast", "turned", "cropped", "oblique", "lesion", "flat", "smooth",
         "smooth_cropped", "smooth_lesion")


def case(name, folder):
    """One of NAMES, of the volumes in a folder."""
    paths = sorted(pathlib.Path(folder).glob("atlas_2mm_*.nii.gz"))
    number = NAMES.index(name.removeprefix("smooth_"))
    seed = SEED + number
    sigma = 16 if name.startswith("smooth") else 12  # mm; log determinants deviate by some 0.2 for 16
    scan = sitk.ReadImage(str(paths[number % 2]), sitk.sitkFloat32)
    if name == "warp":
        return make(name, scan, seed)
    if name == "contrast":
        return make(name, scan, seed, contrast=other_contrast, bias=0, options=("-m", "mi"))
    if name == "turned":
        return make(name, scan, seed, degrees=28, shift=(9, -7, 6))
    if name.endswith("cropped"):
        return make(name, scan, seed, grid=cropped_grid(scan), sigma=sigma)
    if name == "oblique":
        return make(name, scan, seed, grid=oblique_grid(scan))
    if name.endswith("lesion"):
        return make(name, scan, seed, bias=0, noise=0.01, lesion=18, sigma=sigma)
    if name == "smooth":
        return make(name, scan, seed, sigma=sigma)
    assert name == "flat", name
    return make(name, slice_of(scan), seed, degrees=12)


def aligned(folder):
    """Two slices that a smooth warp alone takes to one another, on one grid."""
    path = sorted(pathlib.Path(folder).glob("atlas_2mm_*.nii.gz"))[0]
    scan = slice_of(sitk.ReadImage(str(path), sitk.sitkFloat32))
    return make("aligned", scan, SEED, degrees=0, shift=(0, 0))


def errors_of(case, displacement):
    """The distances in mm between T(p) and p + displacement(p) in the tissue outside a lesion, and
    inside it."""
    distance = numpy.linalg.norm(displacement - case.truth, axis=-1)
    if case.lesion is None:
        return distance[case.tissue], None
    return distance[case.tissue & ~case.lesion], distance[case.lesion]


def ncc(case, warped):
    """Pearson's correlation of fixed and warped, under the mask."""
    fixed = sitk.GetArrayFromImage(case.fixed)
    chosen = numpy.ones(fixed.shape, bool) if case.lesion is None else ~case.lesion
    return numpy.corrcoef(fixed[chosen], warped[chosen])[0, 1]


def least_corner_determinant(field, grid):
    """The least determinant of one-sided differences of p + u(p), u in mm on the grid."""
    n = grid.GetDimension()
    frame = numpy.array(grid.GetDirection()).reshape(n, n) * grid.GetSpacing()
    u = field @ numpy.linalg.inv(frame).T  # voxels
    u = numpy.moveaxis(u, -1, 0)
    sides = []
    for axis in range(n):
        step = numpy.diff(u, axis=n - axis)
        step[axis] += 1
        first, last = numpy.take(step, [0], n - axis), numpy.take(step, [-1], n - axis)
        sides.append((numpy.concatenate([step, last], n - axis),
                      numpy.concatenate([first, step], n - axis)))
    return min(determinant([sides[axis][corner >> axis & 1] for axis in range(n)]).min()
               for corner in range(2**n))


def determinant(rows):
    """Determinants of 2×2 or 3×3 matrices, given as n arrays of n components; numpy.linalg.det
    takes 5 times as long."""
    if len(rows) == 2:
        (a, b), (c, d) = rows
        return a * d - b * c
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
