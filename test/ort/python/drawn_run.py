# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Runs a drawn node on the EP and on the CPU EP, and compares.

The CPU EP lacks most kernels of bfloat16: there it computes in float32 what was bfloat16 before, and the outputs are
rounded. An input that kernels read on the host is a constant of the model that is captured.
"""

import os
import re
import signal
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

import drawn_nodes
import runner
import tensors
from drawn_case import BF16, EQUAL, EXACT, F32, FAILED, IR_VERSION, KNOWN, LEFT, REFUSED, REPLAYED, SUM, Draw, schemas

SECONDS_OF_A_CASE = 120  # a case that takes longer does not end, and ends the process
BF16_TYPE, F32_TYPE = onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT
WARNINGS = 2  # the severity

# Relative and absolute difference of an element: a few roundings of its type. A function that the C library has may
# differ by some units from the CPU EP's approximation, which is of float32 for narrower types too.
ROUNDING = {"float64": (1e-6, 1e-9), "float32": (2e-5, 2e-6), "float16": (2e-3, 2e-4), "bfloat16": (1.6e-2, 2e-3)}
# And of a sum, of the largest element of the output, or of 1: the terms are rounded as they are added.
OF_LARGEST = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}

# Why the EP leaves a node, in its warning.
LEFT_BECAUSE = re.compile(r"EP '\w+' leaves .*?: (\d+ \S+ \(.*\))")


def _is_refusal(error):
    """Whether ONNX or ONNX Runtime refuses a model; else the test is wrong."""
    return isinstance(error, onnx.checker.ValidationError) or type(error).__module__.startswith("onnxruntime")


class Failure(Exception):
    """What is wrong, in words."""


class Log:
    """The process's standard error, in a file: ONNX Runtime and the EP write there."""

    def __init__(self):
        self._file = tempfile.TemporaryFile()
        self._old = os.dup(2)
        os.dup2(self._file.fileno(), 2)

    def text(self):
        """What was written since the last call."""
        sys.stderr.flush()
        end = os.lseek(self._file.fileno(), 0, os.SEEK_END)
        begin, self._begin = getattr(self, "_begin", 0), end
        return os.pread(self._file.fileno(), end - begin, begin).decode(errors="replace")

    def close(self):
        os.dup2(self._old, 2)


# --- Models


def _narrowed(data):
    return data.astype(F32) if data.dtype == BF16 else data


def _value(name, data, dimensions):
    shape = {"fixed": data.shape, "open": [f"{name}_{i}" for i in range(data.ndim)], "none": None}[dimensions]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), shape)


def _attributes(attributes, of_cpu):
    """A type that is an attribute is float32 on the CPU EP too."""
    if not of_cpu:
        return attributes
    return {name: F32_TYPE if name in ("to", "dtype", "output_dtype") and value == BF16_TYPE else value
            for name, value in attributes.items()}


def _plain(value):
    if isinstance(value, onnx.TensorProto) and value.data_type == BF16_TYPE:
        return numpy_helper.from_array(numpy_helper.to_array(value).astype(F32))
    return value


