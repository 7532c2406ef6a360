# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend tests: folders of a model and sets of inputs with the expected outputs.

Which models run is said by the EP. That it gives none away is checked: a model of which it leaves operators to others
that it takes in other models, is in skips.txt with the reason, unless it has types that gcap lacks. And a model in
skips.txt does not run, or runs eagerly and its capture is refused.
"""

import collections
import glob
import os

import onnx
from onnx import numpy_helper

import runner
from runner import EAGER, FAILED, MIXED, OPTIMIZED, REPLAYED, SKIPPED, Verdict

RAN = (EAGER, OPTIMIZED, REPLAYED)

# How a capture is refused that would hold what a kernel read on the host, by the EP and by ONNX Runtime.
REFUSALS = ("held in the captured run", "cannot use the graph capture feature")

# What gcap has tensors of.
TYPES = {
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.INT64,
    onnx.TensorProto.INT32,
    onnx.TensorProto.BOOL,
}

# `here`, `elsewhere`: the operators whose nodes are on the EP, and elsewhere, in the last session of the model.
Case = collections.namedtuple("Case", ["verdict", "here", "elsewhere"], defaults=[(), ()])


def find(data):
    """The models, as (name, folder)."""
    root = os.path.join(data, "node")
    return [(name, os.path.join(root, name)) for name in sorted(os.listdir(root))]


def _read_skips():
    """The reasons, by model."""
    with open(os.path.join(os.path.dirname(__file__), "skips.txt"), encoding="utf-8") as file:
        lines = [line.split(maxsplit=1) for line in file if line.strip() and not line.startswith("#")]
    return {name: reason.strip() for name, reason in lines}


def _has_types(path):
    """Whether gcap has tensors of the types of the model's inputs and outputs."""
    graph = onnx.load(path).graph
    return all(value.type.tensor_type.elem_type in TYPES for value in list(graph.input) + list(graph.output))


def _load(folder, kind, count):
    return [numpy_helper.to_array(onnx.load_tensor(os.path.join(folder, f"{kind}_{i}.pb"))) for i in range(count)]


def _data_sets(model, session):
    """(inputs, expected outputs) of each set that the model comes with."""
    for folder in sorted(glob.glob(os.path.join(os.path.dirname(model), "test_data_set_*"))):
        inputs = _load(folder, "input", len(session.get_inputs()))
        yield inputs, _load(folder, "output", len(session.get_outputs()))


def _is_numeric(value):
    return value.type.startswith("tensor(") and value.type != "tensor(string)"


class Suite:
    def __init__(self, ep):
        self._ep = ep

    def verdicts(self, models):
        """(name, verdict) of each model."""
        cases = {name: self._case(os.path.join(folder, "model.onnx")) for name, folder in models}
        if not self._ep.HAS_SKIPS:
            yield from ((name, case.verdict) for name, case in cases.items())
            return
        skips = _read_skips()
        taken = set().union(*(case.here for case in cases.values() if case.verdict.kind in RAN))
        for name, folder in models:
            verdict, _, elsewhere = cases[name]
            if name in skips and verdict.kind in RAN:
                verdict = Verdict(FAILED, f"it runs, and is listed as skipped: {skips[name]}")
            elif name in skips and verdict.kind in (MIXED, SKIPPED):
                verdict = Verdict(verdict.kind, skips[name])
            elif name in skips and verdict.kind == FAILED and any(words in verdict.reason for words in REFUSALS):
                verdict = Verdict(EAGER, skips[name])
            elif elsewhere and taken.issuperset(elsewhere) and _has_types(os.path.join(folder, "model.onnx")):
                verdict = Verdict(FAILED, f"{verdict.reason}, but takes them in other models; list it with a reason")
            yield name, verdict

    def _case(self, model):
        """The model as it is; if that is not for the EP, as ONNX Runtime optimizes it, which folds constants."""
        sessions = []
        for optimize in (False, True):
            try:
                session = self._ep.session(model, optimize)
            except Exception as error:
                return Case(self._without_session(model, error))
            here, elsewhere = self._ep.operators(session)
            if here and (not elsewhere or self._only_shapes_elsewhere(model, optimize)):
                return Case(self._run(session, model, optimize), here)
            if here and elsewhere and all(map(_is_numeric, session.get_inputs() + session.get_outputs())):
                sessions.append(session)
        return Case(self._mixed(sessions, model, self._reason(session, elsewhere)), here, elsewhere)

    def _mixed(self, sessions, model, reason):
        """With nodes on both EPs, between which ONNX Runtime copies."""
        for session in sessions:
            try:
                for inputs, expected in _data_sets(model, session):
                    wrong = runner.mismatch(runner.run_eagerly(session, inputs), expected)
                    if wrong:
                        return Verdict(FAILED, f"mixed: {wrong}")
            except Exception as error:
                return Verdict(FAILED, runner.message(error))
        return Verdict(MIXED if sessions else SKIPPED, reason)

    def _only_shapes_elsewhere(self, model, optimize):
        """ONNX Runtime makes a session that captures if what is on the CPU EP computes shapes alone."""
        try:
            self._ep.session(model, optimize, capture=True)
            return True
        except Exception:
            return False

    @staticmethod
    def _reason(session, elsewhere):
        types = ", ".join(sorted({value.type for value in session.get_inputs() + session.get_outputs()}))
        return f"the EP does not take {', '.join(elsewhere) or 'a model without nodes'} of {types}"

    @staticmethod
    def _without_session(model, error):
        """It is the EP's fault if ONNX Runtime alone takes the model."""
        try:
            runner.cpu_session(model)
        except Exception:
            return Verdict(SKIPPED, f"ONNX Runtime lacks it: {runner.message(error)}")
        return Verdict(FAILED, runner.message(error))

    def _run(self, session, model, optimize):
        try:
            on_host = any(runner.is_on_host(memory) for memory in session.get_output_memory_infos())
            for inputs, expected in _data_sets(model, session):
                wrong = runner.mismatch(runner.run_eagerly(session, inputs), expected)
                if wrong:
                    return Verdict(FAILED, f"eager: {wrong}")
                if on_host:
                    continue
                fixed, left = runner.with_constants(model, session, inputs)
                captured = self._ep.session(fixed, optimize, capture=True)
                wrong = runner.mismatch(runner.run_captured(self._ep, captured, left, expected), expected)
                if wrong:
                    return Verdict(FAILED, f"replay: {wrong}")
        except Exception as error:
            return Verdict(FAILED, runner.message(error))
        if on_host:
            return Verdict(EAGER, "an output is in host memory, where no graph writes")
        return Verdict(OPTIMIZED if optimize else REPLAYED)
