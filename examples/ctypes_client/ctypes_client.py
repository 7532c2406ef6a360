#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# gcap from Python, with ctypes and nothing else: no compiler and no header. Structs are made and read by the names of
# their fields (gcap/fields.h), options are set by key and text (gcap/options.h), and the work of a run is a Python
# function, which a replay does not call. The script takes the paths of libgcap.so and of the CUDA runtime, which may be
# the simulator's stand-in. It prints:
#
#     options other than the defaults: enable_cuda_graph=1, graph.keep_source=1
#     run 1: EAGER (WARMING), memory holds 42, Python was called 1 times
#     run 2: EAGER (WARMING), memory holds 42, Python was called 2 times
#     run 3: CAPTURED, memory holds 42, Python was called 3 times
#     run 4: REPLAYED, memory holds 42, Python was called 3 times
#     run 5: REPLAYED, memory holds 42, Python was called 3 times
#     graph 0 is CAPTURED, with 1 nodes, launched 3 times
#     a call that CUDA refuses: error 1 of cudaMemsetAsync, which ctypes_client.py made
#     a field that is not there: gcap_run_t has no field 'idd': expected one of struct_size, id, stream, work, user,
#       buffers, bindings, num_bindings, synchronize, result, key, capture_only, pinned, verify, taps, num_taps

import ctypes
import sys
import textwrap
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p

OUTCOMES = ["NOT_DONE", "REPLAYED", "CAPTURED", "EAGER", "RECORDED"]  # gcap_run_outcome_t
EAGER = OUTCOMES.index("EAGER")
FILL, DEVICE_TO_HOST = 42, 2
OLDEST_VERSION = 100  # 0.1.0, of which the functions here are
MAX_TEXT_BYTES = 4096  # GCAP_OPTIONS_MAX_TEXT_BYTES


class Failure(Exception):
    """A status, or an error of CUDA. `info` has the fields of gcap_status_info_t that say where it came from."""

    def __init__(self, message, info=None):
        super().__init__(message)
        self.info = info or {}


class Gcap:
    """libgcap.so. A function that returns a status raises its message."""

    NO_STATUS = {"gcap_version": c_int, "gcap_status_message": c_char_p, "gcap_status_read_info": None,
                 "gcap_status_free": None, "gcap_why_eager_name": c_char_p, "gcap_graph_state_name": c_char_p,
                 "gcap_graph_manager_read_info": None}

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        if self.gcap_version() < OLDEST_VERSION:
            sys.exit(f"{path} is version {self.gcap_version()} of gcap: expected {OLDEST_VERSION} or newer")

    def __getattr__(self, name):
        function = getattr(self.library, name)
        function.restype = self.NO_STATUS.get(name, c_void_p)
        if name in self.NO_STATUS:
            return function
        return lambda *arguments: self.check(function(*arguments))

    def check(self, status):
        if status is None:
            return
        message = self.gcap_status_message(c_void_p(status)).decode()
        read = Struct(self, "gcap_status_info_t")
        self.gcap_status_read_info(c_void_p(status), read.pointer)
        info = {"cuda_error": read["cuda_error"], "file": read.text("file"), "cuda_call": read.text("cuda_call")}
        self.gcap_status_free(c_void_p(status))
        raise Failure(message, info)


class Struct:
    """A struct of gcap's, by the names of its fields. Without an address it is made, with its defaults."""

    def __init__(self, gcap, name, address=None):
        self.gcap, self.name = gcap, name
        if address is None:
            size = self.place(None)[1]
            self.memory = ctypes.create_string_buffer(size)
            address = ctypes.addressof(self.memory)
            gcap.gcap_struct_init(name.encode(), c_void_p(address), c_size_t(size))
        self.address = address
        self.pointer = c_void_p(address)

    def place(self, field):
        offset, size = c_size_t(), c_size_t()
        field = None if field is None else field.encode()
        self.gcap.gcap_struct_find_field(self.name.encode(), field, byref(offset), byref(size))
        return offset.value, size.value

    def __getitem__(self, field):
        offset, size = self.place(field)
        return int.from_bytes(ctypes.string_at(self.address + offset, size), sys.byteorder)

    def text(self, field):
        return ctypes.string_at(self[field]).decode()

    def __setitem__(self, field, value):
        offset, size = self.place(field)
        ctypes.memmove(self.address + offset, int(value).to_bytes(size, sys.byteorder), size)


def check_cuda(error):
    if error != 0:
        raise Failure(f"CUDA answered {error}")