class Model:
    """A drawn node as a model: which inputs are constants, which dimensions are open."""

    def __init__(self, draw, node, is_constant, dimensions):
        self.draw, self.node, self.is_constant, self.dimensions = draw, node, is_constant, dimensions

    def bytes(self, of_cpu=False):
        draw, node = self.draw, self.node
        change = _narrowed if of_cpu else (lambda data: data)
        inputs = [(f"x{i}", each.data if each.data is None else change(np.asarray(each.data)))
                  for i, each in enumerate(node.inputs)]
        names = ["" if data is None else name for name, data in inputs]
        outputs = ["" if dtype is None else f"y{i}" for i, dtype in enumerate(node.outputs)]
        attributes = {name: _plain(value) if of_cpu else value
                      for name, value in _attributes(node.attributes, of_cpu).items()}
        made = helper.make_node(draw.op_type, names, outputs, name="drawn", domain=draw.domain, **attributes)
        types = [F32 if of_cpu and dtype == BF16 else dtype for dtype in node.outputs]
        graph = helper.make_graph(
            [made],
            "drawn",
            [_value(name, data, self.dimensions) for i, (name, data) in enumerate(inputs) if self._is_input(i)],
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)
             for name, dtype in zip(outputs, types) if name],
            [numpy_helper.from_array(data, name) for i, (name, data) in enumerate(inputs)
             if data is not None and self.is_constant[i]],
        )
        opsets = [helper.make_opsetid("", draw.opset)] + ([helper.make_opsetid(draw.domain, 1)] if draw.domain else [])
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()

    def _is_input(self, i):
        return self.node.inputs[i].data is not None and not self.is_constant[i]

    def feeds(self, node):
        """The inputs' arrays of the same node with other contents, without the constants."""
        return [np.asarray(each.data) for i, each in enumerate(node.inputs) if self._is_input(i)]

    def takes(self, other):
        """Whether another node runs in this model: its constants are the same, and its shapes, if they are fixed."""
        if (len(other.inputs), other.outputs) != (len(self.node.inputs), self.node.outputs):
            return False
        if str(other.attributes) != str(self.node.attributes):
            return False
        return all(self._takes_input(i, mine.data, each.data) for i, (mine, each) in
                   enumerate(zip(self.node.inputs, other.inputs)))

    def _takes_input(self, i, mine, other):
        if mine is None or other is None:
            return mine is other
        if self.is_constant[i]:
            return mine.shape == other.shape and mine.tobytes() == other.tobytes()
        same = mine.shape == other.shape if self.dimensions == "fixed" else mine.ndim == other.ndim
        return mine.dtype == other.dtype and same


# --- Comparison


def _differs(got, want, how):
    if how == EXACT or got.dtype.name not in ROUNDING:
        bits = f"u{got.dtype.itemsize}"
        same = got.view(bits) == want.view(bits) if got.dtype != bool else got == want
        if got.dtype.name in ROUNDING:  # of NaNs any will do
            same |= np.isnan(got) & np.isnan(want)
        return ~same
    if how == EQUAL:
        return (got != want) & ~(np.isnan(got) & np.isnan(want))
    relative, absolute = ROUNDING[got.dtype.name]
    if how == SUM:
        finite = np.abs(want.astype(np.float64))[np.isfinite(want)]
        absolute = OF_LARGEST[got.dtype.name] * max(1.0, finite.max(initial=0))
    with np.errstate(all="ignore"):
        got, want = got.astype(np.float64), want.astype(np.float64)
        return ~np.isclose(got, want, rtol=relative, atol=absolute, equal_nan=True)


def compare(when, found, expected, how):
    """Raises Failure where an output differs."""
    for i, (got, want) in enumerate(zip(found, expected, strict=True)):
        if got.dtype != want.dtype or got.shape != want.shape:
            kinds = [f"{array.dtype}{list(array.shape)}" for array in (got, want)]
            raise Failure(f"{when}: output {i} is {kinds[0]}, expected {kinds[1]}")
        got, want = np.ascontiguousarray(got).reshape(-1), np.ascontiguousarray(want).reshape(-1)
        wrong = _differs(got, want, how)
        if wrong.any():
            where = int(np.argmax(wrong))
            raise Failure(f"{when}: output {i} is {got[where]} at {where}, expected {want[where]}; "
                          f"{wrong.sum()} of {wrong.size} elements differ")


def _rounded(array, dtype):
    return array.astype(dtype) if array.dtype != np.dtype(dtype) else array


# --- A case


