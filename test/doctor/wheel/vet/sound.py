# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Tests that gcap-doctor vet is silent about: of captures that prove something, and of other graphs. Nothing here is run."""
# ruff: noqa
import unittest

import cupy
import networkx
import numpy as np
import pytest
import torch
import warp as wp


def test_other_inputs_and_eager():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.copy_(torch.randn(4, device="cuda"))
    graph.replay()
    torch.testing.assert_close(y, op(x))


def test_out_and_poison():
    x, out = torch.randn(4, device="cuda"), torch.empty(4, device="cuda")
    op(x, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op(x, out=out)
    out.fill_(float("nan"))
    x.normal_()
    expected = torch.empty_like(out)
    op(x, out=expected)
    graph.replay()
    assert torch.equal(out, expected)


def test_first_the_same_and_then_others():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    graph.replay()
    torch.testing.assert_close(y, reference(x))
    x[:] = 3
    graph.replay()
    torch.testing.assert_close(y, reference(x))


def test_a_loop_that_changes_inputs_at_its_end():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    for step in range(3):
        graph.replay()
        assert (y == reference(x)).all()
        x += 1


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_through_a_fixture(batch, capture_graph):
    x = torch.randn(batch, device="cuda")
    run, y = capture_graph(op, x)
    x.zero_()
    run.replay()
    torch.testing.assert_close(y, reference(x))


def helper_capture(fn, *inputs):
    for _ in range(3):
        fn(*inputs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = fn(*inputs)
    return graph, result


def helper_check(graph, result, x, fn):
    x.copy_(torch.rand_like(x))
    graph.replay()
    torch.testing.assert_close(result, fn(x))


def test_through_helpers():
    x = torch.randn(4, device="cuda")
    graph, y = helper_capture(op, x)
    helper_check(graph, y, x, reference)


def test_graph_that_is_handed_on():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    run_and_compare(graph, x, y)


def test_refused_capture():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="capturing"):
        with torch.cuda.graph(graph):
            x.sum().item()


class SoundTest(unittest.TestCase):
    def setUp(self):
        self.x = torch.randn(4, device="cuda")
        self.out = torch.empty(4, device="cuda")

    def capture(self):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            op(self.x, out=self.out)

    def fill(self, value):
        self.x.fill_(value)

    def test_members(self):
        self.capture()
        for value in (1.0, 2.0):
            self.fill(value)
            self.graph.replay()
            self.assertTrue(torch.allclose(self.out, reference(self.x)))

    @unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
    def test_difference(self):
        self.capture()
        self.out.zero_()
        self.x.mul_(2)
        self.graph.replay()
        self.assertLess((self.out - reference(self.x)).abs().max().item(), 1e-5)

    def test_cleaning_up(self):
        self.capture()
        try:
            self.x.zero_()
            self.graph.replay()
            np.testing.assert_allclose(self.out.cpu().numpy(), reference(self.x).cpu().numpy())
        finally:
            self.graph.reset()

    def test_an_exception_that_passes(self):
        try:
            self.capture()
        except RuntimeError as error:
            raise AssertionError("not capturable") from error
        self.x.zero_()
        self.graph.replay()
        self.assertEqual(self.out.tolist(), reference(self.x).tolist())


def test_cupy_stream():
    stream = cupy.cuda.Stream(non_blocking=True)
    x = cupy.arange(4)
    with stream:
        stream.begin_capture()
        y = x * 2
        graph = stream.end_capture()
    x[...] = 7
    graph.launch(stream)
    stream.synchronize()
    cupy.testing.assert_array_equal(y, x * 2)


def test_warp_capture():
    x, y = make_arrays()
    with wp.ScopedCapture() as capture:
        step(x, y)
    x.fill_(3.0)
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(y.numpy(), reference(x.numpy()))


def test_graphed_callable():
    x = torch.randn(4, device="cuda")
    graphed = torch.cuda.make_graphed_callables(op, (x,))
    x.zero_()
    y = graphed(x)
    torch.testing.assert_close(y, op(x))


def test_manual_begin_and_end():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        y = op(x)
        graph.capture_end()
    refill(x)
    graph.replay()
    assert torch.equal(y, op(x)), "replay differs from eager"


def test_determinism_beside_eager():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.zero_()
    graph.replay()
    first = y.clone()
    torch.testing.assert_close(first, op(x))
    graph.replay()
    assert torch.equal(y, first)


def test_shortest_path_of_graph():
    graph = networkx.Graph()
    graph.add_edge(1, 2)
    assert networkx.shortest_path(graph, 1, 2) == [1, 2]


def test_fx_graph_replay_buffer():
    traced = torch.fx.symbolic_trace(op)
    assert traced.graph is not None


def test_runner_with_cuda_graph():
    runner = CudaGraphRunner(op)
    x = torch.randn(4, device="cuda")
    runner.capture(x)
    other = torch.randn(4, device="cuda")
    torch.testing.assert_close(runner.replay(other), op(other))


def test_use_cuda_graph_option():
    engine = Engine(use_cuda_graph=True)
    assert engine.generate("a") == Engine(enforce_eager=True).generate("a")


def test_allowed():  # gcap-vet: allow never_replayed
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op(torch.zeros(1, device="cuda"))


def test_kept_in_a_list():
    x = torch.randn(4, device="cuda")
    graphs = []
    for _ in range(2):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = op(x)
        graphs.append((graph, y))
    x.zero_()
    for graph, y in graphs:
        graph.replay()
        torch.testing.assert_close(y, op(x))


async def test_async():
    x = torch.randn(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x)
    x.zero_()
    graph.replay()
    await finished()
    torch.testing.assert_close(y, op(x))


def test_replay_buffer():
    buffer = ReplayBuffer(16)
    buffer.add(1)
    buffer.replay()


def test_captured_output(capsys):
    try:
        with captured_stdout() as out:
            print("graph")
    except RuntimeError:
        pass
