# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Nodes of operators that move elements: by shape, by axes, by indices."""

import numpy as np
import onnx
from onnx import numpy_helper

from drawn_case import ANY, BOOL, EXACT, F32, I32, I64, NEAR, NUMBERS, SUM, node, on_host


def by(draw, opset, name, values, inputs, outputs, **attributes):
    """A node with numbers that are an attribute before an opset, and an input on the host from then on."""
    if draw.opset < opset:
        return node(inputs, outputs, EXACT, **{name: values}, **attributes)
    return node([*inputs, None if values is None else on_host(values)], outputs, EXACT, **attributes)


def same(draw):
    dtype = draw.dtype(*ANY)
    return node([draw.any_of(draw.shape(), dtype)], [dtype])


def flatten(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1)
    axis = draw.maybe(lambda: draw.integer(0 if draw.opset < 11 else -len(shape), len(shape)))
    return node([draw.any_of(shape, dtype)], [dtype], axis=axis)


def reshape(draw):
    """To sizes of which one may be -1, and 0 is that of the input."""
    dtype = draw.dtype(*ANY)
    shape = draw.shape()
    x = draw.any_of(shape, dtype)
    keep = draw.integer(0, len(shape))
    tail = int(np.prod(shape[keep:]))
    if draw.chance(0.5) and 0 not in shape:
        to = [0] * keep + [-1]
    elif 0 in shape:  # of an output without elements the sizes are named
        to = list(shape)
    else:
        to = list(shape[:keep]) + [tail] + [1] * draw.integer(0, 2)
    allow = draw.maybe(lambda: draw.integer(0, 1), 0.3) if draw.opset >= 14 and -1 not in to else None
    return node([x, on_host(to)], [dtype], allowzero=allow)


def squeeze(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1, 5)
    axes = sorted(draw.some(range(len(shape))))[: draw.integer(0, len(shape))]
    shape = [1 if i in axes else size for i, size in enumerate(shape)]
    given = [axis - len(shape) if draw.opset >= 11 and draw.chance(0.3) else axis for axis in axes]
    if not given:  # all that are 1: which ones is not of the sizes
        shape = [1 if draw.chance(0.4) else max(size, 2) for size in shape]
        given = None
    return by(draw, 13, "axes", given, [draw.any_of(shape, dtype)], [dtype])


def unsqueeze(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(0, 4)
    count = draw.integer(1, 3)
    rank = len(shape) + count
    axes = draw.permutation(rank)[:count]
    axes = [axis - rank if draw.opset >= 11 and draw.chance(0.3) else axis for axis in axes]
    return by(draw, 13, "axes", sorted(axes) if draw.opset < 13 else axes, [draw.any_of(shape, dtype)], [dtype])


def transpose(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape()
    return node([draw.any_of(shape, dtype)], [dtype], perm=draw.maybe(lambda: draw.permutation(len(shape)) or None, 0.8))


def concat(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1)
    axis = draw.axis(len(shape), 0.5 if draw.opset >= 11 else 0)
    arrays = []
    for _ in range(draw.integer(1, 5)):
        each = list(shape)
        each[axis] = draw.size()
        arrays.append(draw.any_of(each, dtype))
    return node(arrays, [dtype], axis=axis)


def split(draw):
    """Into equal pieces, by sizes, or since opset 18 by their number, of which the last one may be smaller."""
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1)
    axis = draw.axis(len(shape), 0.5 if draw.opset >= 11 else 0)
    count = draw.integer(1, 5)
    outputs = [dtype] * count
    attributes = {"axis": draw.maybe(lambda: axis, 0.8) if axis in (0, -len(shape)) else axis}
    if draw.chance(0.5):
        sizes = draw.host_ints(count, 0, 4)
        shape[axis] = sum(sizes)
        return by(draw, 13, "split", sizes, [draw.any_of(shape, dtype)], outputs, **attributes)
    shape[axis] = count * draw.size(1, 3)
    if draw.opset >= 18:
        attributes["num_outputs"] = count
        if count > 1 and shape[axis] // count > count:
            shape[axis] -= draw.of_size(0, 1)
    return node([draw.any_of(shape, dtype)], outputs, **attributes)


def slice_(draw):
    """Also beyond both ends, backwards since opset 10, and to numbers that only say "to the end"."""
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1)
    axes = draw.some(range(len(shape)))
    starts, ends = (draw.host_ints(len(axes), -8, 8) for _ in range(2))
    far = np.iinfo(np.int32).max
    ends = [far if draw.chance(0.25) else end for end in ends]
    if draw.opset < 10:
        axes = draw.maybe(lambda: axes, 0.7)
        if axes is None:
            starts, ends = starts[: len(shape)], ends[: len(shape)]
        return node([draw.any_of(shape, dtype)], [dtype], starts=starts, ends=ends, axes=axes)
    steps = draw.maybe(lambda: [draw.choice([-3, -2, -1, 1, 1, 2, 3]) for _ in axes], 0.7)
    if steps:
        ends = [-far if step < 0 and end == far else end for step, end in zip(steps, ends)]
    axes = [axis - len(shape) if draw.chance(0.3) else axis for axis in axes]
    named = steps is not None or draw.chance(0.6)
    kind = draw.choice([I64, I32])
    hosts = [on_host(each, kind) for each in (starts, ends)]
    hosts += [on_host(axes, kind)] if named else []
    hosts += [on_host(steps, kind)] if steps is not None else []
    return node([draw.any_of(shape, dtype), *hosts], [dtype])


