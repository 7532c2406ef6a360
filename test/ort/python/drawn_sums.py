# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Nodes of operators that add: products, reductions, normalizations of rows, recurrent networks, attention; and those
of quantized numbers."""

import numpy as np
import onnx

from drawn_case import BOOL, EXACT, F32, FLOATS, I32, I64, I8, NEAR, NUMBERS, SUM, U8, node, on_host


# --- Products


def products(draw, k):
    """The shapes of two factors whose axes in front broadcast."""
    front = draw.shape(0, 3, most=3)
    a, b = [draw.size(), k], [k, draw.size()]
    kind = draw.integer(0, 4)
    if kind == 0:
        a, front_of_a, front_of_b = [k], [], front
    elif kind == 1:
        b, front_of_a, front_of_b = [k], front, []
    else:
        front_of_a, front_of_b = front, draw.broadcast(front)
        if kind == 2:
            front_of_a, front_of_b = front_of_b, front_of_a
    return [*front_of_a, *a], [*front_of_b, *b]


def matmul(draw):
    dtype = draw.dtype(*FLOATS)
    return node([draw.array(shape, dtype, -1, 1) for shape in products(draw, draw.size(0, 9))], [dtype], SUM)


def fused_matmul(draw):
    dtype = draw.dtype(*FLOATS)
    k, front = draw.size(1, 9), draw.shape(0, 2, least=1, most=3)
    a, b = [draw.size(1), k], [k, draw.size(1)]
    flips = [draw.maybe(lambda: draw.integer(0, 1)) for _ in range(2)]
    a, b = (shape[::-1] if flip else shape for shape, flip in zip((a, b), flips))
    arrays = [draw.array([*front, *shape], dtype, -1, 1) for shape in (a, b)]
    batch = draw.maybe(lambda: 0, 0.2)
    return node(arrays, [dtype], SUM, transA=flips[0], transB=flips[1], transBatchA=batch,
                alpha=draw.maybe(lambda: draw.number(-2, 2)))


def gemm(draw):
    dtype = draw.dtype(*FLOATS)
    m, k, n = draw.size(), draw.size(1 if draw.opset < 13 else 0, 9), draw.size()
    flips = [draw.maybe(lambda: draw.integer(0, 1)) for _ in range(2)]
    a, b = ([k, m] if flips[0] else [m, k]), ([n, k] if flips[1] else [k, n])
    addend = draw.maybe(lambda: draw.array(draw.broadcast([m, n]), dtype), 0.7)
    if addend is None and draw.opset < 11:
        addend = draw.array([n], dtype)
    return node([draw.array(a, dtype, -1, 1), draw.array(b, dtype, -1, 1), addend], [dtype], SUM, transA=flips[0],
                transB=flips[1], alpha=draw.maybe(lambda: draw.number(-2, 2)),
                beta=draw.maybe(lambda: draw.number(-2, 2)))


def matmul_integer(draw):
    """Where the second factor is i8, the first one is of its lower half: on machines without VNNI the CPU EP adds pairs
    of products in 16 bits, and saturates."""
    types = [draw.choice([U8, I8]) for _ in range(2)]
    a, b = products(draw, draw.size(1, 9))
    zeros = [draw.maybe(lambda: kind, 0.6) for kind in types]
    zeros = [None if kind is None else draw.array([], kind, 0, 20) for kind in zeros]
    high = 255 if types[1] == U8 else 127 if types[0] == U8 else -1
    return node([draw.array(a, types[0], -128, high), draw.array(b, types[1], -128, 255), *zeros], [I32])


def qlinear_matmul(draw):
    """As matmul_integer, with scales and zero points for all three."""
    types = [draw.choice([U8, I8]) for _ in range(2)] + [draw.choice([U8, I8])]
    a, b = products(draw, draw.size(1, 9))
    high = 255 if types[1] == U8 else 127 if types[0] == U8 else -1
    arrays = [draw.array(a, types[0], -128, high), draw.array(b, types[1], -128, 255)]
    scales = [draw.array([], F32, 0.01, 0.05), draw.array([], F32, 0.01, 0.05), draw.array([], F32, 0.5, 1.0)]
    zeros = [draw.array([], kind, 0, 20) for kind in types]
    return node([arrays[0], scales[0], zeros[0], arrays[1], scales[1], zeros[1], scales[2], zeros[2]], types[2:])


def einsum(draw):
    """One to three inputs of up to three letters; a letter twice is a diagonal."""
    dtype = draw.dtype()
    sizes = {letter: draw.size(1, 4) for letter in "ijkl"}
    terms = []
    for _ in range(draw.integer(1, 3)):
        term = [draw.choice("ijkl") for _ in range(draw.integer(1, 3))]
        terms.append("".join(term if draw.chance(0.15) else dict.fromkeys(term)))
    equation = ",".join(terms)
    if draw.chance(0.8):
        used = sorted(set("".join(terms)))
        equation += "->" + "".join(draw.some(used)[: draw.integer(0, len(used))])
    arrays = [draw.array([sizes[letter] for letter in term], dtype, -1, 1) for term in terms]
    return node(arrays, [dtype], SUM, equation=equation)


# --- Rows


def softmax(draw):
    dtype = draw.dtype()
    shape = draw.shape(1 if draw.opset >= 13 else 2)
    return node([draw.array(shape, dtype)], [dtype], SUM,
                axis=draw.maybe(lambda: draw.axis(len(shape), 0.5 if draw.opset >= 11 else 0), 0.8))


def norm_of_row(draw):
    """Over the last axes, with a scale of their shape, and for LayerNormalization a bias."""
    dtype = draw.dtype()
    shape = draw.shape(1, 5, least=1)
    axis = draw.axis(len(shape))
    rest = shape[axis:]
    is_layer = draw.op_type == "LayerNormalization"
    if draw.op_type == "SimplifiedLayerNormalization":
        axis, rest = -1, shape[-1:]
    bias = draw.maybe(lambda: draw.array(rest, dtype)) if is_layer else None
    outputs = [dtype]
    if is_layer and dtype == F32:
        outputs += [draw.maybe(lambda: F32, 0.3), draw.maybe(lambda: F32, 0.3)]
    return node([draw.array(shape, dtype), draw.array(rest, dtype), bias], outputs, SUM,
                axis=draw.maybe(lambda: axis) if axis == -1 else axis,
                epsilon=draw.maybe(lambda: draw.number(1e-5, 1e-2)))


def hardmax(draw):
    """Of equals the first."""
    dtype = draw.dtype()
    shape = draw.shape(2, 5, least=1)
    return node([draw.array(shape, I64, -2, 2).astype(dtype)], [dtype],
                axis=draw.maybe(lambda: draw.axis(len(shape), 0.5 if draw.opset >= 11 else 0), 0.8))


def skip_norm(draw):
    """Of the sum of two inputs, which is an output too."""
    dtype = draw.dtype()
    shape = [draw.size(1, 3), draw.size(1, 4), draw.size(2, 6)]
    x, skip = (draw.array(shape, dtype) for _ in range(2))
    scale, shift, bias = (draw.array(shape[2:], dtype) for _ in range(3))
    bias = draw.maybe(lambda: bias)
    inputs = [x, skip, scale, bias]
    if draw.op_type == "SkipLayerNormalization":
        inputs = [x, skip, scale, draw.maybe(lambda: shift), bias]
    return node(inputs, [dtype, None, None, draw.maybe(lambda: dtype)], SUM,
                epsilon=draw.maybe(lambda: draw.number(1e-5, 1e-2), 0.8))


def lp_normalization(draw):
    dtype = draw.dtype()
    shape = draw.shape(1, 4, least=1)
    axis = draw.axis(len(shape))
    return node([draw.array(shape, dtype)], [dtype], SUM, axis=draw.maybe(lambda: axis) if axis == -1 else axis,
                p=draw.maybe(lambda: draw.integer(1, 2)))


def mean_variance(draw):
    """Over the first axes, the last ones, or both; without axes, of an image's batch."""
    dtype = draw.dtype()
    shape = draw.shape(4, 4, least=2)
    axes = draw.choice([None, [0, 2, 3], [0], [2, 3], [0, 1], [1, 2, 3], [3]])
    return node([draw.array(shape, dtype)], [dtype], SUM, axes=axes)


