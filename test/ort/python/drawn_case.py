# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What is drawn: a node with its inputs, of three random streams.

The stream of the node has its opset, types, ranks, attributes, and what is read on the host. That of the sizes has the
dimensions, and that of the contents the elements. So the same node is drawn with other contents, and with other sizes,
by another number for the stream, and runs in the same session.
"""

import collections
import functools
import zlib

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort

BF16 = ml_dtypes.bfloat16
F16, F32, F64 = np.float16, np.float32, np.float64
I8, U8, I32, I64, BOOL = np.int8, np.uint8, np.int32, np.int64, np.bool_
FLOATS = (F32, F16, BF16)
INTEGERS = (I64, I32)
NUMBERS = FLOATS + INTEGERS
BYTES = (I8, U8)
ANY = NUMBERS + BYTES + (BOOL,)

# How an output is compared. EXACT: bit by bit. EQUAL: of zeros the sign does not count. NEAR: within the roundings of
# an element's type. SUM: also within those of the largest element. Integers are always exact.
EXACT, EQUAL, NEAR, SUM = "exact", "equal", "near", "sum"

# What becomes of a case: compared, eagerly and replayed; left to other EPs; refused by the CPU EP; a known difference.
REPLAYED, LEFT, REFUSED, KNOWN, FAILED = "replayed", "left", "refused", "known", "FAILED"

# `data`: the array, None for what is left out. `on_host`: its content is part of the node. `fixed`: always a constant.
Input = collections.namedtuple("Input", ["data", "on_host", "fixed"], defaults=[False, False])
# `outputs`: the type of each, None for what is left out.
Node = collections.namedtuple("Node", ["inputs", "outputs", "attributes", "how"])

IR_VERSION = 10
OLDEST_OPSET = 7  # that ONNX Runtime promises
OTHER_DOMAIN_OPSET = 17  # beside an operator of another domain, which ONNX's own tables lack
# A Softmax means something else before this opset, and has a row of its own.
SOFTMAX_CHANGED = 13


def node(inputs, outputs, how=EXACT, **attributes):
    """A node; attributes that are None are left out, and so are the last inputs and outputs that are None."""
    inputs = [each if isinstance(each, Input) else Input(each) for each in inputs]
    while inputs and inputs[-1].data is None:
        inputs.pop()
    outputs = list(outputs)
    while outputs and outputs[-1] is None:
        outputs.pop()
    attributes = {name: value for name, value in attributes.items() if value is not None}
    return Node(inputs, outputs, attributes, how)


def on_host(data, dtype=I64):
    """An input that kernels read on the host."""
    return Input(np.array(data, dtype), on_host=True)


@functools.lru_cache
def schemas(op_type, domain, deprecated=False):
    """The operator's definitions, the newest last; or those that take it away."""
    every = onnx.defs.get_all_schemas_with_history()
    found = [each for each in every if (each.name, each.domain, each.deprecated) == (op_type, domain, deprecated)]
    return sorted(found, key=lambda each: each.since_version)