def pad(draw):
    """Of constants also negative ones. An edge, a reflection and a wrap need something that they are of, and look no
    further than the axis goes."""
    dtype = draw.dtype(*ANY)
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if draw.opset >= 19 else [])
    mode = draw.choice(modes)
    shape = draw.shape(1, 4, least=0 if mode == "constant" else 4)
    axes = list(range(len(shape)))
    if draw.opset >= 18 and draw.chance(0.4):
        axes = draw.some(axes)
    low = -1 if draw.chance(0.3) else 0
    shape = [max(size, 2) if low < 0 else size for size in shape]
    pads = draw.host_ints(2 * len(axes), low, 3 if mode in ("constant", "edge") else 2)
    x = draw.any_of(shape, dtype)
    mode = draw.maybe(lambda: mode, 0.5) if mode == "constant" else mode
    if draw.opset < 11:
        value = draw.maybe(lambda: draw.number(-5, 5)) if mode is None else None
        return node([x], [dtype], mode=mode, pads=pads, value=value)
    value = on_host(draw.integer(0, 5), dtype) if mode is None and draw.chance(0.5) else None
    given = None
    if axes != list(range(len(shape))):
        given = on_host([axis - len(shape) if draw.chance(0.3) else axis for axis in axes])
    return node([x, on_host(pads), value, given], [dtype], mode=mode)


def expand(draw):
    dtype = draw.dtype(*ANY)
    whole = draw.shape()
    shape = draw.broadcast(whole)
    to = draw.broadcast(whole)
    return node([draw.any_of(shape, dtype), on_host(to)], [dtype])


def tile(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1, 4, most=4)
    return node([draw.any_of(shape, dtype), on_host(draw.host_ints(len(shape), 0, 3))], [dtype])


def space_to_depth(draw):
    dtype = draw.dtype(*ANY)
    block = draw.integer(1, 3)
    n, c, h, w = draw.size(), draw.size(1, 4), draw.size(1, 3), draw.size(1, 3)
    return node([draw.any_of([n, c, h * block, w * block], dtype)], [dtype], blocksize=block)


def depth_to_space(draw):
    dtype = draw.dtype(*ANY)
    block = draw.integer(1, 3)
    n, c, h, w = draw.size(), draw.size(1, 3), draw.size(1, 4), draw.size(1, 4)
    mode = draw.maybe(lambda: draw.choice(["DCR", "CRD"])) if draw.opset >= 11 else None
    return node([draw.any_of([n, c * block * block, h, w], dtype)], [dtype], blocksize=block, mode=mode)


def constant_of_shape(draw):
    shape = draw.host_ints(draw.integer(0, 4), 0, 5)
    dtype = draw.choice(ANY)
    value = numpy_helper.from_array(np.array([draw.integer(0, 100)]).astype(dtype))
    if draw.chance(0.3):
        value, dtype = None, F32
    return node([on_host(shape)], [dtype], value=value)


def range_(draw):
    dtype = draw.dtype(F32, I64, I32)
    delta = draw.choice([-3, -2, -1, 1, 2, 3])
    start = draw.integer(-5, 5)
    limit = start + delta * draw.integer(-1, 8) + draw.integer(0, 1)
    factor = draw.choice([1, 0.5, 0.25]) if dtype == F32 else 1
    return node([on_host(each * factor, dtype) for each in (start, limit, delta)], [dtype], NEAR)


