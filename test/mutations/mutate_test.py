#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What tools/mutate makes of its input: lists, names of tests, sources, command lines. Nothing is built.

    mutate_test.py TOOLS    TOOLS: the folder of the command
"""

import contextlib
import errno
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from unittest import mock

TOOLS = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, TOOLS)
sys.dont_write_bytecode = True

from mutation import command, draw, drawn, listed, lists, relink, results, runs, tests, tree  # noqa: E402

SEEDS = """
| # | behavior | in gcap | tests | differs |
|---|---|---|---|---|
| 1 | it waits | `gcap_wait` | `Wait.Waits`, `//test/docs:words_test` |  |
| 2 | it ends | `gcap_end` | `Wait.Ends` |  |
"""
ARCHITECTURE = "# A\n\n1. no rule\n\n## Rules that hold everywhere\n\n1. Wait.\n2. End.\n\n## Order\n\n3. no rule\n"
SOURCE = """// if (a < b) wait();
#define LESS(a, b) ((a) < (b))
static gcap_status_t end(int count) {
  const char* text = "if (a < b) wait(1);";
  /* wait(2); */
  if (count == 3) return GCAP_STATUS(GCAP_INTERNAL, "%d < 4", count < 4);
  gcap_log(GCAP_LOG_ERROR, "%d", count + 5);
  assert(count < 6);
  pthread_mutex_lock(&mutexes[7]);
  GCAP_RETURN_IF_ERROR(begin(count, text));
  (void)wait(count, 0x10);
  char line[8];
  void* room = calloc(9, count);
  REQUIRE(room != text, "%d", count + 7);
  gcap_status_t status = begin(-count, line);
  return gcap_status_join(status, drop(&text, '9'));
}
"""
ENTRY = {"row": "1", "breaks": '"it does not wait"', "file": '"lib/wait.c"', "was": '"wait();"', "becomes": '""'}


class Tree(unittest.TestCase):
    """A small tree with lists."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name
        for path, text in (("docs/seeds.md", SEEDS), ("docs/architecture.md", ARCHITECTURE),
                           ("lib/wait.c", "wait();\nend();\nend();\n")):
            self.write(path, text)
        self.known = {"Wait.Waits", "Wait.Ends", "//test/docs:words_test"}

    def write(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)

    def write_entry(self, without=(), **changes):
        entry = {**{key: value for key, value in ENTRY.items() if key not in without}, **changes}
        lines = "".join(f"{key} = {value}\n" for key, value in entry.items())
        self.write("test/mutations/a.toml", "[[mutation]]\n" + lines)

    def expect_refused(self, *words, without=(), **changes):
        self.write_entry(without, **changes)
        self.expect_problem(words, lambda: lists.load(self.root, self.known))

    def expect_problem(self, words, action):
        with self.assertRaises(lists.Problem) as caught:
            action()
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))


