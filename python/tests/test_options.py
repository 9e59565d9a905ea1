# SPDX-License-Identifier: Apache-2.0
"""The functions' signatures against the options that the library declares."""

import inspect

import pytest

pytest.importorskip("numpy", reason="`make check` installs numpy")
import similis
from similis._library import measures, schema, warp

LIMITS = {"low", "high"}  # range holds them: (low, high)
NOT_IN_SIGNATURES = {
    "mutual_information": LIMITS,
    "smooth": {"sigma"},  # has no default in Python
    # A histogram is a count of its own, of which mutual_information_from_histogram() takes more.
    "histogram": LIMITS | {"normalized", "smooth_nr", "smooth_dr", "reduction"},
    # The histogram was counted with these.
    "mutual_information_from_histogram": LIMITS
    | {"limits", "num_bins", "kernel", "range", "sampling", "seed", "mask"},
    "affine_grid": {"displacement"},  # may be given by its position
}
OTHERS_IN_SIGNATURES = {
    "mutual_information": {"histogram"},  # belongs to a call
    "mutual_information_loss": {"histogram"},
    "l1_ssim": {"weight"},
    "float_ssim": {"enable_lcs"},  # asks for outputs
    "float_ms_ssim": {"enable_lcs"},
    # Members of the C struct that belong to the call: its memory, and parts of fields.
    "sample": {"deterministic", "output"},
    "compose": {"deterministic", "output"},
    "affine_grid": {"output"},
    "sample_labels": {"background", "smallest_label", "return_weight"},
    "invert": {"rows", "u_rows"},
    "jacobian_determinant": {"rows", "u_rows"},
}
# None stands for these, too.
DEFAULTS_BY_NONE = {("ms_ssim", "weights"), ("float_ssim", "scale")}
TRANSFORMS = {
    name for name, table in schema.TABLES.items() if table.c_struct == "similis_warp_options"
}
OPERATIONS = {name: name for name in schema.TABLES}
OPERATIONS |= {f"{name}_loss": name for name in OPERATIONS if hasattr(similis, f"{name}_loss")}
OPERATIONS["l1_ssim"] = "ssim"


def signature(function):
    parameters = inspect.signature(getattr(similis, function)).parameters.values()
    options = {each.name: each.default for each in parameters if each.kind == each.KEYWORD_ONLY}
    # The layout of arrays is Python's affair.
    assert options.pop("channel_axis", None) is None
    return options


def test_every_operation_is_a_function():
    assert len(OPERATIONS) > len(schema.TABLES) > 14
    for name in OPERATIONS:
        assert callable(getattr(similis, name)), name


@pytest.mark.parametrize("function", OPERATIONS)
def test_signatures_have_the_librarys_options(function):
    operation = OPERATIONS[function]
    declared = set(schema.TABLES[operation].own)
    own = set(signature(function)) - OTHERS_IN_SIGNATURES.get(function, set())
    assert own == declared - NOT_IN_SIGNATURES.get(operation, set())


@pytest.mark.parametrize("function", OPERATIONS)
def test_signatures_have_the_librarys_defaults(function):
    operation = OPERATIONS[function]
    options = schema.TABLES[operation].options
    for name, default in signature(function).items():
        if name in OTHERS_IN_SIGNATURES.get(function, set()):
            continue
        if (operation, name) in DEFAULTS_BY_NONE:
            assert default is None, name
        else:
            assert default == options[name].default, name
            assert isinstance(default, bool) == isinstance(options[name].default, bool), name


def test_the_defaults_as_text_are_those_of_the_c_struct():
    for function, operation in OPERATIONS.items():
        options = schema.TABLES[operation].options
        given = {
            name: default
            for name, default in signature(function).items()
            if name in options and options[name].type != "tensor"
        }
        if operation == "float_ssim":
            given["scale"] = 0
        if given.get("deterministic", False) is None:  # as torch says
            given["deterministic"] = False
        parse = warp.parse if operation in TRANSFORMS else measures.parse
        measure = parse(measures.text(operation, 3, **given))
        lists = {name for name in given if options[name].type == "numbers"}
        for name in options.keys() - lists:
            own = options[name].unpack(bytes(measure.options))
            assert own == schema.TABLES[operation].defaults[name], name
        if not lists:
            assert bytes(measure.options) == schema.TABLES[operation].c_defaults


