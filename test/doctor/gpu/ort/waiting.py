# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# ONNX Runtime runs a model on an EP whose Relu waits for its stream, in the capture too: `waiting.py libwaiting_plugin.so`.
# doctor: culprit R11 cudaStreamSynchronize wait_for_result
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

NVIDIA = 0x10DE


def model():
    shape = [4, 256]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "relu",
        [value("x", onnx.TensorProto.FLOAT, shape)], [value("y", onnx.TensorProto.FLOAT, shape)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    return made.SerializeToString()


def main():
    ort.register_execution_provider_library("waiting", os.path.abspath(sys.argv[1]))
    device = [d for d in ort.get_ep_devices() if d.ep_name == "waiting"][0]
    options = ort.SessionOptions()
    options.add_provider_for_devices([device], {"enable_cuda_graph": "1"})
    session = ort.InferenceSession(model(), sess_options=options)
    x = np.ones((4, 256), np.float32)
    binding = session.io_binding()
    on_device = ort.OrtValue.ortvalue_from_numpy(x, "gpu", 0, NVIDIA)
    binding.bind_ortvalue_input("x", on_device)
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.zeros_like(x), "gpu", 0, NVIDIA))
    for _ in range(3):
        session.run_with_iobinding(binding)  # culprit
    print("equal", bool((binding.copy_outputs_to_cpu()[0] == x).all()))


main()