class Lists(Tree):
    def test_a_row_brings_its_tests(self):
        self.write_entry()
        entry, = lists.load(self.root, self.known)
        self.assertEqual(("row", 1, ["Wait.Waits", "//test/docs:words_test"]), (entry.kind, entry.value, entry.tests))

    def test_an_entry_may_name_its_tests(self):
        self.write_entry(without=["row"], rule="2", tests='["Wait.Ends"]', config='"asan"')
        entry, = lists.load(self.root, self.known)
        self.assertEqual(("rule", 2, ["Wait.Ends"], "asan"), (entry.kind, entry.value, entry.tests, entry.config))

    def test_what_is_wrong_is_named_with_its_place_its_value_and_what_is_allowed(self):
        place = "test/mutations/a.toml, entry 1: "
        self.expect_refused(place + "'wass' is unknown", "was, becomes", wass='"x"')
        self.expect_refused(place + "it has no subject", "row, rule, defect", without=["row"])
        self.expect_refused(place + "it has row and rule", rule="1")
        self.expect_refused(place + "row 3 ", "docs/seeds.md", "1 to 2", row="3")
        self.expect_refused(place + "row True ", row="true")
        self.expect_refused(place + "rule 3 ", "docs/architecture.md", "1 to 2", without=["row"], rule="3")
        self.expect_refused(place + "'breaks' is None", without=["breaks"])
        self.expect_refused(place + "'becomes' is 1", becomes="1")
        self.expect_refused(place + "'lib/none.c' is no file", file='"lib/none.c"')
        self.expect_refused(place + "'../wait.c' is no file", file='"../wait.c"')
        self.expect_refused(place + "'was' is 0 times in lib/wait.c", "once", was='"begin();"')
        self.expect_refused(place + "'was' is 2 times in lib/wait.c", was='"end();"')
        self.expect_refused(place + "'becomes' is what it was", becomes='"wait();"')
        self.expect_refused(place + "'tests' is missing", "rule", without=["row"], rule="1")
        self.expect_refused(place + "'tests' is []", tests="[]")
        self.expect_refused(place + "there is no test 'Wait.None'", tests='["Wait.None"]')
        self.expect_refused(place + "'config' is 'msan'", "asan, tsan, ubsan", config='"msan"')

    def test_a_file_that_is_no_list_is_refused(self):
        for text, word in (("[[mutation", "a.toml: "), ("[mutation]\n", "'mutation' is one table"),
                           ("[[mutations]]\n", "'mutations' is unknown"), ("", "has no mutation")):
            self.write("test/mutations/a.toml", text)
            self.expect_problem([word], lambda: lists.load(self.root, self.known))

    def test_each_row_and_each_rule_has_an_entry(self):
        self.write_entry()
        entries = lists.load(self.root, self.known)
        self.expect_problem(["row 2 of docs/seeds.md"], lambda: lists.check_complete(self.root, entries))

    def test_equivalents_are_found_by_the_text_of_their_lines(self):
        self.write("test/mutations/equivalent.toml",
                   "[[equivalent]]\nfile = \"lib/wait.c\"\nwas = 'wait();  end();'\nbecomes = 'end();'\nwhy = 'x'\n")
        was, becomes = "a;\nwait();\n\n  end();\nb;\n", "a;\n  end();\nb;\n"
        self.assertEqual(("wait();", ""), drawn.changed_lines(was, becomes))
        self.assertEqual(("wait(); end();", "end(1);"), drawn.changed_lines(was, becomes.replace("()", "(1)")))
        self.assertEqual({("lib/wait.c", "wait(); end();", "end();")}, lists.load_equivalent(self.root))

    def test_a_stale_equivalent_is_refused(self):
        for key, value, word in (("was", "begin();", "'was' is not in lib/wait.c"), ("why", "", "'why' is ''"),
                                 ("file", "lib/none.c", "'lib/none.c' is no file")):
            entry = {"file": "lib/wait.c", "was": "wait();", "becomes": "end();", "why": "x", key: value}
            self.write("test/mutations/equivalent.toml",
                       "[[equivalent]]\n" + "".join(f"{name} = '{text}'\n" for name, text in entry.items()))
            self.expect_problem([word], lambda: lists.load_equivalent(self.root))

    def test_the_words_for_an_equivalent_are_toml(self):
        module = drawn.Module.__new__(drawn.Module)
        text = "int f(void) {\n  return '\\'' + 1;\n}\n"
        start = text.index("1")
        module.texts, module.survivors = {"lib/a.c": text}, [("lib/a.c", draw.Edit("constant", start, start + 1, "2"))]
        path = os.path.join(self.root, "survivors.txt")
        drawn.write_survivors(path, [module])
        with open(path, encoding="utf-8") as file:
            words = tomllib.loads(file.read().partition("    [[equivalent]]")[2])
        self.assertEqual(("return '\\'' + 1;", "return '\\'' + 2;"), (words["was"], words["becomes"]))


WITHOUT_GIT = None if shutil.which("git") else "skipped: git is not installed, which lists what a copy has"
if WITHOUT_GIT:
    print(WITHOUT_GIT)  # ./bazelw counts such lines


