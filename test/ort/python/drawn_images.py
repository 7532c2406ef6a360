# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Nodes of operators with a window, and of those that scale images or normalize their channels."""

from drawn_case import ANY, EXACT, F32, FLOATS, I32, I8, NEAR, SUM, U8, node, on_host


def window(draw, axes, most=3):
    """The attributes of a window, and the least size of each axis: one that the window fits into."""
    kernel = draw.host_ints(axes, 1, most)
    strides = draw.maybe(lambda: draw.host_ints(axes, 1, 3), 0.6)
    dilations = draw.maybe(lambda: draw.host_ints(axes, 1, 2), 0.3)
    reach = [dilation * (side - 1) + 1 for side, dilation in zip(kernel, dilations or [1] * axes)]
    auto_pad = draw.choice([None, None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    pads = None
    if auto_pad in (None, "NOTSET") and draw.chance(0.6):
        pads = [draw.integer(0, max(side - 1, 0)) for side in kernel * 2]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and dilations:
        dilations, reach = None, kernel
    given = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "auto_pad": auto_pad, "pads": pads}
    return given, reach


def image(draw, reach):
    return [draw.size(least, least + 5) for least in reach]


def pool(draw):
    dtype = draw.dtype()
    axes = draw.integer(1, 3)
    attributes, reach = window(draw, axes)
    if (draw.op_type == "AveragePool" and draw.opset < 19) or draw.opset < 10:
        attributes["dilations"], reach = None, attributes["kernel_shape"]
    if draw.op_type == "AveragePool":
        attributes["count_include_pad"] = draw.maybe(lambda: draw.integer(0, 1))
    if draw.opset >= 10:
        attributes["ceil_mode"] = draw.maybe(lambda: draw.integer(0, 1))
    x = draw.array([draw.size(), draw.size(1, 4), *image(draw, reach)], dtype)
    return node([x], [dtype], EXACT if draw.op_type == "MaxPool" else NEAR, **attributes)


def global_pool(draw):
    dtype = draw.dtype()
    x = draw.array([draw.size(), draw.size(1), *draw.shape(1, 3, least=1)], dtype)
    return node([x], [dtype], EXACT if draw.op_type == "GlobalMaxPool" else SUM)


def conv(draw):
    dtype = draw.dtype()
    axes = draw.integer(1, 3)
    attributes, reach = window(draw, axes)
    group = draw.integer(1, 3)
    channels, filters = group * draw.integer(1, 3), group * draw.integer(1, 3)
    x = draw.array([draw.size(), channels, *image(draw, reach)], dtype)
    w = draw.array([filters, channels // group, *attributes["kernel_shape"]], dtype, -1, 1)
    bias = draw.maybe(lambda: draw.array([filters], dtype))
    attributes["kernel_shape"] = draw.maybe(lambda: attributes["kernel_shape"], 0.7)
    return node([x, w, bias], [dtype], SUM, group=group if group > 1 else draw.maybe(lambda: 1), **attributes)


def conv_integer(draw):
    """As conv, of i8 or u8. The first factor is small where the second one is i8, as in MatMulInteger."""
    kinds = [draw.choice([U8, I8]) for _ in range(2)]
    attributes, reach = window(draw, draw.integer(1, 2))
    channels, filters = draw.integer(1, 3), draw.integer(1, 3)
    high = 255 if kinds[1] == U8 else 127 if kinds[0] == U8 else -1
    x = draw.array([draw.size(1), channels, *image(draw, reach)], kinds[0], -128, high)
    w = draw.array([filters, channels, *attributes["kernel_shape"]], kinds[1], -128, 255)
    zeros = [draw.array([], kind, 0, 20) for kind in kinds][: draw.integer(0, 2)]
    return node([x, w, *zeros], [I32], EXACT, **attributes)


def lp_pool(draw):
    dtype = draw.dtype()
    attributes, reach = window(draw, draw.integer(1, 3))
    if draw.opset < 18:
        attributes["dilations"], reach = None, attributes["kernel_shape"]
    else:
        attributes["ceil_mode"] = draw.maybe(lambda: draw.integer(0, 1))
    x = draw.array([draw.size(), draw.size(1, 4), *image(draw, reach)], dtype)
    return node([x], [dtype], SUM, p=draw.maybe(lambda: draw.integer(1, 3)), **attributes)


def grid_sample(draw):
    """Places also beside the image."""
    dtype = draw.dtype()
    axes = 3 if draw.opset >= 20 and draw.chance(0.3) else 2
    modes = ["linear", "nearest", "cubic"] if draw.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    mode = draw.choice(modes[:2] if axes == 3 else modes)
    batch = draw.size(1, 3)
    x = draw.array([batch, draw.size(1, 3), *(draw.size(2, 5) for _ in range(axes))], dtype)
    grid = draw.array([batch, *(draw.size(1, 4) for _ in range(axes)), axes], dtype, -1.3, 1.3)
    return node([x, grid], [dtype], SUM, mode=mode, align_corners=draw.maybe(lambda: draw.integer(0, 1)),
                padding_mode=draw.maybe(lambda: draw.choice(["zeros", "border", "reflection"])))


def conv_transpose(draw):
    dtype = draw.dtype()
    axes = draw.integer(1, 3)
    attributes, _ = window(draw, axes)
    strides = attributes["strides"] or [1] * axes
    group = draw.integer(1, 2)
    channels, filters = group * draw.integer(1, 3), draw.integer(1, 3)
    if draw.chance(0.3):
        dilations = attributes["dilations"] or [1] * axes
        attributes["output_padding"] = [
            draw.integer(0, max(stride, dilation) - 1) for stride, dilation in zip(strides, dilations)]
        attributes["auto_pad"] = None
    x = draw.array([draw.size(), channels, *image(draw, [2] * axes)], dtype)
    w = draw.array([channels, filters, *attributes["kernel_shape"]], dtype, -1, 1)
    bias = draw.maybe(lambda: draw.array([filters * group], dtype))
    attributes["kernel_shape"] = draw.maybe(lambda: attributes["kernel_shape"], 0.7)
    return node([x, w, bias], [dtype], SUM, group=group if group > 1 else draw.maybe(lambda: 1), **attributes)


def batch_normalization(draw):
    dtype = draw.dtype()
    shape = [draw.size(), draw.size(1, 5), *draw.shape(0, 3, least=1)]
    kind = F32 if draw.opset >= 15 and draw.chance(0.7) else dtype
    scale, bias, mean = (draw.array(shape[1:2], kind) for _ in range(3))
    variance = draw.array(shape[1:2], kind, 0.2, 3.0)
    return node([draw.array(shape, dtype), scale, bias, mean, variance], [dtype], SUM,
                epsilon=draw.maybe(lambda: draw.number(1e-5, 1e-2)))


def lrn(draw):
    dtype = draw.dtype()
    x = draw.array([draw.size(), draw.size(1, 6), *draw.shape(2, 2, least=1)], dtype)
    size = draw.choice([1, 3, 5])
    names = {"alpha": (1e-4, 0.5), "beta": (0.25, 1.0), "bias": (0.5, 2.0)}
    return node([x], [dtype], NEAR, size=size,
                **{name: draw.maybe(lambda: draw.number(low, high)) for name, (low, high) in names.items()})


def instance_normalization(draw):
    dtype = draw.dtype()
    shape = [draw.size(), draw.size(1, 5), *draw.shape(1, 3, least=2)]
    scale, bias = (draw.array(shape[1:2], dtype) for _ in range(2))
    return node([draw.array(shape, dtype), scale, bias], [dtype], SUM,
                epsilon=draw.maybe(lambda: draw.number(1e-5, 1e-2)))


def group_normalization(draw):
    dtype = draw.dtype()
    groups = draw.integer(1, 3)
    shape = [draw.size(1), groups * draw.size(1, 3), *draw.shape(1, 3, least=2)]
    scale, bias = (draw.array([shape[1] if draw.opset >= 21 else groups], dtype) for _ in range(2))
    return node([draw.array(shape, dtype), scale, bias], [dtype], SUM, num_groups=groups,
                epsilon=draw.maybe(lambda: draw.number(1e-5, 1e-2)))


def scale_of(draw):
    return draw.choice([0.25, 0.5, 0.75, 1.0, 1.0, 1.5, 2.0, 2.5, 3.0])


def resize(draw):
    """By scales or by sizes; the first two axes stay as they are, but where all are nearest."""
    dtype = draw.dtype(*ANY) if draw.chance(0.4) else draw.dtype()
    mode = draw.choice(["nearest", "linear", "cubic"] if draw.opset >= 11 else ["nearest", "linear"])
    mode = mode if dtype in FLOATS else "nearest"
    axes = 2 if mode == "cubic" else draw.integer(1, 3 if draw.opset >= 11 else 2)
    shape = [draw.size(1, 3), draw.size(1, 3), *(draw.size(2, 6) for _ in range(axes))]
    scales = [1.0, 1.0, *(scale_of(draw) for _ in range(axes))]
    how = EXACT if mode == "nearest" else SUM
    attributes = {"mode": draw.maybe(lambda: mode) if mode == "nearest" else mode}
    x = draw.array(shape, dtype)
    if draw.opset < 11:
        return node([x, on_host(scales, F32)], [dtype], how, **attributes)
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    modes += ["half_pixel_symmetric"] if draw.opset >= 19 else []
    attributes["coordinate_transformation_mode"] = draw.maybe(lambda: draw.choice(modes), 0.7)
    if mode == "nearest":
        attributes["nearest_mode"] = draw.maybe(
            lambda: draw.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        attributes["cubic_coeff_a"] = draw.maybe(lambda: draw.choice([-0.5, -0.75]))
        attributes["exclude_outside"] = draw.maybe(lambda: draw.integer(0, 1))
    given = draw.choice(["scales", "sizes"])
    kept = None
    if draw.opset >= 18 and draw.chance(0.4):
        kept = list(range(2, 2 + axes))
        scales = scales[2:]
        attributes["axes"] = [axis - len(shape) if draw.chance(0.3) else axis for axis in kept]
    sizes = [draw.integer(1, 9) for _ in range(axes)]
    sizes = sizes if kept else [*shape[:2], *sizes]
    if given == "sizes" and draw.opset >= 18 and kept:
        attributes["keep_aspect_ratio_policy"] = draw.maybe(
            lambda: draw.choice(["stretch", "not_larger", "not_smaller"]))
    roi = None if draw.opset >= 13 else on_host([], F32)
    if given == "scales":
        return node([x, roi, on_host(scales, F32)], [dtype], how, **attributes)
    none = None if draw.opset >= 13 else on_host([], F32)
    return node([x, roi, none, on_host(sizes)], [dtype], how, **attributes)


def upsample(draw):
    dtype = draw.dtype(*ANY) if draw.chance(0.4) else draw.dtype()
    mode = draw.choice(["nearest", "linear"]) if dtype in FLOATS else "nearest"
    shape = [draw.size(1, 3), draw.size(1, 3), *(draw.size(2, 5) for _ in range(2))]
    scales = [1.0, 1.0, *(draw.choice([1.0, 1.5, 2.0, 3.0]) for _ in range(2))]
    x, how = draw.array(shape, dtype), EXACT if mode == "nearest" else SUM
    mode = draw.maybe(lambda: mode) if mode == "nearest" else mode
    if draw.opset < 9:
        return node([x], [dtype], how, mode=mode, scales=scales)
    return node([x, on_host(scales, F32)], [dtype], how, mode=mode)


GENERATORS = {
    **dict.fromkeys(["AveragePool", "MaxPool"], pool),
    **dict.fromkeys(["GlobalAveragePool", "GlobalMaxPool"], global_pool),
    "BatchNormalization": batch_normalization,
    "Conv": conv,
    "ConvInteger": conv_integer,
    "ConvTranspose": conv_transpose,
    "GridSample": grid_sample,
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "LRN": lrn,
    "LpPool": lp_pool,
    "Resize": resize,
    "Upsample": upsample,
}
