# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The operations that check() is tried on with a GPU (test/doctor/gpu/check), as far as their source tells: how many there
are, and that the kinds that they expect exist. PyTorch is not needed."""
import ast
import os
import unittest

from gcap_doctor.capturable.kinds import KINDS

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "gpu", "check")


def parsed(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return ast.parse(file.read(), filename=name)


class Corpus(unittest.TestCase):
    def test_faulty_operations(self):
        expected = {}
        for node in parsed("faulty.py").body:
            for decorator in getattr(node, "decorator_list", []):
                if isinstance(decorator, ast.Call) and decorator.func.id == "faulty":
                    self.assertNotIn(node.name, expected)
                    expected[node.name] = [argument.value for argument in decorator.args]
        self.assertGreaterEqual(len(expected), 20)
        for name, kinds in expected.items():
            self.assertTrue(kinds, name)
            self.assertLessEqual(set(kinds), set(KINDS), name)

    def test_sound_operations(self):
        names = []
        for node in parsed("sound.py").body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.func.id == "enter":
                names.append(node.value.args[0].value)
            elif any(getattr(decorator, "id", "") == "sound" for decorator in getattr(node, "decorator_list", [])):
                names.append(node.name)
        self.assertGreaterEqual(len(names), 50)
        self.assertEqual(len(names), len(set(names)))

    def test_the_runner_is_python(self):
        self.assertIsNotNone(parsed("run.py"))


if __name__ == "__main__":
    unittest.main()
