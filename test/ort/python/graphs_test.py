# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Drawn graphs of two to eight nodes, compared with the CPU EP: some with a node in between that the EP lacks, some
captured, node after node or two at a time (ORT_PARALLEL). Several sessions live at once, on threads that end, with
sizes that change each run, and end in any order. Nothing is left of them.

    graphs_test.py LIBRARY [SEED [ROUNDS]]
"""

import os
import subprocess
import sys
import threading

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import runner
import tensors

ROUNDS = 6
WIDTH = 5  # of the last axis, which products keep
KEPT = ("kept", "leak")
ELSEWHERE = "Cast"  # to double and back: gcap has no such type
UNARY = ["Abs", "Neg", "Relu", "Sigmoid", "Softmax", "Tanh", "LogSoftmax", "Identity"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min"]
# Of a chain's results: a few roundings of numbers that are below 2 but for products of at most eight of them.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


class Graph:
    """A model of values of one shape, [n, m, WIDTH]. What no node reads is an output."""

    def __init__(self, random, elsewhere):
        self._random, self._nodes, self._constants = random, [], []
        count = int(random.integers(2, 9))
        place = int(random.integers(count)) if elsewhere else -1
        values, read = ["x"], set()
        for i in range(count):
            inputs = self._node(i, i == place, values)
            read.update(inputs)
            values.append(f"v{i}")
        self.outputs = [value for value in values[1:] if value not in read]
        self.model = self._made()
        self.cpu = runner.cpu_session(self.model)

    def _node(self, i, elsewhere, values):
        """Adds a node that makes the value; gives what it reads. The newest value is read more often than not."""
        random = self._random
        first = values[-1] if random.random() < 0.7 else values[int(random.integers(len(values)))]
        second = values[int(random.integers(len(values)))]
        kind = random.random()
        if elsewhere:
            self._add("Cast", [first], f"d{i}", to=TensorProto.DOUBLE)
            self._add("Cast", [f"d{i}"], f"v{i}", to=TensorProto.FLOAT)
            return [first]
        if kind < 0.4:
            self._add(UNARY[int(random.integers(len(UNARY)))], [first], f"v{i}")
            return [first]
        if kind < 0.6:
            self._add(BINARY[int(random.integers(len(BINARY)))], [first, second], f"v{i}")
            return [first, second]
        if kind < 0.75:
            weights = random.uniform(-0.5, 0.5, [WIDTH, WIDTH]).astype(np.float32)
            self._constants.append(numpy_helper.from_array(weights, f"w{i}"))
            self._add("MatMul", [first, f"w{i}"], f"v{i}")
        elif kind < 0.9:
            self._add("ReduceMax", [first], f"m{i}", axes=[-1])
            self._add("Sub", [first, f"m{i}"], f"v{i}")
        else:
            self._add("Transpose", [first], f"t{i}", perm=[2, 1, 0])
            self._add("Transpose", [f"t{i}"], f"v{i}", perm=[2, 1, 0])
        return [first]

    def _add(self, op_type, inputs, output, **attributes):
        self._nodes.append(helper.make_node(op_type, inputs, [output], name=output, **attributes))

    def _made(self):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m", WIDTH])
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in self.outputs]
        graph = helper.make_graph(self._nodes, "drawn", [x], outputs, self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()

    def expected(self, x):
        return self.cpu.run(self.outputs, {"x": x})

    def check(self, found, x):
        for name, got, want in zip(self.outputs, found, self.expected(x), strict=True):
            np.testing.assert_allclose(got, want, err_msg=name, **TOLERANCE)


class Running:
    """A session of a drawn graph, which any thread runs."""

    def __init__(self, ep, random):
        kind = ["eager", "mixed", "captured"][int(random.integers(3))]
        self.captures = kind == "captured"
        self.graph = Graph(random, elsewhere=kind == "mixed")
        parallel = not self.captures and bool(random.random() < 0.5)
        self._ep = ep
        self.session = ep.session(self.graph.model, capture=self.captures, parallel=parallel)
        assert (ELSEWHERE in ep.operators(self.session)[1]) == (kind == "mixed"), "which nodes are elsewhere"

    def run(self, seed):
        """On this thread: eagerly with sizes that change, or captured and replayed."""
        random = np.random.default_rng(seed)
        if self.captures:
            return self._replay(random)
        for _ in range(3):
            x = random.uniform(-1, 1, [*random.integers(0, 6, 2), WIDTH]).astype(np.float32)
            self.graph.check(runner.run_eagerly(self.session, [x]), x)
        return None

    def _replay(self, random):
        x = random.uniform(-1, 1, [*random.integers(1, 6, 2), WIDTH]).astype(np.float32)
        placed = tensors.on_device(x, self._ep.device_id)
        results = [tensors.on_device(array, self._ep.device_id) for array in self.graph.expected(x)]
        binding = self.session.io_binding()
        binding.bind_ortvalue_input("x", placed)
        for name, tensor in zip(self.graph.outputs, results):
            binding.bind_ortvalue_output(name, tensor)
        for _ in range(3):
            x = random.uniform(-1, 1, x.shape).astype(np.float32)
            tensors.write(placed, x)
            self.session.run_with_iobinding(binding)
            self.graph.check([tensors.read(tensor) for tensor in results], x)
        if hasattr(self.session, "release_captured_graph"):  # since 1.27
            self.session.release_captured_graph(0)  # fails if there was none
        return results, self.graph, x


def run_on_threads(sessions, random):
    """One or two threads for each session, which all end. Gives what they leave, and raises what they raised."""
    left, errors = [], []

    def work(running, seed):
        try:
            left.append(running.run(seed))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(running, int(random.integers(2**31))))
               for running in sessions for _ in range(int(random.integers(1, 3)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [each for each in left if each is not None]


def run_round(ep, seed):
    random = np.random.default_rng(seed)
    sessions = [Running(ep, random) for _ in range(int(random.integers(2, 5)))]
    left = []
    while sessions:
        left += run_on_threads(sessions, random)
        del sessions[int(random.integers(len(sessions)))]
    for results, graph, x in left:  # tensors outlive the session and the thread
        graph.check([tensors.read(tensor) for tensor in results], x)


def run_all(library, first, rounds):
    ep = runner.Ep(library, "gcap", log_severity=2)
    for seed in range(first, first + rounds):
        print(f"seed {seed}", flush=True)
        run_round(ep, seed)
    ep.close()
    print("done", flush=True)


def main(library, first=1, rounds=ROUNDS):
    child = [sys.executable, os.path.abspath(__file__), library, str(first), str(rounds), "child"]
    done = subprocess.run(child, check=False, capture_output=True, text=True)
    print(done.stdout[-4000:], done.stderr[-4000:])
    assert done.returncode == 0 and done.stdout.endswith("done\n"), f"exit code {done.returncode}"
    assert not any(word in done.stderr for word in KEPT), "something of a session or a thread was left"


if __name__ == "__main__":
    if len(sys.argv) > 4:
        run_all(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        main(sys.argv[1], *(int(each) for each in sys.argv[2:]))
