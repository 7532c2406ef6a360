# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""run.py without a network: packages made on the spot, and each way in which a model of a list comes to nothing.

    run_test.py LIBRARY PAGE

PAGE is docs/ort_models.md, which has a row for each model of the committed list, and the counts that its rows give.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import onnx
from onnx import TensorProto, helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import fetch  # noqa: E402
import run  # noqa: E402
import trial  # noqa: E402

LIBRARY, PAGE = sys.argv.pop(1), sys.argv.pop(1)


def model(nodes, outputs):
    """A model of one input, whose first dimension is open."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    values = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    graph = helper.make_graph(nodes, "graph", [x], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


FILES = {
    "models/neg.onnx": model([helper.make_node("Neg", ["x"], ["y"])], [("y", TensorProto.FLOAT)]),
    # How many outputs there are, is decided by what the device holds.
    "models/nonzero.onnx": model(
        [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("NonZero", ["y"], ["z"])],
        [("y", TensorProto.FLOAT), ("z", TensorProto.INT64)],
    ),
    "models/constant.onnx": model([helper.make_node("Sub", ["x", "x"], ["y"])], [("y", TensorProto.FLOAT)]),
}


def pack(folder):
    """A wheel of the files, as small as pip takes one."""
    info = "models-1.0.dist-info"
    files = dict(FILES)
    files[f"{info}/METADATA"] = "Metadata-Version: 2.1\nName: models\nVersion: 1.0\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = ""
    with zipfile.ZipFile(pathlib.Path(folder, "models-1.0-py3-none-any.whl"), "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)


def entry(name, file="models/neg.onnx", package="models", **more):
    """An entry of a list."""
    sha256 = hashlib.sha256(FILES.get(file, b"")).hexdigest()
    fields = {"name": name, "kind": "a test", "package": package, "file": file, "sha256": sha256, **more}
    lines = [f"{key} = {value if isinstance(value, float) else repr(value)}" for key, value in fields.items()]
    if "inputs.x" not in fields:
        lines.append("inputs.x = { shape = [3, 4] }")
    return "\n".join(["[[model]]", *lines, ""])


class RunTest(unittest.TestCase):
    """run.py with a list of its own, in a process of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        pack(folder.name)

    def run_list(self, *entries, page=None):
        """(exit code, what was printed)."""
        head = '[exporters]\ngcap-no-such-exporter = "1.0"\n[packages]\nmodels = "1.0"\nlost = "1.0"\n'
        path = self.folder / "list.toml"
        path.write_text("\n".join([head, *entries]))
        command = [sys.executable, str(HERE / "run.py"), str(self.folder / "cache"), "--library", LIBRARY]
        command += ["--list", str(path)] + (["--page", str(page)] if page else [])
        environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.folder)}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        print(done.stdout, done.stderr)
        return done.returncode, done.stdout

    def test_models_that_are_captured_and_refused(self):
        page = self.folder / "page.md"
        code, said = self.run_list(
            entry("taken"), entry("left", "models/nonzero.onnx", further=True).replace("True", "true"), page=page
        )
        self.assertEqual(0, code)
        self.assertIn("taken: 1 of 1 nodes; captured: yes; fixed: yes\n", said)
        self.assertIn("left: 1 of 2 nodes; captured: no: NonZero; fixed: no: NonZero\n", said)
        self.assertIn("The first list: 1 models: 1 are captured as they are, 1 with their dimensions fixed; 0 ", said)
        self.assertIn("chosen before they were run: 1 models: 0 are captured as they are, 0 with", said)
        text = page.read_text()
        self.assertIn("| taken | a test | 1/1 |  | 0 / 0 | yes | yes |\n", text)
        self.assertIn("| left | a test | 1/2 | 1 NonZero (no kernel) | 0 | no: NonZero | no: NonZero |\n", text)
        self.assertIn("| NonZero | no kernel | 1 | 1 | 1 | 1 |\n", text)

    def test_outputs_that_inputs_do_not_change_are_told(self):
        page = self.folder / "page.md"
        self.assertEqual(0, self.run_list(entry("same", "models/constant.onnx"), page=page)[0])
        self.assertIn("0 / 0, of outputs that these inputs do not change", page.read_text())

    def test_what_is_not_there_is_a_line(self):
        code, said = self.run_list(
            entry("no file", file="models/lost.onnx"),
            entry("changed", sha256="0" * 64),
            entry("no package", package="lost"),
            '[[model]]\nname = "no exporter"\nkind = "a test"\nexport = "vit"\ninputs = {}\n',
            entry("there"),
        )
        self.assertEqual(1, code)
        wheel = "models-1.0-py3-none-any.whl"
        self.assertIn(f"no file: {wheel} has no file models/lost.onnx\n", said)
        found = hashlib.sha256(FILES["models/neg.onnx"]).hexdigest()
        self.assertIn(f"changed: models/neg.onnx of {wheel} has changed: its sha256 is {found}\n", said)
        self.assertRegex(said, "no package: lost==1.0 cannot be fetched: ERROR: .*lost==1.0")
        self.assertIn("no exporter: gcap-no-such-exporter is not installed, the list pins 1.0\n", said)
        self.assertIn("there: 1 of 1 nodes; captured: yes", said)
        self.assertIn("5 models: 1 are captured as they are, 1 with their dimensions fixed; 4 could not be", said)

    def test_what_fails_and_what_is_wrong_is_a_line(self):
        code, said = self.run_list(
            entry("other input").replace("inputs.x", "inputs.z"),
            entry("other shape").replace("[3, 4]", "[3, 5]"),
            entry("wrong", tolerance=-1.0, because="nothing is that exact"),
        )
        self.assertEqual(1, code)
        self.assertIn("other input: CPU EP: ValueError: the model's inputs are x, the list has z\n", said)
        self.assertRegex(said, "other shape: CPU EP: .*Got: 5 Expected: 4")
        self.assertIn("wrong: WRONG: differs by 0.0e+00, allowed is -1.0e+00\n", said)
        self.assertIn("0 could not be fetched, 3 failed or were wrong", said)

    def test_a_list_that_contradicts_itself_is_refused(self):
        for entries, why in (
            ([entry("one"), entry("one")], r"named twice: \['one'\]"),
            ([entry("one", package="unknown")], r"packages without a version: \['unknown'\]"),
            ([entry("one", export="vit")], "'one' is neither an export nor a package, a file and a sha256"),
            ([entry("one", tolerance=0.5)], "'one' has a tolerance of its own and no `because`"),
        ):
            path = self.folder / "list.toml"
            path.write_text('exporters = {}\npackages = { models = "1.0" }\n' + "\n".join(entries))
            with self.assertRaisesRegex(ValueError, why):
                fetch.read_list(path)


