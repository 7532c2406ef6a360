# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Draws mutations of the library's modules, and runs the tests of the module and of faults."""

import difflib
import os
import random
import time

from mutation import draw, lists, relink, runs
from mutation.listed import diff
from mutation.lists import Problem

MODULES = ["capture", "graph", "stream", "scratch", "contents", "allocator", "runtime", "session", "options"]
FAULTS = "fault"
# Of a hundred mutations that are not equivalent, so many are to be caught in each module.
GOAL = 90
SLOW = {"slow", "stress", "fuzz", "benchmark", "requires-toolkit"}
# If a program takes longer, and much longer than with nothing broken, the mutation is caught by time.
LIMIT_S = 25
CAUGHT, SURVIVED, EQUIVALENT, NOT_BUILT = "caught", "SURVIVED", "equivalent", "did not build"


def programs_of(tests, package):
    """The quick programs of a package and of those below."""
    return [program for program in tests.chosen
            if program.label.startswith((f"//test/{package}:", f"//test/{package}/")) and program.direct() and
            program.size == "small" and not SLOW & set(program.tags)]


def changed_lines(was, becomes):
    """The lines that differ, before and after, each as one."""
    before, after = was.splitlines(), becomes.splitlines()
    blocks = [block for block in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
              if block[0] != "equal"]
    first, last = blocks[0], blocks[-1]
    return (lists.one_line("\n".join(before[first[1]:last[2]])), lists.one_line("\n".join(after[first[3]:last[4]])))


class Group:
    """Programs that are built and run together. Bazel builds them once; then each is made anew of a broken source."""

    def __init__(self, runner, programs, config=""):
        self.runner = runner
        self.config = config
        self.relinker = None
        self.limit = 0
        self.caught = {program.label: 0 for program in programs}
        self.programs = programs
        failure = runner.build(programs, config)
        if failure:
            raise Problem(f"the tests do not build where nothing is broken:\n{failure}")
        self.relinker = relink.Relinker(runner, programs, config)

    def check(self, path):
        """Makes and runs all programs, none of them of a broken source: they must pass."""
        linked = [program for program in self.programs if self.relinker.makes(program, path)]
        failure = self.relinker.compile(linked, path)
        if failure:
            raise Problem(f"{path} cannot be compiled where nothing is broken:\n{failure}")

        def make(program):
            return self.relinker.link(program, path) if program in linked else None

        outcome = self.runner.run_direct([(program, None) for program in self.programs], 20 * LIMIT_S, False, make)
        if outcome.failed:
            raise Problem(f"{outcome.failed[0]} fails where nothing is broken")
        self.limit = max(LIMIT_S, runs.TIMES_AS_LONG * outcome.seconds)

    def notice(self, path):
        """What notices that the file is broken: ("did not build" | "caught" | "SURVIVED", detail)."""
        programs = [program for program in self.programs if self.relinker.makes(program, path)]
        failure = self.relinker.compile(programs, path)
        if failure:
            return NOT_BUILT, failure
        # What has caught most is asked first.
        programs.sort(key=lambda program: -self.caught[program.label])
        outcome = self.runner.run_direct([(program, None) for program in programs], self.limit, True,
                                         lambda program: self.relinker.link(program, path))
        if not outcome.failed:
            return SURVIVED, ""
        for label in outcome.failed:
            if label in self.caught:
                self.caught[label] += 1
        return CAUGHT, outcome.failed[0] + (", by time" if outcome.by_time else "")