@unittest.skipIf(WITHOUT_GIT, WITHOUT_GIT)
class Copies(Tree):
    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.copy = tree.Copy(os.path.realpath(self.root), os.path.join(self.root + ".copy", "here"))
        self.addCleanup(shutil.rmtree, self.root + ".copy", ignore_errors=True)
        self.addCleanup(self.copy.close)

    def test_the_copy_is_put_right_and_touches_nothing_else(self):
        self.write("tool", "x")
        os.chmod(os.path.join(self.root, "tool"), 0o755)
        os.symlink("tool", os.path.join(self.root, "link"))
        self.copy.open()
        root = self.copy.root
        digest = self.copy.digest
        times = os.stat(os.path.join(root, "tool")).st_mtime_ns
        with open(os.path.join(root, "lib/wait.c"), "w", encoding="utf-8") as file:
            file.write("broken")
        os.makedirs(os.path.join(root, "lib/other"))
        os.makedirs(os.path.join(root, ".bazel/bin"))
        self.copy.make_alike()
        self.assertEqual("wait();\nend();\nend();\n", lists.read(root, "lib/wait.c"))
        self.assertEqual(("tool", times), (os.readlink(os.path.join(root, "link")),
                                           os.stat(os.path.join(root, "tool")).st_mtime_ns))
        self.assertTrue(os.access(os.path.join(root, "tool"), os.X_OK))
        self.assertFalse(os.path.exists(os.path.join(root, "lib/other")))
        self.assertTrue(os.path.exists(os.path.join(root, ".bazel/bin")))
        self.assertEqual(digest, self.copy.digest)
        self.write("lib/wait.c", "wait(1);\n")
        self.copy.make_alike()
        self.assertNotEqual(digest, self.copy.digest)

    def test_a_broken_file_is_whole_again_whatever_happens(self):
        self.copy.open()
        with self.assertRaises(ZeroDivisionError), self.copy.broken("lib/wait.c", "broken"):
            self.assertEqual("broken", lists.read(self.copy.root, "lib/wait.c"))
            raise ZeroDivisionError
        self.assertEqual("wait();\nend();\nend();\n", lists.read(self.copy.root, "lib/wait.c"))

    def test_two_runs_do_not_share_a_copy(self):
        self.copy.open()
        other = tree.Copy(self.copy.checkout, self.copy.folder)
        self.addCleanup(other.close)
        self.expect_problem(["another run is at work in", self.copy.folder], other.open)

    def test_a_folder_that_is_no_copy_is_left_alone(self):
        self.expect_problem(["is in the checkout"],
                            tree.Copy(self.copy.checkout, os.path.join(self.copy.checkout, "lib")).open)
        os.makedirs(self.root + ".copy/mine")
        self.expect_problem(["has other files"], tree.Copy(self.copy.checkout, self.root + ".copy").open)


class Names(unittest.TestCase):
    def test_filters_have_all_parameters_of_a_case(self):
        self.assertEqual("Wait.Waits", tests.filter_of("Wait.Waits", "TEST_F(Wait, Waits)"))
        self.assertEqual("*/Wait.Waits/*:Wait.Waits/*", tests.filter_of("Wait.Waits", "TEST_P(Wait, Waits)"))
        self.assertEqual("Wait/*.Waits:*/Wait/*.Waits", tests.filter_of("Wait.Waits", "TYPED_TEST(Wait, Waits)"))

    def test_macros_may_go_over_two_lines(self):
        found = tests.CASE.findall("TEST(A,\n     B) {\nTEST_P(C, D) {\n  TEST(E, F)\nTYPED_TEST(G, H) {")
        self.assertEqual([("TEST", "A", "B"), ("TEST", "C", "D"), ("TYPED_TEST", "G", "H")], found)

    def test_a_case_is_known_with_its_parameters(self):
        for case in ("Wait.Waits", "Each/Wait.Waits/0", "Wait.Waits/Two", "Wait/1.Waits"):
            self.assertTrue(listed.is_of(case, "Wait.Waits"), case)
        for case in ("Wait.WaitsTwice", "AWait.Waits", "Wait.Ends", "//test/docs:words_test"):
            self.assertFalse(listed.is_of(case, "Wait.Waits"), case)

    def test_a_merged_program_is_preferred_to_those_of_its_sources(self):
        query = """<query>
          <rule class="cc_library" name="//lib/a:a"><list name="srcs"><label value="//lib/a:a.c"/></list></rule>
          <rule class="genrule" name="//test/a:merged_1_unit"><list name="srcs">
            <label value="//test/a:x_test.cc"/><label value="//test/a:y_test.cc"/></list></rule>
          <rule class="cc_test" name="//test/a:merged_1">
            <list name="srcs"><label value="//test/a:merged_1.cc"/></list>
            <list name="deps"><label value="//lib/a:a"/><label value="@googletest//:gtest_main"/></list></rule>
          <rule class="cc_test" name="//test/a:x_test">
            <list name="srcs"><label value="//test/a:x_test.cc"/></list></rule>
          <rule class="cc_test" name="//test/a:z_test">
            <list name="srcs"><label value="//test/a:z_test.cc"/></list></rule>
          <rule class="sh_test" name="//test/a:s_test">
            <list name="srcs"><label value="//test/a:s_test.sh"/></list></rule>
        </query>"""
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "test/a"))
            for name in "xyz":
                with open(os.path.join(root, f"test/a/{name}_test.cc"), "w", encoding="utf-8") as file:
                    file.write(f"TEST({name.upper()}, Is) {{}}\n")
            known = tests.Tests(root, query)
        self.assertEqual({"//test/a:merged_1": ["X.Is", "Y.Is"], "//test/a:z_test": ["Z.Is"], "//test/a:s_test": None},
                         known.programs_of(["X.Is", "Y.Is", "Z.Is", "//test/a:s_test"]))
        self.assertIn("lib/a/a.c", known.programs["//test/a:merged_1"].files)
        self.assertNotIn("lib/a/a.c", known.programs["//test/a:z_test"].files)


