# SPDX-License-Identifier: Apache-2.0
"""torch.jit.trace: graphs hold operators that have gradients, and serve images of other sizes."""

import io

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
import similis
from similis import nn

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")


def affine(rank):
    return (torch.eye(rank, rank + 1) + 0.02 * torch.rand(rank, rank + 1))[None]


def field(*sides):
    return 0.05 * torch.rand(1, *sides, len(sides)) - 0.02


def picture(side):
    return torch.rand(2, 3, side, side + 1)


# The function, and its operands for a size; the first asks for a gradient.
CASES = {
    "ssim_loss": (nn.SSIMLoss(), lambda n: (picture(n), picture(n))),
    "map": (lambda x, y: similis.ssim(x, y, reduction="none"), lambda n: (picture(n), picture(n))),
    "volumes": (
        lambda x, y: similis.lncc(x, y),
        lambda n: (torch.rand(1, 1, 9, n, n), torch.rand(1, 1, 9, n, n)),
    ),
    "mask": (
        lambda x, y, mask: similis.l1_ssim(x, y, mask=mask),
        lambda n: (picture(n), picture(n), torch.rand(n, n + 1)),
    ),
    "channel_axis": (
        lambda x, y: similis.ssim(x, y, channel_axis=-1),
        lambda n: (torch.rand(n, n, 3), torch.rand(n, n, 3)),
    ),
    "ms_ssim": (
        lambda x, y: similis.ms_ssim(x, y, weights=(0.5, 0.5), window_size=5),
        lambda n: (picture(n), picture(n)),
    ),
    "mutual_information": (similis.mutual_information_loss, lambda n: (picture(n), picture(n))),
    "psnr": (similis.psnr, lambda n: (picture(n), picture(n))),
    "sample": (
        lambda u, x, a: similis.sample(x, affine=a, displacement=u),
        lambda n: (field(n, n), torch.rand(1, 1, n, n), affine(2)),
    ),
    "compose": (similis.compose, lambda n: (field(n, n), field(n, n))),
    "affine_grid": (
        lambda a, u: similis.affine_grid(a, displacement=u),
        lambda n: (affine(2), field(n, n)),
    ),
    "weights": (
        lambda a, x: similis.sample_labels(x, affine=a, return_weight=True)[1],
        lambda n: (affine(2), torch.rand(1, 1, n, n).round()),
    ),
    "exponentiate": (similis.exponentiate, lambda n: (field(n, n),)),
    "jacobian_determinant": (
        lambda u: similis.jacobian_determinant(u, max_coords=(0.5, 0.7, 1.0))[0],
        lambda n: (field(5, n, n),),
    ),
    "smooth": (lambda x: similis.smooth(x, 1.5), lambda n: (picture(n),)),
}


def with_gradient(function, operands):
    """The value and the gradient of its weighted sum by the first operand."""
    first = operands[0].clone().requires_grad_()
    value = function(first, *operands[1:])
    weights = torch.rand(value.shape, generator=torch.Generator().manual_seed(1))
    (gradient,) = torch.autograd.grad((value * weights).sum(), first)
    return value.detach(), gradient


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_traced_graphs_have_the_values_and_gradients_of_the_functions(name, asks, relative_l2):
    torch.manual_seed(3)
    function, make = CASES[name]
    operands = make(24)
    traced = torch.jit.trace(function, (operands[0].requires_grad_(asks), *operands[1:]))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    loaded = torch.jit.load(file)
    for size in 24, 31:
        operands = make(size)
        value, gradient = with_gradient(loaded, operands)
        expected, wanted = with_gradient(function, operands)
        torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-6)
        assert relative_l2(gradient, wanted) < 1e-5


def test_derivatives_of_gradients_of_traced_graphs(relative_l2):
    x, y = picture(20).requires_grad_(), picture(20)
    traced = torch.jit.trace(nn.SSIMLoss(), (x, y))
    for function in traced, similis.ssim_loss:
        (gradient,) = torch.autograd.grad(function(x, y), x, create_graph=True)
        (second,) = torch.autograd.grad(gradient.square().sum(), x)
        expected = second if function is traced else expected
    assert relative_l2(expected, second) < 1e-5


def test_a_module_that_is_trained(relative_l2):
    """Inside a network, whose parameters ask for the gradient."""

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = torch.nn.Conv2d(3, 3, 3, padding=1)
            self.loss = nn.L1SSIMLoss(padding="same")

        def forward(self, x, y):
            return self.loss(self.convolution(x), y)

    network, (x, y) = Network(), (picture(20), picture(20))
    traced = torch.jit.trace(network, (x, y))
    weight = network.convolution.weight
    own, expected = (torch.autograd.grad(each(x, y), weight)[0] for each in (traced, network))
    assert relative_l2(own, expected) < 1e-5


def test_a_mask_that_asks_for_a_gradient_is_refused_by_the_graph():
    x, y, mask = picture(20).requires_grad_(), picture(20), torch.rand(20, 21)
    traced = torch.jit.trace(lambda x, y, mask: similis.ssim(x, y, mask=mask), (x, y, mask))
    with pytest.raises(RuntimeError, match="ssim: a mask asks for a gradient; only x and y can"):
        traced(x, y, mask.requires_grad_())