@functools.lru_cache
def newest_opset():
    """The newest one that ONNX Runtime takes without its leave for experiments."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, []) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "opset", [x], [y])
    options = ort.SessionOptions()
    options.log_severity_level = 4
    for opset in range(onnx.defs.onnx_opset_version(), OLDEST_OPSET, -1):
        opsets = [onnx.helper.make_opsetid("", opset)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        try:
            ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            return opset
        except Exception:
            continue
    return OLDEST_OPSET


class Draw:
    """Draws one node. `row`: of the kernels' table of operators, with a domain before the last dot, if it has one, and
    behind a dash the opset from which on it is."""

    def __init__(self, row, seed, case, sizes=0, contents=0):
        key = [seed, zlib.crc32(row.encode()), case]
        self._node, self._sizes, self._contents = (
            np.random.default_rng(key + stream) for stream in ([0], [1, sizes], [2, sizes, contents])
        )
        name, _, is_old = row.partition("-")
        self.domain, _, self.op_type = name.rpartition(".")
        self._known = schemas(self.op_type, self.domain)
        self.opset = self._draw_opset(bool(is_old))

    def _draw_opset(self, is_old):
        """One that changed the operator, or the newest that has it."""
        if not self._known:
            return OTHER_DOMAIN_OPSET
        newest = self._known[-1].since_version
        gone = [each.since_version for each in schemas(self.op_type, self.domain, deprecated=True)]
        gone = [each for each in gone if each > newest]
        first, last = OLDEST_OPSET, min([each - 1 for each in gone] + [newest_opset()])
        if is_old:
            last = SOFTMAX_CHANGED - 1
        elif self.op_type in ("Softmax", "LogSoftmax"):
            first = SOFTMAX_CHANGED
        changes = {max(each.since_version, first) for each in self._known}
        return self.choice(sorted({each for each in changes if each <= last} | {last}))

    # --- Of the node

    def chance(self, share):
        return self._node.random() < share

    def choice(self, among):
        return among[int(self._node.integers(len(among)))]

    def integer(self, low, high):
        """From low to high, both of them too."""
        return int(self._node.integers(low, high + 1))

    def number(self, low, high):
        """A number that f32 has."""
        return float(F32(self._node.uniform(low, high)))

    def maybe(self, draw, share=0.5):
        """What `draw` draws, or None: for attributes and inputs that may be left out."""
        return draw() if self.chance(share) else None

    def some(self, among):
        """Some of a list, in any order: at least one, if there is one."""
        count = self.integer(min(1, len(among)), len(among))
        return [among[int(i)] for i in self._node.permutation(len(among))[:count]]

    def permutation(self, count):
        return [int(i) for i in self._node.permutation(count)]

    def axis(self, rank, share=0.5):
        """An axis; from the end, where it is negative."""
        axis = self.integer(0, rank - 1)
        return axis - rank if self.chance(share) else axis

    def host_ints(self, count, low, high):
        return [self.integer(low, high) for _ in range(count)]

    def dtype(self, *candidates, of=0):
        """One of the types, f32 first, that the opset allows for input `of`; sometimes one that gcap lacks."""
        allowed = self._allowed(of)
        fitting = [each for each in candidates or FLOATS if allowed is None or self._text(each) in allowed]
        if self.chance(0.02) and F64 not in candidates and (allowed is None or self._text(F64) in allowed):
            return F64
        if not fitting:
            return F32
        return fitting[0] if self.chance(0.2) else self.choice(fitting)

    def _allowed(self, index):
        fitting = [each for each in self._known if each.since_version <= self.opset]
        if not fitting or not fitting[-1].inputs:
            return None
        inputs = fitting[-1].inputs
        letter = inputs[min(index, len(inputs) - 1)].type_str
        for constraint in fitting[-1].type_constraints:
            if constraint.type_param_str == letter:
                return set(constraint.allowed_type_strs)
        return {letter}

    @staticmethod
    def _text(dtype):
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return f"tensor({onnx.TensorProto.DataType.Name(kind).lower()})"

    # --- Of the sizes

    def size(self, low=0, high=6):
        """Of a dimension: 1 often, 0 seldom."""
        kind = self._sizes.random()
        if kind < 0.04 and low == 0:
            return 0
        if kind < 0.2 and low <= 1:
            return 1
        return int(self._sizes.integers(max(low, 1), high + 1))

    def shape(self, low=0, high=5, least=0, most=6):
        """Of a rank from low to high."""
        rank = self.integer(low, high)
        return [self.size(least, most if rank < 5 else min(most, 4)) for _ in range(rank)]

    def broadcast(self, shape):
        """A shape that broadcasts to this one: fewer axes in front, some of them 1."""
        left = shape[self.integer(0, len(shape)) if self.chance(0.5) else 0 :]
        return [1 if self.chance(0.3) else size for size in left]

    def of_size(self, low, high):
        """A number that belongs to the sizes."""
        return int(self._sizes.integers(low, high + 1))

    # --- Of the contents

    def array(self, shape, dtype, low=-4.0, high=4.0):
        """Numbers from low to high; of integers both of them too."""
        if dtype == BOOL:
            return self._contents.random(shape) < 0.5
        if np.dtype(dtype).kind in "iu":
            limits = np.iinfo(dtype)
            low, high = max(int(np.ceil(low)), limits.min), min(int(high), limits.max)
            return self._contents.integers(low, high + 1, shape).astype(dtype)
        return np.asarray(self._contents.uniform(low, high, shape)).astype(dtype)

    def wild(self, shape, dtype, low=-4.0, high=4.0):
        """As array; of floats, in one of four, some are infinite, NaN, or a zero of either sign."""
        array = self.array(shape, dtype, low, high)
        if self.chance(0.25) and np.dtype(dtype).kind not in "iub" and array.size:
            flat = array.reshape(-1).copy()
            for value in (np.inf, -np.inf, np.nan, 0.0, -0.0):
                flat[self._contents.integers(array.size)] = value
            array = flat.reshape(array.shape)
        return array

    def any_of(self, shape, dtype):
        """For what only moves: any value that the type has."""
        if dtype == BOOL:
            return self.array(shape, dtype)
        if np.dtype(dtype).kind in "iu":
            limits = np.iinfo(dtype)
            return self._contents.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        return self.wild(shape, dtype, -1000.0, 1000.0)

    def shuffled(self, shape, dtype, distance=1.0):
        """Numbers that all differ, in any order."""
        count = int(np.prod(shape))
        values = (self._contents.permutation(count) - count // 2) * distance
        return values.reshape(shape).astype(dtype)

    def distinct(self, count, below):
        """`count` different numbers from 0 on."""
        return self._contents.permutation(below)[:count]