class Outcomes(unittest.TestCase):
    def test_cases_are_read_from_what_googletest_writes(self):
        outcome = runs.Outcome()
        with tempfile.NamedTemporaryFile("w", suffix=".xml", encoding="utf-8") as file:
            file.write("""<testsuites><testsuite name="A">
                <testcase name="Passes" classname="A" status="run" result="completed"/>
                <testcase name="IsNotRun" classname="A" status="notrun" result="suppressed"/>
                <testcase name="Skips" classname="A" status="run" result="skipped">
                  <skipped message="a_test.cc:3&#x0A;no GPU"/></testcase>
                <testcase name="Fails/1" classname="Each/A" status="run" result="completed">
                  <failure message="m"/></testcase></testsuite></testsuites>""")
            file.flush()
            self.assertTrue(runs.read_cases(file.name, outcome))
        self.assertEqual(({"A.Passes"}, ["Each/A.Fails/1"], {"A.Skips": "no GPU"}),
                         (outcome.passed, outcome.failed, outcome.skipped))
        self.assertFalse(runs.read_cases("/dev/null", outcome))

    def test_a_program_that_died_names_the_case(self):
        log = "[ RUN      ] A.One\n[       OK ] A.One (0 ms)\n[ RUN      ] A.Two\n"
        self.assertEqual("A.Two", runs.last_case(log))
        self.assertIsNone(runs.last_case(log + "[       OK ] A.Two (0 ms)\n"))


AQUERY = """{"actions": [
  {"mnemonic": "CppCompile", "environmentVariables": [{"key": "A", "value": "b"}],
   "arguments": ["cc", "-MF", "o/wait.pic.d", "-fPIC", "-c", "lib/wait.c", "-o", "o/wait.pic.o"]},
  {"mnemonic": "CppCompile", "arguments": ["cc", "-MF", "o/wait.d", "-c", "lib/wait.c", "-o", "o/wait.o"]},
  {"mnemonic": "CppCompile", "arguments": ["cc", "-c", "lib/other.c", "-o", "o/other.o"]},
  {"mnemonic": "CppArchive", "arguments": ["ar", "@o/a.params"],
   "paramFiles": [{"execPath": "o/a.params", "arguments": ["rcsD", "o/liba.a", "o/wait.o"]}]},
  {"mnemonic": "CppLink", "arguments": ["ld", "@o/t.params"],
   "paramFiles": [{"execPath": "o/t.params", "arguments": ["-o", "o/bin/test/a/t", "o/t.o", "o/liba.a", "-lm"]}]},
  {"mnemonic": "CppLink", "arguments": ["ld", "-o", "o/bin/test/a/u", "-lm", "@o/u.params"],
   "paramFiles": [{"execPath": "o/u.params", "arguments": ["-o", "o/bin/test/a/u", "-lm"]}]},
  {"mnemonic": "Genrule", "arguments": ["awk"]}]}"""