def eye_like(draw):
    source, target = draw.dtype(*ANY), draw.choice(ANY)
    x = draw.any_of([draw.size(), draw.size()], source)
    to = draw.maybe(lambda: onnx.helper.np_dtype_to_tensor_dtype(np.dtype(target)))
    return node([x], [source if to is None else target], dtype=to, k=draw.maybe(lambda: draw.integer(-7, 7)))


def trilu(draw):
    dtype = draw.dtype(*ANY)
    x = draw.any_of(draw.shape(2), dtype)
    k = draw.maybe(lambda: on_host(draw.integer(-7, 7)))
    return node([x, k], [dtype], upper=draw.maybe(lambda: draw.integer(0, 1)))


def one_hot(draw):
    """Also indices that count from the end, and some that are nowhere."""
    of_indices = draw.choice([I64, I32, F32])
    of_depth = draw.choice([I64, I32, F32])
    dtype = draw.dtype(*ANY, of=2)
    depth = draw.integer(1, 6)
    shape = draw.shape(1, 4)
    indices = draw.array(shape, I64, 0 if draw.opset < 11 else -depth - 2, depth + 1).astype(of_indices)
    values = draw.any_of([2], dtype)
    axis = draw.maybe(lambda: draw.axis(len(shape) + 1))
    return node([indices, on_host(depth if draw.chance(0.5) else [depth], of_depth), values], [dtype], axis=axis)


def cum_sum(draw):
    dtype = draw.dtype(*NUMBERS)
    shape = draw.shape(1)
    axis = on_host(draw.axis(len(shape)), draw.choice([I64, I32]))
    return node([draw.array(shape, dtype), axis], [dtype], SUM, exclusive=draw.maybe(lambda: draw.integer(0, 1)),
                reverse=draw.maybe(lambda: draw.integer(0, 1)))


def reverse_sequence(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(2, 5, least=1)
    batch_axis = draw.integer(0, 1)
    lengths = draw.array([shape[batch_axis]], I64, 1, shape[1 - batch_axis])
    return node([draw.any_of(shape, dtype), lengths], [dtype], batch_axis=batch_axis, time_axis=1 - batch_axis)


def arg(draw):
    """Some elements are alike."""
    dtype = draw.dtype(*NUMBERS)
    shape = draw.shape(1, 5, least=1)
    last = draw.maybe(lambda: draw.integer(0, 1)) if draw.opset >= 12 else None
    return node([draw.array(shape, I64, -3, 3).astype(dtype)], [I64], select_last_index=last,
                axis=draw.maybe(lambda: draw.axis(len(shape), 0.5 if draw.opset >= 11 else 0)),
                keepdims=draw.maybe(lambda: draw.integer(0, 1)))


def top_k(draw):
    """All elements differ, so that sorted or not, the outputs are as the CPU EP's."""
    dtype = draw.dtype(*NUMBERS)
    shape = draw.shape(1, 4, least=4)
    axis = draw.axis(len(shape), 0.5 if draw.opset >= 11 else 0)
    k = draw.integer(0 if draw.opset >= 10 else 1, 4)
    x = draw.shuffled(shape, dtype)
    attributes = {"axis": axis}
    if draw.opset >= 11:
        attributes.update(largest=draw.maybe(lambda: draw.integer(0, 1)), sorted=draw.maybe(lambda: 1))
    if draw.opset < 10:
        return node([x], [dtype, I64], k=max(k, 1), **attributes)
    return node([x, on_host([k])], [dtype, I64], **attributes)


# --- By indices


def gather(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1, 4)
    axis = draw.axis(len(shape), 0.5 if draw.opset >= 11 else 0)
    shape[axis] = max(shape[axis], 1)
    indices = draw.array(draw.shape(0, 3), draw.choice([I64, I32]), -shape[axis] if draw.opset >= 11 else 0,
                         shape[axis] - 1)
    return node([draw.any_of(shape, dtype), indices], [dtype],
                axis=draw.maybe(lambda: axis, 0.8) if axis == 0 else axis)


def gather_elements(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1, 5, least=1)
    axis = draw.axis(len(shape))
    of_indices = [draw.of_size(1, size) for size in shape]
    of_indices[axis] = draw.size()
    indices = draw.array(of_indices, draw.choice([I64, I32]), -shape[axis], shape[axis] - 1)
    return node([draw.any_of(shape, dtype), indices], [dtype], axis=axis)


def tuples(draw, shape, lead, depth, negative=True):
    """Indices that name an element, a row, … of `shape` behind the axes `lead`."""
    sizes = shape[len(lead) : len(lead) + depth]
    low = np.array([-size if negative else 0 for size in sizes])
    span = np.array([size - 1 for size in sizes])
    rest = [draw.size() for _ in range(draw.integer(0, 2))]
    picks = draw.array([*lead, *rest, depth], F32, 0.0, 0.999)
    return (low + np.floor(picks * (span - low + 1))).astype(I64)


def gather_nd(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1, 5, least=1)
    batch_dims = draw.integer(0, len(shape) - 1) if draw.opset >= 12 else None
    depth = draw.integer(1, len(shape) - (batch_dims or 0))
    indices = tuples(draw, shape, shape[: batch_dims or 0], depth)
    return node([draw.any_of(shape, dtype), indices], [dtype],
                batch_dims=draw.maybe(lambda: batch_dims) if batch_dims == 0 else batch_dims)


def reduction(draw, dtype):
    """How updates meet: as each of them is added or multiplied in any order, the numbers are small and whole."""
    if dtype == BOOL or draw.opset < 16 or draw.chance(0.4):
        return None
    return draw.choice(["none", "add", "mul"] + (["min", "max"] if draw.opset >= 18 else []))


def updated(draw, dtype, how, shapes):
    """The data and the updates."""
    if how in (None, "none"):
        return [draw.any_of(shape, dtype) for shape in shapes]
    return [draw.array(shape, I64, 0 if np.dtype(dtype).kind == "u" else -2, 2).astype(dtype) for shape in shapes]


def scatter_elements(draw):
    """Where updates replace, no two have the same place."""
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1, 4, least=1)
    axis = draw.axis(len(shape), 0.5 if draw.opset >= 11 else 0)
    how = reduction(draw, dtype)
    of_indices = [draw.of_size(1, size) for size in shape]
    if how in (None, "none"):
        last = [*of_indices[:axis], *of_indices[axis:][1:], of_indices[axis]]
        rows = [draw.distinct(last[-1], shape[axis]) for _ in range(int(np.prod(last[:-1])))]
        indices = np.ascontiguousarray(np.moveaxis(np.array(rows).reshape(last), -1, axis))
    else:
        of_indices[axis] = draw.size()
        indices = draw.array(of_indices, I64, 0, shape[axis] - 1)
    if draw.opset >= 11 and draw.chance(0.5):
        indices = np.where(draw.array(indices.shape, BOOL), indices, indices - shape[axis])
    data, updates = updated(draw, dtype, how, (shape, indices.shape))
    indices = indices.astype(draw.choice([I64, I32]))
    return node([data, indices, updates], [dtype], axis=axis, reduction=how)


