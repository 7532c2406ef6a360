# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Runs the mutations of the lists, each with its tests alone."""

import difflib
import random
import re
import time

from mutation import lists, runs, tree
from mutation.lists import Problem

# If a program takes longer, and much longer than with nothing broken, the mutation is caught by time.
LIMIT_S = 60
# A sample is drawn of no more entries than that many seconds each allow.
SHORTEST_S = 2
CAUGHT, NOT_CAUGHT, NOT_BUILT, BROKEN, LEFT_OUT = "caught", "NOT CAUGHT", "did not build", "is no test", "left out"
GOOD = (CAUGHT, LEFT_OUT)


def diff(path, was, becomes):
    lines = difflib.unified_diff(was.splitlines(), becomes.splitlines(), path, path, n=1, lineterm="")
    return "\n".join("    " + line for line in lines)


def mutated(root, entry):
    return lists.read(root, entry.file).replace(entry.was, entry.becomes, 1)


def changed_files(copy, revision):
    changed = tree.git(copy.checkout, "diff", "--name-only", revision, "--").splitlines()
    return set(changed) | set(tree.git(copy.checkout, "ls-files", "--others", "--exclude-standard").splitlines())


def check_there(option, values, there):
    for value in values or []:
        if value not in there:
            raise Problem(f"--{option} {value}: no entry of {lists.FOLDER} has it")


def chosen(entries, options, copy):
    """The entries that the command line asks for."""
    if options.all:
        return entries
    if options.sample:
        # A sanitizer's build would take longer than the rest.
        shuffled = [entry for entry in entries if not entry.config]
        random.Random(copy.digest).shuffle(shuffled)
        return shuffled[:max(1, options.sample // SHORTEST_S)]
    subjects = [("row", value) for value in options.row or []] + [("rule", value) for value in options.rule or []]
    defects = [entry.value for entry in entries if entry.kind == "defect"]
    names = [name for name in defects if options.defect and options.defect in name]
    check_there("row", options.row, [entry.value for entry in entries if entry.kind == "row"])
    check_there("rule", options.rule, [entry.value for entry in entries if entry.kind == "rule"])
    check_there("file", options.file, [entry.file for entry in entries])
    check_there("defect", [options.defect] if options.defect and not names else [], [])
    subjects += [("defect", name) for name in names]
    files = set(options.file or [])
    if options.changed is not None:
        files |= changed_files(copy, options.changed)
    return [entry for entry in entries if (entry.kind, entry.value) in subjects or entry.file in files]


def is_of(case, name):
    """Whether GoogleTest's case is the named one, perhaps with a parameter; or the same script."""
    if name.startswith("//"):
        return case == name
    suite, _, rest = name.partition(".")
    return re.fullmatch(rf"(\w+/)?{re.escape(suite)}(/\w+)?\.{re.escape(rest)}(/\w+)?", case) is not None


class Baseline:
    """What the tests of some entries say where nothing is broken, in one configuration."""

    def __init__(self, runner, tests, entries, config):
        self.tests = tests
        wanted = self.wanted(sorted({name for entry in entries for name in entry.tests}))
        failure = runner.build([program for program, _ in wanted], config)
        if failure:
            raise Problem(f"the tests do not build where nothing is broken:\n{failure}")
        self.outcome = runner.run(wanted, config, 10 * LIMIT_S)
        self.limit = max(LIMIT_S, runs.TIMES_AS_LONG * self.outcome.seconds)

    def wanted(self, names):
        programs = self.tests.programs_of(names)
        return [(self.tests.programs[label], filters) for label, filters in sorted(programs.items())]

    def problem(self, entry):
        """Why the entry cannot be tried: a verdict and the reason, or None."""
        outcome = self.outcome
        ends = [runs.end_of(label) for label in self.tests.programs_of(entry.tests)]
        ran = False
        reasons = []
        for name in entry.tests:
            for case in outcome.failed:
                if is_of(case, name) or case in ends:
                    return BROKEN, f"{case} fails where nothing is broken"
            passed = any(is_of(case, name) for case in outcome.passed)
            skips = [why for case, why in outcome.skipped.items() if is_of(case, name)]
            if not passed and not skips:
                return BROKEN, f"{name} runs no case"
            ran = ran or passed
            reasons += skips
        return None if ran else (LEFT_OUT, reasons[0])


def try_entry(copy, runner, baseline, entry):
    """The verdict on one entry, and what goes with it."""
    wanted = baseline.wanted(entry.tests)
    programs = [program for program, _ in wanted]
    with copy.broken(entry.file, mutated(copy.root, entry)):
        failure = runner.build(programs, entry.config, mutated=True)
        if failure:
            return NOT_BUILT, failure.strip()
        outcome = runner.run(wanted, entry.config, baseline.limit, first_failure=True)
    if outcome.failed:
        return CAUGHT, outcome.failed[0] + (", by time" if outcome.by_time else "")
    if not outcome.passed:
        return BROKEN, "no case ran"
    return NOT_CAUGHT, ", ".join(entry.tests)


def report(entry, verdict, detail, seconds, copy):
    shown = detail.splitlines()[0] if verdict != NOT_BUILT else entry.file
    print(f"{verdict:13} {entry.title()}  ({shown}, {seconds:.1f} s)", flush=True)
    if verdict == NOT_CAUGHT:
        print(diff(entry.file, lists.read(copy.root, entry.file), mutated(copy.root, entry)), flush=True)
    elif verdict in (NOT_BUILT, BROKEN):
        print("\n".join("    " + line for line in f"{entry.place}: {detail}".splitlines()[:20]), flush=True)


def groups(entries, seconds):
    """Entries whose tests are built and run at once where nothing is broken.

    Those of one configuration; of a sample each entry alone, since what the seconds do not reach is not to be built.
    """
    if seconds:
        return [[entry] for entry in entries]
    return [[entry for entry in entries if entry.config == config] for config in sorted({e.config for e in entries})]


def run(copy, runner, tests, entries, seconds):
    """Tries each entry, or as many as the seconds allow, and one at least. Returns the results."""
    results = []
    began = None
    for group in groups(entries, seconds):
        if seconds and began and time.monotonic() - began > seconds:
            break
        baseline = Baseline(runner, tests, group, group[0].config)
        began = began or time.monotonic()  # Bazel reads the whole tree for its first build
        for entry in group:
            start = time.monotonic()
            verdict, detail = baseline.problem(entry) or try_entry(copy, runner, baseline, entry)
            took = time.monotonic() - start
            report(entry, verdict, detail, took, copy)
            results.append({"kind": entry.kind, "value": entry.value, "breaks": lists.one_line(entry.breaks),
                            "file": entry.file, "verdict": verdict, "detail": detail.split("\n")[0],
                            "seconds": round(took, 1)})
    return results


def totals(results):
    """By kind and over all: how many have each verdict."""
    table = {}
    for kind in ("row", "rule", "defect", "all"):
        some = [each["verdict"] for each in results if kind in (each["kind"], "all")]
        table[kind] = {verdict.lower().replace(" ", "_"): some.count(verdict)
                       for verdict in (CAUGHT, NOT_CAUGHT, NOT_BUILT, BROKEN, LEFT_OUT)}
    return table
