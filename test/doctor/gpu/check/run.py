#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Runs gcap_doctor.check on a GPU over the operations of faulty.py and sound.py, and compares with what they say.

    run.py [--package FOLDER] [--only NAME]

Prints tables for docs/doctor_runs.md; the last line is "N passed, N failed". An operation passes if a faulty one has one of
its kinds as the first finding, at the line that is marked if the finding names a line at all, and a sound one has no error
and no warning; and if the check took less than a second. An operation that may take the device with it has a process of its
own. --package is the folder of the wheel's Python, where the wheel is not installed.
"""
import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_SECONDS = 1.0
ALONE_SECONDS = 180


def checked(make, other):
    """The report of a check, as a dictionary."""
    import gcap_doctor

    fn, *inputs = make()
    report = gcap_doctor.check(fn, *inputs, other=other() if other else None)
    return {"findings": [[each.kind, each.severity, each.sentence, each.file, each.line] for each in report.findings],
            "seconds": report.seconds, "held": report.held_bytes, "steps": len(report.steps), "text": str(report)}


def marked_line(make):
    """The number of the line with `# culprit` of an operation, or None."""
    with open(make.__code__.co_filename, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for number in range(make.__code__.co_firstlineno, len(lines)):
        if "# culprit" in lines[number]:
            return number + 1
        if lines[number].startswith(("@", "# ---", "class ")):
            return None
    return None


def first_finding(result):
    return next((each for each in result["findings"] if each[1] != "note"), None)


def judge_faulty(name, make, kinds, result):
    finding = first_finding(result)
    if finding is None:
        return f"nothing found, expected {' or '.join(kinds)}"
    if finding[0] not in kinds:
        return f"found {finding[0]}, expected {' or '.join(kinds)}"
    line = marked_line(make)
    if line is not None and finding[0] in ("culprit", "refused", "escaped", "eager_failed") and finding[4] != line:
        return f"line {finding[4]}, expected {line}"
    return ""


def judge_sound(result):
    finding = first_finding(result)
    if finding is not None:
        return f"found {finding[0]}"
    return "" if result["steps"] >= 5 else f"{result['steps']} steps"


def alone(name, package):
    """The result of an operation in a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), "--alone", name] + (["--package", package] if package else [])
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=ALONE_SECONDS, check=False)
        return json.loads(ran.stdout.strip().split("\n")[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return {"findings": [], "seconds": 0, "held": 0, "steps": 0, "text": f"the process gave no result: {error}"}


def row(name, result, problem):
    finding = first_finding(result)
    said = f"`{finding[0]}`: {finding[2]}".replace("|", "\\|") if finding else "-"
    return f"| {name} | {said} | {result['seconds']:.2f} | {problem or 'yes'} |"


HEAD = "| operation | found | s | as expected |\n|---|---|---|---|"


def run(title, cases, judge):
    """Prints a table; whether each case passed."""
    print(f"### {title}\n\n{HEAD}", flush=True)
    passed, details = [], []
    for name, make in cases:
        result = make()
        problem = judge(name, result)
        if not problem and result["seconds"] >= MOST_SECONDS:
            problem = f"took {result['seconds']:.2f} s"
        print(row(name, result, problem), flush=True)
        passed.append(not problem)
        if problem:
            details.append(f"{name}: {problem}\n{result['text']}")
    print()
    if details:
        print("\n\n".join(details) + "\n")
    return passed


def warm(sound):
    """PyTorch's own start, which is no operation's."""
    began = time.monotonic()
    for name in ("add", "matmul", "convolution", "dropout", "complex_fft", "training_step"):
        checked(sound.OPERATIONS[name], None)
    print(f"The first checks, with the start of PyTorch's libraries: {time.monotonic() - began:.1f} s.\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package")
    parser.add_argument("--only", help="the operation of this name alone")
    parser.add_argument("--alone", help="for the runner itself: prints the operation's result as JSON")
    arguments = parser.parse_args()
    sys.path[:0] = [HERE] + ([arguments.package] if arguments.package else [])
    import faulty
    import sound
    import torch

    if arguments.alone:
        checked(sound.OPERATIONS["add"], None)
        make, _, options = faulty.OPERATIONS[arguments.alone]
        print(json.dumps(checked(make, options.get("other"))))
        return 0
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Python {sys.version.split()[0]}\n")
    warm(sound)

    def wanted(name):
        return arguments.only in (None, name)

    def of_faulty(name, make, options):
        if options.get("alone"):
            return lambda: alone(name, arguments.package)
        return lambda: checked(make, options.get("other"))

    passed = run("Sound operations", [(name, lambda make=make: checked(make, None))
                                      for name, make in sound.OPERATIONS.items() if wanted(name)],
                 lambda name, result: judge_sound(result))
    passed += run("Faulty operations", [(name, of_faulty(name, make, options))
                                        for name, (make, _, options) in faulty.OPERATIONS.items() if wanted(name)],
                  lambda name, result: judge_faulty(name, *faulty.OPERATIONS[name][:2], result))
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
