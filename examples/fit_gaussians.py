# SPDX-License-Identifier: Apache-2.0
"""Fits an image by a few hundred 2-D Gaussians, with the loss of 3-D Gaussian splatting.

    python fit_gaussians.py                       # a drawn target; writes fit.png
    python fit_gaussians.py --target picture.jpg  # any picture; needs Pillow

fit.png shows the target and, to its right, what the Gaussians make of it. Needs torch; runs on a
GPU where there is one.
"""

import argparse
import pathlib
import struct
import zlib

import similis
import torch
from torch import nn


class Gaussians(nn.Module):
    """A picture as the weighted mean of coloured blobs, each with a place, a size and a tilt."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.rand(count, 2) * 2 - 1)
        self.log_size = nn.Parameter(torch.full((count, 2), 0.7).div(count**0.5).log())
        self.tilt = nn.Parameter(torch.zeros(count))
        self.color = nn.Parameter(torch.zeros(count, 3))
        self.log_weight = nn.Parameter(torch.zeros(count))

    def forward(self, height: int, width: int) -> torch.Tensor:
        y = torch.linspace(-1, 1, height, device=self.place.device)
        x = torch.linspace(-1, 1, width, device=self.place.device)
        dx = x[None, None, :] - self.place[:, 0, None, None]
        dy = y[None, :, None] - self.place[:, 1, None, None]
        cos, sin = self.tilt.cos()[:, None, None], self.tilt.sin()[:, None, None]
        size = self.log_size.exp()[:, :, None, None]
        along, across = (cos * dx + sin * dy) / size[:, 0], (cos * dy - sin * dx) / size[:, 1]
        exponent = self.log_weight[:, None, None] - (along**2 + across**2) / 2
        share = exponent.flatten(1).softmax(0)  # of each Gaussian at each pixel
        return (self.color.sigmoid().T @ share).reshape(1, 3, height, width)


def drawn_target(size: int) -> torch.Tensor:
    """A sun over hills, with an edge of every kind."""
    y, x = torch.meshgrid(torch.linspace(0, 1, size), torch.linspace(0, 1, size), indexing="ij")
    sky = torch.stack([0.35 + 0.5 * y, 0.55 + 0.3 * y, 0.9 - 0.2 * y])
    sun = ((x - 0.7) ** 2 + (y - 0.3) ** 2 < 0.015).float()
    image = sky * (1 - sun) + torch.tensor([1.0, 0.85, 0.3])[:, None, None] * sun
    for base, height, color in (0.62, 0.10, [0.25, 0.4, 0.3]), (0.8, 0.06, [0.12, 0.25, 0.15]):
        hill = (y > base - height * torch.sin(7 * x / height**0.3)).float()
        texture = 1 + 0.2 * torch.sin(60 * x) * torch.sin(45 * y)
        image = image * (1 - hill) + torch.tensor(color)[:, None, None] * texture * hill
    return image[None].clamp(0, 1)


def read_picture(path: pathlib.Path, size: int) -> torch.Tensor:
    import numpy
    from PIL import Image

    picture = Image.open(path).convert("RGB")
    picture.thumbnail((size, size))
    return torch.from_numpy(numpy.array(picture)).permute(2, 0, 1)[None] / 255


def write_png(path: pathlib.Path, image: torch.Tensor) -> None:
    """[1,3,H,W] in [0, 1] as 8-bit RGB."""
    rows = (255 * image[0].clamp(0, 1)).round().byte().permute(1, 2, 0).cpu()
    height, width, _ = rows.shape
    raw = b"".join(b"\0" + bytes(row.flatten().tolist()) for row in rows)
    chunks = [(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0))]
    chunks += [(b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in chunks:
            file.write(struct.pack(">I", len(data)) + kind + data)
            file.write(struct.pack(">I", zlib.crc32(kind + data)))


def fit(target: torch.Tensor, count: int, steps: int) -> torch.Tensor:
    gaussians = Gaussians(count).to(target.device)
    optimizer = torch.optim.Adam(gaussians.parameters(), lr=0.02)
    for step in range(steps + 1):
        image = gaussians(*target.shape[2:])
        loss = similis.l1_ssim(image, target, weight=0.2)
        if step % max(1, steps // 5) == 0:
            ssim, psnr = similis.ssim(image, target), similis.psnr(image, target)
            print(f"step {step:4}: loss {loss:.4f}, SSIM {ssim:.4f}, PSNR {psnr:.2f} dB")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return gaussians(*target.shape[2:]).detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--target", type=pathlib.Path, help="a picture; by default one is drawn")
    parser.add_argument("--size", type=int, default=128, help="of the longer side, in pixels")
    parser.add_argument("--count", type=int, default=256, help="of Gaussians")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("fit.png"))
    arguments = parser.parse_args()
    torch.manual_seed(0)
    size = arguments.size
    target = read_picture(arguments.target, size) if arguments.target else drawn_target(size)
    target = target.to("cuda" if torch.cuda.is_available() else "cpu")
    write_png(
        arguments.output, torch.cat([target, fit(target, arguments.count, arguments.steps)], 3)
    )
    print(f"{arguments.output}: the target, and {arguments.count} Gaussians")


if __name__ == "__main__":
    main()
