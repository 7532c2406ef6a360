# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The script of examples/ort_plugin_ep on a small model: it succeeds, and prints four times.

    python3 run_script_test.py RUN.py LIBRARY
"""

import os
import re
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


def two_layers():
    random = numpy.random.default_rng(1)
    weights = {"w1": (64, 32), "b1": (32,), "w2": (32, 10), "b2": (10,)}
    tensors = [
        numpy_helper.from_array(random.standard_normal(shape).astype(numpy.float32), name)
        for name, shape in weights.items()
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["positive"]),
        helper.make_node("Gemm", ["positive", "w2", "b2"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])
    graph = helper.make_graph(nodes, "two_layers", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def main(script, library):
    model = os.path.join(os.environ["TEST_TMPDIR"], "two_layers.onnx")
    onnx.save(two_layers(), model)
    done = subprocess.run(
        [sys.executable, script, os.path.realpath(library), model], check=False, capture_output=True, text=True
    )
    print(done.stdout, done.stderr)
    if done.returncode != 0 or len(re.findall(r"[0-9.]+ us$", done.stdout, re.MULTILINE)) != 4:
        return 1
    return 0 if "leak" not in done.stderr else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
