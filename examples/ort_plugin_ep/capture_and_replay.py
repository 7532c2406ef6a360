#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Runs a model on an EP of gcap through a stock ONNX Runtime: eagerly, captured, and replayed with other inputs.

    pip install onnxruntime numpy gcap_onnxruntime_ep-0.1.0-py3-none-linux_x86_64.whl
    python capture_and_replay.py model.onnx

The results of the replay are compared with the CPU EP's. On the simulator the times say nothing of a GPU.
"""

import argparse
import statistics
import sys
import time

import numpy as np
import onnxruntime as ort

NVIDIA = 0x10DE  # whose memory is CUDA's, whichever EP allocated it
TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


# --- The EP ----------------------------------------------------------------------------------------------------------


def register(library=None, ep_name="gcap"):
    """Loads the EP's library, by default that of the installed wheel, and gives its devices."""
    if library is None:
        import gcap_onnxruntime_ep as wheel

        library, ep_name = wheel.get_library_path(), wheel.get_ep_name()
    ort.register_execution_provider_library(ep_name, library)
    devices = [device for device in ort.get_ep_devices() if device.ep_name == ep_name]
    if not devices:
        sys.exit(f"{library} found no CUDA device")
    return devices


def open_session(model, device, **options):
    """A session whose nodes are all on the EP. `options` are the EP's: docs/options.md lists them."""
    session_options = ort.SessionOptions()
    session_options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    session_options.add_provider_for_devices([device], options)
    return ort.InferenceSession(model, sess_options=session_options)


# --- Tensors in the device's memory ----------------------------------------------------------------------------------


class Binding:
    """Inputs and outputs of a session at fixed places of the device's memory, as a graph needs them."""

    def __init__(self, session, device, inputs, output_shapes):
        self._session = session
        self._binding = session.io_binding()
        self._device_id = int(device.ep_metadata["cuda_device_id"])
        self._inputs = {name: self._to_device(array) for name, array in inputs.items()}
        for name, tensor in self._inputs.items():
            self._binding.bind_ortvalue_input(name, tensor)
        for output, shape in zip(session.get_outputs(), output_shapes):
            self._binding.bind_ortvalue_output(output.name, self._to_device(np.zeros(shape, TYPES[output.type])))

    def _to_device(self, array):
        return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array), "gpu", self._device_id, NVIDIA)

    def update(self, inputs):
        """Writes other inputs to the same places."""
        for name, array in inputs.items():
            self._inputs[name].update_inplace(array)

    def run(self, run_options=None):
        self._session.run_with_iobinding(self._binding, run_options)

    def wait(self):
        self._binding.synchronize_outputs()

    def outputs(self):
        return self._binding.copy_outputs_to_cpu()


# --- The comparison --------------------------------------------------------------------------------------------------


def random_inputs(session, seed):
    """Numbers from 0 to 1; a dimension that the model leaves open is 1."""
    random = np.random.default_rng(seed)
    return {
        value.name: random.random([d if isinstance(d, int) else 1 for d in value.shape]).astype(TYPES[value.type])
        for value in session.get_inputs()
    }


def difference(got, expected):
    return max((np.abs(g.astype(np.float64) - e.astype(np.float64)).max(initial=0) for g, e in zip(got, expected)))


def measure(name, runs, call, after=lambda: None):
    """Prints how long a call takes on the host. What `after` does is not measured."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - begin) / 1000)
        after()
    print(f"{name:42} {statistics.median(times):10.1f} us {np.percentile(times, 99):10.1f} us")


def compare(model, device, runs, tolerance):
    cpu = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    first, second = random_inputs(cpu, seed=1), random_inputs(cpu, seed=2)
    expected = cpu.run(None, second)
    shapes = [output.shape for output in expected]

    eager = Binding(open_session(model, device), device, second, shapes)
    eager.run()
    print(f"eager: differs from the CPU EP by at most {difference(eager.outputs(), expected):.3g}")

    # One call warms up, captures the graph and launches it. From then on a call replays the graph, and does nothing
    # else: so the inputs are changed where they are.
    replay = Binding(open_session(model, device, enable_cuda_graph="1"), device, first, shapes)
    replay.run()
    replay.update(second)
    replay.run()
    found = difference(replay.outputs(), expected)
    print(f"replay with changed inputs: differs from the CPU EP by at most {found:.3g}")

    without_waiting = ort.RunOptions()
    without_waiting.add_run_config_entry("disable_synchronize_execution_providers", "1")
    print(f"{'time of a call on the host':42} {'median':>13} {'99 %':>13}")
    measure("CPU EP", runs, lambda: cpu.run(None, second))
    measure("this EP, eager", runs, eager.run)
    measure("this EP, replay", runs, replay.run)
    measure("this EP, replay that is not waited for", runs, lambda: replay.run(without_waiting), replay.wait)
    return found <= tolerance


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--library", help="the EP's library (default: the installed wheel's)")
    parser.add_argument("--ep-name", default="gcap", help="of the EP in --library")
    parser.add_argument("--runs", type=int, default=100, help="of each measurement")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="largest difference from the CPU EP")
    arguments = parser.parse_args()
    device = register(arguments.library, arguments.ep_name)[0]
    print(f"ONNX Runtime {ort.__version__}, EP '{device.ep_name}' of {device.ep_metadata['library_path']}")
    same = compare(arguments.model, device, arguments.runs, arguments.tolerance)
    # Sessions and tensors of the EP have ended, so its library may.
    ort.unregister_execution_provider_library(device.ep_name)
    sys.exit(None if same else f"the outputs differ by more than {arguments.tolerance}")


if __name__ == "__main__":
    main()
