#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The digits network in gcap's minimal EP and in PyTorch, on one GPU, in turn: eager and replayed, waiting for the
result and not.

    digits_bench.py DIGITS DATA [--batch N] [--rounds N] [--runs N]

DIGITS is the program of //examples/minimal_ep/digits, DATA its folder data/. Both compute in fp32, with TF32 off, and
PyTorch's outputs are checked against the labels. PyTorch runs in inference mode; its graph is torch.cuda.CUDAGraph with
fixed inputs. Each round runs the program and then PyTorch, so that the ratios of a round come from the same minute.
A figure is the median of the rounds' medians, with the least and the most."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

WARM_UP_RUNS = 50
MIN_ACCURACY = 0.95
ROWS = (
    ("eager, to completion", "eager"),
    ("replay, to completion", "replay"),
    ("eager, asynchronous", "eager_async"),
    ("replay, asynchronous", "replay_async"),
)


def fail(message):
    sys.exit(f"digits_bench.py: {message}")


def gcap_round(options):
    """Medians in ns of one run of the program with and one without --async."""
    medians = {}
    for name, extra in (("", ()), ("_async", ("--async",))):
        command = [options.digits, "--json", f"--data={options.data}", f"--batch={options.batch}",
                   f"--runs={options.runs}", *extra]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            fail(f"{' '.join(map(str, command))} ends with {done.returncode}: {done.stderr.strip()}")
        report = json.loads(done.stdout)
        medians["eager" + name] = report["eager_ns_median"]
        medians["replay" + name] = report["replay_ns_median"]
    return medians


class Torch:
    """The same network, from the same files."""

    def __init__(self, options):
        import numpy
        import torch
        from torch.nn import functional

        self.torch, self.options = torch, options
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        data = pathlib.Path(options.data)
        weights = {path.stem: torch.from_numpy(numpy.load(path)).cuda() for path in data.glob("*.npy")}
        images, self.labels = weights["heldout_images"], weights["heldout_labels"]

        def network(x):
            x = functional.relu(functional.conv2d(x, weights["conv1_weight"], weights["conv1_bias"], padding=1))
            x = functional.conv2d(x, weights["conv2_weight"], weights["conv2_bias"], padding=1)
            x = functional.relu(functional.max_pool2d(x, 2)).flatten(1)
            x = functional.relu(functional.linear(x, weights["fc1_weight"], weights["fc1_bias"]))
            return functional.softmax(functional.linear(x, weights["fc2_weight"], weights["fc2_bias"]), dim=1)

        self.network, self.images = network, images
        self.input = images[: options.batch].clone()
        self.stream = torch.cuda.Stream()
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            for _ in range(WARM_UP_RUNS):
                self.output = network(self.input)
            self.stream.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.output = network(self.input)
        self.check()

    def check(self):
        """What the graph computes is right."""
        torch, batch, right, count = self.torch, self.options.batch, 0, 0
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            for first in range(0, len(self.images) - batch + 1, batch):
                self.input.copy_(self.images[first : first + batch])
                self.graph.replay()
                right += int((self.output.argmax(1) == self.labels[first : first + batch]).sum())
                count += batch
        if right < MIN_ACCURACY * count:
            fail(f"PyTorch's graph has {right} of {count} digits right, expected {MIN_ACCURACY:.0%}")

    def median(self, work, synchronize):
        samples = []
        with self.torch.inference_mode(), self.torch.cuda.stream(self.stream):
            for run in range(WARM_UP_RUNS + self.options.runs):
                begin = time.perf_counter_ns()
                work()
                if synchronize:
                    self.stream.synchronize()
                if run >= WARM_UP_RUNS:
                    samples.append(time.perf_counter_ns() - begin)
            self.stream.synchronize()
        return statistics.median(samples)

    def round(self):
        def eager():
            self.network(self.input)

        return {
            "eager": self.median(eager, True),
            "replay": self.median(self.graph.replay, True),
            "eager_async": self.median(eager, False),
            "replay_async": self.median(self.graph.replay, False),
        }


def spread(values, scale=1e-3):
    values = [value * scale for value in values]
    return f"{statistics.median(values):.2f} ({min(values):.2f} .. {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("digits")
    parser.add_argument("data")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=2000)
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        fail(f"PyTorch is missing: {error}")
    if not torch.cuda.is_available():
        fail("PyTorch finds no GPU")
    peer = Torch(options)
    rounds = [(gcap_round(options), peer.round()) for _ in range(options.rounds)]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; batch {options.batch}, {options.rounds} rounds "
          f"of {options.runs} runs: the median of the rounds' medians (least .. most), in us")
    print()
    print("| run | gcap | PyTorch | gcap over PyTorch |")
    print("|---|---|---|---|")
    for title, key in ROWS:
        gcap, torch_ns = [ours[key] for ours, _ in rounds], [theirs[key] for _, theirs in rounds]
        ratios = [a / b for a, b in zip(gcap, torch_ns)]
        print(f"| {title} | {spread(gcap)} | {spread(torch_ns)} | {spread(ratios, 1)} |")


if __name__ == "__main__":
    main()
