#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Four other values at each replay in gcap and in PyTorch, on one GPU, in turn: the host's time until the launch.

    values_bench.py PROGRAM [--rounds N] [--runs N]

PROGRAM is that of //bench/graph:values_bench, whose tables are printed first in each round. PyTorch's graph is
torch.cuda.CUDAGraph over static inputs, into which each step copies its values from pinned memory before the replay: a
copy for each of the four, or one for all of them. The results are checked."""
import argparse
import statistics
import subprocess
import sys
import time

WARM_UP_RUNS = 50
NODES = (1, 32)
VALUES = 4


def fail(message):
    sys.exit(f"values_bench.py: {message}")


class Torch:
    """A graph of `nodes` sums of four values."""

    def __init__(self, torch, nodes):
        self.torch = torch
        self.block = torch.zeros(VALUES, device="cuda")
        self.pinned = torch.zeros(VALUES).pin_memory()
        self.host = self.pinned.numpy()  # the same memory: an element of a tensor takes longer to set
        self.inputs = [self.block[i:i + 1] for i in range(VALUES)]
        self.pinned_inputs = [self.pinned[i:i + 1] for i in range(VALUES)]
        self.outputs = [torch.zeros(1, device="cuda") for _ in range(nodes)]
        self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            self.issue()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            self.issue()

    def issue(self):
        for output in self.outputs:
            self.torch.sum(self.block, 0, keepdim=True, out=output)

    def replay(self, step):
        self.graph.replay()

    def copy_each(self, step):
        self.fill(step)
        for to, value in zip(self.inputs, self.pinned_inputs):
            to.copy_(value, non_blocking=True)
        self.graph.replay()

    def copy_all(self, step):
        self.fill(step)
        self.block.copy_(self.pinned, non_blocking=True)
        self.graph.replay()

    def fill(self, step):
        for i in range(VALUES):
            self.host[i] = step % 1000 + i

    def check(self, way, step):
        way(step)
        self.torch.cuda.synchronize()
        expected = sum(step % 1000 + i for i in range(VALUES))
        for output in self.outputs:
            if output.item() != expected:
                fail(f"step {step} gave {output.item()}, and {expected} is right")


def median_ns(torch, way, runs):
    times = []
    for step in range(WARM_UP_RUNS + runs):
        begin = time.perf_counter_ns()
        way(step)
        times.append(time.perf_counter_ns() - begin)
        torch.cuda.synchronize()  # the pinned memory is read until then
    return statistics.median(times[WARM_UP_RUNS:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1001)
    options = parser.parse_args()
    if options.rounds < 1 or options.runs < 1:
        fail(f"--rounds is {options.rounds} and --runs {options.runs}, allowed is 1 or more")
    try:
        import torch
    except ImportError:
        fail("PyTorch is missing: there is no torch")
    if not torch.cuda.is_available():
        fail("PyTorch sees no GPU")
    graphs = {nodes: Torch(torch, nodes) for nodes in NODES}
    medians = {}
    with torch.inference_mode():
        for _ in range(options.rounds):
            done = subprocess.run([options.program], capture_output=True, text=True)
            if done.returncode != 0:
                fail(f"{options.program} ends with {done.returncode}: {done.stderr.strip()}")
            print(done.stdout, flush=True)
            for nodes, graph in graphs.items():
                for name, way in (("replay", graph.replay), ("a copy for each value, replay", graph.copy_each),
                                  ("a copy for all values, replay", graph.copy_all)):
                    medians.setdefault((name, nodes), []).append(median_ns(torch, way, options.runs))
                for way in (graph.copy_each, graph.copy_all):
                    graph.check(way, 17)
                    graph.check(way, 18)
    print(f"PyTorch {torch.__version__}, {options.rounds} rounds of {options.runs} runs: the median (least .. most)\n")
    print("| way | nodes | host, us |\n|---|---|---|")
    for (name, nodes), times in medians.items():
        us = [ns / 1000 for ns in times]
        print(f"| {name} | {nodes} | {statistics.median(us):.2f} ({min(us):.2f} .. {max(us):.2f}) |")


if __name__ == "__main__":
    main()
