# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The procedure of check() on the device of fake_device.py: sound operations pass all steps, and each planted fault is
found by the step that is for it, with a sentence that names it."""
import gc
import json
import os
import random
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fake_device import Device, DeviceError, FakeBackend, Tensor  # noqa: E402
from gcap_doctor import check  # noqa: E402
from gcap_doctor.capturable import CannotCheck, Finding, NotCapturable  # noqa: E402

STEPS = ["same inputs", "other inputs", "twice in a row", "another stream", "churned allocator", "emptied allocator"]


class Case(unittest.TestCase):
    def setUp(self):
        self.device = Device()
        self.backend = FakeBackend(self.device)
        self.x = self.device.tensor([1.0, 2.0, 3.0, 4.0])

    def check(self, fn, *inputs, **options):
        return check(fn, *(inputs or (self.x,)), backend=self.backend, **options)

    def assert_sound(self, report):
        self.assertEqual(report.findings, [], str(report))
        self.assertEqual([step.name for step in report.steps], STEPS)
        self.assertEqual([step.difference for step in report.steps], [None] * len(STEPS))
        self.assertTrue(report)
        self.assertIs(report.raise_if_faulty(), report)

    def assert_found(self, report, kind, *texts):
        self.assertIn(kind, report.kinds(), str(report))
        finding = report.findings[report.kinds().index(kind)]
        for text in texts:
            self.assertIn(text, finding.sentence)
        self.assertTrue(finding.remedy)
        self.assertIn(finding.sentence, str(report))
        if finding.severity != "note":
            self.assertFalse(report)
            with self.assertRaises(NotCapturable) as raised:
                report.raise_if_faulty()
            self.assertIs(raised.exception.report, report)
            self.assertIsInstance(raised.exception, AssertionError)
        return finding


class Sound(Case):
    def double(self, x):
        return self.device.map(lambda a: 2 * a, x)

    def test_one_operator(self):
        report = self.check(self.double)
        self.assert_sound(report)
        self.assertIs(report.bitwise, True)
        self.assertEqual(report.held_bytes, 32)
        self.assertEqual(report.kept_bytes, 0)
        self.assertEqual(report.name, "Sound.double")
        self.assertTrue(report.file.endswith("procedure_test.py"))
        self.assertIn("Sound.double", str(report))
        self.assertIn("capturable", str(report))

    def test_each_replay_begins_with_poison_and_the_ways_differ(self):
        self.check(self.double)
        seen = self.backend.seen
        replays = [index for index, each in enumerate(seen) if each[0] == "replay"]
        self.assertEqual(len(replays), len(STEPS))
        for index in replays:
            self.assertEqual(seen[index - 1], ("poison", 0xFF))
        self.assertEqual([seen[index][1:] for index in replays],
                         [(1, False), (1, False), (2, False), (1, True), (1, False), (1, False)])
        self.assertEqual([each for each in seen if each[0] == "churn"], [("churn", False), ("churn", True)])

    def test_what_it_wrote_is_put_back(self):
        random.seed(5)
        expected = random.Random(5).random()

        def in_place(x):
            random.random()
            self.device.map(lambda a: a + 1, x, out=x)

        self.assert_sound(self.check(in_place))
        self.assertEqual(self.x.values, [1.0, 2.0, 3.0, 4.0])
        self.assertEqual(random.random(), expected)

    def test_what_it_wrote_is_put_back_whenever_it_raises(self):
        raised = 0
        for last in range(1, 16):
            calls, state = [], self.device.tensor([5.0, 5.0, 5.0, 5.0])

            def operation(x):
                calls.append(x)
                self.device.map(lambda a: a + 1, x, out=x)
                self.device.map(lambda a: a * 2, state, out=state)
                if len(calls) == last:
                    raise ValueError("enough")
                return self.device.map(lambda a: 2 * a, x)

            try:
                self.check(operation, state=[state])
            except ValueError:
                raised += 1
            self.assertEqual(self.x.values, [1.0, 2.0, 3.0, 4.0], last)
            self.assertEqual(state.values, [5.0, 5.0, 5.0, 5.0], last)
        self.assertGreater(raised, 3)

    def test_state_is_set_before_each_run(self):
        total = self.device.tensor([10.0] * 4)

        def accumulate(x):
            return self.device.map(lambda a, b: a + b, x, total, out=total)

        self.assert_sound(self.check(accumulate, state={"total": total}))
        self.assertEqual(total.values, [10.0] * 4)
        self.backend.states = [("total", total)]
        self.assert_sound(self.check(accumulate))

    def test_results_in_containers(self):
        def several(x):
            return {"twice": [self.device.map(lambda a: 2 * a, x)], "three": (3, None, "text", float("nan"))}

        self.assert_sound(self.check(several))

    def test_random_numbers_follow_the_seed(self):
        self.assert_sound(self.check(lambda x: self.device.map(lambda a, b: a * b, x, self.device.draw(4))))

    def test_nan_is_equal_to_nan(self):
        self.x.values[1] = float("nan")
        self.assert_sound(self.check(self.double))

    def test_workspace_that_is_cleared(self):
        def cleared(x):
            workspace = self.device.allocate(4)
            self.device.map(lambda a: 0.0, workspace, out=workspace)
            return self.device.map(lambda a, b: a + b, x, workspace)

        self.assert_sound(self.check(cleared))

    def test_a_constant_result_is_not_poisoned(self):
        constant = self.device.tensor([7.0])
        self.assert_sound(self.check(lambda x: (self.double(x), constant)))
        self.assertEqual(constant.values, [7.0])

    def test_a_result_that_is_an_input(self):
        self.assert_sound(self.check(lambda x: self.device.map(lambda a: -a, x, out=x)))

    def test_without_inputs(self):
        constant = self.device.tensor([7.0])
        report = check(lambda: self.double(constant), backend=self.backend)
        self.assertEqual(report.findings, [], str(report))
        self.assertNotIn("other inputs", [step.name for step in report.steps])

    def test_other_inputs_of_the_callers(self):
        other = self.device.tensor([5.0, 6.0, 7.0, 8.0])
        seen = []

        def watch(x):
            seen.append(list(x.values))
            return self.double(x)

        self.assert_sound(self.check(watch, other=(other,)))
        self.assertIn([5.0, 6.0, 7.0, 8.0], seen)

    def test_a_difference_within_the_tolerance(self):
        off = [0.0]

        def noisy(x):
            # A replay, an eager run of other values: each is a little off another.
            def work(a):
                off[0] = (off[0] + 1) % 7
                return a * (1 + 1e-9 * off[0])

            return self.device.map(work, x)

        report = self.check(noisy, rtol=1e-6)
        self.assertEqual(report.findings, [], str(report))
        self.assertIs(report.bitwise, False)
        self.assert_found(self.check(noisy, bitwise=True), "not_repeatable")


class Faulty(Case):
    def test_an_operation_that_fails_without_a_graph(self):
        def broken(x):
            raise ValueError("no such kernel")

        finding = self.assert_found(self.check(broken), "eager_failed", "ValueError: no such kernel")
        self.assertEqual(finding.function, "broken")
        self.assertTrue(finding.file.endswith("procedure_test.py"))

    def test_a_capture_that_breaks(self):
        self.assert_found(self.check(lambda x: self.device.map(lambda a: a * self.device.read(x) if False else a, x)
                                     if self.device.read(x) else x), "culprit", "not permitted")

    def test_a_capture_without_work(self):
        self.assert_found(self.check(lambda x: self.device.map(lambda a: a, x, stream="own")), "empty_graph")

    def test_work_beside_the_capture(self):
        def escaping(x):
            y = self.device.map(lambda a: a + 1, x)
            z = self.device.allocate(4)
            self.device.map(lambda a: a * 2, x, out=z, stream="own")
            return y, z

        self.backend.planned = [Finding("escaped", "mul ran beside", "f.py", 3)]
        report = self.check(escaping)
        self.assert_found(report, "escaped")
        self.assert_found(report, "unwritten", "leaves 4 of 4 elements of output[1]")

    def test_a_frozen_value_of_the_host(self):
        def frozen(x):
            first = x.values[0]  # read on the host, without a call that the capture would refuse
            return self.device.map(lambda a: a * first, x)

        self.assert_found(self.check(frozen), "frozen", "other inputs", "output differs first at [")

    def test_an_input_that_is_not_read_again(self):
        def stale(x):
            values = list(x.values)
            return self.device.map(lambda a: a, self.device.map(lambda a: values[0], x))

        self.assert_found(self.check(stale), "frozen", "gives the result of the captured ones")

    def test_a_number_that_the_host_draws(self):
        def drawn(x):
            factor = random.random()
            return self.device.map(lambda a: a * factor, x)

        self.assert_found(self.check(drawn), "frozen", "other inputs")

    def test_a_number_that_depends_on_the_inputs(self):
        self.assert_found(self.check(lambda x: (self.device.map(lambda a: a, x), x.values[0])), "frozen",
                          "output[1] is the Python value 1.0 and in the eager run 0.5")

    def test_a_counter_that_only_the_host_sets_back(self):
        counter = self.device.tensor([0.0])
        self.backend.states = []

        def counted(x):
            if self.device.capturing is None:
                counter.values[0] = 0.0
            self.device.map(lambda a: a + 1, counter, out=counter)
            address = counter.address
            out = self.device.allocate(4)

            def work(memory):
                memory[out_address][:] = [value * memory[address][0] for value in memory[x_address]]

            out_address, x_address = out.address, x.address
            self.device.launch(work)
            return out

        # Known state is set before each step, so that only the second replay in a row shows it.
        self.assert_found(self.check(counted, state=[counter]), "not_reset", "two replays in a row")

    def test_a_counter_that_nobody_knows(self):
        counter = self.device.tensor([0.0])

        def counted(x):
            if self.device.capturing is None:
                counter.values[0] = 0.0
            self.device.map(lambda a: a + 1, counter, out=counter)
            return self.device.map(lambda a: a * counter.values[0], x)

        self.assert_found(self.check(counted), "not_reset", "each replay with the same inputs gives another result")

    def test_a_stream_that_a_replay_does_not_have(self):
        def bound(x):
            return self.device.map(lambda a: a if self.device.stream == "side" else -a, x)

        self.assert_found(self.check(bound), "stream_bound", "on another stream", "-1.0 where the eager run has 1.0")

    def test_memory_that_was_given_back(self):
        held = []

        def reads_freed(x):
            if self.device.capturing is None:
                held[:] = [self.device.tensor([3.0] * 4)]  # each eager run drops the one that was captured
            return self.device.map(lambda a, b: a + b, x, held[0])

        self.assert_found(self.check(reads_freed), "freed_memory", "freed memory in other hands")

    def test_a_write_to_memory_that_was_given_back(self):
        held = []

        def writes_freed(x):
            if self.device.capturing is None:
                held[:] = [self.device.tensor([0.0] * 4)]
            self.device.map(lambda a: a * 3, x, out=held[0])
            return self.device.map(lambda a: a, x)

        self.assert_found(self.check(writes_freed), "overwrites", "32 bytes")

    def test_state_that_an_eager_run_replaces(self):
        class Operation:
            workspace = self.device.tensor([0.0] * 4)

            def __call__(op, x):
                if self.device.capturing is None:
                    op.workspace = self.device.tensor([0.0] * 4)
                self.device.map(lambda a: a * 3, x, out=op.workspace)
                return self.device.map(lambda a: a + 1, op.workspace)

        operation = Operation()
        self.backend.state = lambda fn: [("workspace", fn.workspace)]
        self.assert_found(self.check(operation), "overwrites", "32 bytes")

    def test_state_that_is_replaced_after_the_capture(self):
        class Operation:
            def __init__(op):
                op.workspace, op.is_captured = self.device.tensor([0.0] * 4), False

            def __call__(op, x):
                if self.device.capturing is None and op.is_captured:
                    op.workspace = self.device.tensor([0.0] * 4)
                op.is_captured = self.device.capturing is not None or op.is_captured
                self.device.map(lambda a: a * 3, x, out=op.workspace)
                return self.device.map(lambda a: a + 1, op.workspace)

        self.backend.state = lambda fn: [("workspace", fn.workspace)]
        self.assert_found(self.check(Operation()), "overwrites", "32 bytes")

    def test_a_workspace_that_nobody_clears(self):
        def dirty(x):
            workspace = self.device.allocate(4)
            if self.device.capturing is None:
                workspace.values[:] = [0.0] * 4
            return self.device.map(lambda a, b: a + b, x, workspace)

        self.assert_found(self.check(dirty), "uninitialised", "what lay in the graph's memory", "output differs first at [0]")

    def test_a_result_that_differs_from_the_first_replay_on(self):
        def other_branch(x):
            factor = 1.0 if self.device.capturing is None else 3.0
            return self.device.map(lambda a: a * factor, x)

        self.assert_found(self.check(other_branch), "differs", "4 of 4 elements differ, the largest difference is 8")

    def test_a_result_of_another_shape(self):
        self.assert_found(self.check(lambda x: self.device.map(lambda a: a, x) if self.device.capturing is None
                                     else self.device.map(lambda a: 1.0, self.device.allocate(2))), "differs",
                          "output is float64 [2] and in the eager run float64 [4]")

    def test_other_parts_in_the_result(self):
        self.assert_found(self.check(lambda x: [self.device.map(lambda a: a, x)] * (1 if self.device.capturing is None
                                                                                     else 2)), "differs", "the parts")

    def test_state_of_the_host(self):
        calls = []

        def counts(x):
            calls.append(1)
            step = len(calls)
            return self.device.map(lambda a: a + step, x)

        self.assert_found(self.check(counts), "not_repeatable", "where the first one has")

    def test_nothing_to_compare(self):
        self.assert_found(self.check(lambda x: None), "nothing_compared")
        self.assert_found(self.check(lambda x: 3), "nothing_compared")

    def test_a_replay_that_fails(self):
        self.backend.refuse = DeviceError("CUDA error: an illegal memory access was encountered\nmore lines")
        report = self.check(lambda x: self.device.map(lambda a: a, x))
        finding = self.assert_found(report, "replay_failed", "same inputs", "an illegal memory access")
        self.assertNotIn("more lines", finding.sentence)
        self.assertEqual([step.name for step in report.steps], ["same inputs"])

    def test_a_device_that_is_lost(self):
        def loses(x):
            if self.device.capturing is not None:
                self.device.lost = True
            return x

        self.check(loses)
        self.assert_found(self.check(lambda x: x), "device_lost", "when the check began")

    def test_tensors_that_outlive_the_graph(self):
        kept = []

        def keeps(x):
            kept[:] = [self.device.map(lambda a: a, x)]
            return self.device.map(lambda a: a + 1, kept[0])

        def keeps_of_the_capture(x):
            tensor = self.device.map(lambda a: a, x)
            if self.device.capturing is not None:
                kept[:] = [tensor]
            return self.device.map(lambda a: a + 1, tensor)

        self.assertEqual(self.check(keeps).findings, [])  # an eager run replaced it
        kept.clear()
        gc.collect()
        report = self.check(keeps_of_the_capture)
        self.assert_found(report, "kept", "32 bytes")
        self.assertEqual(report.kept_bytes, 32)


class Notes(Case):
    def test_inputs_without_influence(self):
        constant = self.device.tensor([7.0] * 4)
        report = self.check(lambda x: self.device.map(lambda a: a, constant))
        finding = self.assert_found(report, "same_outputs")
        self.assertEqual(finding.severity, "note")
        self.assertTrue(report)

    def test_other_inputs_that_are_refused(self):
        def picky(x):
            if x.values[0] != 1.0:
                raise ValueError("one, please")
            return self.device.map(lambda a: a, x)

        report = self.check(picky)
        self.assert_found(report, "other_refused", "one, please")
        self.assertTrue(report)
        other = self.device.tensor([5.0] * 4)
        self.assert_found(self.check(picky, other=(other,)), "eager_failed", "the inputs of other=")

    def test_uneven_inputs_that_are_refused(self):
        def ratio(x):
            if x.values[3] != 4 * x.values[0]:
                raise ValueError("four times")
            return self.device.map(lambda a: a, x)

        report = self.check(ratio)
        self.assertEqual(report.findings, [], str(report))
        self.assertIn("other inputs", [step.name for step in report.steps])

    def test_findings_that_are_allowed(self):
        self.backend.planned = [Finding("pageable", "a copy")]
        report = self.check(lambda x: self.device.map(lambda a: a, x))
        self.assert_found(report, "pageable")
        report = self.check(lambda x: self.device.map(lambda a: a, x), allow=("pageable",))
        self.assertTrue(report)
        self.assertEqual([finding.kind for finding in report.allowed], ["pageable"])
        self.assertIn("allowed pageable", str(report))


class Files(Case):
    def test_sarif_and_junit(self):
        def frozen(x):
            first = x.values[0]
            return self.device.map(lambda a: a * first, x)

        report = self.check(frozen, name="<frozen>")
        with tempfile.TemporaryDirectory() as folder:
            sarif, junit = os.path.join(folder, "a.sarif"), os.path.join(folder, "a.xml")
            report.write_sarif(sarif)
            report.write_junit(junit)
            with open(sarif, encoding="utf-8") as file:
                (ran,) = json.load(file)["runs"]
            suite = xml.etree.ElementTree.parse(junit).getroot()[0]
        (result,) = ran["results"]
        self.assertEqual((result["ruleId"], result["level"]), ("frozen", "error"))
        self.assertIn("Remedy: read the value on the device", result["message"]["text"])
        line = frozen.__code__.co_firstlineno
        self.assertEqual(result["locations"][0]["physicalLocation"]["region"], {"startLine": line})
        self.assertEqual((suite.get("name"), suite.get("failures")), ("<frozen>", "1"))
        self.assertEqual(suite.find("testcase/failure").get("type"), "frozen")

    def test_a_sound_operation_has_a_case_that_passes(self):
        report = self.check(lambda x: self.device.map(lambda a: a, x))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.xml")
            report.write_junit(path)
            suite = xml.etree.ElementTree.parse(path).getroot()[0]
        self.assertEqual([(case.get("name"), len(case)) for case in suite], [("no finding", 0)])


class BadInput(Case):
    def refused(self, text, *arguments, **options):
        with self.assertRaises(CannotCheck) as raised:
            check(*arguments, **options)
        self.assertIn(text, str(raised.exception))

    def test_arguments(self):
        self.refused("fn is 3: expected what can be called", 3)
        self.refused("warm_up is 0: expected a number from 1 to 1000", len, warm_up=0)
        self.refused("rtol is -1: expected None or a number from 0", len, rtol=-1)
        self.refused("mode is 'fast': expected global, thread_local, relaxed", len, mode="fast")
        self.refused("allow has 'pagable': expected kinds of", len, allow=("pagable",))
        self.refused("allow is 'pageable': expected a tuple", len, allow="pageable")

    def test_other_inputs_that_do_not_fit(self):
        shorter = self.device.tensor([1.0])
        self.refused("other has input 0 as float64 [1]: expected input 0 as float64 [4]", lambda x: x, self.x,
                     other=(shorter,), backend=self.backend)
        self.refused("other has 0 tensors: expected 1", lambda x: x, self.x, other=(), backend=self.backend)

    def test_no_torch(self):
        real, sys.modules["torch"] = sys.modules.get("torch"), None
        try:
            self.refused("PyTorch cannot be imported", len)
        finally:
            del sys.modules["torch"]
            if real is not None:
                sys.modules["torch"] = real

    def test_a_torch_that_does_not_do(self):
        def torch(version="2.4.0+cu124", built=True, available=True, capturing=False, allocator="native"):
            fake = types.ModuleType("torch")
            fake.__version__ = version
            fake.backends = types.SimpleNamespace(cuda=types.SimpleNamespace(is_built=lambda: built))
            fake.cuda = types.SimpleNamespace(is_available=lambda: available, get_allocator_backend=lambda: allocator,
                                              is_current_stream_capturing=lambda: capturing)
            return fake

        for fake, text in ((torch("1.13.1"), "PyTorch is 1.13.1: expected 2.1 or later"),
                           (torch(built=False), "is built without CUDA"),
                           (torch(available=False), "finds no CUDA device"),
                           (torch(allocator="cudaMallocAsync"), "PyTorch allocates with cudaMallocAsync: expected native"),
                           (torch(capturing=True), "the current stream captures")):
            real, sys.modules["torch"] = sys.modules.get("torch"), fake
            try:
                self.refused(text, len)
            finally:
                del sys.modules["torch"]
                if real is not None:
                    sys.modules["torch"] = real


if __name__ == "__main__":
    unittest.main()
