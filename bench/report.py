#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Writes the measured part of bench/README.md from Google Benchmark's JSON.

    replay_bench --benchmark_repetitions=50 --benchmark_out=replay.json --benchmark_out_format=json
    bench/report.py --driver 580.159.04 --commit $(git rev-parse --short HEAD) replay.json capture.json >table.md

A row is a benchmark with its arguments. A cell is the median of the repetitions, with the 5th and 95th percentile in
parentheses."""
import argparse
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
}


def arguments_of(name):
    """{"nodes": "1", "ids": "16"} of "BM_Replay/nodes:1/ids:16/iterations:200/repeats:50"."""
    parts = [part.split(":") for part in name.split("/")[1:]]
    return {part[0]: part[1] for part in parts if len(part) == 2 and part[0] not in ("iterations", "repeats")}


def cell(values, is_ratio):
    if len(values) < 2:
        low = high = values[0]
    else:
        twentieths = statistics.quantiles(values, n=20, method="inclusive")
        low, high = twentieths[0], twentieths[-1]
    form = "{:.3f}" if is_ratio else "{:,.0f}"
    return "{} ({} .. {})".format(*(form.format(v) for v in (statistics.median(values), low, high)))


def read(paths):
    """The contexts, and {benchmark: {row name: {counter: values}}} in the order of the files."""
    contexts, tables = [], {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        contexts.append(report["context"])
        for run in report["benchmarks"]:
            kind = run["name"].split("/")[0]
            if kind not in TABLES or run.get("run_type") != "iteration":
                continue
            if run.get("error_occurred"):
                sys.exit(f"{path}: {run['name']}: {run['error_message']}")
            row = tables.setdefault(kind, {}).setdefault(run["name"], {})
            for counter, _, _ in TABLES[kind]["columns"]:
                row.setdefault(counter, []).append(run[counter])
        if not tables:
            sys.exit(f"{path}: none of {', '.join(TABLES)} is in it")
    return contexts, tables


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", default="unknown")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("json", nargs="+")
    options = parser.parse_args()
    contexts, tables = read(options.json)
    lines = []
    for kind, rows in tables.items():
        lines.extend(table_lines(kind, rows))
    first = contexts[0]
    repetitions = max(len(values) for rows in tables.values() for row in rows.values() for values in row.values())
    print(f"{first.get('device', 'no device')}, driver {options.driver}, {first['date'][:10]}, commit {options.commit}; "
          f"{repetitions} repetitions, each the median of its iterations: the median of these (5th .. 95th percentile).")
    print()
    print("\n".join(lines))


if __name__ == "__main__":
    main()