class Case:
    """One drawn node in all its runs."""

    def __init__(self, ep, log, row, seed, case):
        self._ep, self._log, self._row = ep, log, row
        self._key = (row, seed, case)
        self._draw, self.node = self._drawn(0, 0)
        inputs = self.node.inputs
        may = [i for i, each in enumerate(inputs) if each.data is not None and not each.fixed]
        constants = {i for i in may if self._draw.chance(0.5 if inputs[i].on_host else 0.15)}
        if len(constants) == len(may) and may:
            constants.discard(may[0])
        self._is_constant = [each.fixed or i in constants for i, each in enumerate(inputs)]
        self._dimensions = self._draw.choice(["fixed", "open", "open", "none"])
        self._model = Model(self._draw, self.node, self._is_constant, self._dimensions)
        # The same node with other contents, and with other sizes, where it can be.
        self._other = self._with_constants(self._drawn(0, 1)[1])
        self._resized = self._with_constants(self._drawn(1, 2)[1])

    def _drawn(self, sizes, contents):
        draw = Draw(*self._key, sizes, contents)
        return draw, drawn_nodes.GENERATORS[self._row](draw)

    def _with_constants(self, other):
        """With the constants of the first draw, if the rest of it runs in its model; else None."""
        if len(other.inputs) != len(self.node.inputs):
            return None
        kept = [mine if constant and not mine.on_host and mine.data is not None and each.data is not None and
                np.shape(each.data) == np.shape(mine.data) else each
                for mine, each, constant in zip(self.node.inputs, other.inputs, self._is_constant)]
        other = other._replace(inputs=kept)
        return other if self._model.takes(other) else None

    def nodes(self):
        """The node, and what there is of it with other contents and with other sizes."""
        return [node for node in (self.node, self._other, self._resized) if node is not None]

    def describe(self):
        """The node in a line."""
        def text(each):
            if each.data is None:
                return "-"
            data = np.asarray(each.data)
            said = f"{data.dtype}{list(data.shape)}"
            return said + (f"={data.tolist()}" if each.on_host else "")

        inputs = ", ".join(text(each) + ("c" if constant else "")
                           for each, constant in zip(self.node.inputs, self._is_constant))
        attributes = {name: value if not isinstance(value, onnx.TensorProto) else numpy_helper.to_array(value).tolist()
                      for name, value in self.node.attributes.items()}
        return f"opset {self._draw.opset}, {self._dimensions}: {inputs} {attributes}"

    def run(self):
        """(kind, text)."""
        try:
            self._check()
            nodes = self.nodes()
            expected = self._expected(nodes)
        except Exception as error:
            if not _is_refusal(error):
                raise
            return REFUSED, f"{self._row}: {runner.message(error)}"
        session, reason = self._session()
        if reason:
            return LEFT, f"{self._row}: {reason}"
        for name, node, want in zip(("eager", "other contents", "other sizes"), nodes, expected):
            compare(name, runner.run_eagerly(session, self._model.feeds(node)), want, self.node.how)
        del session
        return self._captured(nodes, expected)

    def _check(self):
        if schemas(self._draw.op_type, self._draw.domain) and not self._draw.domain:
            context = onnx.checker.C.CheckerContext()
            context.ir_version, context.opset_imports = IR_VERSION, {"": self._draw.opset}
            onnx.checker.check_node(onnx.load_from_string(self._model.bytes()).graph.node[0], context)

    def _expected(self, nodes):
        session = runner.cpu_session(self._model.bytes(of_cpu=True))
        types = [dtype for dtype in self.node.outputs if dtype is not None]
        results = []
        for node in nodes:
            found = runner.run_eagerly(session, [_narrowed(data) for data in self._model.feeds(node)])
            results.append([_rounded(each, dtype) for each, dtype in zip(found, types, strict=True)])
        return results

    def _session(self):
        """A session, or why the EP leaves the node."""
        try:
            session = self._ep.session(self._model.bytes())
        except Exception:
            reason = self._reason()
            if not reason:
                raise
            return None, reason
        here, elsewhere = self._ep.operators(session)
        return session, self._reason() if elsewhere or not here else ""

    def _reason(self):
        """Why the EP leaves the node, which it says where a session shall be captured; empty if it is captured, as a
        function is whose shapes are computed on the CPU."""
        self._log.text()
        try:
            self._ep.session(self._model.bytes(), capture=True, log_severity=WARNINGS)
        except Exception as error:
            found = LEFT_BECAUSE.search(self._log.text())
            return found.group(1) if found else f"and no other takes it, {runner.message(error)}"
        return ""

    def _captured(self, nodes, expected):
        constant = [known or (each.on_host and each.data is not None)
                    for known, each in zip(self._is_constant, self.node.inputs)]
        model = Model(self._draw, self.node, constant, self._dimensions)
        pairs = [(node, want) for node, want in zip(nodes, expected) if model.takes(node)]
        session = self._ep.session(model.bytes(), capture=True)
        graphs = _Graphs(self._ep, session, self.node.how)
        feeds = [model.feeds(node) for node, _ in pairs]
        first, runs = expected[0], {}
        runs[0] = graphs.bind(feeds[0], first)
        graphs.run("captured", 0, runs[0], feeds[0], first)
        for i, (_, want) in enumerate(pairs[1:], 1):
            if all(mine.shape == each.shape for mine, each in zip(feeds[0], feeds[i])):
                graphs.run("replayed", 0, runs[0], feeds[i], want)
            else:
                runs[i] = graphs.bind(feeds[i], want)
                graphs.run("captured with other sizes", i, runs[i], feeds[i], want)
        graphs.run("replayed again", 0, runs[0], feeds[0], first)
        graphs.release(runs)
        return REPLAYED, ""


