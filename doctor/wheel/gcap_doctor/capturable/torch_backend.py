# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The procedure's device is PyTorch's: streams, captures, the caching allocator, random numbers.

The idea: the operation warms up, runs and is captured on one stream of the check's own, so that what libraries keep by
stream is there before the capture. The graph's memory is its private pool, which the allocator's snapshot names; memory is
poisoned through a tensor that is laid over an address. Nothing of this module is needed to import gcap_doctor.

Invariants: only memory of the pool and tensors of the procedure's are written; what PyTorch keeps open after a capture
that failed (its pool, its generator) is closed again. Locking: none.
"""

import gc
import os
import sys
import warnings

from gcap_doctor.capturable import capture_errors, places, torch_state
from gcap_doctor.capturable.procedure import Backend, CaptureFailed, Difference
from gcap_doctor.capturable.report import CannotCheck

OLDEST = (2, 1)
# rtol and atol by data type: those of torch.testing.assert_close.
TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
              "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}
MOST_CHURNED = 1 << 30  # bytes that a churn takes
SMALL_BLOCKS = [512 << shift for shift in range(12)]  # of the allocator's pool of small blocks, beside the free ones
POISON = 0xFF


def make(mode, inputs):
    """The backend for PyTorch's current device; raises CannotCheck, with the reason, where there is none."""
    try:
        import torch
    except ImportError as error:
        raise CannotCheck(f"PyTorch cannot be imported ({error}): check() needs it; install torch, with CUDA") from None
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST:
        raise CannotCheck(f"PyTorch is {torch.__version__}: expected {OLDEST[0]}.{OLDEST[1]} or later")
    if not torch.backends.cuda.is_built():
        raise CannotCheck(f"PyTorch {torch.__version__} is built without CUDA: install a build with CUDA")
    if not torch.cuda.is_available():
        raise CannotCheck("PyTorch finds no CUDA device: run where there is one, with NVIDIA's driver and without an empty "
                          "CUDA_VISIBLE_DEVICES")
    if torch.cuda.get_allocator_backend() != "native":
        raise CannotCheck(f"PyTorch allocates with {torch.cuda.get_allocator_backend()}: expected native, since no other "
                          "backend tells its blocks")
    if torch.cuda.is_current_stream_capturing():
        raise CannotCheck("the current stream captures: expected check() outside of a capture")
    return TorchBackend(torch, mode, inputs)


