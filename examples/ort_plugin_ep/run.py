#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Runs a model on an EP of gcap through a stock ONNX Runtime: eagerly, captured, and replayed with other inputs.

    pip install onnxruntime numpy gcap_onnxruntime_ep-*.whl
    python run.py model.onnx

Compares the results with the CPU EP's, and prints how long a call of each takes on the host. Where a model's inputs have
open dimensions, or cannot be any numbers from 0 to 1, --shape and --input say what they are.
"""

import argparse
import os
import sys
import time

import numpy as np
import onnxruntime as ort

NVIDIA = 0x10DE  # device memory is CUDA's, whichever EP allocated it
TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
HELP = """The warning above names the nodes that are left to other EPs, and why. Fixed dimensions may help (--dimension);
docs/ort.md says what else does, and that sessions without enable_cuda_graph run such models too."""


def register(library, ep_name):
    """Loads the EP's library, by default that of the installed wheel, and gives the EP's first device."""
    if library is None:
        import gcap_onnxruntime_ep as wheel

        library, ep_name = wheel.get_library_path(), wheel.get_ep_name()
    ort.register_execution_provider_library(ep_name, os.path.abspath(library))
    devices = [device for device in ort.get_ep_devices() if device.ep_name == ep_name]
    if not devices:
        sys.exit(f"{library} finds no CUDA device")
    return devices[0]


def dimension(text):
    name, _, size = text.rpartition("=")
    if not name or not size.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=SIZE")
    return name, int(size)


def shape(text):
    name, _, sizes = text.rpartition("=")
    if not name or not all(size.isdigit() for size in sizes.split("x")):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=SIZExSIZE, as in image=1x3x224x224")
    return name, [int(size) for size in sizes.split("x")]


def content(text):
    name, _, path = text.partition("=")
    try:
        return name, np.load(path)
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=FILE.npy: {error}")


def options_with(dimensions):
    """Options of a session in which dimensions of the model, which are open by name, have sizes."""
    options = ort.SessionOptions()
    for name, size in dimensions:
        options.add_free_dimension_override_by_name(name, size)
    return options


def open_session(model, device, dimensions, **options):
    """A session on the device, with options of the EP (docs/options.md)."""
    session_options = options_with(dimensions)
    session_options.add_provider_for_devices([device], options)
    try:
        return ort.InferenceSession(model, sess_options=session_options)
    except Exception as error:
        raise RuntimeError(f"ONNX Runtime makes no session with graphs: {error}\n{HELP}")


def bind(session, device_id, inputs, outputs):
    """Binds copies of the arrays in device memory, which a graph reads and writes; gives those of the inputs."""

    def on_device(array):
        return ort.OrtValue.ortvalue_from_numpy(array, "gpu", device_id, NVIDIA)

    binding = session.io_binding()
    tensors = {name: on_device(array) for name, array in inputs.items()}
    for name, tensor in tensors.items():
        binding.bind_ortvalue_input(name, tensor)
    for value, array in zip(session.get_outputs(), outputs):
        binding.bind_ortvalue_output(value.name, on_device(np.zeros_like(array)))
    return binding, tensors


def run_options(**entries):
    options = ort.RunOptions()
    for key, value in entries.items():
        options.add_run_config_entry(key, value)
    return options


def inputs_of(session, shapes, contents):
    """The inputs that were given; else numbers from 0 to 1, of the shape that was given or the model's, in which an open
    dimension is 1."""
    random, inputs = np.random.default_rng(1), dict(contents)
    values = {value.name: value for value in session.get_inputs()}
    unknown = sorted({*shapes, *contents} - set(values))
    if unknown:
        raise ValueError(f"the model has no input {', '.join(unknown)}, it has {', '.join(values)}")
    for name, value in values.items():
        if name in inputs:
            continue
        if value.type not in TYPES:
            raise ValueError(f"input {name} is a {value.type}: give it with --input")
        sizes = shapes.get(name, [size if isinstance(size, int) else 1 for size in value.shape])
        inputs[name] = np.asarray(random.random(sizes)).astype(TYPES[value.type])
    return inputs


def others(array):
    """The same numbers at other places, where there are others."""
    return np.roll(array.reshape(-1)[::-1], 1).reshape(array.shape)


def difference(found, expected):
    return max(float(np.abs(f.astype(float) - e.astype(float)).max(initial=0)) for f, e in zip(found, expected))


def measure(name, runs, call, wait=lambda: None):
    """Prints how long the call takes: the median, and what 99 of 100 stay below. What `wait` takes is not measured."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - begin) / 1000)
        wait()
    print(f"{name:28} {np.median(times):10.1f} us {np.percentile(times, 99):10.1f} us")