def scatter_nd(draw):
    dtype = draw.dtype(*ANY)
    shape = draw.shape(1, 4, least=1)
    depth = draw.integer(1, len(shape))
    how = reduction(draw, dtype)
    if how in (None, "none"):
        count = int(np.prod(shape[:depth]))
        places = draw.distinct(draw.of_size(1, count), count)
        indices = np.stack(np.unravel_index(places, shape[:depth]), axis=-1).astype(I64)
    else:
        indices = tuples(draw, shape, [], depth)
    data, updates = updated(draw, dtype, how, (shape, [*indices.shape[:-1], *shape[depth:]]))
    return node([data, indices, updates], [dtype], reduction=how)


def tensor_scatter(draw):
    """Rows into a cache, from a place on that is given for each of the batch."""
    dtype = draw.dtype(*ANY)
    shape = draw.shape(3, 4, least=1)
    axis = draw.integer(1, len(shape) - 1)
    rows = list(shape)
    rows[axis] = draw.of_size(1, shape[axis])
    circular = draw.chance(0.4)
    starts = draw.array([shape[0]], I64, 0, shape[axis] - (1 if circular else rows[axis]))
    starts = None if draw.chance(0.2) else starts
    axis = axis - len(shape) if draw.chance(0.5) else axis
    return node([draw.any_of(shape, dtype), draw.any_of(rows, dtype), starts], [dtype],
                axis=axis, mode="circular" if circular else draw.maybe(lambda: "linear"))


GENERATORS = {
    **dict.fromkeys(["ArgMax", "ArgMin"], arg),
    **dict.fromkeys(["Scatter", "ScatterElements"], scatter_elements),
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "CumSum": cum_sum,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Identity": same,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": range_,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "ScatterND": scatter_nd,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "TensorScatter": tensor_scatter,
    "Tile": tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
}
