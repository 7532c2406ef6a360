#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Fetches the models of list.toml into a folder, runs each on an EP of gcap through ONNX Runtime, and writes a page.

    pip install onnxruntime numpy onnx
    python test/ort/models/run.py CACHE --library .bazel/bin/examples/ort_plugin_ep/libgcap_ort_plugin_ep.so \\
        --page docs/ort_models.md

Each model is run eagerly, captured, and replayed with other inputs, as its file is and with fixed dimensions. Its outputs
are compared with those of the CPU EP. A line for each model says what came of it. The exports need the packages that
the list pins. The exit code is 1 if a model is not there, fails or is wrong; a refusal to capture is none of these.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import page
from fetch import Cache, NotFetched, last_line, read_list

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 600  # of one model: a simulator needs seconds, beside other work minutes


def run_alone(command, out, limit_s=LIMIT_S):
    """Runs a trial in a process of its own, which leaves its result in the file `out`."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return {"failure": f"did not end within {limit_s} s"}
    result = json.loads(out.read_text()) if out.exists() else {}
    if done.returncode < 0:
        result["failure"] = f"ended by {signal.Signals(-done.returncode).name}"
    elif done.returncode > 0:
        result["failure"] = last_line(done.stderr)
    elif "leak" in done.stderr:
        result.setdefault("failure", next(line for line in done.stderr.splitlines() if "leak" in line))
    return result


def try_model(model, path, library, ep_name):
    with tempfile.TemporaryDirectory() as folder:
        specs, out = pathlib.Path(folder, "inputs.json"), pathlib.Path(folder, "out.json")
        specs.write_text(json.dumps(model.inputs))
        command = [sys.executable, str(HERE / "trial.py"), library, ep_name, str(path), str(specs), str(out)]
        return run_alone(command, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cache", help="the folder that models are fetched into")
    parser.add_argument("--library", required=True, help="the EP's library")
    parser.add_argument("--ep-name", default="gcap", help="of the EP in the library (default: gcap)")
    parser.add_argument("--list", default=HERE / "list.toml", help="another list of models")
    parser.add_argument("--only", default="", help="models whose names contain this")
    parser.add_argument("--page", help="the page to write")
    arguments = parser.parse_args()
    if arguments.page and arguments.only:
        parser.error("a page is of all models")
    models, packages, exporters = read_list(arguments.list)
    cache, library = Cache(arguments.cache, packages, exporters), os.path.abspath(arguments.library)
    rows = []
    for model in models:
        if arguments.only not in model.name:
            continue
        try:
            row = page.Row(model, try_model(model, cache.fetch(model), library, arguments.ep_name))
        except NotFetched as error:
            row = page.Row(model, {"missing": str(error)})
        print(row.line(), flush=True)
        rows.append(row)
    for line in page.totals(rows):
        print(line)
    if arguments.page:
        pathlib.Path(arguments.page).write_text(page.write(rows, exporters), encoding="utf-8")
    sys.exit(1 if any(row.is_bad() for row in rows) else 0)


if __name__ == "__main__":
    main()