def options_in_force(gcap, options):
    text = ctypes.create_string_buffer(MAX_TEXT_BYTES)
    gcap.gcap_options_get(options.pointer, None, text, c_size_t(MAX_TEXT_BYTES))
    return text.value.decode().splitlines()


def make_runtime(gcap):
    """A runtime that captures. Options are key and text, as in a configuration."""
    options = Struct(gcap, "gcap_options_t")
    keys = (c_char_p * 2)(b"enable_cuda_graph", b"graph.keep_source")
    values = (c_char_p * 2)(b"1", b"1")
    gcap.gcap_options_parse(options.pointer, keys, values, c_size_t(2))
    defaults = options_in_force(gcap, Struct(gcap, "gcap_options_t"))
    print("options other than the defaults:", ", ".join(sorted(set(options_in_force(gcap, options)) - set(defaults))))
    runtime = c_void_p()
    gcap.gcap_runtime_create(options.pointer, byref(runtime))
    return runtime


def show_runs(gcap, cuda, runtime, device):
    calls = []

    @ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p)
    def work(_, resources):
        calls.append(resources)
        stream = Struct(gcap, "gcap_run_resources_t", resources)["cuda_stream"]
        error = cuda.cudaMemsetAsync(device, FILL, c_size_t(4), c_void_p(stream))
        return gcap.library.gcap_status_from_cuda(error, b"cudaMemsetAsync", b"ctypes_client.py", 0)

    gcap.library.gcap_status_from_cuda.restype = c_void_p
    result = Struct(gcap, "gcap_run_result_t")
    run = Struct(gcap, "gcap_run_t")
    run["id"] = 0
    run["work"] = ctypes.cast(work, c_void_p).value
    run["synchronize"] = True
    run["result"] = result.address
    for number in range(1, 6):
        gcap.gcap_runtime_run(runtime, run.pointer)
        host = (ctypes.c_ubyte * 4)()
        check_cuda(cuda.cudaMemcpy(host, device, c_size_t(4), DEVICE_TO_HOST))
        why = gcap.gcap_why_eager_name(result["why_eager"]).decode()
        said = OUTCOMES[result["outcome"]] + (f" ({why})" if result["outcome"] == EAGER else "")
        print(f"run {number}: {said}, memory holds {host[0]}, Python was called {len(calls)} times")


def show_graph(gcap, runtime):
    graphs = c_void_p()
    gcap.gcap_runtime_graphs(runtime, byref(graphs))
    info = Struct(gcap, "gcap_graph_info_t")
    gcap.gcap_graph_manager_read_info(graphs, c_int(0), info.pointer)
    state = gcap.gcap_graph_state_name(info["state"]).decode()
    print(f"graph 0 is {state}, with {info['nodes']} nodes, launched {info['replays']} times")


def show_refusal(gcap, runtime, cuda):
    @ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p)
    def work(_, resources):
        stream = Struct(gcap, "gcap_run_resources_t", resources)["cuda_stream"]
        error = cuda.cudaMemsetAsync(None, FILL, c_size_t(4), c_void_p(stream))
        return gcap.library.gcap_status_from_cuda(error, b"cudaMemsetAsync", b"ctypes_client.py", 0)

    run = Struct(gcap, "gcap_run_t")
    run["work"] = ctypes.cast(work, c_void_p).value
    try:
        gcap.gcap_runtime_run(runtime, run.pointer)
    except Failure as failure:
        info = failure.info
        print(f"a call that CUDA refuses: error {info['cuda_error']} of {info['cuda_call']}, which {info['file']} made")


def show_mistake(gcap):
    try:
        Struct(gcap, "gcap_run_t")["idd"] = 1
    except Failure as failure:
        print(textwrap.fill(f"a field that is not there: {failure}", 113, subsequent_indent="  "))


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: ctypes_client.py LIBGCAP CUDA_RUNTIME, such as libgcap.so libcudart.so.13")
    cuda = ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)  # libgcap.so links no runtime: it finds this one
    gcap = Gcap(sys.argv[1])
    device = c_void_p()
    check_cuda(cuda.cudaMalloc(byref(device), c_size_t(4)))
    runtime = make_runtime(gcap)
    show_runs(gcap, cuda, runtime, device)
    show_graph(gcap, runtime)
    show_refusal(gcap, runtime, cuda)
    show_mistake(gcap)
    gcap.gcap_runtime_destroy(runtime)
    check_cuda(cuda.cudaFree(device))


if __name__ == "__main__":
    main()
