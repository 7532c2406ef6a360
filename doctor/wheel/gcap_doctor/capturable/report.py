# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What check() hands back: findings, the steps that were tried, the bytes that stay held."""

import os

from gcap_doctor import formats
from gcap_doctor.capturable.kinds import ERROR, KINDS, NOTE, SEVERITIES


class NotCapturable(AssertionError):
    """raise_if_faulty() raises it: a test that fails, not one that has an error. `report` is the Report."""

    def __init__(self, report):
        super().__init__(str(report))
        self.report = report


class CannotCheck(RuntimeError):
    """Nothing could be checked, and why: torch is missing, there is no CUDA device, an argument is wrong."""


class Finding:
    """One thing that is wrong. `file` and `line` are of Python; None where the place is not known."""

    def __init__(self, kind, sentence, file=None, line=None, rule=None, remedy=None, function=None, severity=None):
        default = KINDS.get(kind, (ERROR, "", ""))
        self.kind = kind
        self.severity = severity or default[0]
        self.sentence = sentence
        self.remedy = remedy or default[2]
        self.rule = rule
        self.file = file
        self.line = line
        self.function = function

    @property
    def place(self):
        """'ops.py:12 in norm', or ''."""
        if not self.file:
            return ""
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")

    def __str__(self):
        at = f" at {self.place}" if self.place else ""
        rule = f" [{self.rule}]" if self.rule else ""
        return f"{self.severity} {self.kind}{at}: {self.sentence}{rule}\n  remedy: {self.remedy}"

    def __repr__(self):
        return f"Finding({self.kind!r}, {self.sentence!r}, {self.file!r}, {self.line!r})"


class Step:
    """One way to replay: its name, the sentence of the first difference or None, the seconds that it took."""

    def __init__(self, name, difference, seconds):
        self.name, self.difference, self.seconds = name, difference, seconds


def describe_bytes(count):
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


class Report:
    """What a check found. True where nothing is wrong.

    findings      those that count, the worst first; `allowed` has those whose kind the caller allowed
    steps         the replays that were tried, in order
    held_bytes    memory of the device that the graph holds for as long as it lives
    kept_bytes    of these, what is still held after the graph and its outputs are gone
    bitwise       whether all results were those of the eager runs bit for bit; None where nothing was compared
    seconds       of the whole check
    """

    def __init__(self, name, file=None, line=None):
        self.name, self.file, self.line = name, file, line
        self.findings, self.allowed, self.steps = [], [], []
        self.held_bytes = self.kept_bytes = 0
        self.bitwise = None
        self.seconds = 0.0

    @property
    def errors(self):
        return [finding for finding in self.findings if finding.severity == ERROR]

    @property
    def is_faulty(self):
        """Whether a finding is an error or a warning."""
        return any(finding.severity != NOTE for finding in self.findings)

    def __bool__(self):
        return not self.is_faulty

    def kinds(self):
        return [finding.kind for finding in self.findings]

    def add(self, finding, allowed=()):
        (self.allowed if finding.kind in allowed else self.findings).append(finding)
        self.findings.sort(key=lambda each: SEVERITIES.index(each.severity))  # stable: the first found stays first

    def raise_if_faulty(self):
        """Raises NotCapturable, an AssertionError, where an error or a warning was found; returns the report else."""
        if self.is_faulty:
            raise NotCapturable(self)
        return self

    def write_sarif(self, path):
        """The findings as SARIF 2.1.0, for code hosts."""
        formats.write_sarif(path, self.findings, KINDS, f"gcap_doctor.check {self.name}")

    def write_junit(self, path):
        """The findings as JUnit's XML, for CI systems."""
        formats.write_junit(path, [(self.name, self.findings)], "gcap_doctor.check")

    def _outcome(self):
        if not self.is_faulty:
            return "capturable"
        counts = []
        for severity in SEVERITIES[:2]:
            count = sum(finding.severity == severity for finding in self.findings)
            if count:
                counts.append(f"{count} {severity}{'s' if count > 1 else ''}")
        return ", ".join(counts)

    def __str__(self):
        place = f" ({os.path.relpath(self.file)}:{self.line})" if self.file else ""
        lines = [f"gcap_doctor.check: {self.name}{place}: {self._outcome()}"]
        for finding in self.findings:
            lines += ["  " + line for line in str(finding).split("\n")]
        for finding in self.allowed:
            lines.append(f"  allowed {finding.kind}: {finding.sentence}")
        for step in self.steps:
            lines.append(f"  {step.name}: {step.difference or 'as the eager run'}")
        held = f"{describe_bytes(self.held_bytes)} held by the graph"
        exact = {None: "nothing compared", True: "bit for bit", False: "within the tolerance"}[self.bitwise]
        lines.append(f"  {held}; {exact if not self.errors else 'not as eager'}; {self.seconds * 1000:.0f} ms")
        return "\n".join(lines)
