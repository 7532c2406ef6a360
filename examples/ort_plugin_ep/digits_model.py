#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Writes the network of examples/minimal_ep/digits as an ONNX file, for run.py. Needs the package onnx.

    python digits_model.py digits.onnx
"""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "minimal_ep", "digits", "data")
LAYERS = ["conv1", "conv2", "fc1", "fc2"]


def weights():
    names = [f"{layer}_{kind}" for layer in LAYERS for kind in ("weight", "bias")]
    return [numpy_helper.from_array(np.load(os.path.join(DATA, name + ".npy")), name) for name in names]


def nodes():
    def layer(op_type, name, source, **attributes):
        inputs = [source, name + "_weight", name + "_bias"]
        return helper.make_node(op_type, inputs, [name], name, **attributes)

    return [
        layer("Conv", "conv1", "images", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv1"], ["relu1"]),
        layer("Conv", "conv2", "relu1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv2"], ["relu2"]),
        helper.make_node("MaxPool", ["relu2"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        layer("Gemm", "fc1", "features", transB=1),
        helper.make_node("Relu", ["fc1"], ["hidden"]),
        layer("Gemm", "fc2", "hidden", transB=1),
        helper.make_node("Softmax", ["fc2"], ["probabilities"]),
    ]


def model():
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 1, 8, 8])
    probabilities = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])
    graph = helper.make_graph(nodes(), "digits", [images], [probabilities], weights())
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    onnx.save(model(), sys.argv[1])
