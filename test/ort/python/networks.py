# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""ONNX's light networks: whole networks for images, whose files have one number for each weight. Here each weight is
random, so that an output depends on every node."""

import glob
import os
import time

import numpy as np
import onnx
from onnx import numpy_helper

import runner
from runner import FAILED, OPTIMIZED, SKIPPED, Verdict

# Of an output's largest element: how much sums over the whole network may differ.
ROUNDING = 1e-5
# Whose weights are hundreds of megabytes.
LARGE = ["bvlc_alexnet", "vgg19", "zfnet512"]


def find(data, with_large):
    """The networks, as (name, file)."""
    found = []
    for path in sorted(glob.glob(os.path.join(data, "light", "light_*.onnx"))):
        name = os.path.basename(path)[len("light_") : -len(".onnx")]
        if with_large or name not in LARGE:
            found.append((name, path))
    return found


def _is_scale(graph, name):
    """Whether a vector scales: as a variance does, it has to be positive. Older networks unsqueeze theirs first."""
    for node in graph.node:
        if name not in node.input:
            continue
        if node.op_type == "Unsqueeze":
            return _is_scale(graph, node.output[0])
        place = list(node.input).index(name)
        return node.op_type == "Mul" or (node.op_type == "BatchNormalization" and place in (1, 4))
    return False


def _weights(shape, is_scale, random):
    """Numbers that keep a signal's size from layer to layer."""
    if len(shape) > 1:
        return random.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / np.prod(shape[1:])))
    return random.uniform(0.5 if is_scale else -0.1, 1.5 if is_scale else 0.1, shape).astype(np.float32)


def load(path):
    """A network with its weights, as bytes. What goes into a Softmax comes out too: the Softmax leaves little of it."""
    model = onnx.load(path)
    model.ir_version = 8  # an initializer need not be an input
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    random = np.random.default_rng(0)
    for node in [node for node in graph.node if node.op_type == "ConstantOfShape"]:
        shape = numpy_helper.to_array(constants[node.input[0]])
        weights = _weights(shape, _is_scale(graph, node.output[0]), random)
        graph.initializer.append(numpy_helper.from_array(weights, node.output[0]))
        graph.node.remove(node)
    names = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in names]
    del graph.input[:]
    graph.input.extend(inputs)
    for node in graph.node:
        if node.op_type == "Softmax":
            graph.output.append(onnx.helper.make_tensor_value_info(node.input[0], onnx.TensorProto.FLOAT, None))
    return model.SerializeToString()


def _run_on_cpu(session, inputs):
    return session.run(None, {value.name: array for value, array in zip(session.get_inputs(), inputs)})


class Suite:
    def __init__(self, ep):
        self._ep = ep

    def verdicts(self, models):
        """(name, verdict) of each network."""
        for name, path in models:
            begin = time.monotonic()
            try:
                verdict = self._run(load(path))
            except Exception as error:
                verdict = Verdict(FAILED, runner.message(error))
            print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
            yield name, verdict

    def _run(self, model):
        session = self._ep.session(model, optimize=True)
        _, elsewhere = self._ep.operators(session)
        if elsewhere:
            return Verdict(SKIPPED, f"the EP does not take {', '.join(elsewhere)}")
        cpu = runner.cpu_session(model)
        random = np.random.default_rng(1)
        inputs = [random.random(value.shape, np.float32) for value in cpu.get_inputs()]
        expected = _run_on_cpu(cpu, inputs)
        other = _run_on_cpu(cpu, [runner.others(array) for array in inputs])
        if not runner.mismatch(other, expected, ROUNDING):
            return Verdict(FAILED, "its outputs do not depend on its inputs, so they show nothing")
        wrong = runner.mismatch(runner.run_eagerly(session, inputs), expected, ROUNDING)
        if wrong:
            return Verdict(FAILED, f"eager: {wrong}")
        captured = self._ep.session(model, optimize=True, capture=True)
        wrong = runner.mismatch(runner.run_captured(self._ep, captured, inputs, expected), expected, ROUNDING)
        return Verdict(FAILED, f"replay: {wrong}") if wrong else Verdict(OPTIMIZED)
