#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Runs the models that the package onnx carries on an EP of gcap, through ONNX Runtime.

models.py nodes: ONNX's own backend tests, a model of one operator each, with inputs and expected outputs. A model runs
if all its nodes are on the EP: eagerly, and captured with other inputs, then replayed with the expected ones.

models.py networks: the light networks, with seeded random weights, captured and replayed against the CPU EP.

A line for each model that was skipped, that failed, or that was not all on the EP, with the reason; the last line has
the numbers.
"""

import argparse
import collections
import os
import sys
import time

import onnx
import onnxruntime as ort

import networks
import nodes
import runner


def report(verdicts):
    """Prints what is to be said of each model; gives how many there are of each kind."""
    counts = collections.Counter()
    for name, verdict in verdicts:
        counts[verdict.kind] += 1
        if verdict.reason:
            print(f"{verdict.kind} {name}: {verdict.reason}", flush=True)
    return counts


def words_of(path):
    """A page's text with single spaces."""
    with open(path, encoding="utf-8") as file:
        return " ".join(file.read().split())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=["nodes", "networks"])
    parser.add_argument("--library", help="the EP's library (default: the installed wheel's)")
    parser.add_argument("--ep-name", default="gcap", help="of the EP in --library (default: gcap)")
    parser.add_argument("--cuda-ep", action="store_true", help="instead, ONNX Runtime's own CUDA EP, of onnxruntime-gpu")
    parser.add_argument("--only", default="", help="models whose names contain this")
    parser.add_argument("--all", action="store_true", help="networks: the large ones too")
    parser.add_argument("--at-least", type=int, default=1, help="how many models have to be replayed")
    parser.add_argument("--page", help="a page that has to have the last line, but for the time")
    arguments = parser.parse_args()
    data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    begin = time.monotonic()
    ep = runner.CudaEp() if arguments.cuda_ep else runner.Ep(arguments.library, arguments.ep_name)
    is_nodes = arguments.suite == "nodes"
    if is_nodes and not os.path.isdir(os.path.join(data, "node")):
        sys.exit(f"onnx {onnx.__version__} comes without these models: pip install onnx==1.22.0")
    models = nodes.find(data) if is_nodes else networks.find(data, arguments.all)
    models = [(name, path) for name, path in models if arguments.only in name]
    if is_nodes:
        counts = report(nodes.Suite(ep).verdicts(models))
    else:
        counts = report(networks.Suite(ep).verdicts(models))
    ep.close()
    replayed = counts[runner.REPLAYED] + counts[runner.OPTIMIZED]
    said = (
        f"ONNX Runtime {ort.__version__}, onnx {onnx.__version__}: of {len(models)} models "
        f"{replayed + counts[runner.EAGER]} ran on the EP, {replayed} of them also captured and replayed "
        f"({counts[runner.OPTIMIZED]} as ONNX Runtime optimizes them), {counts[runner.MIXED]} on it and the CPU EP; "
        f"{counts[runner.SKIPPED]} skipped, {counts[runner.FAILED]} failed"
    )
    print(f"{said}; {time.monotonic() - begin:.0f} s")
    if replayed < arguments.at_least:
        sys.exit(f"{replayed} models were replayed, expected at least {arguments.at_least}")
    if arguments.page and said not in words_of(arguments.page):
        sys.exit(f"{arguments.page} lacks the line above")
    sys.exit(1 if counts[runner.FAILED] else 0)


if __name__ == "__main__":
    main()
