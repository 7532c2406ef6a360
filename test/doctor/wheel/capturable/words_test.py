# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What check() says of an exception of a capture, where it finds the user's line, and which state it finds: with stand-ins
for PyTorch's classes."""
import functools
import os
import sys
import types
import unittest

from gcap_doctor.capturable import capture_errors, places, torch_state, tree

HERE = os.path.abspath(__file__)

# What CUDA and PyTorch say, the kind and the rule that it means.
MESSAGES = (
    ("CUDA error: operation not permitted when stream is capturing", "culprit", "R11"),
    ("CUDA error: operation failed due to a previous error during capture", "culprit", None),
    ("CUDA error: operation would result in a merge of separate capture sequences", "culprit", "R16"),
    ("CUDA error: capturing stream has unjoined work", "unjoined", "R6"),
    ("CUDA error: dependency created on uncaptured work in another stream", "culprit", "R17"),
    ("CUDA error: operation would make the legacy stream depend on a capturing blocking stream", "culprit", "R15"),
    ("CUDA error: operation not permitted on an event last recorded in a capturing stream", "culprit", "R13"),
    ("CUDA error: attempt to terminate a thread-local capture sequence from another thread", "culprit", "R4"),
    ("Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned.", "culprit", "R38"),
    ("Offset increment outside graph capture encountered unexpectedly.", "culprit", None),
    ("Cannot call CUDAGeneratorImpl::current_seed during CUDA graph capture.", "culprit", None),
    ("CUDA error: out of memory", "culprit", None),
    ("this backend has no support for graphs", "refused", None),
)


def failing(error):
    raise error


class CaptureErrors(unittest.TestCase):
    def explain(self, call):
        try:
            call()
        except Exception as error:
            return capture_errors.explain(error, (), ("operation", "ops.py", 7))
        raise AssertionError("no exception")

    def test_each_message(self):
        for text, kind, rule in MESSAGES:
            finding = self.explain(lambda text=text: failing(RuntimeError(text + "\nmore lines")))
            self.assertEqual((finding.kind, finding.rule), (kind, rule), text)
            self.assertIn(f"RuntimeError: {text}", finding.sentence)
            self.assertNotIn("more lines", finding.sentence)
            self.assertTrue(finding.remedy, text)
            self.assertEqual((finding.file, finding.function), (HERE, "failing"))

    def test_rules_are_ids(self):
        rules = {row[2] for row in capture_errors.ROWS if row[2]}
        for rule in rules:
            self.assertRegex(rule, r"^R\d+$")

    def test_the_first_of_a_chain_decides(self):
        def ends_a_broken_capture():
            try:
                failing(RuntimeError("CUDA error: operation not permitted when stream is capturing"))
            finally:
                raise RuntimeError("CUDA error: operation failed due to a previous error during capture")

        finding = self.explain(ends_a_broken_capture)
        self.assertEqual(finding.rule, "R11")
        self.assertEqual(finding.function, "failing")

    def test_an_exception_that_was_handled_before_does_not(self):
        def handles():
            try:
                failing(KeyError("cache"))
            except KeyError:
                failing(RuntimeError("CUDA error: capturing stream has unjoined work"))

        self.assertEqual(self.explain(handles).kind, "unjoined")

    def test_a_place_that_is_not_the_users(self):
        try:
            failing(RuntimeError("CUDA error: unknown"))
        except RuntimeError as error:
            finding = capture_errors.explain(error, (os.path.dirname(HERE),), ("operation", "ops.py", 7))
        self.assertEqual((finding.file, finding.line, finding.function), ("ops.py", 7, "operation"))

    def test_an_exception_without_words(self):
        self.assertIn("ValueError", self.explain(lambda: failing(ValueError())).sentence)


class Places(unittest.TestCase):
    def test_of_functions(self):
        def local(x):
            return x

        line = local.__code__.co_firstlineno
        for fn in (local, functools.partial(local, 1), functools.partial(functools.partial(local))):
            self.assertEqual(places.of_function(fn)[1:], (HERE, line))
        self.assertEqual(places.of_function(self.test_of_functions)[0], "Places.test_of_functions")
        self.assertEqual(places.of_function(len), ("len", None, None))

    def test_of_objects_that_are_called(self):
        class Network:
            def forward(self, x):
                return x

            def __call__(self, x):
                return self.forward(x)

        self.assertEqual(places.of_function(Network()), ("Network", HERE, Network.forward.__code__.co_firstlineno))

    def test_of_the_caller(self):
        self.assertEqual(places.of_caller(())[::2], (HERE, "test_of_the_caller"))


class Tree(unittest.TestCase):
    def test_names(self):
        pair = __import__("collections").namedtuple("Pair", "left right")(1, [2, {"a": 3}])
        self.assertEqual(tree.leaves((pair, None), "output"), [("output[0].left", 1), ("output[0].right[0]", 2),
                                                               ("output[0].right[1]['a']", 3), ("output[1]", None)])

    def test_a_container_within_itself(self):
        loop = [1]
        loop.append(loop)
        self.assertEqual(tree.leaves(loop, "x"), [("x[0]", 1)])
        shared = [2]
        self.assertEqual(tree.leaves([shared, shared], "x"), [("x[0][0]", 2), ("x[1][0]", 2)])


class FakeTensor:
    pass


class FakeModule:
    def __init__(self, **tensors):
        self.tensors = tensors

    def named_parameters(self):
        return list(self.tensors.items())

    def named_buffers(self):
        return []


TORCH = types.SimpleNamespace(Tensor=FakeTensor, nn=types.SimpleNamespace(Module=FakeModule), __file__="/framework/torch/x.py")
GLOBAL = FakeTensor()


class State(unittest.TestCase):
    def names(self, fn):
        return [name for name, _ in torch_state.tensors_of(TORCH, fn)]

    def test_closures_globals_and_defaults(self):
        cache, other = {"k": [FakeTensor()]}, FakeTensor()

        def fn(x, scale=FakeTensor()):
            def inner():
                return GLOBAL

            return cache, other, inner

        self.assertEqual(sorted(self.names(fn)), ["GLOBAL", "cache['k'][0]", "default[0]", "other"])

    def test_modules_methods_and_partials(self):
        module = FakeModule(weight=FakeTensor(), bias=FakeTensor())
        self.assertEqual(self.names(module), ["weight", "bias"])

        class Operation:
            def __init__(self):
                self.workspace = FakeTensor()
                self.module = module

            def run(self, x):
                return x

        self.assertEqual(sorted(self.names(Operation().run)), ["self.module.bias", "self.module.weight", "self.workspace"])
        self.assertEqual(sorted(self.names(functools.partial(Operation().run, 3))),
                         ["self.module.bias", "self.module.weight", "self.workspace"])

    def test_each_once_and_loops_end(self):
        tensor, loop = FakeTensor(), []
        loop += [loop, tensor, tensor]

        def fn():
            return loop, tensor

        self.assertEqual(len(self.names(fn)), 1)

    def test_the_frameworks_own_functions_are_not_looked_through(self):
        scope = {"hidden": FakeTensor()}
        exec(compile("def fn():\n    return hidden\n", "/framework/torch/functional.py", "exec"), scope)
        self.assertEqual(self.names(scope["fn"]), [])

    def test_a_cell_that_is_not_bound(self):
        def outer():
            def fn():
                return later

            found = self.names(fn)
            later = 1
            return found, later

        self.assertEqual(outer()[0], [])


if __name__ == "__main__":
    sys.exit(unittest.main())