def reduce(draw):
    """Over some axes, or all, or none; a logarithm is of what is above 0, a product of few."""
    name = draw.op_type
    whole = NUMBERS if name not in ("ReduceL2", "ReduceLogSum") else FLOATS
    whole = whole + (BOOL,) if name in ("ReduceMax", "ReduceMin") and draw.opset >= 20 else whole
    dtype = draw.dtype(*whole)
    shape = draw.shape(0, 5, least=1, most=3 if name == "ReduceProd" else 6)
    axes = draw.maybe(lambda: draw.some(range(len(shape))) if shape else None, 0.8)
    if axes is not None and draw.opset >= 11:
        axes = [axis - len(shape) if draw.chance(0.3) else axis for axis in axes]
    x = draw.array(shape, dtype, 0.1 if name == "ReduceLogSum" else -2, 2)
    how = EXACT if name in ("ReduceMax", "ReduceMin") else SUM
    attributes = {"keepdims": draw.maybe(lambda: draw.integer(0, 1))}
    if draw.opset < (13 if name == "ReduceSum" else 18):
        return node([x], [dtype], how, axes=axes, **attributes)
    attributes["noop_with_empty_axes"] = draw.maybe(lambda: draw.integer(0, 1), 0.3)
    if axes is None and draw.chance(0.3):
        axes = []
    return node([x, None if axes is None else on_host(axes)], [dtype], how, **attributes)