class ProcessTest(unittest.TestCase):
    """A trial's process may end in any way."""

    def outcome(self, program, limit_s=60):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "out.json")
            return run.run_alone([sys.executable, "-c", program, str(out)], out, limit_s)

    def test_a_signal_is_told_with_the_step(self):
        program = "import os, sys; open(sys.argv[1], 'w').write('{\"step\": \"eager\"}'); os.abort()"
        self.assertEqual({"step": "eager", "failure": "ended by SIGABRT"}, self.outcome(program))

    def test_a_process_without_a_result_is_told(self):
        self.assertEqual({"failure": "no library"}, self.outcome("import sys; sys.exit('no library')"))

    def test_what_never_ends_is_ended(self):
        program = "import time; time.sleep(600)"
        self.assertEqual({"failure": "did not end within 1 s"}, self.outcome(program, limit_s=1))

    def test_a_leak_is_a_failure(self):
        program = "import sys; open(sys.argv[1], 'w').write('{}'); print('leak of 1', file=sys.stderr)"
        self.assertEqual({"failure": "leak of 1"}, self.outcome(program))


class DifferenceTest(unittest.TestCase):
    def test_is_of_the_largest_element(self):
        np = trial.np
        ones = np.array([1, -4], np.float32)
        for found, expected, by in (
            ([1, -4], [1, -4], 0), ([1, -3], [1, -4], 0.25), ([0, 0.5], [0, 0], 0.5), ([np.nan, 2], [np.nan, 2], 0),
            ([np.nan, 2], [1, 2], np.inf), ([1, 2], [np.nan, 2], np.inf), ([np.inf, 2], [-np.inf, 2], np.inf),
        ):
            arrays = [np.array(array, np.float32) for array in (found, expected)]
            self.assertEqual(by, trial.difference([ones, arrays[0]], [ones, arrays[1]]), (found, expected))
        self.assertEqual(np.inf, trial.difference([ones], [ones.astype(np.float16)]))


class ListTest(unittest.TestCase):
    """The committed list, and the page that was written of it."""

    def test_the_page_has_each_model_of_the_list(self):
        models, _, _ = fetch.read_list(HERE / "list.toml")
        with open(PAGE, encoding="utf-8") as file:
            first, further = file.read().split("## Further models")
        for part, chosen in ((first, [m for m in models if not m.further]), (further, [m for m in models if m.further])):
            rows = re.findall(r"^\| (.*?) \| .*? \| \d+/\d+ \|", part, re.MULTILINE)
            self.assertEqual([model.name for model in chosen], rows)

    def test_the_page_counts_its_rows(self):
        with open(PAGE, encoding="utf-8") as file:
            text = file.read()
        counts = re.findall(r"(\d+) models: (\d+) are captured as they are, (\d+) with", text)
        self.assertEqual(2, len(counts))
        for count, part in zip(counts, text.split("## Further models")):
            rows = re.findall(r"^\| .* \| \d+/\d+ \| .* \| ([^|]*) \| ([^|]*) \|$", part, re.MULTILINE)
            captured = [shipped == "yes" for shipped, _ in rows]
            fixed = [shipped == "yes" if with_fixed == "=" else with_fixed == "yes" for shipped, with_fixed in rows]
            self.assertEqual((len(rows), sum(captured), sum(fixed)), tuple(map(int, count)))


if __name__ == "__main__":
    unittest.main()
