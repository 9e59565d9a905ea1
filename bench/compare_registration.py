#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`similis register` beside elastix (its default affine and B-spline maps) and ANTs' SyN on pairs whose
true map is known (tests/known_warps.py): mean error in mm, 1 - correlation, and processor seconds of
the registration, without files for the peers and with them for similis. Peers run where their
packages, itk-elastix and antspyx, are importable; each in a process of its own, as ITK and SimpleITK
do not share one.

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

ROOT = pathlib.Path(__file__).resolve().parent.parent
ELASTIX = """
import json, os, resource, sys, itk, numpy
folder = sys.argv[1]
fixed, moving = (itk.imread(f"{folder}/{name}.nii", itk.F) for name in "fm")
parameters = itk.ParameterObject.New()
for stage in "affine", "bspline":
    parameters.AddParameterMap(parameters.GetDefaultParameterMap(stage))
mask = f"{folder}/k.nii"
masks = {"fixed_mask": itk.imread(mask, itk.UC)} if os.path.exists(mask) else {}
begin = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
warped, found = itk.elastix_registration_method(
    fixed, moving, parameter_object=parameters, log_to_console=False, **masks)
seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - begin
field = itk.array_from_image(itk.transformix_deformation_field(moving, found))
numpy.savez(f"{folder}/peer.npz", field=field[..., :fixed.GetImageDimension()],
            warped=itk.array_from_image(warped), seconds=seconds)
"""
ANTS = """
import os, resource, sys, ants, numpy
import SimpleITK as sitk
folder = sys.argv[1]
fixed, moving = (ants.image_read(f"{folder}/{name}.nii") for name in "fm")
mask = f"{folder}/k.nii"
masks = {"mask": ants.image_read(mask), "mask_all_stages": True} if os.path.exists(mask) else {}
begin = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
found = ants.registration(fixed, moving, type_of_transform="SyN", random_seed=1, **masks)
seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - begin
grid = sitk.ReadImage(f"{folder}/f.nii")
both = sitk.CompositeTransform(grid.GetDimension())
for path in reversed(found["fwdtransforms"]):
    both.AddTransform(sitk.ReadTransform(path) if path.endswith(".mat") else
                      sitk.DisplacementFieldTransform(sitk.ReadImage(path, sitk.sitkVectorFloat64)))
field = sitk.TransformToDisplacementField(both, sitk.sitkVectorFloat64, grid.GetSize(),
    grid.GetOrigin(), grid.GetSpacing(), grid.GetDirection())
warped = sitk.Resample(sitk.ReadImage(f"{folder}/m.nii"), grid, both)
numpy.savez(f"{folder}/peer.npz", field=sitk.GetArrayFromImage(field),
            warped=sitk.GetArrayFromImage(warped), seconds=seconds)
"""
PEERS = {"elastix": ("itk-elastix", ELASTIX), "ANTs SyN": ("antspyx", ANTS)}


def own(program, folder, case):
    """(field, warped, processor seconds) of the program."""
    import SimpleITK as sitk

    import known_warps
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    mask = ["--fixed-mask", f"{folder}/k.nii"] if case.fixed_mask is not None else []
    subprocess.run([program, "register", f"{folder}/f.nii", f"{folder}/m.nii", "-o", f"{folder}/out/",
                    "--no-report", "--no-compress", *case.options, *mask], check=True,
                   stdout=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    both = sitk.CompositeTransform([
        sitk.ReadTransform(f"{folder}/out/0GenericAffine.mat"),
        sitk.DisplacementFieldTransform(sitk.ReadImage(f"{folder}/out/1Warp.nii", sitk.sitkVectorFloat64))])
    warped = sitk.GetArrayFromImage(sitk.ReadImage(f"{folder}/out/Warped.nii"))
    return known_warps.displacement_on(case.fixed, both), warped, sum(after[:2]) - sum(before[:2])


def measure(program, volumes, name):
    """{figure: {who: number}} of one case."""
    import numpy
    import SimpleITK as sitk

    import known_warps
    case = known_warps.case(name, volumes)
    with tempfile.TemporaryDirectory() as folder:
        for letter, image in ("f", case.fixed), ("m", case.moving), ("k", case.fixed_mask):
            if image is not None:
                sitk.WriteImage(image, f"{folder}/{letter}.nii")
        results = {"similis": own(program, folder, case)}
        for who, (_, script) in PEERS.items():
            done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{who} is left out: {(done.stderr.splitlines() or ['no words'])[-1]}")
                continue
            found = numpy.load(f"{folder}/peer.npz")
            results[who] = found["field"].astype(float), found["warped"], float(found["seconds"])
    figures = {"error": {}, "dissimilarity": {}, "processor": {}}
    for who, (field, warped, seconds) in results.items():
        error, in_lesion = known_warps.errors_of(case, field)
        figures["error"][who] = float(error.mean())
        figures["dissimilarity"][who] = float(1 - known_warps.ncc(case, warped))
        figures["processor"][who] = float(seconds)
        if in_lesion is not None:
            figures.setdefault("error_in_lesion", {})[who] = float(in_lesion.mean())
    return figures


UNITS = {"error": "mm", "error_in_lesion": "mm", "dissimilarity": "1-NCC", "processor": "s"}
RATIOS = {"error": 1 / 0.9, "dissimilarity": 1, "processor": 4}  # of the best peer; of elastix in time


def rows_of(name, figures):
    import rows
    for figure, numbers in figures.items():
        peers = {who: number for who, number in numbers.items() if who != "similis"}
        if figure == "processor":  # that is what the target names
            peers = {who: number for who, number in peers.items() if who == "elastix"} or peers
        best = min(peers, key=peers.get) if peers else None
        row = rows.row(f"register/{figure}/{name}", None, UNITS[figure], numbers["similis"], best,
                       peers.get(best), RATIOS.get(figure) if best else None)
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
    for name in arguments.cases or known_warps.NAMES:
        for row in rows_of(name, measure(arguments.program, arguments.volumes, name)):
            rows.append(row)
            print(f"{row['case']}: {row['value']:.4f} {row['unit']}, {row['peers']}", flush=True)
        content = content_of(rows, arguments.commit, [package for package, _ in PEERS.values()])
        arguments.output.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
