# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""A device with graphs, in plain Python, so that each step of the procedure can fail where there is no GPU.

The idea: memory is a dictionary from addresses to lists of numbers. An operator runs at once, or, while the
current stream captures, is kept as a closure over addresses: what a replay does is what those closures do to the memory
that is there then. Tensors give their memory back when Python drops them: to the allocator's free list, or to the graph's
pool. As on a device, a poisoned element is NaN.
"""
import gc
import math
import struct
import weakref

from gcap_doctor.capturable.procedure import Backend, CaptureFailed, Difference
from gcap_doctor.capturable.report import Finding

# What the poison of a byte reads as: the bits of a NaN of its own, so that "never written" can be told from any NaN.
PATTERNS = {0xFF: struct.unpack("<d", b"\xff" * 8)[0], 0x00: 0.0}


class DeviceError(Exception):
    pass


class Tensor:
    def __init__(self, device, address, size):
        self.device, self.address, self.size = device, address, size
        device.used[address] = size
        weakref.finalize(self, device.free, address)

    @property
    def values(self):
        return self.device.memory[self.address]

    def __len__(self):
        return self.size


class Copy:
    """Values of a tensor, in memory that no graph knows."""

    def __init__(self, values):
        self.values = list(values)

    def __len__(self):
        return len(self.values)


class Graph:
    def __init__(self):
        self.nodes, self.outputs, self.pool = [], None, []

    @property
    def is_empty(self):
        return not self.nodes


class Device:
    """`streams` are names; "side" is the one that captures."""

    def __init__(self):
        self.memory, self.used, self.free_list, self.pooled = {}, {}, [], set()
        self.stream, self.capturing, self.watched = "main", None, []
        self.next_address, self.random, self.lost = 1, 0, False
        self.forked = set()

    # --- Memory ------------------------------------------------------------------------------------------------------

    def allocate(self, size):
        pool = self.capturing.pool if self.capturing else None
        for address in [] if pool is not None else self.free_list:
            if len(self.memory[address]) == size:
                self.free_list.remove(address)
                return Tensor(self, address, size)
        address, self.next_address = self.next_address, self.next_address + 1
        self.memory[address] = [PATTERNS[0xFF]] * size
        if pool is not None:
            pool.append(address)
            self.pooled.add(address)
        return Tensor(self, address, size)

    def free(self, address):
        self.used.pop(address, None)
        if address not in self.pooled:
            self.free_list.append(address)

    def tensor(self, values):
        made = self.allocate(len(values))
        self.memory[made.address][:] = list(values)
        return made

    # --- Operators ---------------------------------------------------------------------------------------------------

    def launch(self, work, stream=None):
        """Runs work(memory), or keeps it where the stream captures."""
        stream = stream or self.stream
        if self.lost:
            raise DeviceError("the device is lost")
        if self.capturing is not None and (stream == "side" or stream in self.forked):
            self.capturing.nodes.append(work)
        else:
            if self.capturing is not None:
                self.watched.append("escaped")
            work(self.memory)

    def map(self, function, *tensors, out=None, stream=None):
        out = out if out is not None else self.allocate(len(tensors[0]))
        addresses, target = [each.address for each in tensors], out.address

        def work(memory):
            rows = zip(*(memory[each] for each in addresses))
            # Arithmetic gives the one NaN, whatever NaN came in.
            memory[target][:] = [value if value == value else math.nan for value in (function(*row) for row in rows)]

        self.launch(work, stream)
        return out

    def read(self, tensor):
        """As .item(): refused while a capture is open."""
        if self.capturing is not None:
            raise DeviceError("CUDA error: operation not permitted when stream is capturing")
        return tensor.values[0]

    def draw(self, size):
        out = self.allocate(size)

        def work(memory):
            for index in range(size):
                self.random = (self.random * 1103515245 + 12345) % 2147483648
                memory[out_address][index] = self.random / 2147483648

        out_address = out.address
        self.launch(work)
        return out


def same_bits(left, right):
    return struct.pack("<d", left) == struct.pack("<d", right)


class FakeBackend(Backend):
    """`watched`: what watch() finds. `refuse`: an exception that each replay raises."""

    def __init__(self, device, findings=(), refuse=None):
        self.device, self.planned, self.refuse, self.seen = device, list(findings), refuse, []
        self.states = []

    def is_tensor(self, leaf):
        return isinstance(leaf, (Tensor, Copy))

    def describe(self, tensor):
        return f"float64 [{len(tensor)}]"

    def state(self, fn):
        return self.states

    def identity(self, tensor):
        return tensor.address

    def copy(self, tensor):
        return Copy(tensor.values)

    def assign(self, tensor, values):
        tensor.values[:] = values.values

    def other(self, tensor, evenly):
        return Copy(value * (0.75 if evenly else 0.5 + index / 64) for index, value in enumerate(tensor.values))

    def compare(self, actual, expected, tolerance):
        actual, expected = actual.values, expected.values
        if len(actual) != len(expected):
            return Difference(text=f"is float64 [{len(actual)}] and in the eager run float64 [{len(expected)}]")
        same = [left == right or (left != left and right != right) for left, right in zip(actual, expected)]
        if all(same):
            return None
        rtol, atol, noise = tolerance or (0, 0, 0)
        close = [equal or abs(left - right) <= (atol or 0) + noise + (rtol or 0) * abs(right)
                 for equal, left, right in zip(same, actual, expected)]
        known = [abs(left - right) for equal, left, right in zip(same, actual, expected)
                 if not equal and math.isfinite(left - right)]
        bad = [index for index, fine in enumerate(close) if not fine]
        largest = max(known) if known else None
        if not bad:
            return Difference(count=0, of=len(actual), largest=largest)
        return Difference((bad[0],), actual[bad[0]], expected[bad[0]], largest, len(bad), len(actual),
                          sum(same_bits(actual[index], PATTERNS[0xFF]) for index in bad),
                          sum(left != left and right == right for left, right in zip(actual, expected)))

    def seed(self, number):
        self.device.random = number

    def restore_seeds(self):
        self.device.random = 0

    def eager(self, fn, inputs):
        return self._on("side", lambda: fn(*inputs))

    def _on(self, stream, call):
        before, self.device.stream = self.device.stream, stream
        try:
            return call()
        finally:
            self.device.stream = before

    def capture(self, fn, inputs):
        graph = Graph()
        self.device.capturing, self.device.forked = graph, set()
        try:
            graph.outputs = self._on("side", lambda: fn(*inputs))
        except Exception as error:
            raise CaptureFailed(Finding("culprit", str(error))) from None
        finally:
            self.device.capturing = None
        return graph

    def watch(self, fn, inputs):
        return self.planned

    def poison(self, graph, tensors, byte):
        self.seen.append(("poison", byte))
        for address in graph.pool + [tensor.address for tensor in tensors]:
            self.device.memory[address][:] = [PATTERNS[byte]] * len(self.device.memory[address])

    def replay(self, graph, times, elsewhere):
        self.seen.append(("replay", times, elsewhere))
        if self.refuse:
            raise self.refuse
        for _ in range(times):
            for node in graph.nodes:
                self._on("elsewhere" if elsewhere else "side", lambda node=node: node(self.device.memory))

    def churn(self, give_back):
        self.seen.append(("churn", give_back))
        device = self.device
        taken = [device.allocate(len(device.memory[address])) for address in list(device.free_list)]
        for tensor in taken:
            tensor.values[:] = [PATTERNS[0xFF]] * len(tensor)
        return Churned(taken)

    def held_bytes(self, graph):
        return 8 * sum(len(self.device.memory[address]) for address in graph.pool)

    def release(self, graph):
        graph.outputs = None
        gc.collect()
        kept = 8 * sum(size for address, size in self.device.used.items() if address in graph.pool)
        return kept

    def is_lost(self):
        return self.device.lost


class Churned:
    def __init__(self, taken):
        self.taken = taken

    def damaged(self):
        return 8 * sum(not same_bits(value, PATTERNS[0xFF]) for tensor in self.taken for value in tensor.values)

    def release(self):
        self.taken = []
