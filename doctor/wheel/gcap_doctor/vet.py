# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""gcap-doctor vet: finds tests of CUDA graphs that pass whatever the graph does. Reads their source; imports nothing.

The idea: a test is walked in the order in which its statements run, into the functions of its own file that it calls, and
each name is followed to the memory that it stands for: a view or an assignment is the same memory, a clone another one.
What the walk saw (captures, replays, writes between them, comparisons) is then judged by rules, each of which names what
would go unnoticed. Where the source does not tell, as in a helper of another file, the rules are silent.
"""

import ast
import os
import re
import sys
import tokenize

from gcap_doctor.vet_rules import KINDS, judge
from gcap_doctor.vet_walk import Walk

USAGE = """gcap-doctor vet [--sarif FILE] [--junit FILE] [--quiet] PATH...

Finds tests of CUDA graphs that pass whatever the graph does. PATH is a file, or a folder whose test_*.py and *_test.py are
read; nothing is imported or run. A comment '# gcap-vet: allow KIND' at a test's def, or at the line of a finding, allows it.

  --sarif FILE              the findings as SARIF 2.1.0, for code hosts
  --junit FILE              the findings as JUnit's XML, for CI systems
  --quiet                   nothing on standard output
  --kinds                   what is found, and the remedies
  --help                    this text

Ends with 0 where no finding is an error, with 1 where one is, with 2 for a wrong command line, with 3 where a file cannot be
read or written.
"""
EXIT_HEALTHY, EXIT_FINDING, EXIT_MISUSE, EXIT_FILE = 0, 1, 2, 3
ALLOW = re.compile(r"#\s*gcap-vet:\s*allow\s+([\w, ]+)")
OF_CAPTURES = re.compile(r"graph|begin_capture|capture_begin|ScopedCapture", re.IGNORECASE)  # what a file that matters has
TEST_FILE = re.compile(r"^(test_.*|.*_test|tests?)\.py$")


class VetFinding:
    """`test` is the name of the test, or '' where the finding is of the file."""

    def __init__(self, kind, sentence, file, line, test="", severity=None):
        self.kind, self.sentence, self.file, self.line, self.test = kind, sentence, file, line, test
        self.severity = severity or KINDS[kind][0]
        self.remedy = KINDS[kind][2]
        self.rule = None
        self.function = test or None

    def __str__(self):
        return f"{self.file}:{self.line}: {self.severity} {self.kind}: {self.sentence}\n  remedy: {self.remedy}"


class FileResult:
    def __init__(self, path):
        self.path, self.findings, self.tests, self.capture_tests, self.readable = path, [], 0, 0, True


def vet_file(path):
    """What is found in a file; a file that cannot be read or parsed is a finding itself."""
    result = FileResult(path)
    try:
        with tokenize.open(path) as file:
            source = file.read()
        tree = ast.parse(source, filename=path)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        result.readable = False
        line = getattr(error, "lineno", None) or 1
        reason = getattr(error, "strerror", None) or getattr(error, "msg", None) or str(error)
        result.findings.append(VetFinding("unreadable", f"the file cannot be read as Python: {reason}", path, line))
        return result
    vet_tree(tree, source.splitlines(), result)
    return result


def vet_tree(tree, lines, result):
    matters = any(OF_CAPTURES.search(line) for line in lines)
    for owner, function in tests_of(tree):
        name = f"{owner.name}.{function.name}" if owner else function.name
        result.tests += 1
        if not matters:
            continue
        try:
            walk = Walk(tree, owner, function)
            found = judge(walk)
        except RecursionError:
            found, walk = [("unreadable", f"{name} is nested too deep to be followed", function.lineno, None)], None
        result.capture_tests += walk is not None and walk.is_of_capture
        seen = set()
        for kind, sentence, line, severity in found:
            if (kind, line) not in seen and not is_allowed(lines, kind, line, function):
                seen.add((kind, line))
                result.findings.append(VetFinding(kind, sentence.format(test=name), result.path, line, name, severity))


def tests_of(tree):
    """(class or None, function) of what a test runner collects."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
            yield None, node
        elif isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and child.name.startswith("test"):
                    yield node, child