# --- Quantized numbers


def quantization(draw):
    """A shape, an axis, and the shape of the scales: one, one for each place of the axis, or one for each block."""
    kinds = ["tensor"] + (["axis"] if draw.opset >= 13 else []) + (["block"] if draw.opset >= 21 else [])
    kind = draw.choice(kinds)
    shape = draw.shape(1 if kind != "tensor" else 0, 4, least=1)
    if kind == "tensor":
        return shape, {}, []
    axis = draw.axis(len(shape))
    given = {"axis": draw.maybe(lambda: axis) if axis == 1 else axis}
    if kind == "axis":
        return shape, given, [shape[axis]]
    block = draw.integer(1, 3)
    scales = list(shape)
    shape[axis] *= block
    return shape, {**given, "block_size": block}, scales


def quantize(draw):
    """By powers of two where a scale is no f32, so that a quotient is the same in f32 and in the scale's type: ONNX
    divides in the type, as the CPU EP does of blocks alone."""
    dtype = draw.dtype() if draw.opset >= 19 else F32
    target = draw.choice([U8, I8])
    shape, attributes, of_scale = quantization(draw)
    scale = draw.array(of_scale, dtype, 0.05, 0.3)
    if dtype != F32:
        scale = np.exp2(np.floor(np.log2(scale.astype(F32)))).astype(dtype)
    zero = draw.array(of_scale, target, 0, 30)
    if draw.chance(0.3):
        zero, target = None, U8
        if draw.opset >= 21 and draw.chance(0.5):
            target = draw.choice([U8, I8])
            attributes["output_dtype"] = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(target))
    return node([draw.array(shape, dtype, -20, 20), scale, zero], [target], EXACT, **attributes)


def dequantize(draw):
    source = draw.choice([U8, I8, I32])
    dtype = draw.dtype(of=1) if draw.opset >= 19 else F32
    shape, attributes, of_scale = quantization(draw)
    zero = draw.maybe(lambda: draw.array(of_scale, source, 0, 0 if source == I32 else 30), 0.6)
    return node([draw.array(shape, source, -1000, 1000), draw.array(of_scale, dtype, 0.05, 0.3), zero], [dtype], NEAR,
                **attributes)


def dynamic_quantize(draw):
    return node([draw.array(draw.shape(0, 4, least=1), F32)], [U8, F32, U8], NEAR)


# --- Networks


