# SPDX-License-Identifier: Apache-2.0
"""torch.mps.compile_shader() on a CPU: kernels' Metal text, compiled by clang with the stub of
Metal's library in metal/, and run with a fiber for each GPU thread.

It is stricter than Metal where a mistake would not show on a CPU: every argument has to be there,
tensors have to be on the GPU that the tests pretend, and grids have to be whole groups.
"""

import ctypes
import hashlib
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

import torch

import similis
from stand_in import OnGpu

_HERE = pathlib.Path(__file__).parent / "metal"
_WORDS = pathlib.Path(similis.__file__).parent / "_torch"  # metal_words.h
CLANG = next(filter(None, map(shutil.which, ("clang++-14", "clang++", "clang++-15"))), None)
_BUILT = {}
_FOLDER = tempfile.TemporaryDirectory()

_RUN = """
#undef constant
#undef device
static void* const* buffers;
static metal::uint3 group, groups;
static void thread(uint t) {{ main0({arguments}); }}
extern "C" void run(void* const* given, const uint* grid, uint threads) {{
  buffers = given;
  groups = metal::uint3{{grid[0], grid[1], grid[2]}};
  for (uint z = 0; z < groups.z; ++z)
    for (uint y = 0; y < groups.y; ++y)
      for (uint x = 0; x < groups.x; ++x) {{
        group = metal::uint3{{x, y, z}};
        metal_stub::run_group(threads, thread);
      }}
}}
"""
_POSITIONS = {
    "thread_position_in_threadgroup": "metal::uint3{t, 0, 0}",
    "threadgroup_position_in_grid": "group",
    "threadgroups_per_grid": "groups",
    "thread_position_in_grid": "metal::uint3{group.x * THREADS + t, group.y, group.z}",
}


def _as_cpp(text):
    """The text in C++, and how many buffers it takes."""
    signature = re.search(r"^kernel void main0\((.*)\)$", text, flags=re.M)[1]
    arguments, buffers = [], 0
    for each in signature.split(", "):
        what = re.search(r"\[\[(\w+)", each)[1]
        if what == "buffer":
            kind = re.search(r"(\w+)& ", each)[1]
            number = int(re.search(r"buffer\((\d+)\)", each)[1])
            arguments.append(f"*static_cast<{kind}*>(buffers[{number}])")
            buffers = max(buffers, number + 1)
        else:
            arguments.append(_POSITIONS[what])
    text = re.sub(r"^(\s+)threadgroup (?=\w+ \w+)", r"\1static ", text, flags=re.M)
    text = text.replace("threadgroup ", "")
    text = re.sub(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?)(?![\w.])", r"\1f", text)  # Metal has no f64
    return text + _RUN.format(arguments=", ".join(arguments)), buffers


def _compiled(source):
    key = hashlib.sha256(source.encode()).hexdigest()[:16]
    if key not in _BUILT:
        text, buffers = _as_cpp(source)
        folder = pathlib.Path(_FOLDER.name)
        (folder / f"{key}.cc").write_text(text)
        library = folder / f"{key}.so"
        subprocess.run(
            [CLANG, "-x", "c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC",
             "-ffp-contract=off", "-I", str(_HERE), "-I", str(_WORDS),
             str(folder / f"{key}.cc"), "-o", str(library)],
            check=True,
        )
        _BUILT[key] = ctypes.CDLL(str(library)), buffers
    return _BUILT[key]


def _address(argument, keep):
    if isinstance(argument, OnGpu):
        return argument.memory.data_ptr()
    assert not isinstance(argument, torch.Tensor), "the tensor is not on the GPU"
    assert all(isinstance(each, int) for each in argument)
    packed = ctypes.create_string_buffer(struct.pack(f"{len(argument)}q", *argument))
    keep.append(packed)
    return ctypes.addressof(packed)


class _Kernel:
    def __init__(self, source):
        self.source = source

    def __call__(self, *arguments, threads, group_size):
        library, buffers = _compiled(self.source)
        assert len(arguments) == buffers, "a kernel's buffers must all be bound"
        assert list(group_size[1:]) == [1, 1]
        assert all(n > 0 and n % size == 0 for n, size in zip(threads, group_size))
        keep = []
        pointers = (ctypes.c_void_p * buffers)(*[_address(each, keep) for each in arguments])
        grid = (ctypes.c_uint * 3)(*[n // size for n, size in zip(threads, group_size)])
        library.run(pointers, grid, group_size[0])


class ShaderLibrary:
    """Stands for the object that torch.mps.compile_shader() returns."""

    def __init__(self, source):
        self.source = source

    @property
    def main0(self):
        return _Kernel(self.source)
