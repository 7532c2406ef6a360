# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Nodes of operators that compute each element of its own, with broadcasting."""

import numpy as np
import onnx

from drawn_case import (
    ANY, BF16, BOOL, BYTES, EQUAL, EXACT, F16, F32, FLOATS, I32, I64, I8, INTEGERS, NEAR, NUMBERS, SUM, U8, Input, node,
    on_host)

# Where a function is defined; beside it are a few that are not.
DOMAINS = {
    "Acos": (-1.1, 1.1),
    "Acosh": (0.9, 9.0),
    "Asin": (-1.1, 1.1),
    "Atanh": (-0.9, 0.9),
    "Log": (-0.1, 9.0),
    "Sqrt": (-0.1, 9.0),
    "Tan": (-1.4, 1.4),
}
SAME_BITS = ("Abs", "Ceil", "Floor", "Neg", "Not", "Relu", "Round", "Sign", "BitwiseNot", "IsNaN")
WHOLE = {
    **dict.fromkeys(["Abs", "Neg", "Relu", "Sign"], NUMBERS + BYTES),
    "BitwiseNot": INTEGERS + BYTES,
    "Not": (BOOL,),
}
PARAMETERS = {
    "Celu": {"alpha": (0.2, 2.0)},
    "Elu": {"alpha": (-2.0, 2.0)},
    "HardSigmoid": {"alpha": (-0.5, 0.5), "beta": (-1.0, 1.0)},
    "LeakyRelu": {"alpha": (-1.0, 1.0)},
    "QuickGelu": {"alpha": (-2.0, 2.0)},
    "Selu": {"alpha": (0.5, 2.0), "gamma": (0.5, 2.0)},
    "Shrink": {"bias": (-1.0, 1.0), "lambd": (0.0, 2.0)},
    "Swish": {"alpha": (-2.0, 2.0)},
    "ThresholdedRelu": {"alpha": (-1.0, 1.0)},
}


def unary(draw):
    dtype = draw.dtype(*WHOLE.get(draw.op_type, FLOATS))
    low, high = DOMAINS.get(draw.op_type, (-4.0, 4.0))
    x = draw.wild(draw.shape(), dtype, low, high)
    if draw.op_type == "Reciprocal":
        x = np.where(np.abs(x) < 0.1, np.asarray(1, dtype), x)
    parameters = PARAMETERS.get(draw.op_type, {})
    attributes = {name: draw.maybe(lambda: draw.number(low, high), 0.7) for name, (low, high) in parameters.items()}
    output = BOOL if draw.op_type == "IsNaN" else dtype
    return node([x], [output], EXACT if draw.op_type in SAME_BITS else NEAR, **attributes)


def shrink(draw):
    dtype = draw.dtype(*NUMBERS, *BYTES)
    attributes = {"bias": draw.maybe(lambda: draw.number(-1, 1)), "lambd": draw.maybe(lambda: draw.number(0, 2))}
    return node([draw.array(draw.shape(), dtype, -9, 9)], [dtype], NEAR, **attributes)


def is_inf(draw):
    dtype = draw.dtype()
    x = draw.wild(draw.shape(), dtype)
    return node([x], [BOOL], detect_negative=draw.maybe(lambda: draw.integer(0, 1)),
                detect_positive=draw.maybe(lambda: draw.integer(0, 1)))


def gelu(draw):
    dtype = draw.dtype()
    return node([draw.wild(draw.shape(), dtype)], [dtype], NEAR,
                approximate=draw.maybe(lambda: draw.choice(["none", "tanh"])))


def two_shapes(draw):
    """Two shapes that broadcast to a third."""
    shape = draw.shape()
    pair = [shape, draw.broadcast(shape)]
    if draw.chance(0.4):
        pair[0] = draw.broadcast(shape)
    return pair[::-1] if draw.chance(0.3) else pair


