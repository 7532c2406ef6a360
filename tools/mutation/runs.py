# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Builds programs in the copy, and runs them.

A GoogleTest program is started without Bazel, which would take longer than most cases do. What only Bazel can start, a
script with its arguments, `bazel test` starts.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree

from mutation.lists import Problem

QUIET = ["--noshow_progress", "--color=no", "--curses=no", "--noshow_loading_progress"]
# Without it a filter of tests makes Bazel analyse the tree again.
TRIM = ["--trim_test_configuration"]
# asan and ubsan go together, as in .ci/run, so that what one built serves the other.
TOGETHER = {"asan": ["asan", "ubsan"], "ubsan": ["asan", "ubsan"], "tsan": ["tsan"], "": []}
# As in .bazelrc, for programs that are started without Bazel.
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=50",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
# Where something is broken, a program may take that many times as long as elsewhere.
TIMES_AS_LONG = 5
DISK_FULL = "No space left on device"
TESTS_FAILED = 3  # Bazel's exit code
SKIPPED_SCRIPT = re.compile(r"^skipped: (.*)", re.IGNORECASE | re.MULTILINE)


class Outcome:
    """What a program's run showed."""

    def __init__(self):
        self.passed = set()
        self.failed = []
        self.skipped = {}  # with the reasons
        self.by_time = False
        self.seconds = 0.0  # of the longest program

    def tell_of(self, label):
        """Says of a program that was run as a whole what its cases say."""
        if self.failed:
            self.failed.append(label)
        elif self.passed:
            self.passed.add(label)
        elif self.skipped:
            self.skipped[label] = next(iter(self.skipped.values()))

    def add(self, other):
        self.passed |= other.passed
        self.failed += other.failed
        self.skipped.update(other.skipped)
        self.by_time = self.by_time or other.by_time
        self.seconds = max(self.seconds, other.seconds)


