# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Tells the recorder which blocks PyTorch and CuPy hand out of their memory, and which they take back.

Both keep memory of the driver's and hand out blocks of it, so the driver sees no free. A graph that points into a block
which was taken back is as wrong as one that points into memory which was freed.

PyTorch tells its blocks in a snapshot, which is taken as a capture ends, before the graph is instantiated: every block
but those of private pools, which graphs keep. What is freed later is told by PyTorch's trace of its
allocator, which is switched on with the first capture. Where a block was allocated is known of PyTorch's history, from the
moment when CUDA is initialized. CuPy has hooks, of the thread that imported it.

A framework that this file does not know is noted, and the program runs on.
"""

import ctypes
import importlib.util
import os
import sys

PYTORCH, CUPY = 7, 8  # gcap_doctor_memory_what_t
OTHER_POOLS_FRAMES = 32  # of a place, the innermost ones

library = None


def attach():
    """The recorder of this process; None if it does not audit."""
    path = os.environ.get("CUDA_INJECTION64_PATH")
    if not path or os.environ.get("GCAP_DOCTOR_AUDIT") != "1":
        return None
    recorder = ctypes.PyDLL(path)  # keeps the interpreter's lock: the recorder reads the Python stack
    recorder.gcap_doctor_blocks_follow.argtypes = [ctypes.c_char_p]
    recorder.gcap_doctor_block_made.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
    recorder.gcap_doctor_block_seen.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
    recorder.gcap_doctor_block_freed.argtypes = [ctypes.c_uint64, ctypes.c_char_p]
    recorder.gcap_doctor_blocks_note.argtypes = [ctypes.c_char_p]
    return recorder


def note(text):
    library.gcap_doctor_blocks_note(text.encode())


# --- PyTorch ----------------------------------------------------------------------------------------------------------


def place_of(block):
    """Where PyTorch's history says that a block was allocated, for the recorder; None if it does not."""
    frames = block.get("frames") or []
    if not frames and block.get("history"):
        frames = block["history"][0].get("frames") or []
    lines = [f"{frame['line']}\t{frame['filename']}\t{frame['name']}\n" for frame in frames
             if frame["filename"] not in ("??", "")]
    return "".join(lines[:OTHER_POOLS_FRAMES]).encode() or None


DEFAULT_POOL = (0, 0)


def tell_blocks(torch):
    """Tells all blocks that PyTorch has handed out, but those of the pools of graphs."""
    for segment in torch.cuda.memory_snapshot():
        address, pool = segment["address"], segment["segment_pool_id"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated" and tuple(pool) == DEFAULT_POOL:
                library.gcap_doctor_block_seen(address, block["size"], PYTORCH, place_of(block))
            address += block["size"]


class Torch:
    """PyTorch, once it is imported."""

    def __init__(self, torch):
        self.torch = torch
        self.is_traced = False
        self.is_unknown = False

    def give_up(self, error):
        if not self.is_unknown:
            note(f"PyTorch {getattr(self.torch, '__version__', '?')} does not tell its blocks as this version of gcap-doctor "
                 f"knows ({type(error).__name__}: {error}), so blocks that PyTorch takes back are not followed.")
        self.is_unknown = True

    def freed(self, address):
        library.gcap_doctor_block_freed(address, b"CUDACachingAllocator.free")

    def trace(self):
        """From now on PyTorch tells what it takes back."""
        if self.is_traced:
            return
        trace = importlib.import_module("torch.cuda._gpu_trace")
        trace.register_callback_for_memory_deallocation(self.freed)
        self.torch._C._activate_gpu_trace()
        self.is_traced = True

    def end(self):
        """A capture ends. The graph does not tell its pool yet."""
        if self.is_unknown:
            return
        try:
            self.trace()
            tell_blocks(self.torch)
        except Exception as error:
            self.give_up(error)

    def keep_history(self):
        try:
            self.torch.cuda.memory._record_memory_history("state", context="state", stacks="python")
        except Exception:  # blocks are followed all the same, without the places where they were allocated
            note("PyTorch keeps no history of its blocks here, so where they were allocated is not known.")

    def follow(self):
        graphs = self.torch.cuda.CUDAGraph
        original = graphs.capture_end

        def capture_end(graph):
            self.end()
            return original(graph)

        capture_end.__doc__ = original.__doc__
        graphs.capture_end = capture_end
        self.torch.cuda._lazy_call(self.keep_history)
        library.gcap_doctor_blocks_follow(b"pytorch")


def follow_torch(torch):
    try:
        if torch.version.cuda is not None:
            Torch(torch).follow()
    except Exception as error:
        Torch(torch).give_up(error)


# --- CuPy -------------------------------------------------------------------------------------------------------------


def follow_cupy(cupy):
    try:

        class Hook(cupy.cuda.MemoryHook):
            name = "gcap-doctor"

            def malloc_postprocess(self, **block):
                library.gcap_doctor_block_made(block["mem_ptr"], block["mem_size"], CUPY, b"MemoryPool.malloc")

            def free_preprocess(self, **block):
                library.gcap_doctor_block_freed(block["mem_ptr"], b"MemoryPool.free")

        Hook().__enter__()
        library.gcap_doctor_blocks_follow(b"cupy")
    except Exception as error:
        note(f"CuPy {getattr(cupy, '__version__', '?')} has no hooks as this version of gcap-doctor knows "
             f"({type(error).__name__}: {error}), so blocks that CuPy takes back are not followed.")


# --- Imports ----------------------------------------------------------------------------------------------------------

FOLLOWED = {"torch": follow_torch, "cupy": follow_cupy}


class Watcher:
    """Finds nothing itself; what another finder finds of the frameworks is followed once it is executed."""

    def __init__(self):
        self.is_asking = False

    def find_spec(self, name, path=None, target=None):
        if name not in FOLLOWED or self.is_asking:
            return None
        self.is_asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.is_asking = False
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            FOLLOWED.pop(name, lambda module: None)(module)

        spec.loader.exec_module = exec_module
        return spec


def start():
    global library
    library = attach()
    if library is not None:
        sys.meta_path.insert(0, Watcher())
