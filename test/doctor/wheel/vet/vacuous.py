# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Tests of captures that pass whatever the graph does, for gcap-doctor vet, which reads them: nothing here is run.

A line that is to be found says so, with the kind. The threads after which a test is written are named above it.
"""
# ruff: noqa
import contextlib
import unittest

import numpy as np
import pytest
import torch
import warp as wp


# flashinfer-ai/flashinfer#4690, local-inference-lab/b12x#112, flashinfer-ai/flashinfer#5278: the output buffer keeps what the
# warm-up wrote, and nothing clears it.
def test_output_of_the_warm_up():
    x = torch.randn(128, 8, device="cuda")
    out = torch.empty_like(x)
    expected = reference(x)
    normalize(x, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        normalize(x, out=out)
    graph.replay()
    torch.testing.assert_close(out, expected, atol=0.01, rtol=0.01)  # finds: stale_output


def test_output_of_the_warm_up_that_is_returned():
    x, weight = torch.randn(8, 8, device="cuda"), torch.randn(8, 8, device="cuda")
    buffers = {"output": torch.empty(8, 8, device="cuda")}
    expected = linear(x, weight, out=buffers["output"]).clone()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = linear(x, weight, out=buffers["output"])
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(captured, expected)  # finds: stale_output


# The same with arguments in a dictionary, of which the source tells only that no input changes.
def test_arguments_in_a_dictionary():
    case = make_case(128, 8)
    expected = reference(case)
    pre_attention(**case)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        actual = pre_attention(**case)
    graph.replay()  # finds: unchanged_inputs
    torch.testing.assert_close(actual, expected)


# The expected values are another name of the buffer that the replay writes.
def test_expected_is_the_output():
    x = torch.randn(16, device="cuda")
    out = torch.empty_like(x)
    gate(x, out=out)
    expected = out
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gate(x, out=out)
    x.copy_(torch.randn(16, device="cuda"))
    graph.replay()
    torch.testing.assert_close(out, expected)  # finds: warm_up_output


def test_expected_is_a_view_of_the_output():
    x = torch.randn(4, 4, device="cuda")
    out = torch.empty_like(x)
    for _ in range(3):
        expected = gate(x, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gate(x, out=out)
    x.zero_()
    graph.replay()
    assert torch.allclose(out.view(-1), expected.reshape(-1))  # finds: warm_up_output


def test_a_tensor_and_itself():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.fill_(2.0)
    graph.replay()
    torch.testing.assert_close(y, y.clone())  # finds: same_tensor


# google-deepmind/mujoco_warp#196, #202 asked for tests of capture; a capture alone runs nothing.
def test_capture_alone():
    m, d = make_model()
    wp.load_module()
    with wp.ScopedCapture() as capture:  # finds: never_replayed
        step(m, d)


class CaptureTest(unittest.TestCase):
    def test_capture_is_not_replayed(self):
        x = torch.randn(4, device="cuda")
        op(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # finds: never_replayed
            y = op(x)
        self.assertIsNotNone(y)

    def capture(self, fn):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = fn()

    def test_through_a_helper(self):
        x = torch.randn(4, device="cuda")
        self.capture(lambda: op(x))
        x.zero_()
        self.graph.replay()  # finds: no_assert

    @unittest.skip("flaky")
    def test_that_is_skipped(self):  # finds: skipped
        x = torch.randn(4, device="cuda")
        self.capture(lambda: op(x))
        x.zero_()
        self.graph.replay()
        self.assertTrue(torch.equal(self.y, op(x)))


# local-inference-lab/vllm#619, NVIDIA/cudnn-frontend#556: any number of replays with the inputs of the capture.
def test_unchanged_inputs():
    static = torch.randn(4, device="cuda")
    eager = layer(static, positions=None)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            layer(static, positions=None)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        captured = layer(static, positions=None)
    for _ in range(3):
        graph.replay()  # finds: unchanged_inputs
        torch.cuda.synchronize()
        assert torch.equal(captured, eager)


def test_the_name_changes_and_not_the_memory():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    expected = op(x)
    x = torch.randn(4, device="cuda")
    graph.replay()  # finds: unchanged_inputs
    torch.testing.assert_close(y, expected)


def test_cleared_output_and_unchanged_inputs():
    x, out = torch.randn(4, device="cuda"), torch.empty(4, device="cuda")
    expected = reference(x)
    op(x, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op(x, out=out)
    out.fill_(float("nan"))
    graph.replay()  # finds: unchanged_inputs
    torch.testing.assert_close(out, expected)


# QuixiAI/SlimServe#24, NVIDIA/TensorRT-LLM#18620: the replay's result is dropped.
def test_nothing_is_asserted():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op(x)
    for _ in range(5):
        graph.replay()  # finds: no_assert
    torch.cuda.synchronize()


def test_asserts_before_the_replay():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    assert y.shape == x.shape
    x.zero_()
    graph.replay()  # finds: no_assert


def test_shapes_alone():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.zero_()
    graph.replay()
    assert y.shape == (4,)  # finds: weak_assert
    assert y.dtype == x.dtype
    assert torch.isfinite(y).all()


def test_the_comparison_is_dropped():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.zero_()
    graph.replay()  # finds: no_assert
    torch.allclose(y, op(x))  # finds: dropped_comparison


def test_a_tuple_is_true():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.zero_()
    graph.replay()
    assert (torch.allclose(y, op(x)), "replay differs")  # finds: always_true


def test_any_result_is_close():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.zero_()
    graph.replay()
    torch.testing.assert_close(y, op(x), rtol=1.0, atol=1e-3)  # finds: loose_tolerance


def test_replays_agree_with_replays():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.zero_()
    graph.replay()
    first = y.clone()
    graph.replay()
    assert torch.equal(y, first)  # finds: replay_against_replay


def test_a_failure_is_caught():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            y = op(x)
        x.zero_()
        graph.replay()
        torch.testing.assert_close(y, op(x))
    except RuntimeError as error:  # finds: swallowed
        print(error)


def test_a_failure_is_suppressed():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with contextlib.suppress(Exception):  # finds: swallowed
        with torch.cuda.graph(graph):
            y = op(x)
        x.zero_()
        graph.replay()
        torch.testing.assert_close(y, op(x))


def test_a_failure_skips():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            y = op(x)
    except Exception:  # finds: skipped_on_failure
        pytest.skip("not capturable here")
    x.zero_()
    graph.replay()
    torch.testing.assert_close(y, op(x))


@pytest.mark.xfail
def test_that_may_fail():  # finds: skipped
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.zero_()
    graph.replay()
    torch.testing.assert_close(y, op(x))


def test_op_with_cuda_graph():  # finds: no_capture
    x = torch.randn(4, device="cuda")
    torch.testing.assert_close(op(x), reference(x))


# PaddlePaddle/Paddle#75078: one input, and a runner that may have run eagerly.
def test_graphed_callable_with_one_input():
    x = torch.randn(4, device="cuda")
    graphed = torch.cuda.make_graphed_callables(op, (x,))
    y = graphed(x)  # finds: no_assert
