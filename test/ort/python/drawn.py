#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Draws nodes of every operator that gcap has kernels of, and compares an EP of gcap with ONNX Runtime's CPU EP.

Each case is a model of one node: a drawn opset, types, shapes, attributes, what is left out, what is constant. It runs
eagerly, with other contents, and with other sizes; then it is captured, replayed with the other contents, captured with
the other sizes, and replayed as at first. What the EP leaves to others is counted by its reason; what the CPU EP
refuses is not compared. The cases run in a process of their own, so that one which ends its process is reported too.

A line for each failure, which runs it again; the last line has the numbers.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import time

from drawn_case import FAILED, KNOWN, LEFT, REFUSED, REPLAYED
from drawn_nodes import GENERATORS

# The rows of the kernels' table of operators, which begin with a name.
ROW = re.compile(r'^    (?:\{|[A-Z_]+\()"([\w.-]+)"', re.MULTILINE)

# Operators whose generator is still to be written, and why it is not there.
NO_GENERATOR = {}

# How the worker's lines begin.
CASE, VERDICT = "case", "verdict"


def operators(path):
    """The names of the kernels' operators."""
    with open(path, encoding="utf-8") as file:
        found = ROW.findall(file.read())
    if len(set(found)) < 100:
        sys.exit(f"{path} has {len(set(found))} operators, expected the table of all")
    return sorted(set(found))


def complaints_of_generators(rows):
    """Each operator has a generator, or a reason why it has none; never both."""
    for row in rows:
        if row not in GENERATORS and row not in NO_GENERATOR:
            yield f"{row} has kernels and no generator: write one, or list it in NO_GENERATOR with the reason"
    for row in NO_GENERATOR:
        if row in GENERATORS or row not in rows:
            yield f"{row} of NO_GENERATOR has a generator, or no kernels: take it off the list"


# --- The worker: runs cases, prints a line before and after each.


def work(arguments, cases):
    import drawn_run

    runner = drawn_run.Runner(arguments.library, arguments.ep_name)
    for row, case in cases:
        print(CASE, row, case, flush=True)
        kind, text = runner.run(row, arguments.seed, case)
        print(VERDICT, kind, text, flush=True)
    runner.close()


# --- The program: divides the cases, and starts the worker again after one that ended it.


def command(arguments, row, case):
    return f"drawn.py --seed {arguments.seed} --only {row} --case {case}"


def start(arguments, first):
    own = [sys.executable, os.path.abspath(__file__), "--worker", "--first", str(first)]
    own += ["--seed", str(arguments.seed), "--cases", str(arguments.cases), "--ep-name", arguments.ep_name]
    for name in ("only", "case", "ops", "library"):
        if getattr(arguments, name) is not None:
            own += ["--" + name, str(getattr(arguments, name))]
    return subprocess.Popen(own, stdout=subprocess.PIPE, text=True)


def run_all(arguments, cases):
    """(row, case, kind, text) of each case."""
    done = 0
    while done < len(cases):
        worker = start(arguments, done)
        for line in worker.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == VERDICT:
                kind, _, text = rest.partition(" ")
                yield (*cases[done], kind, text)
                done += 1
            elif word != CASE:
                print(line, end="", flush=True)
        code = worker.wait()
        if done < len(cases):
            yield (*cases[done], FAILED, f"the process ended with {code}")
            done += 1
        elif code != 0:
            yield (*cases[-1], FAILED, f"after the last case the process ended with {code}")


def chosen(arguments, rows):
    """The cases: each operator in turn, or one operator."""
    if arguments.only is None:
        return [(rows[i % len(rows)], i // len(rows)) for i in range(arguments.cases)]
    if arguments.only not in rows:
        sys.exit(f"--only {arguments.only}: expected one of {', '.join(rows)}")
    return [(arguments.only, arguments.case)] if arguments.case is not None else [
        (arguments.only, case) for case in range(arguments.cases)]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", help="the EP's library (default: the installed wheel's)")
    parser.add_argument("--ep-name", default="gcap", help="of the EP in --library (default: gcap)")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--ops", default=os.path.join(here, "../../../ops/nodes/ops.c"), help="the table of operators")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=300, help="how many (default: 300)")
    parser.add_argument("--only", help="one operator, as the table has it")
    parser.add_argument("--case", type=int, help="one case of the operator")
    parser.add_argument("--at-least", type=int, default=0, help="how many cases have to be compared")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def summary(arguments, counts, reasons):
    for text, count in sorted(reasons.items()):
        print(f"{count} {text}")
    compared = counts[REPLAYED]
    print(
        f"seed {arguments.seed}: {sum(counts.values())} nodes drawn, {compared} compared with the CPU EP, eagerly and "
        f"replayed; {counts[LEFT]} left to other EPs, {counts[REFUSED]} refused by the CPU "
        f"EP, {counts[KNOWN]} known differences, {counts[FAILED]} failed"
    )
    return compared


def main():
    arguments = options()
    rows = operators(arguments.ops)
    cases = chosen(arguments, [row for row in rows if row in GENERATORS])
    if arguments.worker:
        work(arguments, cases[arguments.first :])
        return
    complaints = list(complaints_of_generators(rows))
    begin = time.monotonic()
    counts, reasons = collections.Counter(), collections.Counter()
    for row, case, kind, text in run_all(arguments, cases):
        counts[kind] += 1
        if kind == FAILED:
            print(f"{FAILED} {command(arguments, row, case)}: {text}", flush=True)
        elif text:
            reasons[f"{kind}: {text}"] += 1
    compared = summary(arguments, counts, reasons)
    print(f"{time.monotonic() - begin:.0f} s")
    if complaints:
        sys.exit("\n".join(complaints))
    if compared < arguments.at_least:
        sys.exit(f"{compared} cases were compared, expected at least {arguments.at_least}")
    sys.exit(1 if counts[FAILED] else 0)


if __name__ == "__main__":
    main()
