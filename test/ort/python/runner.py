# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Sessions on an EP, and their results compared with what is expected."""

import collections
import os

import numpy as np
import onnx
import onnxruntime as ort

import tensors

# What became of a model: REPLAYED as it is, or as ONNX Runtime optimizes it. With the others goes a reason: EAGER is all
# on the EP, and is not captured; MIXED runs eagerly, with nodes on the EP and on the CPU EP.
REPLAYED, OPTIMIZED, EAGER, MIXED = "replayed", "replayed, optimized", "only eagerly", "mixed"
SKIPPED, FAILED = "skipped", "FAILED"
Verdict = collections.namedtuple("Verdict", ["kind", "reason"], defaults=[""])

# Largest relative and absolute difference from what is expected; other types are exact. ONNX's own tests have these for
# floats of 32 bits. The others have 11 and 8 bits of mantissa, and expected outputs that were rounded once.
TOLERANCES = {
    "float64": (1e-6, 1e-12),
    "float32": (1e-3, 1e-7),
    "float16": (2e-3, 1e-4),
    "bfloat16": (1.6e-2, 1e-3),
}


class Ep:
    """The library of an EP, in this process."""

    # A capture that fails is a failure here.
    OPTIONS = {"graph.rerun_failed_capture": "0"}
    HAS_SKIPS = True  # skips.txt says what it leaves to others

    def __init__(self, library, name, log_severity=4):
        if library is None:
            import gcap_onnxruntime_ep as wheel

            library, name = wheel.get_library_path(), wheel.get_ep_name()
        ort.set_default_logger_severity(log_severity)  # a plugin takes the one that it finds
        # A relative path would be looked for beside ONNX Runtime.
        ort.register_execution_provider_library(name, os.path.abspath(library))
        self._found(name)

    def _found(self, name):
        self.name = name
        self._devices = [device for device in ort.get_ep_devices() if device.ep_name == name][:1]
        self.device_id = int(self._devices[0].ep_metadata.get("cuda_device_id", 0))

    def close(self):
        ort.unregister_execution_provider_library(self.name)

    def session(self, model, optimize=False, capture=False, parallel=False, log_severity=4):
        """A session of a model, a path or bytes. Nodes that the EP does not take are on the CPU EP. `parallel`: nodes
        that do not need each other run on two threads."""
        options = ort.SessionOptions()
        options.log_severity_level = log_severity
        options.intra_op_num_threads = 1
        if parallel:
            options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
            options.inter_op_num_threads = 2
        if not optimize:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        # TF32 would not be as exact as the expected outputs are.
        provider = {"use_tf32": "0", "enable_cuda_graph": "1" if capture else "0", **self.OPTIONS}
        options.add_provider_for_devices(self._devices, provider)
        return ort.InferenceSession(model, sess_options=options)

    def operators(self, session):
        """The operators of a session: those on the EP, and those elsewhere."""
        here, elsewhere = set(), set()
        for subgraph in session.get_provider_graph_assignment_info():
            found = here if subgraph.ep_name == self.name else elsewhere
            found.update(node.op_type for node in subgraph.get_nodes())
        return sorted(here), sorted(elsewhere)


class CudaEp(Ep):
    """ONNX Runtime's own CUDA EP, which the package onnxruntime-gpu brings: the same figures of a peer."""

    OPTIONS = {}
    HAS_SKIPS = False

    def __init__(self):
        ort.set_default_logger_severity(4)
        ort.preload_dlls()  # cuBLAS and cuDNN of NVIDIA's packages
        name = "CUDAExecutionProvider"
        if name not in [device.ep_name for device in ort.get_ep_devices()]:
            folder = os.path.join(os.path.dirname(ort.__file__), "capi")
            ort.register_execution_provider_library(name, os.path.join(folder, "libonnxruntime_providers_cuda.so"))
        self._found(name)

    def close(self):
        pass


def cpu_session(model):
    """A session on ONNX Runtime's own CPU EP."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])


def is_on_host(memory):
    return memory.name.lower() == "cpu"


def run_eagerly(session, inputs):
    """Runs with inputs in host memory."""
    feeds = {value.name: tensors.on_host(array) for value, array in zip(session.get_inputs(), inputs)}
    names = [value.name for value in session.get_outputs()]
    return [tensors.read(tensor) for tensor in session.run_with_ort_values(names, feeds)]


def others(array):
    """The same numbers at other places, where there are others."""
    return np.roll(array.reshape(-1)[::-1], 1).reshape(array.shape)


def with_constants(model, session, inputs):
    """The model of a file, as bytes, and the inputs that it has left: what its kernels read on the host is constant,
    since nothing else of the host is captured."""
    loaded, left = onnx.load(model), []
    for value, memory, array in zip(session.get_inputs(), session.get_input_memory_infos(), inputs):
        if not is_on_host(memory):
            left.append(array)
            continue
        of_graph = next(known for known in loaded.graph.input if known.name == value.name)
        loaded.graph.input.remove(of_graph)
        loaded.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    return loaded.SerializeToString(), left


def anything_but(array):
    """An array of which each element differs; the bits of infinity and NaN are inverted to a number's."""
    if array.dtype == bool:
        return ~array
    return (~np.ascontiguousarray(array).reshape(-1).view(np.uint8)).view(array.dtype).reshape(array.shape)


def run_captured(ep, session, inputs, outputs):
    """Captures with other inputs, replays with these, and gives the outputs. `outputs` say types and shapes."""
    placed = [tensors.on_device(others(array), ep.device_id) for array in inputs]
    results = [tensors.on_device(np.zeros_like(array), ep.device_id) for array in outputs]
    binding = session.io_binding()
    for value, tensor in zip(session.get_inputs(), placed):
        binding.bind_ortvalue_input(value.name, tensor)
    for value, tensor in zip(session.get_outputs(), results):
        binding.bind_ortvalue_output(value.name, tensor)
    session.run_with_iobinding(binding)
    for tensor, array in zip(placed, inputs):
        tensors.write(tensor, array)
    # What the capture's launch wrote must not pass for the replay's.
    for tensor, array in zip(results, outputs):
        tensors.write(tensor, anything_but(array))
    session.run_with_iobinding(binding)
    found = [tensors.read(tensor) for tensor in results]
    if hasattr(session, "release_captured_graph"):  # since 1.27
        session.release_captured_graph(0)  # fails if there was none
    return found


def mismatch(found, expected, of_largest=0.0):
    """What is wrong with outputs; empty if nothing is. `of_largest`: an output's elements may also differ by this much
    of its largest one, as sums do whose terms are much larger than they are."""
    for i, (got, want) in enumerate(zip(found, expected)):
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"output {i} is {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
        if want.dtype.name not in TOLERANCES:
            wrong = got != want
        else:
            relative, absolute = TOLERANCES[want.dtype.name]
            got, want = got.astype(np.float64), want.astype(np.float64)
            if of_largest:
                absolute += of_largest * np.abs(want).max(initial=0)
            wrong = ~np.isclose(got, want, rtol=relative, atol=absolute, equal_nan=True)
        if wrong.any():
            where = tuple(int(index) for index in np.argwhere(wrong)[0])
            return f"output {i} is {got[where]} at {list(where)}, expected {want[where]}; {wrong.sum()} elements differ"
    return ""


def message(error):
    """What ONNX Runtime says, in a line; the end is what matters."""
    text = " ".join(str(error).split())
    return text if len(text) < 250 else "… " + text[-248:]
