#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Writes the measured part of bench/README.md from Google Benchmark's JSON.

    replay_bench --benchmark_repetitions=50 --benchmark_out=replay.json --benchmark_out_format=json
    bench/report.py --driver 580.159.04 --commit $(git rev-parse --short HEAD) replay.json capture.json >table.md

A row is a benchmark with its arguments. A cell is the median of the repetitions, with the 5th and 95th percentile in
parentheses. Of what bench/peers/run.sh measured, a column is an allocator, and its ratio to gcap follows."""
import argparse
import collections
import json
import statistics
import sys

# What the counters of each benchmark are called in the table, and the goal of a ratio (None: no goal of its own).
TABLES = {
    "BM_Replay": {
        "title": "Replay, host time of one launch",
        "columns": [
            ("bare_ns", "bare `cudaGraphLaunch`, ns", None),
            ("manager_ns", "`gcap_graph_manager_replay`, ns", None),
            ("manager_ratio", "over bare", "<= 1.02, 1 to 1,000 nodes"),
            ("session_ns", "`gcap_session_run`, asynchronous, ns", None),
            ("session_ratio", "over bare", "<= 1.10"),
        ],
    },
    "BM_Capture": {
        "title": "Capture, host time of begin, kernels, end",
        "columns": [
            ("bare_ns", "bare begin and end, ns", None),
            ("ledger_off_ns", "scope without ledger, ns", None),
            ("ledger_off_ratio", "over bare", "<= 1.05 at 1,000 nodes"),
            ("ledger_on_ns", "scope with ledger, ns", None),
            ("ledger_on_ratio", "over bare", "<= 1.25 at 1,000 nodes"),
        ],
    },
    "BM_Holes": {
        "title": "Holes of nothing, host time of one replay",
        "columns": [
            ("bare_ns", "bare launches of the segments, ns", None),
            ("launch_ns", "a launch, ns", None),
            ("holes_ns", "replay with holes, ns", None),
            ("holes_ratio", "over bare", "<= 1.02"),
            ("added_ns", "added, ns a segment", None),
            ("one_graph_ns", "replay of one graph, ns", None),
            ("eager_ns", "eager, ns", None),
            ("bare_done_ns", "bare until done, ns", None),
            ("holes_done_ns", "with holes until done, ns", None),
            ("one_graph_done_ns", "one graph until done, ns", None),
            ("eager_done_ns", "eager until done, ns", None),
        ],
    },
    "BM_Digits": {
        "title": "The digits network with holes between its nodes, host time of one run",
        "columns": [
            ("eager_ns", "eager, ns", None),
            ("bare_graph_ns", "bare launch of one graph, ns", None),
            ("one_graph_ns", "replay of one graph, ns", None),
            ("one_graph_ratio", "over bare", "<= 1.02"),
            ("bare_nothing_ns", "bare launches of 7 segments, ns", None),
            ("nothing_ns", "replay with 6 holes of nothing, ns", None),
            ("nothing_ratio", "over bare", "<= 1.02"),
            ("bare_pool_ns", "bare launches of 2 segments, MaxPool eager between, ns", None),
            ("pool_ns", "replay with MaxPool in a hole, ns", None),
            ("pool_ratio", "over bare", "<= 1.02"),
            ("eager_done_ns", "eager until done, ns", None),
            ("one_graph_done_ns", "one graph until done, ns", None),
            ("nothing_done_ns", "6 holes of nothing until done, ns", None),
            ("pool_done_ns", "MaxPool in a hole until done, ns", None),
        ],
    },
}

# The benchmarks of allocators are called KIND/ALLOCATOR/ARGUMENTS. These are the columns, in this order.
ALLOCATORS = {
    "gcap": "gcap",
    "gcap_each": "gcap, a scratch each",
    "gcap_pool": "gcap's pool allocator",
    "cuda_async": "`cudaMallocAsync`",
    "rmm_pool": "RMM pool",
    "rmm_pool_4gib": "RMM pool of 4 GiB",
    "rmm_arena": "RMM arena",
    "rmm_async": "RMM async",
    "torch": "PyTorch",
    "cupy": "CuPy",
    "harness": "the loop alone",
}

def nanoseconds_of_trace(run):
    return 1e9 / run["items_per_second"]


def nanoseconds(run):
    return run["real_time"]


def held_over_live(run):
    return run["held_bytes"] / run["peak_live_bytes"]


# Each: the kinds of benchmark in it with what a run's value is, and the goals of their rows, which are gcap's own.
SCRATCH_TABLES = [
    {
        "title": "Scratch, ns of one allocation and its free",
        "values": {"BM_Pair": nanoseconds, "BM_Mixed": nanoseconds, "BM_Trace": nanoseconds_of_trace},
        "goals": {"BM_Pair": "<= 25; PyTorch's >= 10 x", "BM_Mixed": "<= 60, and flat"},
        "form": "{:,.1f}",
        "compare": "gcap",
    },
    {
        "title": "Scratch, millions of allocations with their frees a second, from threads with a stream each",
        "values": {"BM_Threads": lambda run: run["ops_per_second"] / 1e6},
        "goals": {"BM_Threads": ">= 0.8 of ideal"},
        "form": "{:,.2f}",
        "compare": "threads:1",
    },
    {
        "title": "Scratch, peak of bytes held over peak of bytes live (MiB live)",
        "values": {"BM_Trace": held_over_live},
        "goals": {"BM_Trace": "<= PyTorch's and RMM's"},
        "form": "{:.2f}",
        "compare": None,
    },
]
SCRATCH_KINDS = sorted({kind for table in SCRATCH_TABLES for kind in table["values"]})


def arguments_of(name):
    """{"nodes": "1", "ids": "16"} of "BM_Replay/nodes:1/ids:16/iterations:200/repeats:50"."""
    parts = [part.split(":") for part in name.split("/")[1:]]
    return {
        part[0]: part[1]
        for part in parts
        if len(part) == 2 and part[0] not in ("iterations", "repeats", "min_time", "repetitions")
    }


def spread(values, form):
    if len(values) < 2:
        low = high = values[0]
    else:
        twentieths = statistics.quantiles(values, n=20, method="inclusive")
        low, high = twentieths[0], twentieths[-1]
    return "{} ({} .. {})".format(*(form.format(v) for v in (statistics.median(values), low, high)))


def cell(values, is_ratio):
    return spread(values, "{:.3f}" if is_ratio else "{:,.0f}")


def read(paths):
    """The contexts, and the runs of the benchmarks that this report knows, in the order of the files."""
    contexts, runs = [], []
    known = list(TABLES) + SCRATCH_KINDS
    for path in paths:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        contexts.append(report["context"])
        here = [run for run in report["benchmarks"] if run["name"].split("/")[0] in known]
        if not here:
            sys.exit(f"{path}: none of {', '.join(known)} is in it")
        for run in here:
            if run.get("error_occurred"):
                sys.exit(f"{path}: {run['name']}: {run['error_message']}")
        runs.extend(run for run in here if run.get("run_type") == "iteration")
    return contexts, runs


def counters_of(runs):
    """{benchmark: {row name: {counter: values}}}."""
    tables = {}
    for run in runs:
        kind = run["name"].split("/")[0]
        if kind not in TABLES:
            continue
        row = tables.setdefault(kind, {}).setdefault(run["name"], {})
        for counter, _, _ in TABLES[kind]["columns"]:
            row.setdefault(counter, []).append(run[counter])
    return tables


def table_lines(kind, rows):
    columns = TABLES[kind]["columns"]
    names = list(arguments_of(next(iter(rows))))
    yield f"### {TABLES[kind]['title']}"
    yield ""
    yield "| " + " | ".join(names + [title for _, title, _ in columns]) + " |"
    yield "|---" * (len(names) + len(columns)) + "|"
    yield "| " + " | ".join(["goal"] + [""] * (len(names) - 1) + [goal or "" for _, _, goal in columns]) + " |"
    for name, row in rows.items():
        cells = [cell(row[counter], counter.endswith("_ratio")) for counter, _, _ in columns]
        yield "| " + " | ".join(list(arguments_of(name).values()) + cells) + " |"
    yield ""


def scratch_values(table, runs):
    """{(kind, arguments): {allocator: values}}, the rows in the order of the runs."""
    rows = {}
    for run in runs:
        kind, *rest = run["name"].split("/")
        if kind not in table["values"] or rest[0] not in ALLOCATORS:
            continue
        try:
            value = table["values"][kind](run)
        except KeyError:  # the loop alone holds nothing
            continue
        arguments = ", ".join(f"{name} {value}" for name, value in arguments_of(run["name"]).items())
        rows.setdefault((kind, arguments), {}).setdefault(rest[0], []).append(value)
    return rows


def live_mib(runs, arguments):
    """The peak of live bytes of a trace, "trace one_shape"."""
    name = "/" + arguments.replace(" ", ":") + "/"
    return next(run["peak_live_bytes"] for run in runs if "peak_live_bytes" in run and name in run["name"] + "/") / (1 << 20)


def scratch_cell(table, rows, row, allocator):
    values = rows[row].get(allocator)
    if not values:
        return ""
    if table["compare"] is None:  # it is the same each time
        return table["form"].format(statistics.median(values))
    text = spread(values, table["form"])
    if table["compare"] == "gcap" and allocator not in ("gcap", "harness") and "gcap" in rows[row]:
        return f"{text}, {statistics.median(values) / statistics.median(rows[row]['gcap']):.1f} x"
    alone = rows.get((row[0], "threads 1"), {}).get(allocator)
    if table["compare"] == "threads:1" and alone:
        threads = int(row[1].split()[-1])
        return f"{text}, {statistics.median(values) / statistics.median(alone) / threads:.2f} of ideal"
    return text


def scratch_lines(table, runs):
    rows = scratch_values(table, runs)
    if not rows:
        return
    columns = [name for name in ALLOCATORS if any(name in row for row in rows.values())]
    yield f"### {table['title']}"
    yield ""
    yield "|  | goal | " + " | ".join(ALLOCATORS[name] for name in columns) + " |"
    yield "|---" * (2 + len(columns)) + "|"
    for row in rows:
        cells = [scratch_cell(table, rows, row, name) for name in columns]
        kind = row[0].replace("BM_", "").lower()
        title = row[1] if row[1].startswith(kind) else f"{kind}, {row[1]}"
        if table["compare"] is None:
            title += f" ({live_mib(runs, row[1]):.2f})"
        yield "| " + " | ".join([title, table["goals"].get(row[0], "")] + cells) + " |"
    yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", default="unknown")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("json", nargs="+")
    options = parser.parse_args()
    contexts, runs = read(options.json)
    tables = counters_of(runs)
    lines = []
    for kind, rows in tables.items():
        lines.extend(table_lines(kind, rows))
    for table in SCRATCH_TABLES:
        lines.extend(scratch_lines(table, runs))
    first = contexts[0]
    repetitions = max(collections.Counter(run["name"] for run in runs).values())
    each = ", each the median of its iterations" if tables else ""
    device = first.get("device", "no device")
    print(f"{device}, driver {options.driver}, {first['date'][:10]}, commit {options.commit}; "
          f"{repetitions} repetitions{each}: the median of these (5th .. 95th percentile).")
    print()
    print("\n".join(lines))


if __name__ == "__main__":
    main()
