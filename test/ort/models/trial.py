# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""One model on the EP, in a process of its own, since a model may end its process.

    trial.py LIBRARY EP-NAME MODEL.onnx INPUTS.json OUT.json

Eagerly, captured as the file is, and captured with all dimensions of the inputs fixed; each replayed with other inputs
than it was captured with. OUT.json says what came of it, as far as it came.
"""

import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import runner  # noqa: E402

WARNING = 2
TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


def draw(spec, kind, random):
    """An input by its entry in the list."""
    shape = spec["shape"]
    if "value" in spec:
        return np.full(shape, spec["value"], TYPES[kind])
    if "below" in spec:
        return random.integers(0, spec["below"], shape).astype(TYPES[kind])
    return np.asarray(random.standard_normal(shape)).astype(TYPES[kind])


def draw_all(specs, session):
    random = np.random.default_rng(1)
    names = [value.name for value in session.get_inputs()]
    if sorted(names) != sorted(specs):
        raise ValueError(f"the model's inputs are {', '.join(names)}, the list has {', '.join(specs)}")
    return [draw(specs[value.name], value.type, random) for value in session.get_inputs()]


def difference(found, expected):
    """The largest difference of an output, of its largest element; infinite where shapes or what is finite differ."""
    largest = 0.0
    for got, want in zip(found, expected):
        if got.dtype != want.dtype or got.shape != want.shape:
            return float("inf")
        got, want = got.astype(np.float64), want.astype(np.float64)
        is_finite = np.isfinite(want)
        if not np.array_equal(got[~is_finite], want[~is_finite], equal_nan=True):
            return float("inf")
        got, want = got[is_finite], want[is_finite]
        scale = np.abs(want).max(initial=0)
        by = np.nan_to_num(np.abs(got - want).max(initial=0), nan=np.inf)
        largest = max(largest, float(by / scale if scale else by))
    return largest


@contextlib.contextmanager
def log_of_process():
    """What is written to the standard error meanwhile, also by a library: the list's one element, afterwards."""
    said, kept = [], os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            said.append(file.read().decode(errors="replace"))


def left_to_others(log):
    """[count, operator, reason] of the EP's warning that names what it leaves."""
    warning = re.search(r"leaves (\d+) of \d+ nodes to other EPs.*?:( .*)", log)
    if not warning:
        return []
    named = [[int(count), operator, why] for count, operator, why in re.findall(r" (\d+) (\S+) \(([^()]*)\)", warning[2])]
    unnamed = int(warning[1]) - sum(count for count, _, _ in named)
    return named + ([[unnamed, "others", "the warning has no room for them"]] if unnamed else [])


def fixed(path, inputs):
    """The model with the shapes of these inputs, as bytes, or None if no dimension is open."""
    model, any_open = onnx.load(path), False
    shapes = {name: array.shape for name, array in inputs.items()}
    for value in model.graph.input:
        for dimension, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ())):
            any_open = any_open or dimension.dim_value <= 0
            dimension.dim_value = size
    return model.SerializeToString() if any_open else None


def capture(ep, model, inputs, expected):
    """A session with graphs: what became of it."""
    with log_of_process() as said:
        try:
            session = ep.session(model, optimize=True, capture=True)
        except Exception as error:
            session, why = None, runner.message(error)
    if session is None:
        return {"captured": False, "left": left_to_others(said[0]), "why": why}
    try:
        found = runner.run_captured(ep, session, inputs, expected)
    except Exception as error:
        return {"captured": False, "left": [], "why": runner.message(error)}
    return {"captured": True, "error": difference(found, expected)}


def assignment(ep, session):
    """How many nodes are on the EP, and how many there are."""
    counts = [(subgraph.ep_name == ep.name, len(subgraph.get_nodes()))
              for subgraph in session.get_provider_graph_assignment_info()]
    return sum(count for here, count in counts if here), sum(count for _, count in counts)


def run(ep, path, specs, result):
    """Fills in the result, step by step."""
    cpu = runner.cpu_session(path)
    inputs = draw_all(specs, cpu)
    names = [value.name for value in cpu.get_inputs()]
    expected = cpu.run(None, dict(zip(names, inputs)))
    other = cpu.run(None, {name: runner.others(array) for name, array in zip(names, inputs)})
    result["depends"] = difference(other, expected) > 0
    result["step"] = "eager"
    session = ep.session(path, optimize=True)
    result["on_ep"], result["nodes"] = assignment(ep, session)
    result["eager"] = difference(runner.run_eagerly(session, inputs), expected)
    del session
    result["step"] = "captured"
    result["shipped"] = capture(ep, path, inputs, expected)
    with_shapes = fixed(path, dict(zip(names, inputs)))
    if with_shapes is not None:
        result["step"] = "captured with fixed dimensions"
        result["fixed"] = capture(ep, with_shapes, inputs, expected)
    result["step"] = ""


def main(library, ep_name, path, specs, out):
    result = {"step": "CPU EP"}
    ep = runner.Ep(library, ep_name, log_severity=WARNING)  # of what the EP leaves to others
    try:
        run(ep, path, json.loads(pathlib.Path(specs).read_text()), result)
    except Exception as error:
        result["failure"] = f"{type(error).__name__}: {runner.message(error)}"
    pathlib.Path(out).write_text(json.dumps(result))
    ep.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
