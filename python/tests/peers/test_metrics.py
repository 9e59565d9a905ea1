# SPDX-License-Identifier: Apache-2.0
"""similis.metrics: batches add up to all images, in a MetricCollection and over processes."""

import inspect
import pickle

import pytest

torch = pytest.importorskip("torch", reason="`make check-python` installs torch")
torchmetrics = pytest.importorskip(
    "torchmetrics", reason="`make check` installs torchmetrics where there is torch"
)
import similis
from similis import metrics

OF_PICTURES = ("SSIM", "MSSSIM", "LNCC", "NCC", "MutualInformation", "PSNR", "MSE", "MAE", "L1SSIM")
OPTIONS = {"MSSSIM": {"weights": (0.5, 0.5), "window_size": 5}, "MutualInformation": {"num_bins": 8}}
FUNCTIONS = {"MSSSIM": "ms_ssim", "L1SSIM": "l1_ssim", "MutualInformation": "mutual_information"}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", OF_PICTURES)
def test_batches_add_up(images, name, reduction):
    x, y = images(5, 3, 24, 20)
    options = OPTIONS.get(name, {})
    metric = getattr(metrics, name)(reduction=reduction, **options).to(x.device)
    for batch in (slice(0, 2), slice(2, 5)):
        metric.update(x[batch], y[batch])
    function = getattr(similis, FUNCTIONS.get(name, name.lower()))
    each = function(x, y, reduction="per_image", **options).double()
    expected = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
    torch.testing.assert_close(metric.compute().double(), expected, rtol=1e-6, atol=1e-7)
    assert (metric.compute().dtype == torch.float64) == (reduction != "none")
    metric.reset()
    torch.testing.assert_close(metric(x, y).double(), expected, rtol=1e-6, atol=1e-7)


def test_scores_of_planes_and_pictures():
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(0, 256, (3, 3, 192, 192), dtype=torch.uint8, generator=generator)
    y = (x.float() * 0.9).to(torch.uint8)
    score = metrics.SSIMULACRA2()
    score.update(x[:2], y[:2])
    score.update(x[2], y[2])  # one picture
    torch.testing.assert_close(score.compute(), similis.ssimulacra2(x, y).mean())
    for name in ("IntegerSSIM", "FloatSSIM", "FloatMSSSIM", "LibvmafPSNR"):
        metric = getattr(metrics, name)()
        metric.update(x[0], y[0])
        metric.update(x[1], y[1])
        words = {"LibvmafPSNR": "libvmaf_psnr", "IntegerSSIM": "integer_ssim"}
        function = getattr(similis, words.get(name, "float_ssim" if name == "FloatSSIM" else "float_ms_ssim"))
        expected = torch.cat([function(x[i], y[i]) for i in range(2)]).mean()
        torch.testing.assert_close(metric.compute(), expected)
    clip = metrics.VMAF("vmaf_v0.6.1", reduction="none")
    clip.update(x[0], y[0])
    torch.testing.assert_close(clip.compute(), similis.vmaf(x[0], y[0]))


def test_collections_and_masks(images):
    x, y = images(3, 3, 24, 20)
    collection = torchmetrics.MetricCollection(
        {"ssim": metrics.SSIM(window_size=7), "psnr": metrics.PSNR(1.0), "lncc": metrics.LNCC()}
    ).to(x.device)
    for each in range(3):
        collection.update(x[each : each + 1], y[each : each + 1])
    results = collection.compute()
    torch.testing.assert_close(results["ssim"].float(), similis.ssim(x, y, window_size=7))
    each = similis.psnr(x, y, reduction="per_image")
    torch.testing.assert_close(results["psnr"].float(), each.mean())
    mask = torch.zeros(24, 20, device=x.device)
    mask[8:, 8:] = 1
    metric = metrics.SSIM().to(x.device)
    metric.update(x, y, mask=mask)
    expected = similis.ssim(x, y, mask=mask, reduction="per_image").mean()
    torch.testing.assert_close(metric.compute().float(), expected)
    copy = pickle.loads(pickle.dumps(metric))
    assert copy.compute() == metric.compute()


def test_forward_has_a_gradient(images):
    x, y = images(2, 1, 16, 16, requires_grad="x")
    metric = metrics.SSIM().to(x.device)
    metric(x, y).backward()
    expected = torch.autograd.grad(similis.ssim(x, y), x)[0]
    torch.testing.assert_close(x.grad, expected)


def test_constructors_show_their_options():
    named = inspect.signature(metrics.SSIM).parameters
    assert named["window_size"].default == 11 and named["reduction"].default == "mean"
    assert "mask" not in named


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: metrics.SSIM(window_size=8), "metrics.SSIM: window_size is 8; it must be an odd"),
        (lambda: metrics.SSIM(reduction="per_image"), "metrics.SSIM: reduction is 'per_image'; it"),
        (lambda: metrics.SSIM(win_size=7), "metrics.SSIM: there is no option win_size; here it is"),
        (lambda: metrics.VMAF(features=True), "metrics.VMAF: there is no option features"),
        (lambda: metrics.PSNR(1.0, 2.0), "PSNR: 2 options came without a name; it takes 1"),
    ],
)
def test_options_are_checked_when_a_metric_is_made(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_processes_add_up(run_python):
    """Two processes, which see batches of different sizes, on gloo."""
    print_ = run_python("""
        import os, torch, torch.multiprocessing as mp
        import similis
        from similis import metrics
        from similis.compat.torchmetrics.image import StructuralSimilarityIndexMeasure

        def images():
            generator = torch.Generator().manual_seed(1)
            x = torch.rand(5, 1, 16, 16, generator=generator)
            return x, x * 0.9

        def work(rank, file):
            torch.distributed.init_process_group(
                "gloo", init_method=f"file://{file}", rank=rank, world_size=2)
            x, y = images()
            own = slice(0, 2) if rank == 0 else slice(2, 5)
            each = similis.ssim(x, y, reduction="per_image")
            theirs = StructuralSimilarityIndexMeasure(data_range=1.0)
            theirs.update(x[own], y[own])
            for reduction in ("mean", "sum", "none"):
                metric = metrics.SSIM(reduction=reduction)
                metric.update(x[own], y[own])
                expected = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
                torch.testing.assert_close(metric.compute().float(), expected)
            wanted = similis.ssim(x, y, padding="reflect")
            torch.testing.assert_close(theirs.compute(), wanted)
            torch.distributed.destroy_process_group()

        if __name__ == "__main__":
            mp.spawn(work, (os.path.abspath("rendezvous"),), nprocs=2)
            print("added up")
    """)
    assert "added up" in print_


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["SSIM", "PSNR", "VMAF"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_metrics_are_scriptable(name, reduction):
    """As each of torchmetrics' own is, which keep their methods in Python."""
    torch.jit.script(getattr(metrics, name)(reduction=reduction))