class Relinked(unittest.TestCase):
    def setUp(self):
        self.commands = relink.Commands(AQUERY)
        self.program = tests.Program("//test/a:t", set(), set(), True, False, True, "small", [], [], {})

    def test_a_source_is_compiled_as_what_the_program_links_was(self):
        self.assertEqual("o/wait.o", self.commands.compile_of(self.program, "lib/wait.c").value("-o"))
        self.assertIsNone(self.commands.compile_of(self.program, "lib/other.c"))
        other = tests.Program("//test/a:other", set(), set(), True, False, True, "small", [], [], {})
        self.assertIsNone(self.commands.compile_of(other, "lib/wait.c"))

    def test_what_was_compiled_comes_before_all_that_is_linked(self):
        self.assertEqual(["ld", "-o", "/x/t", "/x/0.o", "o/t.o", "o/liba.a", "-lm"],
                         self.commands.linked_with(self.program, "/x/0.o", "/x/t"))

    def test_commands_keep_their_environment(self):
        steps = relink.steps_of(AQUERY)
        self.assertEqual({"A": "b"}, steps["CppCompile"][0].env)
        self.assertEqual(["cc", "-c", "lib/other.c", "-o", "x.o"], steps["CppCompile"][2].given("-o", "x.o"))
        self.assertIsNone(steps["CppCompile"][2].value("-MF"))

    def test_what_is_told_beside_a_file_is_no_more_told_than_once(self):
        steps = relink.steps_of(AQUERY)
        self.assertEqual(["ld", "-o", "o/bin/test/a/u", "-lm"], steps["CppLink"][1].arguments)


class FakeRelinker:
    """Makes nothing: `fails` is what a compiler says."""
    fails = None

    def makes(self, program, _source):
        return program.label != "//test/a:none"

    def compile(self, _programs, _source):
        return self.fails

    def link(self, program, _source):
        return "/made/" + program.path()


class FakeRunner:
    """Runs nothing: the programs with these names fail."""

    def __init__(self):
        self.fail = set()
        self.asked = []

    def run_direct(self, wanted, _limit, first_failure, make):
        outcome = runs.Outcome()
        for program, _ in wanted:
            self.asked.append(program.label)
            make(program)
            if program.label in self.fail:
                outcome.failed += ["A.Fails", program.label]
                if first_failure:
                    break
        return outcome


class Samples(unittest.TestCase):
    """What is tried of a sample, by a clock that each build moves on."""

    def tried(self, seconds, build_seconds):
        clock = [1.0]
        built = []

        def baseline(_runner, _tests, entries, _config):
            clock[0] += build_seconds
            built.append(len(entries))
            return mock.Mock(**{"problem.return_value": (listed.CAUGHT, "A.Fails")})

        entries = [mock.Mock(config=config, breaks="it waits") for config in ("", "", "asan")]
        with mock.patch.object(listed, "Baseline", baseline), mock.patch.object(listed, "report"), \
                mock.patch.object(listed.time, "monotonic", lambda: clock[0]):
            return len(listed.run(None, None, None, entries, seconds)), built

    def test_one_is_tried_however_long_the_first_build_takes(self):
        self.assertEqual((2, [1, 1]), self.tried(seconds=120, build_seconds=500))

    def test_what_the_seconds_do_not_reach_is_not_built(self):
        self.assertEqual((3, [1, 1, 1]), self.tried(seconds=120, build_seconds=60))
        self.assertEqual((2, [1, 1]), self.tried(seconds=59, build_seconds=60))

    def test_without_a_limit_a_configuration_is_built_at_once(self):
        self.assertEqual((3, [2, 1]), self.tried(seconds=None, build_seconds=500))