def arithmetic(draw):
    """Of integers no divisor is 0 and no quotient leaves the type."""
    dtype = draw.dtype(*NUMBERS, *BYTES)
    a, b = (draw.wild(shape, dtype, -50, 50) for shape in two_shapes(draw))
    if draw.op_type == "Div" and np.dtype(dtype).kind in "iu":
        b = np.where(b == 0, np.asarray(3, dtype), b)
    return node([a, b], [dtype], NEAR)


def logic(draw):
    return node([draw.array(shape, BOOL) for shape in two_shapes(draw)], [BOOL])


def bitwise(draw):
    dtype = draw.dtype(*INTEGERS, *BYTES)
    return node([draw.any_of(shape, dtype) for shape in two_shapes(draw)], [dtype])


def compare(draw):
    dtype = draw.dtype(*(ANY if draw.op_type == "Equal" else NUMBERS + BYTES))
    return node([draw.wild(shape, dtype, -3, 3) for shape in two_shapes(draw)], [BOOL])


def modulo(draw):
    """Of floats the remainder of a division, which C has; a quotient's rounding may not decide."""
    dtype = draw.dtype(*NUMBERS)
    is_float = np.dtype(dtype).kind not in "iu"
    a, b = (draw.array(shape, dtype, -50, 50) for shape in two_shapes(draw))
    b = np.where(np.abs(b) < 1, np.asarray(3, dtype), b)
    return node([a, b], [dtype], EXACT, fmod=1 if is_float else draw.maybe(lambda: draw.integer(0, 1)))


def power(draw):
    """Of integers a small exponent that is not negative, so that the power has a value."""
    dtype = draw.dtype(*NUMBERS)
    of_exponent = draw.dtype(*NUMBERS, of=1) if draw.opset >= 12 else dtype
    first, second = two_shapes(draw)
    is_whole = [np.dtype(each).kind in "iu" for each in (dtype, of_exponent)]
    base = draw.array(first, dtype, -3, 3) if is_whole[1] else draw.array(first, dtype, 0.1, 3.0)
    exponent = draw.array(second, of_exponent, 0, 3) if is_whole[0] else draw.array(second, of_exponent, -2, 3)
    if is_whole[0] and not is_whole[1]:
        base, exponent = draw.array(first, dtype, 1, 3), np.round(exponent.astype(F32)).astype(of_exponent)
    if not is_whole[0] and is_whole[1]:
        base = np.where(np.abs(base) < 0.1, np.asarray(1, dtype), base)
    return node([base, exponent], [dtype], NEAR)


def prelu(draw):
    dtype = draw.dtype()
    shape = draw.shape()
    return node([draw.wild(shape, dtype), draw.array(draw.broadcast(shape), dtype)], [dtype], NEAR)


def fold(draw):
    """Min, Max, Sum and Mean of one to five inputs. Before opset 8 they do not broadcast."""
    dtype = draw.dtype(*{"Mean": FLOATS, "Sum": NUMBERS}.get(draw.op_type, NUMBERS + BYTES))
    shape = draw.shape()
    shapes = [draw.broadcast(shape) for _ in range(draw.integer(1, 5))]
    shapes[draw.integer(0, len(shapes) - 1)] = shape
    if draw.opset < 8:
        shapes = [shape] * len(shapes)
    exact = draw.op_type in ("Min", "Max")
    arrays = [draw.wild(each, dtype) if exact else draw.array(each, dtype) for each in shapes]
    return node(arrays, [dtype], EQUAL if exact else SUM)


def where(draw):
    dtype = draw.dtype(*ANY, of=1)
    first, second = two_shapes(draw)
    whole = list(np.broadcast_shapes(first, second))
    condition = draw.array(draw.broadcast(whole), BOOL)
    # The CPU EP adds a zero to what it selects.
    return node([condition, draw.any_of(first, dtype), draw.any_of(second, dtype)], [dtype], EQUAL)


