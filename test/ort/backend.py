# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""ONNX's own tests of operators, with their models, inputs and outputs, on the plugin EP.

    python3 backend.py LIBRARY EP_NAME OPS.c SKIPS.txt PAGE.md [NAME...]

A model is run if all its operators are in the plugin's table (OPS.c), and its inputs and outputs have types of gcap.
Then all its nodes must run on the EP, within the tolerance of ONNX's own runner: eagerly, and again by capture and
replay. SKIPS.txt has a line "MODEL WHAT REASON" for each model where that is not so, WHAT being `run` (the EP leaves a
node to the CPU) or `replay`; a line without need fails too. PAGE.md has the numbers, as "N of M models". Prints one line
of JSON.
"""

import glob
import json
import os
import re
import sys

import numpy
import onnx
import onnx.backend.test
import onnxruntime
from onnx import numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import OrtDeviceMemoryType

NVIDIA = 0x10DE
# What gcap has tensors of: the others are no matter of its operators.
TYPES = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.INT64,
         onnx.TensorProto.INT32, onnx.TensorProto.BOOL}
RTOL = 1e-3
ATOL = 1e-5
HALF_TOL = 1e-2


def data_folder():
    return os.path.join(os.path.dirname(onnx.backend.test.__file__), "data")


def claimed_ops(source):
    """The operators of the plugin's table."""
    with open(source) as file:
        return set(re.findall(r'(?:SINCE|ON_HOST)\("(\w+)"', file.read()))


def read_skips(path):
    with open(path) as file:
        lines = [line.split(maxsplit=2) for line in file if line.strip() and not line.startswith("#")]
    return {(name, what): reason.strip() for name, what, reason in lines}


def read_tensors(folder, prefix):
    arrays = []
    for i in range(len(glob.glob(os.path.join(folder, prefix + "_*.pb")))):
        with open(os.path.join(folder, f"{prefix}_{i}.pb"), "rb") as file:
            tensor = onnx.TensorProto()
            tensor.ParseFromString(file.read())
        arrays.append(numpy_helper.to_array(tensor))
    return arrays


def make_session(model, device, options):
    session_options = onnxruntime.SessionOptions()
    session_options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session_options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session_options.add_provider_for_devices([device], options)
    return onnxruntime.InferenceSession(model, sess_options=session_options)


def check(got, expected):
    for a, b in zip(got, expected):
        if a.dtype != b.dtype or a.shape != b.shape:
            raise AssertionError(f"got {a.dtype} {a.shape}, expected {b.dtype} {b.shape}")
        tolerance = HALF_TOL if b.dtype.itemsize == 2 else RTOL
        if b.dtype.kind == "f" or b.dtype.kind == "V":
            numpy.testing.assert_allclose(a.astype(numpy.float32), b.astype(numpy.float32), rtol=tolerance, atol=ATOL)
        else:
            numpy.testing.assert_array_equal(a, b)


def assigned_elsewhere(session, ep_name):
    """The operators of the nodes that are not on the EP."""
    others = []
    for subgraph in session.get_provider_graph_assignment_info():
        if subgraph.ep_name != ep_name:
            others += [node.op_type for node in subgraph.get_nodes()]
    return others


def run_eagerly(path, device, ep_name, feeds, expected):
    session = make_session(path, device, {"use_tf32": "0"})
    others = assigned_elsewhere(session, ep_name)
    if others:
        raise AssertionError(f"not on the EP: {' '.join(sorted(set(others)))}")
    check(session.run(None, feeds), expected)


def value_in(memory_info, array):
    """The array where the session wants it: on the device, but for inputs that its kernels read on the host."""
    if memory_info.device_vendor_id == NVIDIA and memory_info.device_mem_type == OrtDeviceMemoryType.DEFAULT:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array, "gpu", memory_info.device_id, NVIDIA)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def replay(path, device, feeds, expected):
    session = make_session(path, device, {"use_tf32": "0", "enable_cuda_graph": "1"})
    binding = session.io_binding()
    for value, info in zip(session.get_inputs(), session.get_input_memory_infos()):
        binding.bind_ortvalue_input(value.name, value_in(info, feeds[value.name]))
    outputs = []
    for value, info, array in zip(session.get_outputs(), session.get_output_memory_infos(), expected):
        outputs.append(value_in(info, numpy.zeros_like(array)))
        binding.bind_ortvalue_output(value.name, outputs[-1])
    session.run_with_iobinding(binding)  # warms up, captures and launches
    for output, array in zip(outputs, expected):
        output.update_inplace(numpy.zeros_like(array))
    session.run_with_iobinding(binding)  # replays
    check([output.numpy() for output in outputs], expected)


def cases(ops, names):
    """Model path, inputs by name, outputs, of each model that has our operators alone."""
    for path in sorted(glob.glob(os.path.join(data_folder(), "node", "*", "model.onnx"))):
        folder = os.path.dirname(path)
        name = os.path.basename(folder)
        if names and name not in names:
            continue
        model = onnx.load(path)
        if any(node.op_type not in ops or node.domain != "" for node in model.graph.node):
            continue
        values = list(model.graph.input) + list(model.graph.output)
        if not all(value.type.tensor_type.elem_type in TYPES for value in values):
            continue
        constants = {tensor.name for tensor in model.graph.initializer}
        inputs = [value.name for value in model.graph.input if value.name not in constants]
        data = os.path.join(folder, "test_data_set_0")
        yield name, path, dict(zip(inputs, read_tensors(data, "input"))), read_tensors(data, "output")


def reason_of(attempt):
    """Why the attempt failed; "" if it did not."""
    try:
        attempt()
        return ""
    except Exception as error:  # a wrong number and a refusal are equally good reasons to list the model
        return " ".join(str(error).split())[:200] or type(error).__name__


def main(library, ep_name, ops_source, skips_path, page, *names):
    onnxruntime.set_default_logger_severity(4)
    onnxruntime.register_execution_provider_library(ep_name, os.path.realpath(library))
    device = [d for d in onnxruntime.get_ep_devices() if d.ep_name == ep_name][0]
    skips = read_skips(skips_path)
    count = {"models": 0, "run": 0, "replay": 0, "skipped": 0}
    bad, used = [], set()
    for name, path, feeds, expected in cases(claimed_ops(ops_source), names):
        count["models"] += 1
        for what, attempt in [
            ("run", lambda: run_eagerly(path, device, ep_name, feeds, expected)),
            ("replay", lambda: replay(path, device, feeds, expected)),
        ]:
            if (name, what) in skips:
                used.add((name, what))
            reason = reason_of(attempt)
            if not reason:
                count[what] += 1
            if bool(reason) != ((name, what) in skips):
                bad.append(f"{name} {what} {reason or 'works, and is listed as skipped'}")
            elif reason:
                count["skipped"] += 1
            if what == "run" and reason:
                break
    if not names:
        bad += [f"{name} {what} is listed as skipped, and is no such model" for name, what in set(skips) - used]
        numbers = f"{count['replay']} of {count['models']} models"
        with open(page, encoding="utf-8") as file:
            if numbers not in file.read():
                bad.append(f"{page} does not say '{numbers}'")
    for line in bad:
        print(line, file=sys.stderr)
    print(json.dumps(count))
    del device
    onnxruntime.unregister_execution_provider_library(ep_name)
    return 1 if bad or count["models"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
