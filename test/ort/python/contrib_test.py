# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Operators that exporters and optimizers write and ONNX has no models for: ONNX Runtime's own ones, and those of a
version that ONNX Runtime alone knows.

    contrib_test.py LIBRARY

Each case is a model of one node. The node is on the EP, runs eagerly, is captured, and is replayed with other inputs.
What the CPU EP gives of the same inputs in f32 is what is expected, since the CPU EP has few of these operators in f16
and bf16.
"""

import collections
import sys

import ml_dtypes
import numpy as np
from onnx import helper

import runner

TYPES = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]

# `inputs`, by place: a shape, whose elements are drawn; an array, which the node gets as it is; None: left out.
# `outputs`: those that the node has; None: left out. `error`: how far an element may be from what is expected, in units
# of the rounding of the type.
# `types`: those that the operator has.
FIELDS = ["name", "op_type", "domain", "opset", "inputs", "outputs", "attributes", "units", "types"]
Case = collections.namedtuple("Case", FIELDS, defaults=[TYPES])


def of_microsoft(name, op_type, inputs, outputs=("y",), units=4, **attributes):
    return Case(name, op_type, "com.microsoft", 17, inputs, outputs, attributes, units)


def of_onnx(name, op_type, opset, inputs, units=4, types=TYPES, **attributes):
    return Case(name, op_type, "", opset, inputs, ("y",), attributes, units, types)


def skip_norms():
    x, row = (2, 3, 16), (16,)
    for op_type, beta in (("SkipLayerNormalization", [row]), ("SkipSimplifiedLayerNormalization", [])):
        yield of_microsoft("all", op_type, [x, x, row, *beta, row], ("y", None, None, "sum"), units=16, epsilon=1e-3)
        yield of_microsoft("least", op_type, [x, x, row], units=16)
        yield of_microsoft("of one batch", op_type, [x, (1, 3, 16), row, *beta], units=16)
        yield of_microsoft("of rank 2", op_type, [(5, 16), (5, 16), row, *[None for _ in beta], row], units=16)


def attentions():
    """Of 2 batches, 2 heads, 3 queries, 4 keys, heads of 8; with a past of 5 tokens."""
    q, kv, cache, past = (2, 3, 16), (2, 4, 16), (2, 2, 4, 8), (2, 2, 5, 8)

    def multi_head(name, inputs, outputs=("y",), **attributes):
        return of_microsoft(name, "MultiHeadAttention", inputs, outputs, units=32, num_heads=2, **attributes)

    yield multi_head("least", [q, kv, kv])
    yield multi_head("with a bias", [q, kv, kv, (48,)], scale=0.25)
    yield multi_head("with lengths", [q, kv, kv, None, np.array([2, 3], np.int32)])
    keys = np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32)
    yield multi_head("with a mask of keys", [q, kv, kv, None, keys])
    each = np.array([[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]], [[0, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]]], np.int32)
    yield multi_head("with a mask of queries and keys", [q, kv, kv, None, each])
    yield multi_head("with all of it", [q, kv, kv, (48,), keys, (1, 2, 3, 4)], mask_filter_value=-2.0)
    yield multi_head("of cross attention", [q, cache, cache])
    yield multi_head("unidirectional, padded at the left", [kv, kv, kv, None, keys], unidirectional=1)
    yield multi_head("with a past", [kv, kv, kv, (48,), None, None, past, past], ("y", "k", "v"), unidirectional=1)
    mask = np.array([[1] * 6, [0, 0, 1, 1, 1, 1]], np.int32)
    token = (2, 1, 16)
    yield multi_head("of a token", [token] * 3 + [None, mask, (2, 2, 1, 6), past, past], ("y", "k", "v"))


def cases():
    yield from skip_norms()
    yield of_onnx("", "SimplifiedLayerNormalization", 17, [(2, 3, 16), (16,)], axis=-1, epsilon=1e-5, stash_type=1)
    yield of_onnx("before opset 17", "LayerNormalization", 12, [(2, 3, 16), (16,), (16,)], axis=-1)
    for equation, *shapes in (("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)), ("...ij->...ji", (2, 3, 4)),
                              ("bii->b", (2, 3, 3)), ("i,ij,j", (3,), (3, 4), (4,)),
                              ("bc...,cd->bd...", (2, 3, 4), (3, 5))):
        yield of_onnx(equation, "Einsum", 12, shapes, units=16, types=TYPES[:2], equation=equation)
    yield from attentions()
    yield of_microsoft("", "Gelu", [(3, 4)])
    yield of_microsoft("", "QuickGelu", [(3, 4)])
    yield of_microsoft("", "BiasGelu", [(3, 4), (4,)])
    yield of_microsoft("", "FastGelu", [(3, 4), (4,)])
    yield of_microsoft("", "FusedMatMul", [(2, 4, 3), (5, 4)], transA=1, transB=1, alpha=0.5)


def draw(case, dtype, seed):
    """The inputs of a case, without those that are left out."""
    random = np.random.default_rng(seed)
    drawn = [given if isinstance(given, np.ndarray) else random.uniform(-2, 2, given).astype(dtype)
             for given in case.inputs if given is not None]
    return drawn


def model_of(case, dtype):
    """The model of a case in a type. Ranks of outputs are ONNX Runtime's to infer."""
    def element_type(array):
        return helper.np_dtype_to_tensor_dtype(array.dtype)

    drawn = iter(draw(case, dtype, 0))
    names, values = [], []
    for i, given in enumerate(case.inputs):
        names.append("" if given is None else f"x{i}")
        if given is not None:
            array = next(drawn)
            values.append(helper.make_tensor_value_info(names[-1], element_type(array), array.shape))
    made = [name or "" for name in case.outputs]
    node = helper.make_node(case.op_type, names, made, domain=case.domain, **case.attributes)
    of_results = helper.np_dtype_to_tensor_dtype(dtype)
    results = [helper.make_tensor_value_info(name, of_results, None) for name in made if name]
    graph = helper.make_graph([node], "graph", values, results)
    opsets = [helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def expected_of(case, inputs, dtype):
    """What the CPU EP gives, in f32, of the same numbers."""
    session = runner.cpu_session(model_of(case, np.dtype(np.float32)))
    wide = [array.astype(np.float32) if array.dtype == dtype else array for array in inputs]
    return session.run(None, {value.name: array for value, array in zip(session.get_inputs(), wide)})


def compare(case, dtype, found, expected):
    unit = {4: 2.0**-24, 2: 2.0**-11 if dtype == np.float16 else 2.0**-8}[dtype.itemsize]
    for name, got, want in zip([name for name in case.outputs if name], found, expected):
        assert got.dtype == dtype and got.shape == want.shape, (name, got.dtype, got.shape, want.shape)
        far = np.abs(got.astype(np.float64) - want).max(initial=0)
        allowed = case.units * unit * max(1.0, np.abs(want).max(initial=0))
        assert far <= allowed, f"{name} is {far} from what is expected, allowed is {allowed}"


def run(ep, case, dtype):
    model = model_of(case, dtype)
    here, elsewhere = ep.operators(ep.session(model))
    assert here == [case.op_type] and not elsewhere, f"here {here}, elsewhere {elsewhere}"
    inputs = draw(case, dtype, 1)
    expected = expected_of(case, inputs, dtype)
    compare(case, dtype, runner.run_eagerly(ep.session(model), inputs), expected)
    like = [np.zeros(want.shape, dtype) for want in expected]
    compare(case, dtype, runner.run_captured(ep, ep.session(model, capture=True), inputs, like), expected)


def main(library):
    ep = runner.Ep(library, "gcap")
    failed = 0
    for case in cases():
        for dtype in case.types:
            try:
                run(ep, case, dtype)
            except Exception as error:  # all are told
                failed += 1
                print(f"{case.op_type} {case.name} of {dtype}: {error}")
    ep.close()
    print("failed:", failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
