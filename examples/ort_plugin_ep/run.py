# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Runs a model on a plugin EP of gcap: registers the library, makes a session, binds, captures, replays, compares.

    python3 run.py LIBRARY MODEL.onnx [EP_NAME]

The inputs of the model have fixed shapes (a dimension without a size counts as 1), and are filled with random numbers.
Prints the largest difference to the CPU EP, and the times of a run on the CPU, eagerly, and by replay.
"""

import sys
import time

import numpy
import onnxruntime

TYPES = {
    "tensor(float)": numpy.float32,
    "tensor(float16)": numpy.float16,
    "tensor(int64)": numpy.int64,
    "tensor(int32)": numpy.int32,
    "tensor(bool)": numpy.bool_,
}
NVIDIA = 0x10DE  # memory of the device is CUDA's
RUNS = 50


def arrays_of(values, random):
    """An array for each input or output of a session, by name."""
    shapes = {value.name: [size if isinstance(size, int) else 1 for size in value.shape] for value in values}
    return {value.name: random.random(shapes[value.name]).astype(TYPES[value.type]) for value in values}


def session_on(model, device, options):
    session_options = onnxruntime.SessionOptions()
    session_options.add_provider_for_devices([device], options)
    return onnxruntime.InferenceSession(model, sess_options=session_options)


def bind(session, arrays, device):
    """Device memory for each input and output: a graph keeps the addresses."""
    memory = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(array, "gpu", device, NVIDIA) for name, array in arrays.items()
    }
    binding = session.io_binding()
    for value in session.get_inputs():
        binding.bind_ortvalue_input(value.name, memory[value.name])
    for value in session.get_outputs():
        binding.bind_ortvalue_output(value.name, memory[value.name])
    return binding, memory


def median_us(run):
    """The median time of a run, in microseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return sorted(times)[RUNS // 2] / 1000


def main(library, model, ep_name="gcap"):
    onnxruntime.set_default_logger_severity(3)
    onnxruntime.register_execution_provider_library(ep_name, library)
    device = [d for d in onnxruntime.get_ep_devices() if d.ep_name == ep_name][0]
    ordinal = int(device.ep_metadata["cuda_device_id"])

    cpu = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    random = numpy.random.default_rng(0)
    inputs = arrays_of(cpu.get_inputs(), random)
    expected = cpu.run(None, inputs)
    names = [value.name for value in cpu.get_outputs()]
    outputs = {name: numpy.zeros_like(array) for name, array in zip(names, expected)}

    session = session_on(model, device, {"enable_cuda_graph": "1", "use_tf32": "0"})
    binding, memory = bind(session, {**inputs, **outputs}, ordinal)
    eager, replay, asynchronous = (onnxruntime.RunOptions() for _ in range(3))
    eager.add_run_config_entry("gpu_graph_id", "-1")  # never a graph
    asynchronous.add_run_config_entry("disable_synchronize_execution_providers", "1")

    session.run_with_iobinding(binding, replay)  # warms up, captures and launches
    for name, array in inputs.items():  # new numbers at the old addresses
        inputs[name] = random.permuted(array)
        memory[name].update_inplace(inputs[name])
    session.run_with_iobinding(binding, replay)
    expected = cpu.run(None, inputs)
    difference = max(
        float(numpy.max(numpy.abs(memory[name].numpy().astype(numpy.float64) - value.astype(numpy.float64)), initial=0))
        for name, value in zip(names, expected)
    )
    print(f"onnxruntime {onnxruntime.__version__}, {ep_name} on device {ordinal}")
    print(f"largest difference to the CPU EP: {difference:.3g}")
    print(f"CPU EP:               {median_us(lambda: cpu.run(None, inputs)):10.1f} us")
    print(f"eager:                {median_us(lambda: session.run_with_iobinding(binding, eager)):10.1f} us")
    print(f"replay:               {median_us(lambda: session.run_with_iobinding(binding, replay)):10.1f} us")
    print(f"replay, not awaited:  {median_us(lambda: session.run_with_iobinding(binding, asynchronous)):10.1f} us")
    binding.synchronize_outputs()

    # The library is unloaded when nothing of it is left.
    del binding, memory, session, device
    onnxruntime.unregister_execution_provider_library(ep_name)
    return 0 if difference < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