def test_texts_of_transforms_fill_the_c_struct():
    options = {
        "mode": "cubic",
        "out_shape": (4, 5),
        "min_coords": (-0.5, 0.25),
        "rows": (2, 9),
        "cells": [3, 5],
        "accumulate": True,
    }
    call = warp.parse(warp.text("sample", is_grid=True, **options))
    rows = schema.TABLES["sample"].options
    read = {name: rows[name].unpack(bytes(call.options)) for name in rows}
    assert read["mode"] == "cubic" and read["padding_mode"] == "zeros"
    assert read["out_shape"] == [4, 5] == call.out_shape
    assert read["min_coords"][:2] == [-0.5, 0.25] and read["max_coords"] is None
    assert read["rows"] == [2, 9] and read["cells"] == [3, 5] and read["image_rows"] is None
    labels = warp.parse(warp.text("sample_labels", background=float("inf"), smallest_label=0))
    rows = schema.TABLES["sample_labels"].options
    assert rows["background"].unpack(bytes(labels.options)) == float("inf")
    assert rows["smallest_label"].unpack(bytes(labels.options)) == 0.0
    field, other, notes = object(), object(), object()
    arranged = call.arrange((other, None, field, None, None, notes, None))
    assert arranged == (other, None, None, field, None, notes, None)


def test_values_are_refused_in_the_librarys_words():
    with pytest.raises(ValueError, match="lncc: sigma is -1; it must be a number above 0$"):
        measures.text("lncc", 2, sigma=(1, -1))
    with pytest.raises(ValueError, match="sampling is 0; it must be a number above 0 and up to 1$"):
        measures.text("mutual_information", 0, sampling=0)
    with pytest.raises(ValueError, match="seed is .*; it must be below 18446744073709551616"):
        measures.text("mutual_information", 0, seed=2**64)
    seed = measures.parse(measures.text("mutual_information", 0, seed=2**64 - 1))
    assert schema.TABLES["mutual_information"].options["seed"].unpack(bytes(seed.options)) == 2**64 - 1
    with pytest.raises(AttributeError, match="no attribute 'sigma'"):
        seed.sigma


def test_options_of_the_last_call_stand_for_no_others():
    """A call remembers the options of the one before it, as the same objects."""
    numpy = pytest.importorskip("numpy")
    image = numpy.zeros((1, 1, 4, 5), numpy.float32)
    similis.sample(image, out_shape=(2, 3), align_corners=True)
    with pytest.raises(TypeError, match="align_corners"):
        similis.sample(image, out_shape=(2, 3), align_corners=1)
    shape = [2, 3]
    assert similis.sample(image, out_shape=shape).shape == (1, 1, 2, 3)
    shape[1] = 7  # the same object with another value
    assert similis.sample(image, out_shape=shape).shape == (1, 1, 2, 7)
    assert similis.sample(image, out_shape=(shape[0], 5)).shape == (1, 1, 2, 5)
    with pytest.raises(TypeError, match="window_size"):
        similis.lncc(image, image, window_size=(3.0, 3.0))


def test_shapes_of_the_last_call_stand_for_no_others():
    torch = pytest.importorskip("torch")
    image, field = torch.rand(1, 2, 4, 5), torch.zeros(1, 4, 5, 2)
    assert similis.sample(image, displacement=field).shape == (1, 2, 4, 5)
    assert similis.sample(image, displacement=field.expand(3, -1, -1, -1)).shape == (3, 2, 4, 5)
    assert similis.sample(image, displacement=field[:, :2]).shape == (1, 2, 2, 5)
    assert similis.sample(image, grid=field[:, :2, :3]).shape == (1, 2, 2, 3)
    affine = torch.eye(2, 3).repeat(2, 1, 1)
    assert similis.sample(image, affine=affine).shape == (2, 2, 4, 5)
    assert similis.affine_grid(affine[:1], field).shape == (1, 4, 5, 2)
    assert similis.affine_grid(affine, field).shape == (2, 4, 5, 2)