def is_allowed(lines, kind, line, function):
    first = min([function.lineno] + [decorator.lineno for decorator in function.decorator_list])
    for number in {line, *range(first, function.body[0].lineno)}:
        found = ALLOW.search(lines[number - 1]) if number <= len(lines) else None
        if found and kind in re.split(r"[,\s]+", found[1].strip()):
            return True
    return False


def files_of(path):
    """The files of a path, in order; a file is taken whatever its name."""
    if not os.path.isdir(path):
        return [path]
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in ("__pycache__",
                                                                                                  "node_modules"))
        found += [os.path.join(folder, name) for name in sorted(names) if TEST_FILE.match(name)]
    return found


def vet_paths(paths):
    return [vet_file(file) for path in paths for file in files_of(path)]


def summary(results):
    findings = [finding for result in results for finding in result.findings]
    counts = ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for name in ("error", "warning", "note")
                       for number in [sum(finding.severity == name for finding in findings)] if number) or "no finding"
    return (f"{counts}; {sum(result.capture_tests for result in results)} tests of captures among "
            f"{sum(result.tests for result in results)} tests in {len(results)} files")


# --- The command ------------------------------------------------------------------------------------------------------


def say(text):
    print(f"gcap-doctor: vet: {text}", file=sys.stderr)


def read_arguments(arguments):
    """(options, paths), or a sentence."""
    options, paths, rest = {}, [], list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            paths += rest
            break
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            paths.append(word)
        elif name in ("--sarif", "--junit"):
            if not equals:
                value = rest.pop(0) if rest else ""
            if not value:
                return f"{name} has no value: expected FILE"
            options[name] = value
        elif name in ("--quiet", "--kinds", "--help", "-h"):
            if equals:
                return f"{name} is '{value}': expected no value"
            options[name] = True
        else:
            return f"'{word}' is no option of it: expected one of --sarif, --junit, --quiet, --kinds, --help"
    return options, paths


def print_kinds():
    for kind, (severity, meaning, remedy) in KINDS.items():
        print(f"{kind} ({severity}): {meaning}\n  remedy: {remedy}")


def write_reports(options, results):
    """Whether all could be written."""
    from gcap_doctor import formats

    findings = [finding for result in results for finding in result.findings]
    cases = [(result.path, result.findings) for result in results]
    for option, write in (("--sarif", lambda path: formats.write_sarif(path, findings, KINDS, "gcap-doctor vet")),
                          ("--junit", lambda path: formats.write_junit(path, cases, "gcap-doctor vet"))):
        if option not in options:
            continue
        try:
            write(options[option])
        except OSError as error:
            say(f"{option} is '{options[option]}', which cannot be written: {error.strerror}")
            return False
    return True


def main(arguments):
    read = read_arguments(arguments)
    if isinstance(read, str):
        say(read)
        return EXIT_MISUSE
    options, paths = read
    if "--help" in options or "-h" in options:
        print(USAGE, end="")
        return EXIT_HEALTHY
    if "--kinds" in options:
        print_kinds()
        return EXIT_HEALTHY
    if not paths:
        say("no path: expected files or folders of tests, as in gcap-doctor vet tests/")
        return EXIT_MISUSE
    results = vet_paths(paths)
    if "--quiet" not in options:
        for result in results:
            for finding in result.findings:
                print(finding)
        print(summary(results))
    if not results:
        say(f"no test_*.py or *_test.py in {', '.join(paths)}")
    return exit_code(results, write_reports(options, results))


def exit_code(results, written):
    if any(finding.severity == "error" for result in results for finding in result.findings):
        return EXIT_FINDING
    if not written or not results or not all(result.readable for result in results):
        return EXIT_FILE
    return EXIT_HEALTHY
