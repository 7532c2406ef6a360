# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Arrays to and from ONNX Runtime's tensors, in host memory and in a device's: of bfloat16 too, which numpy lacks."""

import ctypes

import numpy as np
import onnx
import onnxruntime as ort

NVIDIA = 0x10DE  # whose memory is CUDA's, whichever EP allocated it


def _element_type(array):
    return onnx.helper.np_dtype_to_tensor_dtype(array.dtype)


def on_host(array):
    """A tensor over the array's own memory: the array has to live as long, and to be in the order of C."""
    assert array.flags.c_contiguous
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _element_type(array))


def on_device(array, device_id):
    """A tensor with the array's content in the device's memory."""
    tensor = ort.OrtValue.ortvalue_from_shape_and_type(array.shape, _element_type(array), "gpu", device_id, NVIDIA)
    write(tensor, array)
    return tensor


def write(tensor, array):
    """Replaces the content of a tensor, wherever it is."""
    if array.size != 0:
        ort.copy_tensors([on_host(np.asarray(array))], [tensor], None)


def read(tensor):
    """The content of a tensor, wherever it is."""
    array = np.empty(tensor.shape(), onnx.helper.tensor_dtype_to_np_dtype(tensor.element_type()))
    if array.size == 0:
        return array
    if tensor.device_name() != "cpu":
        device, tensor = tensor, ort.OrtValue.ortvalue_from_shape_and_type(array.shape, tensor.element_type())
        ort.copy_tensors([device], [tensor], None)
    ctypes.memmove(array.ctypes.data, tensor.data_ptr(), array.nbytes)
    return array
