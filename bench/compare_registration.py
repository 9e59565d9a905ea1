#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis register` beside elastix (its default affine and B-spline maps) and ANTs' SyN on pairs whose
true map is known (tests/known_warps.py), and on the two volumes themselves: `heads`, on their own
grid, and `heads_160x192x224`. Mean error in mm, 1 - correlation, and wall and processor seconds of
the registration with two threads, without files for the peers and with them for similis. Peers run
where their packages, itk-elastix and antspyx, are importable; each in a process of its own, as ITK
and SimpleITK do not share one.

    bench/compare_registration.py build/bin/similis VOLUMES --output rows.json [case …]
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ELASTIX = """
import json, os, resource, sys, time, itk, numpy
folder = sys.argv[1]
fixed, moving = (itk.imread(f"{folder}/{name}.nii", itk.F) for name in "fm")
parameters = itk.ParameterObject.New()
for stage in "affine", "bspline":
    parameters.AddParameterMap(parameters.GetDefaultParameterMap(stage))
mask = f"{folder}/k.nii"
masks = {"fixed_mask": itk.imread(mask, itk.UC)} if os.path.exists(mask) else {}
begin = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
wall = -time.perf_counter()
warped, found = itk.elastix_registration_method(
    fixed, moving, parameter_object=parameters, log_to_console=False, **masks)
seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - begin
wall += time.perf_counter()
field = itk.array_from_image(itk.transformix_deformation_field(moving, found))
numpy.savez(f"{folder}/peer.npz", field=field[..., :fixed.GetImageDimension()],
            warped=itk.array_from_image(warped), seconds=seconds, wall=wall)
"""
ANTS = """
import os, resource, sys, time, ants, numpy
import SimpleITK as sitk
folder = sys.argv[1]
fixed, moving = (ants.image_read(f"{folder}/{name}.nii") for name in "fm")
mask = f"{folder}/k.nii"
masks = {"mask": ants.image_read(mask), "mask_all_stages": True} if os.path.exists(mask) else {}
begin = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
wall = -time.perf_counter()
found = ants.registration(fixed, moving, type_of_transform="SyN", random_seed=1, **masks)
seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - begin
wall += time.perf_counter()
grid = sitk.ReadImage(f"{folder}/f.nii")
both = sitk.CompositeTransform(grid.GetDimension())
for path in reversed(found["fwdtransforms"]):
    both.AddTransform(sitk.ReadTransform(path) if path.endswith(".mat") else
                      sitk.DisplacementFieldTransform(sitk.ReadImage(path, sitk.sitkVectorFloat64)))
field = sitk.TransformToDisplacementField(both, sitk.sitkVectorFloat64, grid.GetSize(),
    grid.GetOrigin(), grid.GetSpacing(), grid.GetDirection())
warped = sitk.Resample(sitk.ReadImage(f"{folder}/m.nii"), grid, both)
numpy.savez(f"{folder}/peer.npz", field=sitk.GetArrayFromImage(field),
            warped=sitk.GetArrayFromImage(warped), seconds=seconds, wall=wall)
"""
PEERS = {"elastix": ("itk-elastix", ELASTIX), "ANTs SyN": ("antspyx", ANTS)}


def own(program, folder, options):
    """(field on the fixed grid, warped, processor seconds, wall seconds) of the program."""
    import SimpleITK as sitk

    import known_warps
    mask = f"{folder}/k.nii"
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([program, "register", f"{folder}/f.nii", f"{folder}/m.nii", "-o", f"{folder}/out/",
                    "--no-report", "--no-compress", "--threads", "2", *options,
                    *(["--fixed-mask", mask] if os.path.exists(mask) else [])],
                   check=True, stdout=subprocess.PIPE)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - wall
    both = sitk.CompositeTransform([
        sitk.ReadTransform(f"{folder}/out/0GenericAffine.mat"),
        sitk.DisplacementFieldTransform(sitk.ReadImage(f"{folder}/out/1Warp.nii", sitk.sitkVectorFloat64))])
    warped = sitk.GetArrayFromImage(sitk.ReadImage(f"{folder}/out/Warped.nii"))
    field = known_warps.displacement_on(sitk.ReadImage(f"{folder}/f.nii"), both)
    return field, warped, sum(after[:2]) - sum(before[:2]), wall


