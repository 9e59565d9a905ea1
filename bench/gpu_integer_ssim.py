# SPDX-License-Identifier: Apache-2.0
"""libvmaf's integer SSIM on a GPU: frames that lie on the device, one and several at a time, and frames
that come from pinned memory of the host, several in flight."""

import time

import torch

from gpu_time import in_a_graph, milliseconds

FRAME = (2160, 3840)
BATCH, FRAMES, IN_FLIGHT = 16, 48, 4


def frames(count):
    """Smooth pictures with grain, as video has them: {x, y}."""
    torch.manual_seed(1)
    height, width = FRAME
    rows = torch.linspace(0, 40, height, device="cuda").cos()[:, None]
    columns = torch.linspace(0, 60, width, device="cuda").sin()[None]
    x = 0.5 + 0.4 * rows * columns + 0.03 * torch.rand((count, *FRAME), device="cuda")
    y = x + 0.05 * torch.rand_like(x) - 0.02
    return [(255 * image.clamp(0, 1)).to(torch.uint8) for image in (x, y)]


def pipelined(similis, host):
    """Milliseconds a pair, and the share of them that copying alone takes: pairs go to buffers on
    streams of their own in turn, so that one is copied while another is scored."""
    streams = [torch.cuda.Stream() for _ in range(IN_FLIGHT)]
    buffers = [[torch.empty(FRAME, dtype=torch.uint8, device="cuda") for _ in range(2)]
               for _ in streams]

    def run(scores):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for i in range(FRAMES):
            slot = i % IN_FLIGHT
            with torch.cuda.stream(streams[slot]):
                for buffer, image in zip(buffers[slot], host):
                    buffer.copy_(image[i % BATCH], non_blocking=True)
                if scores:
                    similis.integer_ssim(*buffers[slot])
        torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - start) / FRAMES

    run(True)
    return min(run(True) for _ in range(3)), min(run(False) for _ in range(3))


def compare(report, similis):
    torch.cuda.empty_cache()
    x, y = frames(BATCH)
    size = f"{FRAME[1]}x{FRAME[0]}/u8"
    singles = [(x[i], y[i]) for i in range(BATCH)]
    report.add(f"integer_ssim/device/{size}", "ms", in_a_graph(similis.integer_ssim, singles[0]),
               floor=0.1, target=0.25)
    report.add(f"integer_ssim/device_as_called/{size}", "ms",
               milliseconds(similis.integer_ssim, singles))
    report.add(f"integer_ssim/device_batch_of_{BATCH}/{size}", "ms",
               in_a_graph(similis.integer_ssim, (x, y)) / BATCH)
    host = [image.cpu().pin_memory() for image in (x, y)]
    both, copies = pipelined(similis, host)
    pair_gb = 2 * FRAME[0] * FRAME[1] / 1e9
    print(f"integer_ssim from pinned memory: {IN_FLIGHT} frames in flight; copying alone takes "
          f"{copies:.4f} ms a pair ({1e3 * pair_gb / copies:.1f} GB/s), {copies / both:.0%} of it")
    report.add(f"integer_ssim/host/{size}", "ms", both, floor=copies)
