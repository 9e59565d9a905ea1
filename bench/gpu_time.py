# SPDX-License-Identifier: Apache-2.0
"""Times and memory on a GPU, by torch: device events around calls, and its allocator's peak."""

import statistics
import time

import torch

CACHE_BYTES = 200e6


def _timed(call, pairs, count):
    times = []
    for i in range(count):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call(*pairs[i % len(pairs)])
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return times


ROUNDS = 10


def side_by_side(calls, pairs):
    """{who: milliseconds} of {who: call}: the smallest of ROUNDS medians, taken in turn. The host of
    a rented machine is up to twice as slow for tenths of a second at a time, and small calls with
    it: that only adds. Rounds are of a hundredth of a second, and of 1 to 60 calls; pauses between
    them spread them over half a second, also where there is no peer."""
    counts, times = {}, {who: [] for who in calls}
    for who, call in calls.items():
        counts[who] = min(60, max(1, int(10 / _timed(call, pairs, 5)[-1])))
    for _ in range(ROUNDS):
        time.sleep(0.05)
        for who, call in calls.items():
            times[who].append(statistics.median(_timed(call, pairs, counts[who])))
    return {who: min(each) for who, each in times.items()}


def milliseconds(call, pairs):
    return side_by_side({"": call}, pairs)[""]


def captured(call, pair):
    """A call that replays a captured graph of this one, in memory of torch's."""
    call(*pair)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call(*pair)

    def replay(*_):
        graph.replay()
        return kept
    return replay


def in_a_graph(call, pair):
    """Milliseconds of the work alone: replays of a captured graph."""
    return milliseconds(captured(call, pair), [pair])


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
