# SPDX-License-Identifier: Apache-2.0
"""Times and memory on a GPU, by torch: device events around calls, and its allocator's peak."""

import statistics
import time

import torch

CACHE_BYTES = 200e6


def milliseconds(call, pairs, repeats=30):
    for i in range(5):
        call(*pairs[i % len(pairs)])
    times = []
    for i in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call(*pairs[i % len(pairs)])
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def in_a_graph(call, pair):
    """Milliseconds of the work alone: replays of a captured graph, in memory of torch's."""
    call(*pair)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call(*pair)
    result = milliseconds(lambda *_: graph.replay(), [pair])
    del kept
    return result


def on_the_host(call, pair):
    """Milliseconds until a call returns, the GPU's work left out; Python's part is in it."""
    times = []
    for _ in range(100):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call(*pair)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def peak_bytes_per_element(call, pair):
    call(*pair)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = call(*pair)
    torch.cuda.synchronize()
    del result
    return (torch.cuda.max_memory_allocated() - before) / pair[0].numel()


def images(shape, dtype):
    elements = torch.Size(shape).numel()
    count = max(1, min(16, int(CACHE_BYTES / (elements * 8)) + 1))
    torch.manual_seed(1)
    scale = 255 if dtype == torch.uint8 else 1
    pairs = []
    for _ in range(count):
        x, noise = (torch.rand(shape, device="cuda") for _ in range(2))
        pairs.append(((scale * x).to(dtype), (scale * (0.7 * x + 0.3 * noise)).to(dtype)))
    return pairs
