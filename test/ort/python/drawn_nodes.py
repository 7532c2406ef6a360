# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The generators of all operators, and the differences that are the CPU EP's."""

import numpy as np

import drawn_elementwise
import drawn_images
import drawn_layout
import drawn_sums

GENERATORS = {
    **drawn_elementwise.GENERATORS,
    **drawn_images.GENERATORS,
    **drawn_layout.GENERATORS,
    **drawn_sums.GENERATORS,
}


def _has_fractional_scales(node):
    """A scale that gives no whole size."""
    if node.attributes.get("coordinate_transformation_mode") != "align_corners" or len(node.inputs) != 3:
        return False
    shape, scales = np.shape(node.inputs[0].data), node.inputs[2].data
    sizes = np.array(shape[-len(scales) :]) * scales
    return bool((sizes != np.floor(sizes)).any())


def _has_less_than_no_pads(node):
    """A stride that leaves elements out: what SAME pads is negative, which ONNX does not say a word of."""
    if not node.attributes.get("auto_pad", "").startswith("SAME"):
        return False
    kernel, sizes = node.attributes["kernel_shape"], np.shape(node.inputs[0].data)[2:]
    strides = node.attributes.get("strides", [1] * len(kernel))
    return any((-(-size // stride) - 1) * stride + side < size for size, stride, side in zip(sizes, strides, kernel))


def _has_nan_of_f16(node):
    data = node.inputs[0].data
    return data.dtype == np.float16 and bool(np.isnan(data).any())


def _is_cubic_to_the_border(node):
    attributes = node.attributes
    return "cubic" in attributes["mode"] and (attributes.get("padding_mode"), attributes.get("align_corners", 0)) == (
        "border", 0)


def _is_causal_of_one_query(node):
    axis = 2 if np.ndim(node.inputs[0].data) == 4 else 1
    return node.attributes.get("is_causal") == 1 and np.shape(node.inputs[0].data)[axis] == 1


# What a failed case of an operator may be put down to: whether the node is of the kind, and why the CPU EP differs.
KNOWN = {
    **dict.fromkeys(
        ["AveragePool", "LpPool", "MaxPool"], (_has_less_than_no_pads, "the CPU EP crops where SAME pads less than 0")
    ),
    "GridSample": (_is_cubic_to_the_border, "the CPU EP clamps a coordinate where another one is beyond the border"),
    "Resize": (_has_fractional_scales, "the CPU EP aligns corners by the size before it is cut to a whole one"),
    "Sign": (_has_nan_of_f16, "the CPU EP gives 0 for NaN, where of float32 it gives NaN"),
    "Attention": (_is_causal_of_one_query, "the CPU EP takes one query for the last one, whatever is_causal says"),
}


# Of which the CPU EP's outputs have another shape.
OTHER_SHAPES = ("AveragePool", "LpPool", "MaxPool")


def known(row, nodes, text):
    """The reason; empty if there is none. An eager run has the shape of the CPU EP's before an output is bound."""
    if "Got invalid dimensions for output" in text:
        return "ONNX infers a shape that no EP gives, and ONNX Runtime refuses the bound output"
    if "elements differ" not in text and row not in OTHER_SHAPES:
        return ""
    applies, reason = KNOWN.get(row, (lambda _: False, ""))
    return reason if any(applies(node) for node in nodes) else ""
