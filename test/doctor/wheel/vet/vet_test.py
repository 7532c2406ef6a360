# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""gcap-doctor vet: what it finds in vacuous.py is what that file says, line for line; it is silent about sound.py; the
command's outputs, its bad input and its exit codes."""
import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from gcap_doctor import main, vet
from gcap_doctor.vet_rules import KINDS
from gcap_doctor.vet_walk import MOST_STATEMENTS, Walk

HERE = os.path.dirname(os.path.abspath(__file__))
VACUOUS, SOUND = os.path.join(HERE, "vacuous.py"), os.path.join(HERE, "sound.py")


def run(*arguments):
    """(exit code, standard output, standard error)"""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = vet.main(list(arguments))
    return code, out.getvalue(), err.getvalue()


def expected_of(path):
    with open(path, encoding="utf-8") as file:
        return {(number, kind) for number, line in enumerate(file, 1)
                for found in re.findall(r"# finds: ([\w, ]+)", line) for kind in re.split(r",\s*", found.strip())}


class Corpus(unittest.TestCase):
    def test_vacuous_tests(self):
        result = vet.vet_file(VACUOUS)
        found = {(finding.line, finding.kind) for finding in result.findings}
        self.assertEqual(sorted(found), sorted(expected_of(VACUOUS)))
        self.assertGreaterEqual(len({finding.test for finding in result.findings}), 10)
        self.assertEqual(result.tests, len({finding.test for finding in result.findings}))

    def test_each_kind_is_in_the_corpus(self):
        self.assertEqual({kind for _, kind in expected_of(VACUOUS)}, set(KINDS) - {"unreadable"})

    def test_sound_tests(self):
        result = vet.vet_file(SOUND)
        self.assertEqual([str(finding) for finding in result.findings], [])
        self.assertGreaterEqual(result.capture_tests, 20)

    def test_a_finding_has_words(self):
        for finding in vet.vet_file(VACUOUS).findings:
            self.assertTrue(finding.sentence.startswith(finding.test), finding)
            self.assertIn(finding.remedy, str(finding))