def recurrent(draw):
    """One or two directions, with what is left out."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[draw.op_type]
    dtype = draw.dtype()
    direction = draw.choice([None, "forward", "reverse", "bidirectional"])
    count = 2 if direction == "bidirectional" else 1
    layout = draw.maybe(lambda: 0, 0.3) if draw.opset >= 14 else None
    steps, batch, size, hidden = draw.size(1, 5), draw.size(1, 4), draw.size(1, 4), draw.integer(1, 4)
    x = draw.array([steps, batch, size], dtype, -1, 1)
    w, r = (draw.array([count, gates * hidden, width], dtype, -1, 1) for width in (size, hidden))
    bias = draw.maybe(lambda: draw.array([count, 2 * gates * hidden], dtype, -1, 1))
    lengths = draw.maybe(lambda: draw.array([batch], I32, 1, steps), 0.4)
    states = [draw.maybe(lambda: draw.array([count, batch, hidden], dtype, -1, 1))
              for _ in range(2 if draw.op_type == "LSTM" else 1)]
    inputs = [x, w, r, bias, lengths, *states]
    if draw.op_type == "LSTM":
        inputs.append(draw.maybe(lambda: draw.array([count, 3 * hidden], dtype, -1, 1), 0.3))
    outputs = [draw.maybe(lambda: dtype, 0.8) for _ in range(3 if draw.op_type == "LSTM" else 2)]
    if not any(outputs):
        outputs[0] = dtype
    reset = draw.maybe(lambda: draw.integer(0, 1)) if draw.op_type == "GRU" else None
    return node(inputs, outputs, SUM, direction=direction, hidden_size=hidden, layout=layout,
                linear_before_reset=reset)


def attention(draw):
    """Of three or four axes, with grouped heads, a mask, a past."""
    dtype = draw.dtype()
    kv_heads = draw.integer(1, 3)
    heads = kv_heads * draw.integer(1, 2)
    batch, queries, keys = draw.size(1, 3), draw.size(1, 5), draw.size(1, 5)
    size, of_value = draw.integer(1, 4) * 2, draw.integer(1, 4) * 2
    shapes = [[batch, heads, queries, size], [batch, kv_heads, keys, size], [batch, kv_heads, keys, of_value]]
    arrays = [draw.array(shape, dtype, -1, 1) for shape in shapes]
    attributes = {}
    is_flat = draw.chance(0.4)
    if is_flat:
        arrays = [each.transpose(0, 2, 1, 3).reshape(each.shape[0], each.shape[2], -1) for each in arrays]
        attributes.update(q_num_heads=heads, kv_num_heads=kv_heads)
    past = draw.chance(0.3)
    before = draw.size(1, 3) if past else 0
    pasts = [draw.array([batch, kv_heads, before, each], dtype, -1, 1) if past else None for each in (size, of_value)]
    mask = None
    kind = draw.choice(["none", "bool", "float"])
    if kind != "none":
        of_mask = draw.broadcast([batch, heads, queries, before + keys])
        of_mask = [*of_mask[:-2], queries, before + keys] if len(of_mask) > 1 else [queries, before + keys]
        mask = draw.array(of_mask, dtype, -1, 1) if kind == "float" else draw.array(of_mask, BOOL)
        if kind == "bool":
            mask[..., 0] = True
    outputs = [dtype] + ([dtype, dtype] if past else [])
    return node([*arrays, mask, *pasts], outputs, SUM, is_causal=draw.maybe(lambda: draw.integer(0, 1)),
                scale=draw.maybe(lambda: draw.number(0.1, 1)),
                softcap=draw.maybe(lambda: draw.number(0.5, 3), 0.3), **attributes)


def multi_head_attention(draw):
    """Heads side by side in the last axis, with a bias, a mask of keys, numbers that are added to scores, a past."""
    dtype = draw.dtype()
    batch, queries, keys = draw.size(1, 3), draw.size(1, 4), draw.size(1, 4)
    heads, size, one_way = draw.integer(1, 3), draw.integer(1, 4), draw.maybe(lambda: draw.integer(0, 1), 0.3)
    queries = keys if one_way else queries  # of another number ONNX Runtime's EPs think differently
    before = draw.size(1, 3) if draw.chance(0.3) else 0
    arrays = [draw.array([batch, each, heads * size], dtype, -1, 1) for each in (queries, keys, keys)]
    bias = draw.maybe(lambda: draw.array([3 * heads * size], dtype, -1, 1), 0.3)
    mask = draw.array([batch, before + keys], BOOL).astype(I32)
    mask[:, 0] = 1
    mask = draw.maybe(lambda: mask, 0.3)
    added = draw.maybe(lambda: draw.array([draw.choice([1, batch]), draw.choice([1, heads]), queries, before + keys],
                                          dtype, -1, 1), 0.3)
    pasts = [draw.array([batch, heads, before, size], dtype, -1, 1) if before else None for _ in range(2)]
    return node([*arrays, bias, mask, added, *pasts], [dtype] * (3 if before else 1), SUM, num_heads=heads,
                scale=draw.maybe(lambda: draw.number(0.1, 1)),
                unidirectional=one_way)


def rotary(draw):
    """Positions within the tables."""
    dtype = draw.dtype()
    batch, steps, heads, size = draw.size(1, 3), draw.size(1, 4), draw.integer(1, 3), draw.integer(1, 4) * 2
    is_microsoft = bool(draw.domain)
    part = 0 if is_microsoft else draw.choice([0, 0, draw.integer(1, size // 2) * 2])
    width = (part or size) // 2
    rows = steps + draw.of_size(0, 3)
    is_flat = draw.chance(0.5)
    x = draw.array([batch, steps, heads * size] if is_flat else [batch, heads, steps, size], dtype, -1, 1)
    attributes = {"interleaved": draw.maybe(lambda: draw.integer(0, 1))}
    if is_microsoft:
        attributes["num_heads"] = heads if is_flat and draw.chance(0.3) else None
        tables = [draw.array([rows, width], dtype, -1, 1) for _ in range(2)]
        positions = draw.array([batch, steps], I64, 0, rows - 1)
        if is_flat and attributes["num_heads"] is None and draw.chance(0.5):
            positions = draw.array([1], I64, 0, rows - steps)
        if is_flat and attributes["num_heads"] is None:  # the tables say how wide a head is
            return node([x, positions, *tables], [dtype], SUM, **attributes)
        return node([x, positions, *tables], [dtype], SUM, **attributes)
    attributes.update(num_heads=heads if is_flat else draw.maybe(lambda: heads, 0.2),
                      rotary_embedding_dim=part if part else draw.maybe(lambda: 0))
    if draw.chance(0.6):
        tables = [draw.array([rows, width], dtype, -1, 1) for _ in range(2)]
        return node([x, *tables, draw.array([batch, steps], I64, 0, rows - 1)], [dtype], SUM, **attributes)
    return node([x, *(draw.array([batch, steps, width], dtype, -1, 1) for _ in range(2))], [dtype], SUM, **attributes)


REDUCTIONS = "L1 L2 LogSum Max Mean Min Prod Sum SumSquare"

GENERATORS = {
    **dict.fromkeys(["GRU", "LSTM", "RNN"], recurrent),
    **dict.fromkeys(["LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"], norm_of_row),
    **dict.fromkeys(["LogSoftmax", "LogSoftmax-1", "Softmax", "Softmax-1"], softmax),
    **dict.fromkeys(["RotaryEmbedding", "com.microsoft.RotaryEmbedding"], rotary),
    **{"Reduce" + each: reduce for each in REDUCTIONS.split()},
    **{f"com.microsoft.Skip{each}LayerNormalization": skip_norm for each in ("", "Simplified")},
    "Attention": attention,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "Einsum": einsum,
    "Gemm": gemm,
    "Hardmax": hardmax,
    "LpNormalization": lp_normalization,
    "MatMul": matmul,
    "MatMulInteger": matmul_integer,
    "MeanVarianceNormalization": mean_variance,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize,
    "com.microsoft.FusedMatMul": fused_matmul,
    "com.microsoft.MultiHeadAttention": multi_head_attention,
}
