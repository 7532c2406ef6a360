# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""A profile of a session has the capture and each replay, with times that lie in the profile's.

    python3 profile_test.py LIBRARY
"""

import json
import os
import sys

import numpy
import onnxruntime
from onnx import TensorProto, helper

NVIDIA = 0x10DE


def main(library):
    onnxruntime.register_execution_provider_library("gcap", os.path.realpath(library))
    device = [d for d in onnxruntime.get_ep_devices() if d.ep_name == "gcap"][0]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "abc"]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["c"])], "add", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = os.path.join(os.environ["TEST_TMPDIR"], "profile")
    options.add_provider_for_devices([device], {"enable_cuda_graph": "1"})
    session = onnxruntime.InferenceSession(model.SerializeToString(), sess_options=options)
    binding = session.io_binding()
    tensors = [onnxruntime.OrtValue.ortvalue_from_numpy(numpy.ones(4, numpy.float32), "gpu", 0, NVIDIA) for _ in "abc"]
    binding.bind_ortvalue_input("a", tensors[0])
    binding.bind_ortvalue_input("b", tensors[1])
    binding.bind_ortvalue_output("c", tensors[2])
    for _ in range(4):
        session.run_with_iobinding(binding)
    with open(session.end_profiling(), encoding="utf-8") as file:
        events = json.load(file)
    ours = [event for event in events if event["name"].endswith("graph 0")]
    names = [event["name"] for event in ours]
    last = max(event["ts"] + event["dur"] for event in events)
    assert names.count("capture of graph 0") == 1, names
    assert names.count("replay of graph 0") == 3, names
    assert all(event["args"]["gpu_graph_id"] == "0" for event in ours), ours
    assert all(0 <= event["ts"] <= last and event["dur"] >= 0 for event in ours), (ours, last)
    # ONNX Runtime times the runs: ours lie in them.
    runs = [event for event in events if event["name"] == "model_run"]
    assert all(event["ts"] <= max(run["ts"] + run["dur"] for run in runs) for event in ours), (ours, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