class Module:
    """The draws of one module."""

    def __init__(self, copy, name, seed, equivalent):
        self.copy = copy
        self.name = name
        self.equivalent = equivalent
        folder = next(folder for folder in (os.path.join(copy.root, storey, name) for storey in ("lib", "kit"))
                      if os.path.isdir(folder))
        paths = [os.path.relpath(os.path.join(where, file), copy.root)
                 for where, _, files in os.walk(folder) for file in files if file.endswith(".c")]
        self.texts = {path: lists.read(copy.root, path) for path in paths}
        self.places = draw.Places(self.texts, random.Random(f"{seed} {name}"))
        self.count = {"drawn": 0, "built": 0, "caught": 0, "by_time": 0, "by_faults_alone": 0, "survived": 0,
                      "equivalent": 0}
        self.kinds = {kind: {"built": 0, "caught": 0, "equivalent": 0} for kind in draw.Source.KINDS}
        self.survivors = []

    def try_one(self, path, edit, own, faults):
        was = self.texts[path]
        becomes = edit.apply(was)
        if (path, *changed_lines(was, becomes)) in self.equivalent:
            return EQUIVALENT, ""
        with self.copy.broken(path, becomes):
            verdict, detail = own.notice(path)
            if verdict == SURVIVED:
                verdict, detail = faults.notice(path)
                self.count["by_faults_alone"] += verdict == CAUGHT
        return verdict, detail

    def run(self, draws, own, faults):
        for group in (own, faults):
            group.check(min(self.texts))
        while self.count["built"] < draws:
            kind = self.places.next_kind()
            if kind is None:
                print(f"{self.name} has no other place: {self.count['built']} draws of {draws}")
                return
            self.draw_of(kind, own, faults)

    def draw_of(self, kind, own, faults):
        """Draws until one builds."""
        verdict = NOT_BUILT
        while verdict == NOT_BUILT:
            drawn = self.places.draw(kind)
            if drawn is None:
                return
            path, edit = drawn
            start = time.monotonic()
            verdict, detail = self.try_one(path, edit, own, faults)
            self.count["drawn"] += 1
            self.note(path, edit, verdict, detail, time.monotonic() - start)

    def note(self, path, edit, verdict, detail, seconds):
        was = self.texts[path]
        line = was.count("\n", 0, edit.start) + 1
        shown = f"{detail}, " if verdict == CAUGHT else ""
        print(f"{verdict:13} {path}:{line}  {edit.kind}  ({shown}{seconds:.1f} s)", flush=True)
        if verdict == NOT_BUILT:
            return
        self.count["built"] += 1
        self.kinds[edit.kind]["built"] += 1
        self.count["by_time"] += detail.endswith(", by time")
        self.count[verdict.lower()] += 1
        if verdict == SURVIVED:
            print(diff(path, was, edit.apply(was)), flush=True)
            self.survivors.append((path, edit))
        else:
            self.kinds[edit.kind][verdict] += 1

    def look_under_asan(self, group):
        """Tries the survivors again, with the module's tests under asan."""
        left = []
        group.check(self.survivors[0][0])
        for path, edit in self.survivors:
            with self.copy.broken(path, edit.apply(self.texts[path])):
                verdict, detail = group.notice(path)
            print(f"{verdict:13} {path}  {edit.kind}, under asan  ({detail})", flush=True)
            if verdict != CAUGHT:
                left.append((path, edit))
        self.count["by_asan_alone"] = len(self.survivors) - len(left)
        self.count["caught"] += self.count["by_asan_alone"]
        self.count["survived"] = len(left)
        self.survivors = left

    def report(self, seed):
        """What the file of results has of the module."""
        survivors = []
        for path, edit in self.survivors:
            was, becomes = changed_lines(self.texts[path], edit.apply(self.texts[path]))
            survivors.append({"file": path, "kind": edit.kind, "was": was, "becomes": becomes})
        return {"seed": seed, **self.count, "kinds": self.kinds, "survivors": survivors}


def share(count):
    """Of the mutations that are not equivalent, how many of a hundred are caught."""
    rest = count["built"] - count["equivalent"]
    return 100 * count["caught"] // rest if rest else 100


def write_survivors(path, modules):
    """A diff of each, and the words for equivalent.toml."""
    with open(path, "w", encoding="utf-8") as file:
        for module in modules:
            for name, edit in module.survivors:
                was = module.texts[name]
                before, after = changed_lines(was, edit.apply(was))
                file.write(f"{name}  {edit.kind}\n{diff(name, was, edit.apply(was))}\n")
                file.write(f"    [[equivalent]]\n    file = \"{name}\"\n    was = '''{before}'''\n"
                           f"    becomes = '''{after}'''\n    why = \"\"\n\n")


def run(copy, runner, tests, options, save):
    """Draws in each module. `save` is called with each module's results."""
    names = options.module or MODULES
    equivalent = lists.load_equivalent(copy.root)
    faults = Group(runner, programs_of(tests, FAULTS))
    modules = []
    for i, name in enumerate(names):
        draws = options.draws // len(names) + (i < options.draws % len(names))
        module = Module(copy, name, options.seed, equivalent)
        module.run(draws, Group(runner, programs_of(tests, name)), faults)
        modules.append(module)
        write_survivors(os.path.join(copy.folder, "survivors.txt"), modules)
        save(name, module.report(options.seed))
    if options.asan:
        for module in modules:
            if module.survivors:
                programs = [p for p in programs_of(tests, module.name) if "no-sanitizer" not in p.tags]
                module.look_under_asan(Group(runner, programs, "asan"))
                save(module.name, module.report(options.seed))
        write_survivors(os.path.join(copy.folder, "survivors.txt"), modules)
    return modules
