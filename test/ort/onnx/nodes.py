# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend tests: folders of a model and sets of inputs with the expected outputs.

Which models run is said by the EP. That it gives none away is checked: a model whose operators it takes in other models,
with types that gcap has, runs, or is in skips.txt with the reason; and a model in skips.txt does not run.
"""

import collections
import glob
import os

import onnx
from onnx import numpy_helper

import runner
from runner import FAILED, REPLAYED, SKIPPED, Verdict

# What gcap has tensors of.
TYPES = {
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.INT64,
    onnx.TensorProto.INT32,
    onnx.TensorProto.BOOL,
}

# `operators`: those of the model's nodes; empty where one of its types is not gcap's.
Case = collections.namedtuple("Case", ["verdict", "operators"])


def find(data):
    """The models, as (name, folder)."""
    root = os.path.join(data, "node")
    return [(name, os.path.join(root, name)) for name in sorted(os.listdir(root))]


def _read_skips():
    """The reasons, by model."""
    with open(os.path.join(os.path.dirname(__file__), "skips.txt"), encoding="utf-8") as file:
        lines = [line.split(maxsplit=1) for line in file if line.strip() and not line.startswith("#")]
    return {name: reason.strip() for name, reason in lines}


def _operators(path):
    graph = onnx.load(path).graph
    values = list(graph.input) + list(graph.output)
    if any(value.type.tensor_type.elem_type not in TYPES for value in values):
        return set()
    return {(node.domain, node.op_type) for node in graph.node}


def _load(folder, kind, count):
    return [numpy_helper.to_array(onnx.load_tensor(os.path.join(folder, f"{kind}_{i}.pb"))) for i in range(count)]


class Suite:
    def __init__(self, ep):
        self._ep = ep

    def verdicts(self, models):
        """(name, verdict) of each model."""
        skips = _read_skips()
        cases = {name: self._case(folder) for name, folder in models}
        taken = set().union(*(case.operators for case in cases.values() if case.verdict.kind == REPLAYED))
        for name, case in cases.items():
            verdict = case.verdict
            if name in skips and verdict.kind == REPLAYED:
                verdict = Verdict(FAILED, f"it runs, and is listed as skipped: {skips[name]}")
            elif name in skips and verdict.kind == SKIPPED:
                verdict = Verdict(SKIPPED, skips[name])
            elif verdict.kind == SKIPPED and case.operators and case.operators <= taken:
                verdict = Verdict(FAILED, f"{verdict.reason}, which it takes in other models; list it with a reason")
            yield name, verdict

    def _case(self, folder):
        model = os.path.join(folder, "model.onnx")
        return Case(self._verdict(model, folder), _operators(model))

    def _verdict(self, model, folder):
        try:
            session = self._ep.session(model, fallback=True)
        except Exception as error:
            return self._without_session(model, error)
        here, elsewhere = self._ep.operators(session)
        if elsewhere or not here:
            values = session.get_inputs() + session.get_outputs()
            types = ", ".join(sorted({value.type for value in values}))
            return Verdict(SKIPPED, f"the EP does not take {', '.join(elsewhere) or 'a model without nodes'} of {types}")
        try:
            return self._run(session, model, folder)
        except Exception as error:
            return Verdict(FAILED, runner.message(error))

    @staticmethod
    def _without_session(model, error):
        """It is the EP's fault if ONNX Runtime alone takes the model."""
        try:
            runner.cpu_session(model)
        except Exception:
            return Verdict(SKIPPED, f"ONNX Runtime lacks it: {runner.message(error)}")
        return Verdict(FAILED, runner.message(error))

    def _run(self, session, model, folder):
        captured = self._ep.session(model, capture=True)
        for data_set in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
            inputs = _load(data_set, "input", len(session.get_inputs()))
            expected = _load(data_set, "output", len(session.get_outputs()))
            wrong = runner.mismatch(runner.run_eagerly(session, inputs), expected)
            if wrong:
                return Verdict(FAILED, f"eager: {wrong}")
            wrong = runner.mismatch(runner.run_captured(self._ep, captured, inputs, expected), expected)
            if wrong:
                return Verdict(FAILED, f"replay: {wrong}")
        return Verdict(REPLAYED)
