# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest, in runs of pytest of its own, on the device of fake_device.py."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
DEVICE = os.path.join(os.path.dirname(HERE), "capturable")
PACKAGE = os.environ["PYTHONPATH"]

HEAD = """
import pytest
from fake_device import Device, FakeBackend

device = Device()
x = device.tensor([1.0, 2.0])
backend = FakeBackend(device)

def double(x):
    return device.map(lambda a: 2 * a, x)

def frozen(x):
    first = x.values[0]
    return device.map(lambda a: a * first, x)
"""


class Plugin(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def pytest(self, source, *arguments, head=HEAD, name="test_ops.py"):
        """(exit code, output) of pytest over a file."""
        with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as file:
            file.write(head + textwrap.dedent(source))
        command = [sys.executable, "-s", "-m", "pytest", "-p", "gcap_doctor.pytest_plugin", "-p", "no:cacheprovider", "-q",
                   "-ra", *arguments]
        ran = subprocess.run(command, cwd=self.folder.name, capture_output=True, text=True, check=False, timeout=300,
                             env={**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE, DEVICE]),
                                  "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
        return ran.returncode, ran.stdout + ran.stderr

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_fixture(self):
        code, out = self.pytest("""
            def test_sound(gcap_check):
                report = gcap_check(double, x, backend=backend)
                assert report and len(report.steps) == 6

            def test_faulty(gcap_check):
                gcap_check(frozen, x, backend=backend)
        """)
        self.assertEqual(code, 1, out)
        self.assertIn("1 failed, 1 passed", out)
        self.assertIn("error frozen at ", out)
        self.assertIn("remedy: read the value on the device", out)
        self.assertNotIn("Traceback", out)
        self.assertIn("2 operations checked in ", out)

    def test_marker(self):
        code, out = self.pytest("""
            @pytest.mark.gcap_capturable(backend=backend, rtol=1e-3)
            @pytest.mark.parametrize("size", [1, 2])
            def test_sound(size):
                return double, device.tensor([1.0] * size)

            @pytest.mark.gcap_capturable(backend=backend)
            class TestAll:
                def test_method(self):
                    return double, x

                def test_faulty(self):
                    return frozen, x

            @pytest.mark.gcap_capturable(backend=backend)
            def test_returns_nothing():
                pass

            @pytest.mark.gcap_capturable(3)
            def test_position():
                return double, x
        """)
        self.assertEqual(code, 1, out)
        self.assertIn("3 failed, 3 passed", out)
        self.assertIn("gcap_doctor.check: test_faulty", out)
        self.assertIn("test_returns_nothing returned None: expected an operation and its inputs", out)
        self.assertIn("@pytest.mark.gcap_capturable has 3: expected options by name", out)

    NO_TORCH = """
        import sys
        sys.modules["torch"] = None

        def test_fixture(gcap_check):
            gcap_check(double, x)

        @pytest.mark.gcap_capturable
        def test_marked():
            import torch
            return double, torch.ones(2)

        def test_wrong(gcap_check):
            gcap_check(double, x, warm_up=0)
    """

    def test_without_torch(self):
        code, out = self.pytest(self.NO_TORCH)
        self.assertEqual(code, 1, out)
        self.assertIn("1 failed, 2 skipped", out)
        self.assertIn("gcap_doctor.check: PyTorch cannot be imported", out)
        self.assertIn("warm_up is 0: expected", out)

    def test_the_option_wants_checks(self):
        code, out = self.pytest(self.NO_TORCH, "--gcap-doctor")
        self.assertEqual(code, 1, out)
        self.assertIn("3 failed, 1 passed", out)  # the fourth is the file's own gcap-vet
        self.assertNotIn("skipped", out)

    VACUOUS = """
        import torch

        def test_vacuous():
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                y = double(x)

        def test_cuda_graph_of_nothing():
            assert True
    """

    def test_vetting(self):
        head = "import no_such_module\n"
        code, out = self.pytest(self.VACUOUS, head=head)
        self.assertEqual(code, 2, out)  # a file that does not import is pytest's own error
        self.assertNotIn("gcap-vet", out)
        sarif, junit = self.path("out.sarif"), self.path("out.xml")
        code, out = self.pytest(self.VACUOUS, "--gcap-doctor", "--gcap-doctor-sarif", sarif, "--junitxml", junit,
                                "--continue-on-collection-errors", head=head)
        self.assertEqual(code, 1, out)
        self.assertIn("test_ops.py::gcap-vet", out)
        self.assertIn("error never_replayed: test_vacuous captures a graph", out)
        self.assertIn("warning no_capture", out)
        with open(sarif, encoding="utf-8") as file:
            (ran,) = json.load(file)["runs"]
        self.assertEqual({result["ruleId"] for result in ran["results"]}, {"never_replayed", "no_capture"})
        failures = xml.etree.ElementTree.parse(junit).getroot().iter("failure")
        self.assertTrue(any("never_replayed" in (failure.text or "") for failure in failures))

    def test_sarif_of_checks(self):
        sarif = self.path("out.sarif")
        self.pytest("def test_faulty(gcap_check):\n    gcap_check(frozen, x, backend=backend)\n", "--gcap-doctor-sarif", sarif)
        with open(sarif, encoding="utf-8") as file:
            (ran,) = json.load(file)["runs"]
        (result,) = ran["results"]
        self.assertEqual((result["ruleId"], result["level"]), ("frozen", "error"))
        place = result["locations"][0]["physicalLocation"]
        self.assertTrue(place["artifactLocation"]["uri"].endswith("test_ops.py"))
        self.assertEqual(place["region"]["startLine"], HEAD.split("\n").index("def frozen(x):") + 1)

    @unittest.skipUnless(importlib.util.find_spec("xdist"), "needs pytest-xdist")
    def test_workers_hand_their_findings_over(self):
        sarif = self.path("out.sarif")
        code, out = self.pytest("""
            def test_faulty(gcap_check):
                gcap_check(frozen, x, backend=backend)

            def test_sound(gcap_check):
                gcap_check(double, x, backend=backend)
        """, "-p", "xdist.plugin", "-n", "2", "--gcap-doctor", "--gcap-doctor-sarif", sarif)
        self.assertEqual(code, 1, out)
        self.assertIn("2 operations checked in ", out)
        with open(sarif, encoding="utf-8") as file:
            (ran,) = json.load(file)["runs"]
        self.assertEqual([result["ruleId"] for result in ran["results"]], ["frozen"])

    def test_findings_can_be_handed_over(self):
        from gcap_doctor.capturable import Finding
        from gcap_doctor.pytest_hooks import Findings

        first, second = Findings(), Findings()
        first.found = [Finding("frozen", "a sentence", "ops.py", 3, "R11", "a remedy", "norm"), Finding("kept", "another")]
        first.checks = [(0.5, 32)]
        second.unpack(json.loads(json.dumps(first.packed())))
        self.assertEqual([str(each) for each in second.found], [str(each) for each in first.found])
        self.assertEqual(second.checks, first.checks)

    def test_a_file_that_cannot_be_written(self):
        code, out = self.pytest("def test_one():\n    pass\n", "--gcap-doctor-sarif", self.path("no/out"))
        self.assertEqual(code, 0, out)
        self.assertIn("--gcap-doctor-sarif is '", out)
        self.assertIn("cannot be written: No such file", out)

    def test_it_is_silent_otherwise(self):
        code, out = self.pytest("def test_one():\n    pass\n", "-W", "error", "--strict-markers")
        self.assertEqual(code, 0, out)
        self.assertNotIn("gcap", out)


if __name__ == "__main__":
    unittest.main()