class Vetted(unittest.TestCase):
    """A test's body, and what is found in it."""

    HEAD = "import torch\ndef test_it():\n    x = torch.randn(4)\n"

    def kinds(self, body, head=HEAD):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "test_one.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(head + "".join(f"    {line}\n" for line in body))
            return [finding.kind for finding in vet.vet_file(path).findings]

    CAPTURE = ["g = torch.cuda.CUDAGraph()", "with torch.cuda.graph(g):", "    y = op(x)"]

    def test_a_write_before_the_capture_is_none(self):
        self.assertEqual(self.kinds(["x.zero_()", *self.CAPTURE, "g.replay()", "assert torch.equal(y, op(x))"]),
                         ["unchanged_inputs"])

    def test_a_view_that_is_written(self):
        self.assertEqual(self.kinds([*self.CAPTURE, "x.view(-1)[0] = 3", "g.replay()", "assert torch.equal(y, op(x))"]), [])
        self.assertEqual(self.kinds([*self.CAPTURE, "row = x[0]", "row.fill_(3)", "g.replay()",
                                     "assert torch.equal(y, op(x))"]), [])

    def test_a_clone_that_is_written(self):
        self.assertEqual(self.kinds([*self.CAPTURE, "x.clone().zero_()", "g.replay()", "assert torch.equal(y, op(x))"]), [])
        # Conservative: what a clone's write does is a write of some memory that is no output.

    def test_a_loop_without_changes(self):
        self.assertEqual(self.kinds([*self.CAPTURE, "for _ in range(9):", "    g.replay()", "    assert torch.equal(y, op(x))"]),
                         ["unchanged_inputs"])

    def test_a_handler_that_reraises(self):
        body = ["g = torch.cuda.CUDAGraph()", "try:", "    with torch.cuda.graph(g):", "        y = op(x)",
                "except RuntimeError:", "    {}", "x.zero_()", "g.replay()", "assert torch.equal(y, op(x))"]
        for line, kinds in (("raise", []), ("pass", ["swallowed"]), ("pytest.fail('no')", []),
                            ("pytest.skip('no')", ["skipped_on_failure"])):
            self.assertEqual(self.kinds([each.format(line) for each in body]), kinds, line)

    def test_recursion_ends(self):
        head = "import torch\ndef again(n):\n    return again(n - 1)\ndef test_it():\n    x = torch.randn(4)\n"
        self.assertEqual(self.kinds([*self.CAPTURE, "again(3)", "g.replay()"], head), ["no_assert"])

    def test_loops_within_loops_end(self):
        lines = ["def test_it(x):"] + ["    " * depth + f"for i{depth} in x:" for depth in range(1, 16)] + ["    " * 16 + "x()"]
        tree = ast.parse("\n".join(lines))
        self.assertLessEqual(Walk(tree, None, tree.body[0]).statement, MOST_STATEMENTS + 1)

    def test_allowed_at_the_line_and_by_kind(self):
        body = [*self.CAPTURE, "g.replay()  # gcap-vet: allow {}"]
        self.assertEqual(self.kinds([each.format("no_assert") for each in body]), [])
        self.assertEqual(self.kinds([each.format("weak_assert") for each in body]), ["no_assert"])

    def test_syntax_of_each_python(self):
        head = "import torch\ndef test_it(a, /, b=1, *, c: int = 2, **d):\n    x = torch.randn(4)\n"
        self.assertEqual(self.kinds([*self.CAPTURE, "if (n := len(x)) > 1: x.zero_()", "g.replay()",
                                     "assert all(torch.equal(a, b) for a, b in zip([y], [op(x)]))"], head), [])


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text, mode="w"):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode, **({} if "b" in mode else {"encoding": "utf-8"})) as file:
            file.write(text)
        return path

    def test_exit_codes(self):
        self.assertEqual(run(VACUOUS)[0], 1)
        code, out, err = run(SOUND)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("no finding; ", out)
        warns = self.write("test_w.py", "def test_cuda_graph_of_op():\n    pass\n")
        code, out, _ = run(warns)
        self.assertEqual(code, 0)
        self.assertIn(f"{warns}:1: warning no_capture: ", out)

    def test_folders(self):
        self.write("a/test_x.py", "def test_cuda_graph():\n    pass\n")
        self.write("a/b/x_test.py", "def test_cuda_graph():\n    pass\n")
        self.write("a/helper.py", "def test_cuda_graph():\n    pass\n")
        self.write("a/.venv/test_y.py", "def test_cuda_graph():\n    pass\n")
        _, out, _ = run(self.folder.name)
        self.assertIn("2 tests of captures among 2 tests in 2 files", out)
        self.assertIn("2 warnings", out)

    def test_files_that_cannot_be_read(self):
        broken = self.write("test_broken.py", "def test_x(:\n")
        latin = self.write("test_latin.py", b"# \xff\n", "wb")
        zero = self.write("test_zero.py", b"\0", "wb")
        sound = self.write("test_sound.py", "import no_such_module\ndef test_cuda_graph():\n    pass\n")
        code, out, err = run(broken, latin, zero, sound, os.path.join(self.folder.name, "none.py"))
        self.assertEqual(code, 3)
        self.assertEqual(out.count("unreadable: the file cannot be read as Python: "), 4)
        self.assertIn("No such file or directory", out)
        self.assertIn(f"{broken}:1: ", out)
        self.assertIn(f"{sound}:2: warning no_capture", out)
        self.assertEqual(err, "")

    def test_wrong_command_lines(self):
        for text, arguments in (("no path: expected files or folders", []), ("'--html' is no option of it", ["--html", "x"]),
                                ("--sarif has no value: expected FILE", ["x", "--sarif"]),
                                ("--sarif has no value: expected FILE", ["--sarif=", "x"]),
                                ("--quiet is 'yes': expected no value", ["--quiet=yes", "x"])):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""), text)
            self.assertIn(f"gcap-doctor: vet: {text}", err)

    def test_an_empty_folder(self):
        code, _, err = run(self.folder.name)
        self.assertEqual(code, 3)
        self.assertIn("no test_*.py or *_test.py in", err)

    def test_help_and_kinds(self):
        self.assertEqual(run("--help"), (0, vet.USAGE, ""))
        code, out, _ = run("--kinds")
        self.assertEqual(code, 0)
        for kind in KINDS:
            self.assertIn(f"{kind} (", out)

    def test_sarif(self):
        path = os.path.join(self.folder.name, "out.sarif")
        code, out, _ = run("--quiet", "--sarif", path, VACUOUS)
        self.assertEqual((code, out), (1, ""))
        with open(path, encoding="utf-8") as file:
            log = json.load(file)
        self.assertEqual(log["version"], "2.1.0")
        (ran,) = log["runs"]
        self.assertEqual(ran["tool"]["driver"]["name"], "gcap-doctor")
        rules = [rule["id"] for rule in ran["tool"]["driver"]["rules"]]
        self.assertEqual(len(rules), len(set(rules)))
        places = set()
        for result in ran["results"]:
            self.assertEqual(rules[result["ruleIndex"]], result["ruleId"])
            self.assertIn(result["level"], ("error", "warning", "note"))
            self.assertIn("Remedy: ", result["message"]["text"])
            physical = result["locations"][0]["physicalLocation"]
            self.assertTrue(physical["artifactLocation"]["uri"].endswith("vacuous.py"))
            places.add((physical["region"]["startLine"], result["ruleId"]))
        self.assertEqual(places, expected_of(VACUOUS))

    def test_junit(self):
        path = os.path.join(self.folder.name, "out.xml")
        odd = self.write("test_\x01<&\">.py", "def test_cuda_graph():\n    pass\n")
        run("--quiet", f"--junit={path}", VACUOUS, SOUND, odd)
        root = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual([root.tag] + [suite.tag for suite in root], ["testsuites"] + ["testsuite"] * 3)
        vacuous, sound, last = root
        self.assertEqual(int(vacuous.get("tests")), len(expected_of(VACUOUS)))
        self.assertEqual(int(vacuous.get("failures")), len(vacuous.findall("testcase/failure")))
        self.assertGreater(int(vacuous.get("failures")), 10)
        self.assertEqual([case.get("name") for case in sound], ["no finding"])
        self.assertIn("test_\ufffd<&\">.py", last.get("name"))

    def test_a_report_that_cannot_be_written(self):
        code, _, err = run("--sarif", os.path.join(self.folder.name, "no", "out"), SOUND)
        self.assertEqual(code, 3)
        self.assertIn("which cannot be written: No such file or directory", err)

    def test_dispatch(self):
        before = sys.argv
        try:
            sys.argv = ["gcap-doctor", "vet", "--quiet", VACUOUS]
            self.assertEqual(main(), 1)
        finally:
            sys.argv = before


if __name__ == "__main__":
    unittest.main()