class Groups(unittest.TestCase):
    def setUp(self):
        self.group = drawn.Group.__new__(drawn.Group)
        self.group.runner, self.group.relinker, self.group.limit = FakeRunner(), FakeRelinker(), 0
        self.group.programs = [tests.Program("//test/a:" + name, set(), set(), True, False, True, "small", [], [], {})
                               for name in ("one", "two", "none")]
        self.group.caught = {program.label: 0 for program in self.group.programs}

    def test_what_has_caught_most_is_asked_first(self):
        runner = self.group.runner
        runner.fail = {"//test/a:two"}
        self.assertEqual((drawn.CAUGHT, "A.Fails"), self.group.notice("lib/a.c"))
        self.assertEqual(["//test/a:one", "//test/a:two"], runner.asked)
        runner.asked.clear()
        self.group.notice("lib/a.c")
        self.assertEqual(["//test/a:two"], runner.asked)
        runner.fail = set()
        self.assertEqual((drawn.SURVIVED, ""), self.group.notice("lib/a.c"))

    def test_what_does_not_compile_is_no_draw(self):
        self.group.relinker.fails = "unused"
        self.assertEqual((drawn.NOT_BUILT, "unused"), self.group.notice("lib/a.c"))

    def test_tests_that_fail_where_nothing_is_broken_are_told(self):
        self.group.check("lib/a.c")
        self.assertEqual(["//test/a:one", "//test/a:two", "//test/a:none"], self.group.runner.asked)
        self.group.runner.fail = {"//test/a:none"}
        with self.assertRaisesRegex(lists.Problem, "A.Fails fails where nothing is broken"):
            self.group.check("lib/a.c")


class Draws(unittest.TestCase):
    def edits(self):
        source = draw.Source(SOURCE)
        return {kind: {(SOURCE[e.start:e.end], e.becomes) for e in source.edits(kind)} for kind in draw.Source.KINDS}

    def test_each_kind_finds_its_places_and_no_other(self):
        self.assertEqual({
            "operator": {("==", "!="), ("!=", "==")},
            "constant": {("3", "4"), ("3", "2"), ("8", "7"), ("9", "8")},
            "negated condition": {("(count == 3)", "(!(count == 3))")},
            "removed call": {("(void)wait(count, 0x10);", "{ if (0) (void)wait(count, 0x10); }"),
                             ('REQUIRE(room != text, "%d", count + 7);',
                              '{ if (0) REQUIRE(room != text, "%d", count + 7); }')},
            "swapped arguments": {("count, text", "text, count"), ("count, 0x10", "0x10, count"),
                                  ("-count, line", "line, -count"), ("&text, '9'", "'9', &text")},
            "dropped error": {
                ('return GCAP_STATUS(GCAP_INTERNAL, "%d < 4", count < 4);',
                 '{ gcap_status_free(GCAP_STATUS(GCAP_INTERNAL, "%d < 4", count < 4)); return NULL; }'),
                ("GCAP_RETURN_IF_ERROR", "gcap_status_free"),
                ("begin(-count, line)", "(gcap_status_free(begin(-count, line)), (gcap_status_t)NULL)"),
                ("return gcap_status_join(status, drop(&text, '9'));",
                 "{ gcap_status_free(gcap_status_join(status, drop(&text, '9'))); return NULL; }"),
            },
            "dropped return": {("(count == 3)", "(0 && (count == 3))")},
        }, self.edits())

    def test_an_edit_changes_its_place_alone(self):
        edit = draw.Source(SOURCE).edits("negated condition")[0]
        self.assertEqual(SOURCE.replace("if (count == 3)", "if (!(count == 3))"), edit.apply(SOURCE))

    def drawn(self, seed):
        places = draw.Places({"a.c": SOURCE, "b.c": SOURCE}, random.Random(seed))
        found = []
        while (kind := places.next_kind()) is not None:
            found.append(places.draw(kind))
        return found

    def test_a_seed_draws_the_same_again_and_each_place_once(self):
        first = self.drawn("1 graph")
        self.assertEqual(first, self.drawn("1 graph"))
        self.assertNotEqual(first, self.drawn("2 graph"))
        self.assertEqual(len(first), len(set(first)))
        self.assertEqual(2 * sum(len(found) for found in self.edits().values()), len(first))

    def test_the_kinds_take_turns(self):
        self.assertEqual(set(draw.Source.KINDS), {edit.kind for _, edit in self.drawn("1")[:len(draw.Source.KINDS)]})


