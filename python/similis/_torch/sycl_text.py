# SPDX-License-Identifier: Apache-2.0
"""A kernel's text of Metal as a kernel of SYCL: a header that gives Metal's words in C++, the text, and
a function that SYCL can launch."""

from __future__ import annotations

import os
import re

_PRELUDE = """
#include <sycl/sycl.hpp>
#define GROUP() sycl::ext::oneapi::this_work_item::get_work_group<3>()
#define SCALAR_FMA(a, b, c) sycl::fma(a, b, c)
#define CLZ(v) sycl::clz(v)
#define MULHI(a, b) sycl::mul_hi(a, b)
#define WORD(word) \\
  sycl::atomic_ref<uint, sycl::memory_order::relaxed, sycl::memory_scope::device>(*(word))
#define FETCH_OR(word, bits) WORD(word).fetch_or(bits)
#define FETCH_AND(word, bits) WORD(word).fetch_and(bits)
#define BARRIER() sycl::group_barrier(GROUP())
"""
_KERNEL = """
struct SimilisPush { unsigned long words[32]; };
extern "C" SYCL_EXTERNAL
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<3>))
void similis_kernel(SimilisPush push, PARAMETERS) {
  const auto item = sycl::ext::oneapi::this_work_item::get_nd_item<3>();
  main0(ARGUMENTS);
}
"""
_POSITIONS = {
    "thread_position_in_threadgroup": "get_local_id",
    "threadgroup_position_in_grid": "get_group",
    "threadgroups_per_grid": "get_group_range",
    "thread_position_in_grid": "get_global_id",
}


def _words() -> str:
    path = os.path.join(os.path.dirname(__file__), "metal_words.h")
    with open(path, encoding="utf-8") as file:
        return file.read().replace("#pragma once", "")


def _launchable(text: str) -> str:
    """The function that SYCL launches: it takes the push constants, then the buffers in order."""
    found = re.search(r"^kernel void main0\((.*)\)$", text, flags=re.M)
    assert found is not None
    parameters: list[str] = []
    arguments: list[str] = []
    for each in found[1].split(", "):
        what = re.search(r"\[\[(\w+)", each)
        kind = re.search(r"(\w+)& ", each)
        assert what is not None
        if kind is None:
            ids = [f"(uint)item.{_POSITIONS[what[1]]}({axis})" for axis in (2, 1, 0)]
            arguments.append(f"uint3{{{', '.join(ids)}}}")
        elif each.startswith("constant "):
            arguments.append(f"*(const {kind[1]}*)&push")
        else:
            parameters.append(f"void* buffer{len(parameters)}")
            arguments.append(f"*({kind[1]}*){parameters[-1].removeprefix('void* ')}")
    kernel = _KERNEL.replace("PARAMETERS", ", ".join(parameters))
    return kernel.replace("ARGUMENTS", ", ".join(arguments))


def of_metal(text: str) -> str:
    """The same kernel for SYCL's run-time compiler."""
    launchable = _launchable(text)
    text = re.sub(r"^#include <.*>\n", "", text, flags=re.M)
    # group_local_memory() ends the process in SYCL's run-time compiler of oneAPI 2026.2.
    text = re.sub(
        r"^(\s+)threadgroup (\w+) (\w+)((?:\[[^\]]*\])*);",
        r"\1static sycl::ext::oneapi::experimental::work_group_static<\2\4> \3_memory;\n"
        r"\1auto& \3 = *&\3_memory;",
        text,
        flags=re.M,
    )
    text = text.replace("threadgroup ", "")
    # Metal has no f64: its literals are f32.
    text = re.sub(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?)(?![\w.])", r"\1f", text)
    inline = "#define kernel inline __attribute__((always_inline))\n"
    return _PRELUDE + _words() + inline + text + launchable