def results_of(program, images, options):
    """{who: what own() returns}; images: by the letters f, m and k, of which the mask k may be None."""
    import numpy
    import SimpleITK as sitk
    with tempfile.TemporaryDirectory() as folder:
        for letter, image in images.items():
            if image is not None:
                sitk.WriteImage(image, f"{folder}/{letter}.nii")
        results = {"similis": own(program, folder, options)}
        for who, (_, script) in PEERS.items():
            done = subprocess.run([sys.executable, "-c", script, folder], cwd=folder,  # they write beside them
                                  capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{who} is left out: {(done.stderr.splitlines() or ['no words'])[-1]}")
                continue
            found = numpy.load(f"{folder}/peer.npz")
            results[who] = (found["field"].astype(float), found["warped"], float(found["seconds"]),
                            float(found["wall"]))
    return results


def measure(program, volumes, name):
    """{figure: {who: number}} of one case."""
    import known_warps
    if name in HEADS:
        return measure_heads(program, volumes, name)
    case = known_warps.case(name, volumes)
    images = {"f": case.fixed, "m": case.moving, "k": case.fixed_mask}
    figures = {"error": {}, "dissimilarity": {}, "processor": {}}
    for who, (field, warped, seconds, _) in results_of(program, images, case.options).items():
        error, in_lesion = known_warps.errors_of(case, field)
        figures["error"][who] = float(error.mean())
        figures["dissimilarity"][who] = float(1 - known_warps.ncc(case, warped))
        figures["processor"][who] = float(seconds)
        if in_lesion is not None:
            figures.setdefault("error_in_lesion", {})[who] = float(in_lesion.mean())
    return figures


def measure_heads(program, volumes, name):
    """The figures of two people's heads, whose true map nobody knows."""
    import numpy
    import SimpleITK as sitk
    fixed, moving = (sitk.ReadImage(str(path), sitk.sitkFloat32)
                     for path in sorted(pathlib.Path(volumes).glob("atlas_2mm_*.nii.gz")))
    if name != "heads":
        size = [int(number) for number in reversed(name.split("_")[1].split("x"))]
        fixed, moving = on_grid(fixed, size), on_grid(moving, size)
    goal = sitk.GetArrayFromImage(fixed).ravel()
    figures = {"dissimilarity": {}, "processor": {}, "wall": {}}
    for who, (_, warped, seconds, wall) in results_of(
            program, {"f": fixed, "m": moving, "k": None}, []).items():
        figures["dissimilarity"][who] = float(1 - numpy.corrcoef(goal, warped.ravel())[0, 1])
        figures["processor"][who] = float(seconds)
        figures["wall"][who] = wall
    return figures


def on_grid(image, size):
    """The image by linear interpolation at a number of voxels, corners on corners."""
    import SimpleITK as sitk
    spacing = [s * (n - 1) / (m - 1) for s, n, m in zip(image.GetSpacing(), image.GetSize(), size)]
    return sitk.Resample(image, size, sitk.Transform(), sitk.sitkLinear, image.GetOrigin(), spacing,
                         image.GetDirection())


UNITS = {"error": "mm", "error_in_lesion": "mm", "dissimilarity": "1-NCC", "processor": "s", "wall": "s"}
RATIOS = {"error": 1 / 0.9, "dissimilarity": 1, "processor": 4}  # of the best peer; of elastix in time
HEADS = {"heads": 5, "heads_160x192x224": 20}  # the wall seconds asked of two threads


def rows_of(name, figures):
    import rows
    for figure, numbers in figures.items():
        peers = {who: number for who, number in numbers.items() if who != "similis"}
        if figure in ("processor", "wall"):  # what the target names
            peers = {who: number for who, number in peers.items() if who == "elastix"} or peers
        best = min(peers, key=peers.get) if peers else None
        row = rows.row(f"register/{figure}/{name}", 2, UNITS[figure], numbers["similis"], best,
                       peers.get(best), RATIOS.get(figure) if best else None,
                       target=HEADS[name] if figure == "wall" else None)
        row["peers"] = {who: number for who, number in numbers.items() if who != "similis"}
        yield row


def content_of(rows, commit, packages):
    from importlib import metadata
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return {"device": processor(), "commit": commit, "date": datetime.date.today().isoformat(),
            "subject": "registration", "driver": None, "cuda": None,
            "versions": versions, "rows": rows}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("volumes")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--commit", default="")
    arguments = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]
    os.environ.setdefault("ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS", "2")
    import known_warps
    rows = []
    for name in arguments.cases or (*HEADS, *known_warps.NAMES):
        for row in rows_of(name, measure(arguments.program, arguments.volumes, name)):
            rows.append(row)
            print(f"{row['case']}: {row['value']:.4f} {row['unit']}, {row['peers']}", flush=True)
        content = content_of(rows, arguments.commit, [package for package, _ in PEERS.values()])
        arguments.output.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
