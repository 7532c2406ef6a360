# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Operations that are not capturable, for gcap_doctor.check on a GPU. Each says which kinds of finding may come first, and
after which thread the fault is written. The line at fault is marked `# culprit` where check() is to name a line."""
import functools
import random
import threading

import torch

DEVICE = "cuda"
OPERATIONS = {}


def faulty(*kinds, **options):
    """Of a function that returns (fn, inputs...): one of the kinds is to be found first. `alone`: it may take the device
    with it, so it gets a process. `other`: a function that makes the other inputs."""

    def enter(make):
        OPERATIONS[make.__name__] = (make, kinds, options)
        return make

    return enter


def floats(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


# --- Calls that a capture refuses -------------------------------------------------------------------------------------


@faulty("culprit")
def item():
    """RobTand/gridbook#47, vllm-project/vllm#42604"""

    def fn(x):
        return x * x.sum().item()  # culprit

    return fn, floats(64)


@faulty("culprit")
def branch():
    """deepseek-ai/DeepGEMM#414, deepseek-ai/DeepGEMM#421: values of the device that Python asserts"""

    def fn(x):
        if (x > 0).any():  # culprit
            return x * 2
        return x * 3

    return fn, floats(64)


@faulty("culprit")
def mask():
    def fn(x):
        return x[x > 0].sum()  # culprit

    return fn, floats(64)


@faulty("culprit")
def nonzero():
    def fn(x):
        return x.nonzero().sum()  # culprit

    return fn, floats(64)


@faulty("culprit")
def unique():
    """pytorch/pytorch#196133"""

    def fn(x):
        return torch.unique(x).sum()  # culprit

    return fn, torch.randint(0, 9, (64,), device=DEVICE)


@faulty("culprit")
def repeat_interleave():
    def fn(x, counts):
        return torch.repeat_interleave(x, counts).sum()  # culprit

    return fn, floats(8), torch.arange(8, device=DEVICE)


@faulty("culprit")
def to_cpu():
    def fn(x):
        return x.cpu() * 2  # culprit

    return fn, floats(64)


@faulty("culprit")
def tolist():
    """vllm-project/vllm#42604: a plan that the host makes of lengths on the device"""

    def fn(x, lengths):
        longest = max(lengths.tolist())  # culprit
        return x[:longest] * 2

    return fn, floats(64), torch.arange(1, 9, device=DEVICE)


@faulty("culprit")
def synchronize():
    def fn(x):
        y = x * 2
        torch.cuda.synchronize()  # culprit
        return y

    return fn, floats(64)


@faulty("culprit")
def stream_synchronize():
    """flashinfer-ai/flashinfer#4564: a descriptor that is uploaded and waited for"""

    def fn(x):
        y = x * 2
        torch.cuda.current_stream().synchronize()  # culprit
        return y

    return fn, floats(64)


@faulty("culprit")
def event_synchronize():
    event = torch.cuda.Event()

    def fn(x):
        y = x * 2
        event.record()
        event.synchronize()  # culprit
        return y

    return fn, floats(64)


@faulty("culprit")
def new_tensor():
    """IBM/vLLM-Hook#6: a tensor that is made on the host in a hook"""

    def fn(x):
        return x * torch.tensor([1.0, 2.0], device=DEVICE)  # culprit

    return fn, floats(4, 2)


@faulty("culprit", "pageable", "freed_memory")
def pageable_copy():
    host = torch.randn(64)

    def fn(x):
        return x + host.to(DEVICE, non_blocking=True)  # culprit

    return fn, floats(64)


@faulty("not_repeatable", "culprit")
def generator():
    source = torch.Generator(device=DEVICE)
    source.manual_seed(1)

    def fn(x):
        return x + torch.rand(64, generator=source, device=DEVICE)

    return fn, floats(64)


@faulty("refused")
def refuses():
    def fn(x):
        if torch.cuda.is_current_stream_capturing():
            raise NotImplementedError("this backend has no support for graphs")  # culprit
        return x * 2

    return fn, floats(64)


# --- Streams and threads ----------------------------------------------------------------------------------------------


@faulty("unjoined")
def unjoined():
    """local-inference-lab/vllm#619: a gate that overlaps on a side stream"""
    side = torch.cuda.Stream()
    gate = floats(64)

    def fn(x):
        y = x * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.mul(x, 3, out=gate)
        return y

    return fn, floats(64)


@faulty("escaped")
def own_stream():
    side = torch.cuda.Stream()
    result = floats(64)

    def fn(x):
        y = x + 1
        with torch.cuda.stream(side):
            torch.mul(x, 3, out=result)  # culprit
        return y, result

    return fn, floats(64)


@faulty("escaped", "empty_graph", "culprit")
def default_stream():
    result = floats(64)

    def fn(x):
        with torch.cuda.stream(torch.cuda.default_stream()):
            torch.mul(x, 3, out=result)
        return result

    return fn, floats(64)


@faulty("culprit", "unjoined")
def waits_for_uncaptured_work():
    side = torch.cuda.Stream()
    result = floats(64)

    def fn(x):
        with torch.cuda.stream(side):
            torch.mul(x, 3, out=result)
        torch.cuda.current_stream().wait_stream(side)  # culprit
        return result + x

    return fn, floats(64)