def run_on_device(name, session, device_id, first, second, expected, runs):
    """Captures with the first inputs, measures with the second ones. Gives the largest difference from `expected`."""
    binding, tensors = bind(session, device_id, first, expected)
    session.run_with_iobinding(binding)  # warms up, captures a graph, and launches the graph
    for input_name, array in second.items():
        tensors[input_name].update_inplace(array)  # a graph keeps addresses, so other inputs go to the same places
    session.run_with_iobinding(binding)  # from now on a call replays the graph
    of_replay = difference(binding.copy_outputs_to_cpu(), expected)

    eagerly = run_options(gpu_graph_id="-1")  # the id that is never captured
    unsynchronized = run_options(disable_synchronize_execution_providers="1")
    measure(f"{name}, eager", runs, lambda: session.run_with_iobinding(binding, eagerly))
    of_eager = difference(binding.copy_outputs_to_cpu(), expected)
    measure(f"{name}, replay", runs, lambda: session.run_with_iobinding(binding))
    measure(f"{name}, replay, not awaited", runs, lambda: session.run_with_iobinding(binding, unsynchronized),
            binding.synchronize_outputs)
    print(f"largest difference from the CPU EP: {of_eager:.3g} eager, {of_replay:.3g} replayed")
    return max(of_eager, of_replay)


def compare(device, arguments):
    """Runs the model in all ways. Gives this EP's largest difference from the CPU EP."""
    device_id = int(device.ep_metadata["cuda_device_id"])
    options = {"enable_cuda_graph": "1", "use_tf32": "0"}
    model, dimensions, runs = arguments.model, arguments.dimension, arguments.runs
    cpu = ort.InferenceSession(model, options_with(dimensions), providers=["CPUExecutionProvider"])
    second = inputs_of(cpu, dict(arguments.shape), dict(arguments.input))
    first = {name: others(array) for name, array in second.items()}
    expected = cpu.run(None, second)
    measure("CPU EP", runs, lambda: cpu.run(None, second))
    session = open_session(model, device, dimensions, **options)
    found = run_on_device(device.ep_name, session, device_id, first, second, expected, runs)
    if arguments.cuda_ep:
        provider = ("CUDAExecutionProvider", {"device_id": str(device_id), **options})
        session = ort.InferenceSession(model, options_with(dimensions), providers=[provider])
        run_on_device("CUDA EP", session, device_id, first, second, expected, runs)
    return found


def try_compare(device, arguments):
    """(largest difference, why there is none). Here an error has ended with the sessions and tensors that it held."""
    try:
        return compare(device, arguments), ""
    except Exception as error:
        return 0.0, str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--library", help="the EP's library (default: the installed wheel's)")
    parser.add_argument("--ep-name", default="gcap", help="of the EP in --library (default: gcap)")
    parser.add_argument("--dimension", action="append", default=[], metavar="NAME=SIZE", type=dimension,
                        help="the size of a dimension that the model leaves open (default: 1)")
    parser.add_argument("--shape", action="append", default=[], metavar="INPUT=SIZExSIZE", type=shape,
                        help="the shape of an input")
    parser.add_argument("--input", action="append", default=[], metavar="INPUT=FILE.npy", type=content,
                        help="an input's content (default: random numbers from 0 to 1)")
    parser.add_argument("--runs", type=int, default=100, help="of each measurement (default: 100)")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="largest difference allowed (default: 0.001)")
    parser.add_argument("--cuda-ep", action="store_true", help="also ONNX Runtime's own, of onnxruntime-gpu")
    arguments = parser.parse_args()
    device = register(arguments.library, arguments.ep_name)
    print(f"ONNX Runtime {ort.__version__}, EP {device.ep_name} on device {device.ep_metadata['cuda_device_id']}")
    found, failure = try_compare(device, arguments)
    ort.unregister_execution_provider_library(device.ep_name)  # after the EP's last session and tensor
    if failure:
        sys.exit(failure)
    if not found <= arguments.tolerance:
        sys.exit(f"the outputs differ by {found:.3g}, allowed is {arguments.tolerance:.3g}")


if __name__ == "__main__":
    main()
