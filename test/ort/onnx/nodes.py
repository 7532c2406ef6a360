# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend tests: folders of a model and sets of inputs with the expected outputs."""

import glob
import os

import onnx
from onnx import numpy_helper

import runner
from runner import FAILED, REPLAYED, SKIPPED, Verdict


def find(data):
    """The models, as (name, folder)."""
    root = os.path.join(data, "node")
    return [(name, os.path.join(root, name)) for name in sorted(os.listdir(root))]


def _load(folder, kind, count):
    return [numpy_helper.to_array(onnx.load_tensor(os.path.join(folder, f"{kind}_{i}.pb"))) for i in range(count)]


class Suite:
    def __init__(self, ep):
        self._ep = ep

    def verdict_of(self, folder):
        model = os.path.join(folder, "model.onnx")
        try:
            session = self._ep.session(model, fallback=True)
        except Exception as error:
            return self._without_session(model, error)
        here, elsewhere = self._ep.operators(session)
        if elsewhere or not here:
            operators = ", ".join(elsewhere) or "a model without nodes"
            return Verdict(SKIPPED, f"the EP does not take {operators} of {self._types(session)}")
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

    @staticmethod
    def _types(session):
        values = session.get_inputs() + session.get_outputs()
        return ", ".join(sorted({value.type for value in values}))

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
