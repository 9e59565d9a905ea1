# SPDX-License-Identifier: Apache-2.0
"""The kernels that the build makes of the Vulkan modules, for Apple's and Intel's GPUs.

native/kernels/ROOM_NAME.metal is the text of a kernel; scripts/metal_text.py wrote it and says in its
first line how it is called. On mps torch compiles it, on xpu xpu_queue.py. Both use torch's own queue
and memory, so that work is in torch's order and nothing is copied.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import torch
from torch import Tensor

from .._library.c_abi import NATIVE
from . import xpu_queue

_FOLDER = os.path.join(NATIVE, "kernels")
Constants = tuple[tuple[int, int], ...]


class Module(NamedTuple):
    """A kernel's text, and how it is called."""

    name: str
    text: str
    buffers: list[Union[int, str]]  # of each argument: its binding, or "push"
    threads: list[Union[int, str]]
    constants: dict[str, int]

    def group_size(self, constants: Constants) -> list[int]:
        given = {f"SPIRV_CROSS_CONSTANT_ID_{number}": value for number, value in constants}
        return [each if isinstance(each, int) else given[each] for each in self.threads]


@functools.lru_cache(maxsize=64)
def module(name: str) -> Optional[Module]:
    """The kernel of this name, as "gpu/launch/totals"; None if the package was built without kernels."""
    path = os.path.join(_FOLDER, name.replace("/", "_") + ".metal")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        text = file.read()
    call = json.loads(text.split("\n", 1)[0].removeprefix("// "))
    return Module(name, text, call["buffers"], call["threads"], call["constants"])


def can_launch(device: torch.device) -> bool:
    """True if torch on this device offers what a launch needs."""
    if device.type == "mps":
        return hasattr(torch.mps, "compile_shader")  # since torch 2.6
    return device.type == "xpu" and xpu_queue.is_there()


def whole_storage(tensor: Tensor) -> Tensor:
    """The memory of a tensor from its first byte on: a kernel reads 32-bit words of it and is told
    the tensor's offset, since an offset in bytes need not be a multiple of a word."""
    return tensor.detach().as_strided((1,), (1,), 0)


@functools.lru_cache(maxsize=256)
def _specialized(name: str, constants: Constants) -> str:
    """The text with the values of its specialization constants in front."""
    found = module(name)
    assert found is not None
    lines = [f"#define SPIRV_CROSS_CONSTANT_ID_{number} {value}" for number, value in constants]
    return "\n".join([*lines, found.text])


@functools.lru_cache(maxsize=256)
def _on_mps(name: str, constants: Constants) -> Any:
    return torch.mps.compile_shader(_specialized(name, constants)).main0


def _as_words(push: bytes) -> tuple[int, ...]:
    """Push constants as 64-bit integers: what torch hands a Metal kernel by value."""
    padded = push + bytes(-len(push) % 8)
    return tuple(
        int.from_bytes(padded[i : i + 8], "little", signed=True) for i in range(0, len(padded), 8)
    )


def launch(
    name: str,
    constants: Mapping[int, int],
    buffers: Sequence[Tensor],
    push: bytes,
    groups: Sequence[int],
) -> None:
    """Queues a kernel. buffers: by their bindings, each from its storage's first byte on. groups:
    workgroups along x, y and z."""
    found = module(name)
    assert found is not None
    given = tuple(sorted(constants.items()))
    size = found.group_size(given)
    if buffers[0].device.type == "xpu":
        ordered = [buffers[int(each)] for each in found.buffers if each != "push"]
        xpu_queue.launch(_specialized(name, given), ordered, push, groups, size)
        return
    arguments = [_as_words(push) if each == "push" else buffers[int(each)] for each in found.buffers]
    threads = [count * each for count, each in zip(groups, size)]
    _on_mps(name, given)(*arguments, threads=threads, group_size=size)
