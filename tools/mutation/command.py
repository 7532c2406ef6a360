# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Breaks gcap on purpose, and says which tests notice.

    tools/mutate --all                    each mutation of test/mutations/*.toml, with its own tests alone
    tools/mutate --row N... --rule N... --defect TEXT --file PATH... --changed REVISION
                                          those for these rows of docs/seeds.md, rules of docs/architecture.md, defects
                                          with TEXT in their name, files, files that differ from REVISION
    tools/mutate --sample SECONDS         those that a draw by the contents of the tree takes, for about that time
    tools/mutate --check                  reads the lists, and runs no test
    tools/mutate --drawn [--module M...] [--draws N] [--seed S] [--asan]
                                          N mutations (400) that a program draws in lib/, kit/, an equal share in each module,
                                          with the quick tests of the module and of test/fault; with --asan what
                                          survives is tried again with the module's tests under asan. The copy's
                                          survivors.txt has what survives
    tools/mutate --write PAGE --json FILE writes the figures of FILE between the page's two marks; a survivor that
                                          test/mutations/equivalent.toml has by then is an equivalent one

A mutation is caught if it builds and one of its tests fails or runs out of time. It is left out where all its tests
skip, for want of ONNX Runtime (GCAP_ORT_FETCH=pip fetches it) or of a GPU. Everything happens in a copy of the working
tree, uncommitted changes included, with a Bazel server of its own that ends with the command; the copy stays for the
next time. The exit code is 1 if one was not caught, did not build, or is no test, or if less than 90 % of a module's
drawn ones were caught that are not equivalent; 2 for wrong input; 130 if interrupted. Needs Python 3.11.
"""

import argparse
import contextlib
import errno
import os
import signal
import sys
import time

from mutation import drawn, listed, lists, results, runs, tests, tree
from mutation.lists import Problem

CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


def at_least_1(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


at_least_1.__name__ = "number above 0"


def parse(arguments):
    parser = argparse.ArgumentParser(prog="mutate", usage="%(prog)s WHAT... [OPTION...]", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    what = parser.add_argument_group("what")
    what.add_argument("--all", action="store_true", help="each entry; each row and rule must have one")
    what.add_argument("--row", type=int, nargs="+", metavar="N")
    what.add_argument("--rule", type=int, nargs="+", metavar="N")
    what.add_argument("--defect", metavar="TEXT")
    what.add_argument("--file", nargs="+", metavar="PATH")
    what.add_argument("--changed", metavar="REVISION")
    what.add_argument("--sample", type=at_least_1, metavar="SECONDS")
    what.add_argument("--check", action="store_true")
    what.add_argument("--drawn", action="store_true")
    what.add_argument("--write", metavar="PAGE")
    drawing = parser.add_argument_group("for --drawn")
    drawing.add_argument("--module", nargs="+", metavar="M", choices=drawn.MODULES)
    drawing.add_argument("--draws", type=at_least_1, metavar="N", default=400)
    drawing.add_argument("--seed", type=int, metavar="S", default=1)
    drawing.add_argument("--asan", action="store_true")
    parser.add_argument("--copy", metavar="DIR", help="where the copy is (a folder of ~/.cache/gcap-mutate)")
    parser.add_argument("--json", metavar="FILE", help="writes the results, beside those of the other mode and modules")
    options = parser.parse_args(arguments)
    if not any([options.all, options.row, options.rule, options.defect, options.file, options.changed is not None,
                options.sample, options.check, options.drawn, options.write]):
        parser.error("nothing to do: expected --all, --row, --rule, --defect, --file, --changed, --sample, --check, "
                     "--drawn or --write")
    if options.write and not options.json:
        parser.error("--write needs the results: expected --json FILE")
    return options


def run_listed(copy, runner, known, options):
    entries = lists.load(copy.root, known.names())
    if options.all:
        lists.check_complete(copy.root, entries)
    if options.check:
        print(f"{len(entries)} mutations, {len(lists.load_equivalent(copy.root))} equivalent edits")
        return 0
    entries = listed.chosen(entries, options, copy)
    if not entries:
        print("no mutation is of a file that changed\n0 passed, 0 failed")
        return 0
    began = time.monotonic()
    found = listed.run(copy, runner, known, entries, options.sample)
    if options.json:
        results.save_listed(options.json, copy, {"by_kind": listed.totals(found), "mutations": found})
    every = listed.totals(found)["all"]
    print(", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in every.items()),
          f"in {time.monotonic() - began:.0f} s")
    failed = sum(each["verdict"] not in listed.GOOD for each in found)
    print(f"{len(found) - failed} passed, {failed} failed")
    return 1 if failed else 0


def run_drawn(copy, runner, known, options):
    def save(name, report):
        if options.json:
            results.save_module(options.json, copy, name, report)

    began = time.monotonic()
    modules = drawn.run(copy, runner, known, options, save)
    print(results.drawn_table({module.name: module.report(options.seed) for module in modules}))
    print(f"{time.monotonic() - began:.0f} s; what survives is in {copy.folder}/survivors.txt")
    failed = sum(drawn.share(module.count) < drawn.GOAL for module in modules)
    print(f"{len(modules) - failed} passed, {failed} failed")
    return 1 if failed else 0


def run(options):
    if options.write:
        results.write_page(options.write, options.json, lists.load_equivalent(CHECKOUT))
        return 0
    if options.json:
        results.store(options.json, results.load(options.json))  # a file that cannot be written is found now
    copy = tree.Copy(CHECKOUT, options.copy or tree.default_folder(CHECKOUT))
    try:
        copy.open()
        if options.json:
            copy.stamp = results.stamp(copy)
        with contextlib.closing(runs.Runner(copy)) as runner:
            known = tests.Tests(copy.root, runner.query(tests.QUERY))
            return (run_drawn if options.drawn else run_listed)(copy, runner, known, options)
    finally:
        copy.close()


def interrupt(_signal, _frame):
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return run(parse(sys.argv[1:]))
    except Problem as problem:
        print(f"mutate: {problem}", file=sys.stderr)
        return 2
    except OSError as error:
        full = f"the disk is full at '{error.filename}': free some, and start again"
        print(f"mutate: {full if error.errno == errno.ENOSPC else error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutate: interrupted; the checkout is as it was", file=sys.stderr)
        return 130