def clip(draw):
    """Bounds that are left out, and since opset 11 a lower one above the upper one."""
    dtype = draw.dtype(*NUMBERS, *BYTES)
    x = draw.array(draw.shape(), dtype, -9, 9)
    least = 0 if np.dtype(dtype).kind == "u" else -5
    low, high = (draw.maybe(lambda: draw.integer(least, 5), 0.75) for _ in range(2))
    if draw.opset < 11:
        if low is not None and high is not None:
            low, high = sorted([low, high])
        bounds = {name: None if bound is None else float(bound) for name, bound in (("min", low), ("max", high))}
        return node([x], [dtype], EXACT, **bounds)
    return node([x, *(None if bound is None else on_host(bound, dtype) for bound in (low, high))], [dtype])


def cast(draw):
    """Numbers that both types have; a fraction is cut off."""
    source, target = draw.dtype(*ANY), draw.choice(ANY)
    unsigned = np.dtype(np.uint8) in (np.dtype(source), np.dtype(target))
    x = draw.array(draw.shape(), source, 0 if unsigned else -100, 100)
    to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(target))
    return node([x], [target], EXACT, to=to)


def bit_cast(draw):
    """Among types of as many bits."""
    source = draw.dtype(F32, I64, I32, I8, U8, F16)
    size = np.dtype(source).itemsize
    target = draw.choice([each for each in (F32, I32, I64, I8, U8, F16, BF16) if np.dtype(each).itemsize == size])
    x = draw.array(draw.shape(), source, -100, 100)
    return node([x], [target], EXACT, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(target)))


def bit_shift(draw):
    """By less than the bits that there are."""
    first, second = two_shapes(draw)
    return node([draw.any_of(first, U8), draw.array(second, U8, 0, 7)], [U8], EXACT,
                direction=draw.choice(["LEFT", "RIGHT"]))


def bias_gelu(draw):
    """The bias has the size of the last axis."""
    dtype = draw.dtype()
    shape = draw.shape(1, 5)
    x, bias = draw.array(shape, dtype), draw.array(shape[-1:], dtype)
    if draw.op_type == "FastGelu" and draw.chance(0.4):
        bias = None
    return node([x, bias], [dtype], NEAR)


def dropout(draw):
    """As a copy. The mask is all true; before opset 12 ONNX does not say what is in it."""
    dtype = draw.dtype()
    x = draw.any_of(draw.shape(), dtype)
    if draw.opset < 12:
        return node([x], [dtype], EXACT, ratio=draw.maybe(lambda: draw.number(0, 0.9)))
    mask = draw.maybe(lambda: BOOL)
    ratio = draw.maybe(lambda: on_host(draw.number(0, 0.9), F32))
    training = draw.maybe(lambda: Input(np.array(False), on_host=True, fixed=True), 0.3) if ratio is not None else None
    return node([x, ratio, training], [dtype, mask], EXACT, seed=draw.maybe(lambda: draw.integer(0, 9), 0.2))


UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor HardSigmoid HardSwish IsNaN "
    "LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh "
    "ThresholdedRelu com.microsoft.Gelu com.microsoft.QuickGelu"
)

GENERATORS = {
    **dict.fromkeys(UNARY.split(), unary),
    **dict.fromkeys(["Add", "Sub", "Mul", "Div"], arithmetic),
    **dict.fromkeys(["And", "Or", "Xor"], logic),
    **dict.fromkeys(["BitwiseAnd", "BitwiseOr", "BitwiseXor"], bitwise),
    **dict.fromkeys(["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"], compare),
    **dict.fromkeys(["Min", "Max", "Sum", "Mean"], fold),
    **dict.fromkeys(["com.microsoft.BiasGelu", "com.microsoft.FastGelu"], bias_gelu),
    "BitCast": bit_cast,
    "BitShift": bit_shift,
    "Cast": cast,
    "Clip": clip,
    "Dropout": dropout,
    "Gelu": gelu,
    "IsInf": is_inf,
    "Mod": modulo,
    "PRelu": prelu,
    "Pow": power,
    "Shrink": shrink,
    "Where": where,
}