def read_cases(path, outcome):
    """Adds what GoogleTest wrote of its cases. False if there is nothing to read: the program died."""
    try:
        cases = list(xml.etree.ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return False
    for case in cases:
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed.append(name)
        elif skipped is not None or case.get("result") == "skipped":
            text = "" if skipped is None else skipped.get("message") or ""
            outcome.skipped[name] = text.strip().splitlines()[-1] if text.strip() else "skipped"
        elif case.get("status", "run") == "run" and case.get("result", "completed") == "completed":
            outcome.passed.add(name)
    return True


def last_case(log):
    """The case that a program died in, if it died in one."""
    begun = re.findall(r"^\[ RUN      \] (\S+)", log, re.MULTILINE)
    ended = re.findall(r"^\[  (?:     OK|FAILED |SKIPPED) \] (\S+)", log, re.MULTILINE)
    return begun[-1] if begun and begun[-1] not in ended else None


def end_of(label):
    """What fails where a program does, and none of its cases."""
    return f"the end of {label}"


class Runner:
    def __init__(self, copy):
        self.root = copy.root
        for left in glob.glob(os.path.join(glob.escape(copy.folder), "run-*")):  # by a run that was killed
            shutil.rmtree(left)
        self.folder = tempfile.mkdtemp(prefix="run-", dir=copy.folder)
        self.processes = []
        self.started = False

    def bazel(self, *arguments):
        """Its exit code, standard output and standard error."""
        self.started = True
        process = self.start(["./bazelw", *arguments], self.root, None, subprocess.PIPE, subprocess.PIPE)
        out, err = process.communicate()
        self.processes.remove(process)
        if DISK_FULL in err and process.returncode not in (0, TESTS_FAILED):
            raise Problem(f"the disk of '{self.folder}' or of Bazel's output is full: free some, and start again")
        return process.returncode, out, err

    def start(self, command, folder, env, out, err):
        """In a group of its own, so that it ends with all that it starts."""
        process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   text=True, errors="replace", start_new_session=True)
        self.processes.append(process)
        return process

    def end(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        self.processes.remove(process)

    def close(self):
        for process in list(self.processes):
            self.end(process)
        if self.started:
            subprocess.run(["./bazelw", "shutdown"], cwd=self.root, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def query(self, text):
        code, out, err = self.bazel("query", *QUIET, "--output=xml", text)
        if code != 0:
            raise Problem(f"bazel query failed: {err.strip()}")
        return out

    @staticmethod
    def build_flags(config):
        return [*QUIET, *TRIM, *[f"--config={name}" for name in TOGETHER[config]]]

    def build(self, programs, config="", mutated=False):
        """The text of the failure, or None. What is built of a mutation goes into no cache."""
        flags = self.build_flags(config) + (["--remote_upload_local_results=false"] if mutated else [])
        code, _, err = self.bazel("build", *flags, "--", *[program.label for program in programs])
        return None if code == 0 else err

    def aquery(self, programs, config=""):
        """How Bazel makes the programs, as JSON."""
        labels = " + ".join(program.label for program in programs)
        code, out, err = self.bazel("aquery", *self.build_flags(config), "--output=jsonproto", "--include_param_files",
                                    f'mnemonic("Cpp(Compile|Archive|Link)", deps({labels}))')
        if code != 0:
            raise Problem(f"bazel aquery failed: {err.strip()}")
        return out

    def execution_root(self):
        """The folder in which Bazel's commands run."""
        code, out, err = self.bazel("info", *QUIET, "execution_root")
        if code != 0:
            raise Problem(f"bazel info failed: {err.strip()}")
        return out.strip()

    @staticmethod
    def environment(program, runfiles, folder):
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": folder,
            "TZ": "UTC",
            "TEST_TMPDIR": folder,
            "TEST_SRCDIR": os.path.dirname(runfiles),
            "RUNFILES_DIR": os.path.dirname(runfiles),
            "TEST_WORKSPACE": os.path.basename(runfiles),
            **SANITIZERS,
            **program.env,
        }

    def begin(self, program, filters, first_failure, made=None):
        """Starts a built GoogleTest program, or what was made of it elsewhere."""
        path = os.path.realpath(os.path.join(self.root, ".bazel/bin", program.path()))
        runfiles = os.path.join(path + ".runfiles", "gcap")
        if not os.path.isdir(runfiles):
            runfiles = os.path.join(path + ".runfiles", "_main")
        folder = tempfile.mkdtemp(dir=self.folder)
        command = [made or path, *program.args, f"--gtest_output=xml:{folder}/cases.xml"]
        if filters is not None:
            command.append("--gtest_filter=" + ":".join(filters))
        if first_failure:
            command.append("--gtest_fail_fast")
        with open(folder + ".log", "w", encoding="utf-8") as log:
            process = self.start(command, runfiles, self.environment(program, runfiles, folder), log, log)
        return process, folder, time.monotonic()

    def outcome(self, program, filters, process, folder, began, by_time):
        outcome = Outcome()
        outcome.seconds = time.monotonic() - began
        outcome.by_time = by_time
        with open(folder + ".log", encoding="utf-8", errors="replace") as log:
            text = log.read()
        read_cases(os.path.join(folder, "cases.xml"), outcome)
        # It died, or its end found something.
        if by_time or (process.returncode != 0 and not outcome.failed):
            outcome.failed.append(last_case(text) or end_of(program.label))
        if filters is None:
            outcome.tell_of(program.label)
        shutil.rmtree(folder, ignore_errors=True)
        os.remove(folder + ".log")
        return outcome

    def run_direct(self, wanted, limit, first_failure, make=None):
        """Runs the programs, as many at once as there are processors; at the first failure ends the others.

        `make` makes a program before it is started, and returns its path.
        """
        total = Outcome()
        waiting = list(wanted)
        running = []
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                program, filters = waiting.pop(0)
                made = make(program) if make else None
                running.append((program, filters, *self.begin(program, filters, first_failure, made)))
            time.sleep(0.02)
            for each in list(running):
                program, filters, process, folder, began = each
                late = time.monotonic() - began > limit
                if process.poll() is None and not late:
                    continue
                self.end(process)
                running.remove(each)
                total.add(self.outcome(program, filters, process, folder, began, late))
            if first_failure and total.failed:
                for _, _, process, *_ in running:
                    self.end(process)
                break
        return total

    def run_by_bazel(self, program, filters, config, limit):
        """Runs one program by `bazel test`."""
        outcome = Outcome()
        began = time.monotonic()
        flags = self.build_flags(config) + [f"--test_timeout={int(limit)}", "--remote_upload_local_results=false"]
        if filters is not None:
            flags.append("--test_filter=" + ":".join(filters))
        code, _, err = self.bazel("test", *flags, "--", program.label)
        if code not in (0, TESTS_FAILED):
            raise Problem(f"bazel test {program.label} failed: {err.strip()}")
        logs = os.path.join(self.root, ".bazel/testlogs", program.path())
        with open(os.path.join(logs, "test.log"), encoding="utf-8", errors="replace") as file:
            log = file.read()
        skipped = SKIPPED_SCRIPT.search(log)
        if program.gtest:
            read_cases(os.path.join(logs, "test.xml"), outcome)
            if filters is None:
                outcome.tell_of(program.label)
        elif skipped:
            outcome.skipped[program.label] = skipped.group(1)
        elif code == 0:
            outcome.passed.add(program.label)
        if code != 0 and not outcome.failed:
            outcome.failed.append(program.label)
        outcome.by_time = code != 0 and "TIMEOUT" in err
        outcome.seconds = time.monotonic() - began
        return outcome

    def run(self, wanted, config="", limit=60, first_failure=False):
        """Runs built programs, each with its filters."""
        total = self.run_direct([each for each in wanted if each[0].direct()], limit, first_failure)
        for program, filters in wanted:
            if not program.direct() and not (first_failure and total.failed):
                total.add(self.run_by_bazel(program, filters, config, limit))
        return total
