#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Prints what calls cost the host: `overhead NAME replay_us eager_us capture_us apart_us instantiate_us`.

Run it plain, under `gcap-doctor run` and under `gcap-doctor audit`; the difference is the recorder's. Replays and eager
launches are medians of 50 rounds of 200 calls. Captures are of 200 nodes, from one place of the program, and from 200
places, each of which is new: `apart`. An instantiation is of 1,000 nodes, whose arguments an audit reads; it is `nan` where
PyTorch instantiates as the capture ends (before 2.8).
"""
import sys
import time

import torch

NODES = 200
LARGE = 1000


def add_five(x):
    for _ in range(5):
        x = x + 1
    return x


def median_us(call, calls=200, rounds=50):
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(calls):
            call()
        times.append((time.perf_counter_ns() - begin) / calls / 1000)
    torch.cuda.synchronize()
    return sorted(times)[rounds // 2]


def chain(x):
    for _ in range(NODES):
        x = x + 1


def chain_apart(number):
    lines = [f"def apart_{number}(x):"] + ["    x = x + 1"] * NODES
    space = {}
    exec(compile("\n".join(lines), f"apart_{number}.py", "exec"), space)
    return space[f"apart_{number}"]


def capture(x, work):
    graph = torch.cuda.CUDAGraph()
    begin = time.perf_counter_ns()
    with torch.cuda.graph(graph):
        work(x)
    return (time.perf_counter_ns() - begin) / 1000


def instantiate(x):
    if not hasattr(torch.cuda.CUDAGraph, "instantiate"):
        return float("nan")
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        for _ in range(LARGE):
            x = x + 1
    begin = time.perf_counter_ns()
    graph.instantiate()
    return (time.perf_counter_ns() - begin) / 1000


def main():
    x = torch.ones(1024, device="cuda")
    add_five(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add_five(x)
    graph.replay()
    captures = sorted(capture(x, chain) for _ in range(7))
    apart = sorted(capture(x, chain_apart(number)) for number in range(7))
    large = sorted(instantiate(x) for _ in range(7))
    name = sys.argv[1] if len(sys.argv) > 1 else "plain"
    print(f"overhead {name} {median_us(graph.replay):.2f} {median_us(lambda: add_five(x)) / 5:.2f} "
          f"{captures[3]:.0f} {apart[3]:.0f} {large[3]:.0f}")


main()
