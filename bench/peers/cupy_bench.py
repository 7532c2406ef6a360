#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The workloads of bench/scratch given to CuPy's pool, as "cupy": cupy.cuda.MemoryPool on one stream, called from
Python, as everybody calls it. What the same loop costs without the calls is measured beside it and subtracted. There is
no BM_Threads: the interpreter runs one thread at a time.

    cupy_bench.py --draws FOLDER --traces FOLDER --repetitions N --out FILE

--draws is where write_draws wrote; the output is like Google Benchmark's."""
import argparse
import datetime
import json
import pathlib
import sys
import time

PAIR_BYTES = (256, 65536, 16 << 20)
PAIRS = 20000
LIVE = (16, 256, 4096)
WARM_UP_ROUNDS = 4  # as kWarmUpDraws
TRACE_OPS = 20000  # a short trace is replayed until it has so many


def pairs(malloc):
    def run(bytes_each):
        for _ in range(PAIRS):
            malloc(bytes_each)

    return run


def no_pairs(_):
    for _ in range(PAIRS):
        pass


def replay(malloc, live, steps):
    """Each step is a slot and a size; size 0 frees what is there."""
    for slot, size in steps:
        if size:
            live[slot] = malloc(size)
        else:
            live[slot] = None


def replay_nothing(thing, live, steps):
    for slot, size in steps:
        if size:
            live[slot] = thing
        else:
            live[slot] = None


def nanoseconds(function, *arguments):
    begin = time.perf_counter_ns()
    function(*arguments)
    return time.perf_counter_ns() - begin


def read_mixed(path, live):
    """The steps that fill the slots, and those that replace the blocks of some."""
    draws = [tuple(map(int, line.split())) for line in path.read_text().splitlines()]
    fill = [(slot, draws[slot % len(draws)][1]) for slot in range(live)]
    return fill, [step for slot, size in draws for step in ((slot, 0), (slot, size))]


def read_trace(path):
    """The steps of a trace, the number of its allocations, its peak of live bytes."""
    size_of, steps, live, peak = {}, [], 0, 0
    for line in path.read_text().splitlines():
        kind, *numbers = line.split()
        if kind in ("a", "r"):
            block, size = int(numbers[0]), int(numbers[1])
            size_of[block] = size
            live += size
            peak = max(peak, live)
            steps.append((block, size))
        elif kind == "f":
            live -= size_of[int(numbers[0])]
            steps.append((int(numbers[0]), 0))
    slot_of = {block: slot for slot, block in enumerate(size_of)}
    return [(slot_of[block], size) for block, size in steps], len(size_of), peak


class Report:
    def __init__(self, device):
        self.context = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(), "device": device}
        self.runs = []

    def add(self, name, ns, **counters):
        self.runs.append({"name": name, "run_type": "iteration", "real_time": ns, "time_unit": "ns", **counters})


def bench_pairs(new_pool, report):
    for size in PAIR_BYTES:
        run = pairs(new_pool().malloc)
        run(size)
        ns = nanoseconds(run, size) - nanoseconds(no_pairs, size)
        report.add(f"BM_Pair/cupy/bytes:{size}", ns / PAIRS)


def bench_mixed(new_pool, report, draws):
    for live in LIVE:
        malloc = new_pool().malloc
        fill, steps = read_mixed(draws / f"mixed_{live}.draws", live)
        slots = [None] * live
        replay(malloc, slots, fill)
        for _ in range(WARM_UP_ROUNDS):
            replay(malloc, slots, steps)
        ns = nanoseconds(replay, malloc, slots, steps) - nanoseconds(replay_nothing, object(), [None] * live, steps)
        report.add(f"BM_Mixed/cupy/live:{live}", ns / (len(steps) / 2))


def bench_trace(new_pool, report, path):
    steps, allocations, peak = read_trace(path)
    pool, slots = new_pool(), [None] * allocations
    replay(pool.malloc, slots, steps)
    held = pool.total_bytes()  # it gives nothing back by itself
    slots[:] = [None] * allocations
    times = max(1, TRACE_OPS // len(steps))
    ns = 0
    for _ in range(times):
        ns += nanoseconds(replay, pool.malloc, slots, steps)
        ns -= nanoseconds(replay_nothing, object(), [None] * allocations, steps)
        slots[:] = [None] * allocations
    report.add(f"BM_Trace/cupy/trace:{path.stem}", ns / times, items_per_second=1e9 * times * allocations / ns,
               held_bytes=held, peak_live_bytes=peak)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=pathlib.Path, required=True)
    parser.add_argument("--traces", type=pathlib.Path, required=True)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    try:
        import cupy  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        sys.exit(f"cupy_bench.py: CuPy is missing: {error}")
    report = Report(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    traces = sorted(options.draws.glob("*.trace")) + sorted(options.traces.glob("*.trace"))
    with cupy.cuda.Stream(non_blocking=True):
        for _ in range(options.repetitions):
            bench_pairs(cupy.cuda.MemoryPool, report)
            bench_mixed(cupy.cuda.MemoryPool, report, options.draws)
            for path in traces:
                bench_trace(cupy.cuda.MemoryPool, report, path)
    options.out.write_text(json.dumps({"context": report.context, "benchmarks": report.runs}, indent=1))


if __name__ == "__main__":
    main()
