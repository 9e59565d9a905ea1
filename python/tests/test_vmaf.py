# SPDX-License-Identifier: Apache-2.0
"""similis.vmaf and VmafScorer, against libvmaf's figures and each other."""

import json
import os
import pathlib

import numpy as np
import pytest
import similis

DATA = pathlib.Path(
    os.environ.get("SIMILIS_TEST_DATA", pathlib.Path(__file__).parents[2].parent / "shared/data")
)


def clip(seed, shape=(4, 40, 50), dtype=np.uint8):
    ramp = np.linspace(40, 200, shape[-1])
    return (ramp + 40 * np.random.default_rng(seed).random(shape)).astype(dtype)


def recorded(side):
    with open(DATA / "golden_vmaf.json") as file:
        case = json.load(file)["cases"]["small"]
    samples = np.fromfile(DATA / "video" / case[side], np.uint8)
    height, width = case["height"], case["width"]
    frames = samples.reshape(-1, height * width * 3 // 2)[:, : height * width]
    return frames.reshape(-1, height, width), case["columns"]


@pytest.mark.skipif(not (DATA / "golden_vmaf.json").exists(), reason="no recorded figures")
def test_every_number_is_libvmafs():
    reference, columns = recorded("reference")
    distorted, _ = recorded("distorted")
    np.testing.assert_array_equal(similis.vmaf(reference, distorted), columns["vmaf"])
    numbers = similis.vmaf(
        reference, distorted, model="version=vmaf_v0.6.1neg:name=neg", features=True
    )
    assert list(numbers)[-1] == "neg"
    for name, values in numbers.items():
        np.testing.assert_array_equal(values, columns[name], err_msg=name)


def test_the_scorer_is_the_function():
    reference, distorted = clip(1), clip(2)
    scorer = similis.VmafScorer(40, 50, features=["vif=debug=true"])
    frames = []
    for i in range(4):
        frames += scorer.push(reference[i], distorted[i])
        assert len(frames) == i
    frames += scorer.finish()
    assert list(frames[0]) == scorer.columns
    assert "integer_vif_num" in scorer.columns
    expected = similis.vmaf(reference, distorted)
    np.testing.assert_array_equal([frame["vmaf"] for frame in frames], expected)


def test_a_sets_score_is_its_first_models():
    reference, distorted = clip(1), clip(2)
    numbers = similis.vmaf(reference, distorted, model="vmaf_b_v0.6.3", features=True)
    scores = similis.vmaf(reference, distorted, model="vmaf_b_v0.6.3")
    np.testing.assert_array_equal(scores, numbers["vmaf"])
    assert (numbers["vmaf_stddev"] > 0).any()


def test_torch_and_strides():
    torch = pytest.importorskip("torch")
    reference, distorted = clip(1), clip(2)
    expected = similis.vmaf(reference, distorted)
    scores = similis.vmaf(torch.from_numpy(reference), torch.from_numpy(distorted))
    assert scores.dtype == torch.float64
    np.testing.assert_array_equal(scores.numpy(), expected)
    turned = np.ascontiguousarray(reference.transpose(0, 2, 1)).transpose(0, 2, 1)
    np.testing.assert_array_equal(similis.vmaf(turned, distorted), expected)


def test_ten_bits():
    reference, distorted = clip(1).astype(np.uint16) * 4, clip(2).astype(np.uint16) * 4
    expected = similis.vmaf(clip(1), clip(2))
    np.testing.assert_array_equal(similis.vmaf(reference, distorted, bit_depth=10), expected)


@pytest.mark.parametrize(
    "arguments, error, sentence",
    [
        (((4, 40, 51), {}), ValueError, "distorted has shape .4, 40, 51.; it must be that of"),
        (((4, 40), {}), ValueError, "distorted has shape .4, 40.; it must be .T, H, W."),
        (((4, 40, 50), {"model": "vmaf_v9"}), ValueError, "there is no model vmaf_v9; those"),
        (((4, 40, 50), {"model": 3}), TypeError, "model is of type int; it must be a str"),
        (((4, 40, 50), {"bit_depth": 10}), ValueError, "bit_depth is 10; it must be 8 for uint8"),
    ],
)
def test_refusals(arguments, error, sentence):
    shape, options = arguments
    with pytest.raises(error, match=sentence):
        similis.vmaf(clip(1), clip(2, shape), **options)


@pytest.mark.parametrize("dtype, bit_depth", [(np.uint8, None), (np.uint16, 10)])
def test_frames_on_a_gpu_have_the_cpus_scores(dtype, bit_depth):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    reference, distorted = clip(1, dtype=dtype), clip(2, dtype=dtype)
    on_gpu = [torch.from_numpy(each).cuda() for each in (reference, distorted)]
    expected = similis.vmaf(reference, distorted, bit_depth=bit_depth, features=True)
    numbers = similis.vmaf(*on_gpu, bit_depth=bit_depth, features=True)
    assert list(numbers) == list(expected)
    for name, values in numbers.items():
        assert values.device == on_gpu[0].device
        np.testing.assert_array_equal(values.cpu(), expected[name], err_msg=name)
    scorer = similis.VmafScorer(40, 50, bit_depth=bit_depth)
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.synchronize()
        frames = [frame for i in range(4) for frame in scorer.push(*[each[i] for each in on_gpu])]
    frames += scorer.finish()
    np.testing.assert_array_equal([frame["vmaf"] for frame in frames], expected["vmaf"])
    with pytest.raises(ValueError, match="distorted is on cpu; it must be on cuda:0"):
        similis.vmaf(on_gpu[0], distorted, bit_depth=bit_depth)


def test_several_frames_in_a_push():
    reference, distorted = clip(1), clip(2)
    scorer = similis.VmafScorer(40, 50)
    frames = scorer.push(reference, distorted)
    assert len(frames) == 3
    frames += scorer.finish()
    expected = similis.vmaf(reference, distorted)
    np.testing.assert_array_equal([frame["vmaf"] for frame in frames], expected)
