# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The light models of ONNX's wheel on the plugin EP, by capture and replay, against the CPU EP.

    python3 light_test.py RUN.py LIBRARY MODEL...
"""

import importlib.util
import os
import sys

import onnx.backend.test


def load(path):
    spec = importlib.util.spec_from_file_location("run", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(script, library, *models):
    run = load(script)
    run.RUNS = 1
    folder = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data", "light")
    failed = []
    for model in models:
        print(model, flush=True)
        if run.main(os.path.realpath(library), os.path.join(folder, f"light_{model}.onnx")) != 0:
            failed.append(model)
    print("failed:", " ".join(failed) or "none")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