@faulty("unwritten", "differs", "frozen", "culprit")
def other_thread():
    result = floats(64)

    def fn(x):
        y = x + 1

        def work():
            torch.mul(x, 3, out=result)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if not torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize()
        return y, result * 1

    return fn, floats(64)


# --- Values of the host -----------------------------------------------------------------------------------------------


@faulty("frozen")
def scale_of_the_host():
    def fn(x, scale):
        return x * float(scale)

    return fn, floats(64), torch.tensor(2.0)


@faulty("frozen", other=lambda: (floats(64), torch.tensor(20)))
def length_of_the_host():
    """paiml/aprender#2030: a graph that is keyed by too little"""

    def fn(x, length):
        return x[: int(length)].sum()

    return fn, floats(64), torch.tensor(40)


@faulty("frozen")
def number_of_the_host():
    def fn(x):
        return x * random.random()

    return fn, floats(64)


@faulty("not_repeatable")
def counter_of_the_host():
    calls = []

    def fn(x):
        calls.append(None)
        return x * len(calls)

    return fn, floats(64)


@faulty("differs", "frozen", "freed_memory")
def plan_in_pinned_memory():
    """alibaba/rtp-llm#1254: the plan is made on the host, and each replay uploads the last one"""
    plan = torch.zeros(64).pin_memory()
    on_device = torch.zeros(64, device=DEVICE)

    def fn(x, lengths):
        plan.copy_(lengths * 2)
        on_device.copy_(plan, non_blocking=True)
        return x * on_device

    return fn, floats(64), torch.rand(64) + 1


@faulty("differs")
def other_branch_in_a_capture():
    def fn(x):
        return x * (3 if torch.cuda.is_current_stream_capturing() else 2)

    return fn, floats(64)


@faulty("empty_graph")
def nothing_in_a_capture():
    result = floats(64)

    def fn(x):
        if not torch.cuda.is_current_stream_capturing():
            torch.mul(x, 2, out=result)
        return result

    return fn, floats(64)


# --- Workspaces -------------------------------------------------------------------------------------------------------


@faulty("not_reset", "differs")
def counter_that_is_zeroed_once():
    """ROCm/aiter#4916, ROCm/aiter#4715, deepseek-ai/DeepGEMM#451: a semaphore that is zeroed where it is allocated"""

    @functools.lru_cache(None)
    def semaphore():
        return torch.zeros(1, device=DEVICE)

    def fn(x):
        if not torch.cuda.is_current_stream_capturing():
            semaphore().zero_()
        semaphore().add_(1)
        return x * semaphore()

    return fn, floats(64)


@faulty("uninitialised", "differs")
def workspace_that_nobody_clears():
    def fn(x):
        workspace = torch.empty(64, device=DEVICE)
        if not torch.cuda.is_current_stream_capturing():
            workspace.zero_()
        return workspace + x

    return fn, floats(64)


@faulty("unwritten", "uninitialised")
def output_in_part():
    def fn(x):
        y = torch.empty(64, device=DEVICE)
        if not torch.cuda.is_current_stream_capturing():
            y[32:].copy_(x[32:])
        y[:32].copy_(x[:32])
        return y

    return fn, floats(64)


class GrowingWorkspace:
    """flashinfer-ai/flashinfer#4399, flashinfer-ai/flashinfer#4553: a workspace that eager runs replace."""

    def __init__(self, count):
        self.count = count
        self.workspace = torch.empty(count, device=DEVICE)

    def fresh(self):
        if not torch.cuda.is_current_stream_capturing():
            self.workspace = torch.empty(self.count, device=DEVICE)


class WritesWorkspace(GrowingWorkspace):
    def __call__(self, x):
        self.fresh()
        torch.mul(x, 3, out=self.workspace)
        return self.workspace + 1


class ReadsTable(GrowingWorkspace):
    def __call__(self, x):
        self.fresh()
        if not torch.cuda.is_current_stream_capturing():
            torch.arange(self.count, out=self.workspace)
        return self.workspace + x


@faulty("overwrites", "freed_memory", "replay_failed", alone=True)
def workspace_that_is_replaced():
    return WritesWorkspace(1 << 20), floats(1 << 20)


@faulty("freed_memory", "overwrites", "replay_failed", alone=True)
def table_that_is_replaced():
    return ReadsTable(1 << 20), floats(1 << 20)


@faulty("replay_failed", "uninitialised", "differs", alone=True)
def index_that_is_not_checked():
    """deepseek-ai/DeepGEMM#444: reads where a stale descriptor points to"""
    table = floats(64)

    def fn(x):
        index = torch.empty(64, dtype=torch.int64, device=DEVICE)
        if not torch.cuda.is_current_stream_capturing():
            torch.arange(64, out=index)
        return table.gather(0, index) + x

    return fn, floats(64)


@faulty("kept")
def result_that_is_kept():
    """ROCm/aiter#5393: a cache that fills during a capture"""
    cache = {}

    def fn(x):
        y = x * 2
        if torch.cuda.is_current_stream_capturing():
            cache["y"] = y
        return y + 1

    return fn, floats(64)


# --- No truth to compare with -----------------------------------------------------------------------------------------


@faulty("nothing_compared")
def no_result():
    def fn(x):
        x.sum()

    return fn, floats(64)


@faulty("eager_failed")
def wrong_shapes():
    def fn(x, y):
        return x @ y  # culprit

    return fn, floats(4, 3), floats(4, 3)