class _Memory:
    """What torch.as_tensor() lays a tensor of bytes over."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 2}


class _Graph:
    def __init__(self, torch):
        self.graph = torch.cuda.CUDAGraph()
        self.pool = tuple(torch.cuda.graph_pool_handle())
        self.outputs, self.is_empty, self.segments = None, False, None


# Graphs whose capture failed: allocators that PyTorch did not tell of the end may still ask them.
_FAILED = []


class _Churned:
    def __init__(self, blocks):
        self.blocks = blocks

    def damaged(self):
        return sum(int((block != POISON).sum()) for block in self.blocks)

    def release(self):
        self.blocks = []


def _index_of(flat, shape):
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


class TorchBackend(Backend):
    def __init__(self, torch, mode, inputs):
        self.torch, self.mode = torch, mode
        self.folders = (os.path.dirname(torch.__file__),) + tuple(
            os.path.dirname(module.__file__) for name, module in list(sys.modules.items())
            if name in ("triton", "functorch") and getattr(module, "__file__", None))
        self.device = torch.device("cuda", torch_state.device_of(torch, inputs))
        self.stream = torch.cuda.Stream(self.device)
        self.elsewhere = torch.cuda.Stream(self.device)
        self.seeds = None
        self.own_gradients = {}
        self.pools = []  # of the graphs that were captured and ended

    # --- Tensors -----------------------------------------------------------------------------------------------------

    def is_tensor(self, leaf):
        return isinstance(leaf, self.torch.Tensor)

    def describe(self, tensor):
        return f"{str(tensor.dtype).replace('torch.', '')} {list(tensor.shape)} on {tensor.device}"

    def state(self, fn):
        return torch_state.tensors_of(self.torch, fn)

    def identity(self, tensor):
        if tensor.layout != self.torch.strided or tensor.numel() == 0:
            return id(tensor)
        return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype

    def _dense(self, tensor):
        """The tensor with each element of memory once, as an expanded one has more."""
        tensor = tensor.detach()
        if tensor.layout != self.torch.strided or 0 not in tensor.stride():
            return tensor
        return tensor[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())]

    def copy(self, tensor):
        return self._dense(tensor).clone(memory_format=self.torch.preserve_format)

    def assign(self, tensor, values):
        with self._writing(tensor):
            dense = self._dense(tensor)
            dense.copy_(values[tuple(slice(0, size) for size in dense.shape)] if values.shape != dense.shape else values)

    def _writing(self, tensor):
        """A tensor of inference mode is written in inference mode alone."""
        return self.torch.inference_mode() if tensor.is_inference() else self.torch.no_grad()

    def other(self, tensor, evenly):
        tensor = self._dense(tensor)
        if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
            return None
        if evenly:
            return tensor * 0.75
        wide = tensor if tensor.element_size() > 1 else tensor.float()
        index = self.torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape)
        factor = 0.5 + (index * 389 % 1024) / 2048
        other = (wide * factor.to(wide.dtype)).to(tensor.dtype)
        return other if not self._is_same(other, tensor) else self.torch.full_like(tensor, 0.25)

    def _is_same(self, left, right):
        return bool(self._same(left, right).all())

    def _same(self, left, right):
        if left.is_floating_point() and left.element_size() == 1:
            left, right = left.float(), right.float()
        if not (left.is_floating_point() or left.is_complex()):
            return left == right
        return (left == right) | (left.isnan() & right.isnan())

    def compare(self, actual, expected, tolerance):
        actual, expected = self._dense(actual), expected.detach()
        if actual.layout != self.torch.strided:
            actual, expected = actual.to_dense(), expected.to_dense()
        if self.describe(actual) != self.describe(expected):
            return Difference(text=f"is {self.describe(actual)} and in the eager run {self.describe(expected)}")
        if actual.dtype == self.torch.bool:  # poisoned ones are no bools
            actual, expected = actual.view(self.torch.uint8), expected.view(self.torch.uint8)
        with self.torch.no_grad():
            same = self._same(actual, expected)
            return None if bool(same.all()) else self._difference(actual, expected, same, tolerance)

    def _tolerance(self, dtype, tolerance):
        rtol, atol = TOLERANCES.get(str(dtype).replace("torch.", ""), (0, 0))
        if tolerance is None:
            return 0, 0
        given_rtol, given_atol, noise = tolerance
        if given_rtol is not None or given_atol is not None:
            rtol, atol = given_rtol or 0, given_atol or 0
        return rtol, atol + noise

    def _difference(self, actual, expected, same, tolerance):
        torch = self.torch
        wide = torch.complex128 if actual.is_complex() else torch.float64
        left, right = actual.to(wide), expected.to(wide)
        distance = (left - right).abs()
        rtol, atol = self._tolerance(actual.dtype, tolerance)
        within = distance <= atol + rtol * right.abs() if rtol or atol else torch.zeros_like(same)
        bad = ~(same | within)
        known = distance[~same & distance.isfinite()]
        largest = float(known.max()) if known.numel() else None
        count = int(bad.sum())
        if not count:
            return Difference(count=0, of=actual.numel(), largest=largest)
        flat = int(bad.flatten().nonzero()[0])
        index = _index_of(flat, actual.shape)
        raw = actual.contiguous().reshape(-1).view(torch.uint8).reshape(actual.numel(), -1)
        poisoned = int(((raw == POISON).all(1) & bad.flatten()).sum())
        nans = int((left.isnan() & ~right.isnan()).sum())
        return Difference(index, actual[index].item(), expected[index].item(), largest, count, actual.numel(), poisoned,
                          nans)

    # --- Gradients ---------------------------------------------------------------------------------------------------

    def _leaves(self, buffers):
        return [(name, tensor) for name, tensor in buffers if tensor.requires_grad and tensor.is_leaf]

    def begin(self, buffers):
        self.own_gradients = {id(tensor): tensor.grad for _, tensor in self._leaves(buffers)}
        return [(f"gradient of {name}", tensor.grad) for name, tensor in self._leaves(buffers) if tensor.grad is not None]

    def gradients(self, buffers):
        return [(f"gradient of {name}", tensor.grad) for name, tensor in self._leaves(buffers)
                if tensor.grad is not None and tensor.grad is not self.own_gradients.get(id(tensor))]

    def forget_gradients(self, buffers):
        self.end(buffers)

    def end(self, buffers):
        for _, tensor in self._leaves(buffers):
            if id(tensor) in self.own_gradients:
                tensor.grad = self.own_gradients[id(tensor)]

    # --- Random numbers ----------------------------------------------------------------------------------------------

    def seed(self, number):
        if self.seeds is None:
            self.seeds = self.torch.get_rng_state(), self.torch.cuda.get_rng_state(self.device)
        self.torch.manual_seed(number)

    def restore_seeds(self):
        if self.seeds is None or self.is_lost():
            return
        self.torch.set_rng_state(self.seeds[0])
        self.torch.cuda.set_rng_state(self.seeds[1], self.device)

    # --- Runs --------------------------------------------------------------------------------------------------------

    def _on(self, stream, call):
        """Runs the call on the stream, after all that the device was given, and waits."""
        torch = self.torch
        torch.cuda.synchronize(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            result = call()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        torch.cuda.synchronize(self.device)
        return result

    def eager(self, fn, inputs):
        return self._on(self.stream, lambda: fn(*inputs))

    def _capture(self, graph, call):
        """Captures what the call does; its result, and whether PyTorch says that the graph is empty, go to the graph."""
        torch = self.torch
        torch.cuda.synchronize(self.device)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.cuda.device(self.device), torch.cuda.graph(graph.graph, pool=graph.pool, stream=self.stream,
                                                                  capture_error_mode=self.mode):
                graph.outputs = call()
        for each in caught:
            if "CUDA Graph is empty" in str(each.message):
                graph.is_empty = True
            else:
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)

    def capture(self, fn, inputs):
        graph, current = _Graph(self.torch), self.torch.cuda.current_stream(self.device)
        try:
            self._capture(graph, lambda: fn(*inputs))
        except Exception as error:
            finding = capture_errors.explain(error, self.folders, places.of_function(fn))
            self._clean_up(graph, current, error)
            raise CaptureFailed(finding) from None
        return graph

    def _clean_up(self, graph, current, error):
        """After a capture that failed, PyTorch may still be on its stream, allocate into its pool and draw for it."""
        torch = self.torch
        torch.cuda.set_stream(current)
        for each in capture_errors.chain(error):
            each.__traceback__ = None  # its frames hold tensors
        graph.outputs = None
        _FAILED.append(graph.graph)
        if not self._has_ended(graph):
            for call in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
                self._attempt(lambda call=call: getattr(torch._C, call)(self.device.index, graph.pool))
        self._attempt(graph.graph.reset)
        gc.collect()
        if not self._attempt(lambda: torch.rand(1, device=self.device)):
            generator = torch.cuda.default_generators[self.device.index]
            self._attempt(lambda: generator.graphsafe_set_state(generator.clone_state()))
        self._attempt(lambda: torch.cuda.synchronize(self.device))

    def _has_ended(self, graph):
        """Whether PyTorch knows of the capture's end: then it releases the pool itself."""
        return self._attempt(graph.graph.pool)

    def _attempt(self, call):
        """Whether a call of the cleaning up succeeded; which are needed, and which there are, differs by version."""
        try:
            call()
        except Exception:
            return False
        return True

    def watch(self, fn, inputs):
        from gcap_doctor.capturable import torch_watch

        graph, current = _Graph(self.torch), self.torch.cuda.current_stream(self.device)
        watcher = torch_watch.Watcher(self.torch, self.folders)

        def work():
            with watcher:  # PyTorch's own begin of a capture fills the seeds of random numbers
                return fn(*inputs)

        try:
            self._capture(graph, work)
        except Exception as error:
            found = watcher.not_watched(error)
            self._clean_up(graph, current, error)
            return found
        self._end(graph)
        return watcher.findings()

    # --- Memory ------------------------------------------------------------------------------------------------------

    def _segments(self, graph):
        if graph.segments is None:
            graph.segments = [segment for segment in self.torch.cuda.memory_snapshot()
                              if tuple(segment.get("segment_pool_id", ())) == graph.pool]
        return graph.segments

    def poison(self, graph, tensors, byte):
        torch = self.torch
        for tensor in tensors:
            if tensor.layout == torch.strided and tensor.numel():
                with self._writing(tensor):
                    self._fill(tensor, byte)
        with torch.no_grad():
            for segment in self._segments(graph):
                torch.as_tensor(_Memory(segment["address"], segment["total_size"]), device=self.device).fill_(byte)
        torch.cuda.synchronize(self.device)

    def _fill(self, tensor, byte):
        dense = self._dense(tensor)
        bytes_of = self.torch.full((dense.numel() * dense.element_size(),), byte, dtype=self.torch.uint8,
                                   device=dense.device)
        dense.copy_(bytes_of.view(dense.dtype).reshape(dense.shape))

    def replay(self, graph, times, elsewhere):
        def call():
            for _ in range(times):
                graph.graph.replay()

        self._on(self.elsewhere if elsewhere else self.stream, call)

    def _free_sizes(self):
        """Sizes of the blocks that the allocator holds free, of no graph's pool, by stream."""
        sizes = {}
        for segment in self.torch.cuda.memory_snapshot():
            if segment["device"] == self.device.index and tuple(segment.get("segment_pool_id", (0, 0))) == (0, 0):
                free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
                sizes.setdefault(segment["stream"], []).extend(free)
        return sizes

    def churn(self, give_back):
        torch = self.torch
        torch.cuda.synchronize(self.device)
        sizes = self._free_sizes()
        if give_back:
            torch.cuda.empty_cache()
        left, blocks = MOST_CHURNED, []
        for stream, free in sizes.items():
            with torch.cuda.stream(torch.cuda.ExternalStream(stream, self.device) if stream
                                   else torch.cuda.default_stream(self.device)):
                for size in sorted(free) + SMALL_BLOCKS:
                    if size <= left:
                        left -= size
                        blocks.append(torch.full((size,), POISON, dtype=torch.uint8, device=self.device))
        torch.cuda.synchronize(self.device)
        return _Churned(blocks)

    def held_bytes(self, graph):
        return sum(segment["total_size"] for segment in self._segments(graph))

    def release(self, graph):
        self._end(graph)
        kept = self._kept_bytes()
        if kept:
            gc.collect()
            kept = self._kept_bytes()
        return kept

    def _end(self, graph):
        graph.outputs = None
        self.torch.cuda.synchronize(self.device)
        graph.graph.reset()  # the graph's own tensors, as those of its generators, go with it
        self.pools.append(graph.pool)

    def _kept_bytes(self):
        """Bytes in use of the pools of all graphs that ended: what an operation keeps may be of the watched capture."""
        return sum(block["size"] for segment in self.torch.cuda.memory_snapshot()
                   if tuple(segment.get("segment_pool_id", ())) in self.pools
                   for block in segment["blocks"] if block["state"] == "active_allocated")

    def is_lost(self):
        try:
            self.torch.cuda.synchronize(self.device)
        except Exception:
            return True
        return False
