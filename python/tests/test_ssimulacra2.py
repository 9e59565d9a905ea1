# SPDX-License-Identifier: Apache-2.0
"""SSIMULACRA 2 of pictures: one number whatever library, layout or thread it comes from."""

import pytest

numpy = pytest.importorskip("numpy", reason="`make check` installs numpy")
import similis


def pictures(*shape):
    generator = numpy.random.default_rng(3)
    x = generator.integers(0, 256, size=shape)
    y = (x + generator.integers(-9, 10, size=shape)).clip(0, 255)
    return x.astype("uint8"), y.astype("uint8")


def test_equal_pictures_score_100_and_others_less():
    x, y = pictures(3, 24, 31)
    assert similis.ssimulacra2(x, x) == 100
    exact, fast = similis.ssimulacra2(x, y), similis.ssimulacra2(x, y, mode="fast")
    assert exact.dtype == "float64" and exact < 100
    assert exact != fast and exact == pytest.approx(fast, abs=1)
    floats = [(each / numpy.float32(255)).astype("float32") for each in (x, y)]
    assert similis.ssimulacra2(*floats) == pytest.approx(exact, abs=1e-2)
    assert abs(similis.ssimulacra2(*floats, transfer="linear") - exact) > 0.1


def test_batches_layouts_and_torch_give_the_same_bits():
    x, y = pictures(2, 3, 20, 33)
    each = similis.ssimulacra2(x, y)
    assert each.shape == (2,)
    assert [similis.ssimulacra2(a, b) for a, b in zip(x, y)] == each.tolist()
    interleaved = [a.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2) for a in (x, y)]
    assert numpy.array_equal(similis.ssimulacra2(*interleaved), each)
    torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    assert similis.ssimulacra2(*tensors).tolist() == each.tolist()
    compiled = torch.compile(similis.ssimulacra2, backend="aot_eager", fullgraph=True)
    assert compiled(*tensors).tolist() == each.tolist()
    with_gradient = (tensors[0] / 255).requires_grad_()
    assert not similis.ssimulacra2(with_gradient, tensors[1] / 255).requires_grad


def test_what_is_refused():
    x, y = pictures(3, 24, 31)
    with pytest.raises(ValueError, match="ssimulacra2: mode is 'slow'; it must be exact or fast"):
        similis.ssimulacra2(x, y, mode="slow")
    with pytest.raises(ValueError, match="ssimulacra2: reference has shape .*at least 8"):
        similis.ssimulacra2(x[:, :7], y[:, :7])
    with pytest.raises(ValueError, match="ssimulacra2: "):
        similis.ssimulacra2(x, y[:, :20])
    with pytest.raises(TypeError):
        similis.value_and_gradient(similis.ssimulacra2, x, y)