class _Graphs:
    """Runs of a session that captures, on bound tensors."""

    def __init__(self, ep, session, how):
        self._ep, self._session, self._how = ep, session, how

    def bind(self, feeds, expected):
        inputs = [tensors.on_device(array, self._ep.device_id) for array in feeds]
        outputs = [tensors.on_device(array, self._ep.device_id) for array in expected]
        binding = self._session.io_binding()
        for value, tensor in zip(self._session.get_inputs(), inputs, strict=True):
            binding.bind_ortvalue_input(value.name, tensor)
        for value, tensor in zip(self._session.get_outputs(), outputs, strict=True):
            binding.bind_ortvalue_output(value.name, tensor)
        return binding, inputs, outputs

    def run(self, name, graph_id, bound, feeds, expected):
        """With these contents; what is in the outputs before is none of what is expected."""
        binding, inputs, outputs = bound
        for tensor, array in zip(inputs, feeds):
            tensors.write(tensor, array)
        for tensor, array in zip(outputs, expected):
            tensors.write(tensor, runner.anything_but(array))
        options = ort.RunOptions()
        options.log_severity_level = 4
        options.add_run_config_entry("gpu_graph_id", str(graph_id))
        self._session.run_with_iobinding(binding, options)
        compare(name, [tensors.read(tensor) for tensor in outputs], expected, self._how)


    def release(self, graph_ids):
        """Fails if a run had no graph."""
        if hasattr(self._session, "release_captured_graph"):  # since 1.27
            for graph_id in graph_ids:
                self._session.release_captured_graph(graph_id)


class Runner:
    """Runs cases in this process."""

    def __init__(self, library, name):
        self._log = Log()
        self._ep = runner.Ep(library, name, log_severity=WARNINGS)

    def run(self, row, seed, number):
        signal.alarm(SECONDS_OF_A_CASE)
        case = Case(self._ep, self._log, row, seed, number)
        try:
            kind, text = case.run()
        except Exception as error:
            kind, text = FAILED, str(error) if isinstance(error, Failure) else runner.message(error)
        if kind == FAILED:
            reason = drawn_nodes.known(row, case.nodes(), text)
            return (KNOWN, f"{row}: {reason}") if reason else (FAILED, f"{text} ({case.describe()})")
        return kind, text

    def close(self):
        self._ep.close()
        self._log.close()