class Pages(unittest.TestCase):
    def test_figures_are_written_between_the_marks(self):
        stamp = {"commit": "abc", "date": "2026-01-02", "uncommitted_changes": False}
        counts = {"drawn": 12, "built": 10, "caught": 7, "by_asan_alone": 3, "survived": 1, "equivalent": 2, "seed": 1}
        verdicts = {"caught": 3, "not_caught": 1, "did_not_build": 0, "is_no_test": 0, "left_out": 0}
        everything = {"listed": {**stamp, "by_kind": {kind: verdicts for kind in ("row", "rule", "defect", "all")}},
                      "drawn": {"11": {"graph": {**stamp, **counts}}, "2": {"graph": {**stamp, **counts},
                                                                             "stream": {**stamp, **counts}}}}
        with tempfile.TemporaryDirectory() as folder:
            page, file = os.path.join(folder, "page.md"), os.path.join(folder, "results.json")
            results.store(file, everything)
            for _ in range(2):
                with open(page, "w", encoding="utf-8") as text:
                    text.write(f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n")
                results.write_page(page, file, set())
                written = lists.read(folder, "page.md")
            self.assertNotIn("old", written)
            self.assertTrue(written.startswith("before\n" + results.BEGIN))
            self.assertTrue(written.endswith(results.END + "\nafter\n"))
            self.assertIn("| rules | 3 | 1 | 0 | 0 | 0 |", written)
            self.assertIn("| graph | 12 | 10 | 7 | 3 | 1 | 2 | 87 % |", written)
            self.assertIn("| all | 24 | 20 | 14 | 6 | 2 | 4 | 87 % |", written)
            self.assertLess(written.index("--seed 2` (2026-01-02, abc)"), written.index("--seed 11` (2026-01-02, abc)"))
            self.assertIn("2026-01-02, abc", written)
            with open(page, "w", encoding="utf-8") as text:
                text.write("no marks\n")
            with self.assertRaises(lists.Problem):
                results.write_page(page, file, set())

    def test_a_survivor_that_was_named_since_is_equivalent(self):
        survivors = [{"file": "a.c", "kind": "constant", "was": "1", "becomes": becomes} for becomes in ("2", "3")]
        report = {"survived": 2, "equivalent": 1, "survivors": survivors}
        judged = results.judged(report, {("a.c", "1", "3"), ("b.c", "1", "2")})
        self.assertEqual((1, 2), (judged["survived"], judged["equivalent"]))


class Command(unittest.TestCase):
    def said(self, error):
        """The exit code and the words of a run that ends by an error."""
        words = io.StringIO()
        with mock.patch.object(command, "run", side_effect=error), mock.patch.object(sys, "argv", ["mutate", "--all"]):
            with contextlib.redirect_stderr(words):
                return command.main(), words.getvalue()

    def test_a_full_disk_and_an_interruption_are_one_sentence(self):
        code, words = self.said(OSError(errno.ENOSPC, "", "/copy/file"))
        self.assertEqual((2, "mutate: the disk is full at '/copy/file': free some, and start again\n"), (code, words))
        denied = OSError(errno.EACCES, "no", "/copy/file")
        self.assertEqual((2, "mutate: [Errno 13] no: '/copy/file'\n"), self.said(denied))
        self.assertEqual((130, "mutate: interrupted; the checkout is as it was\n"), self.said(KeyboardInterrupt()))

    def test_results_that_cannot_be_written_are_found_before_anything_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, words in (("none/results.json", "none/results.json"), ("page.md", "is no file of results")):
                path = os.path.join(folder, name)
                with open(os.path.join(folder, "page.md"), "w", encoding="utf-8") as file:
                    file.write("words\n")
                command_line = ["--all", "--json", path, "--copy", os.path.join(folder, "copy")]
                made = subprocess.run([sys.executable, os.path.join(TOOLS, "mutate"), *command_line],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(2, made.returncode)
                self.assertIn(words, made.stderr)
                self.assertFalse(os.path.exists(os.path.join(folder, "copy")))

    def test_wrong_arguments_are_one_sentence_and_exit_code_2(self):
        for arguments, words in (([], "nothing to do"), (["--row"], "--row"), (["--row", "x"], "'x'"),
                                 (["--sample", "0"], "number above 0"), (["--module", "none", "--drawn"], "'none'"),
                                 (["--write", "page.md"], "expected --json FILE"), (["--unknown"], "--unknown")):
            made = subprocess.run([sys.executable, os.path.join(TOOLS, "mutate"), *arguments], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(2, made.returncode, arguments)
            self.assertIn(words, made.stderr)


if __name__ == "__main__":
    unittest.main()
