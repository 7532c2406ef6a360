# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The hooks of pytest 7 and later: a fixture and a marker that check operations, and, with --gcap-doctor, the vetting of
test files.

The idea: without the option the plugin only offers, and a check that is not possible skips its test; with the option the
run is there to prove captures, so the same is a failure. Findings of all tests are kept for the run, for the SARIF file and
the summary. Under pytest-xdist the workers hand theirs to the process that has the summary.
"""

import pytest

from gcap_doctor import formats
from gcap_doctor.capturable import CannotCheck, Finding, check
from gcap_doctor.capturable.kinds import KINDS
from gcap_doctor.vet import TEST_FILE, vet_file
from gcap_doctor.vet_rules import KINDS as VET_KINDS

MARKER = "gcap_capturable"


class Findings:
    """`checks`: (seconds, bytes that the graph holds) of each check."""

    def __init__(self):
        self.found, self.checks = [], []

    def packed(self):
        """As what a worker can hand over."""
        return [[getattr(finding, member) for member in MEMBERS] for finding in self.found], [list(each) for each in
                                                                                              self.checks]

    def unpack(self, packed):
        for values in packed[0]:
            self.found.append(Finding(**dict(zip(MEMBERS, values))))
        self.checks += [tuple(each) for each in packed[1]]


MEMBERS = ("kind", "sentence", "file", "line", "rule", "remedy", "function", "severity")  # of a Finding
HANDED = "gcap_doctor"  # the name of what a worker hands over


FINDINGS = pytest.StashKey()


def pytest_addoption(parser):
    group = parser.getgroup("gcap-doctor", "captures of CUDA graphs")
    group.addoption("--gcap-doctor", action="store_true",
                    help="checks of captures must be possible, and test files are vetted for tests that prove nothing")
    group.addoption("--gcap-doctor-sarif", metavar="FILE", help="write the findings of checks and vetting as SARIF 2.1.0")


def pytest_configure(config):
    config.addinivalue_line("markers", f"{MARKER}(**options): the test returns an operation and its inputs, which "
                                       "gcap_doctor.check(operation, *inputs, **options) proves capturable")
    config.stash[FINDINGS] = Findings()


# --- Checks -----------------------------------------------------------------------------------------------------------


def run_check(config, fn, *inputs, **options):
    """The report of a check that found nothing wrong; else the test fails, or is skipped where nothing can be checked."""
    __tracebackhide__ = True
    reason = None
    try:
        report = check(fn, *inputs, **options)
    except CannotCheck as error:
        reason = str(error)
    if reason is not None:
        give_up = pytest.skip if _is_missing(reason) and not config.getoption("--gcap-doctor") else _fail
        give_up(f"gcap_doctor.check: {reason}")
    config.stash[FINDINGS].found += report.findings
    config.stash[FINDINGS].checks.append((report.seconds, report.held_bytes))
    if report.is_faulty:
        _fail(str(report))
    return report


def _fail(text):
    __tracebackhide__ = True
    pytest.fail(text, pytrace=False)


def _is_missing(reason):
    """Whether the machine lacks something; else the call is wrong."""
    return reason.startswith("PyTorch ")


@pytest.fixture
def gcap_check(request):
    """check() of gcap_doctor, under which the test fails where something is found: gcap_check(fn, *inputs, **options)."""

    def call(fn, *inputs, **options):
        __tracebackhide__ = True
        return run_check(request.config, fn, *inputs, **options)

    return call


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """A marked test returns what is to be checked."""
    __tracebackhide__ = True
    marker = pyfuncitem.get_closest_marker(MARKER)
    if marker is None:
        return None
    if marker.args:
        _fail(f"@pytest.mark.{MARKER} has {marker.args[0]!r}: expected options by name, as rtol=1e-3")
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    returned = _call(pyfuncitem, arguments)
    parts = returned if isinstance(returned, tuple) else (returned,)
    if not parts or not callable(parts[0]):
        _fail(f"{pyfuncitem.name} returned {returned!r}: expected an operation and its inputs, as 'return fn, x'")
    run_check(pyfuncitem.config, *parts, **{"name": pyfuncitem.name, **marker.kwargs})
    return True


# What PyTorch raises where the test makes its inputs, on a machine without a GPU.
NO_DEVICE = ("Found no NVIDIA driver", "not compiled with CUDA", "No CUDA GPUs are available", "no CUDA-capable device")


def _call(pyfuncitem, arguments):
    """What the test returns; where its inputs cannot be made for want of PyTorch or a device, the test is skipped."""
    reason = None
    try:
        return pyfuncitem.obj(**arguments)
    except (ImportError, RuntimeError, AssertionError) as error:
        is_missing = getattr(error, "name", None) == "torch" or any(words in str(error) for words in NO_DEVICE)
        if pyfuncitem.config.getoption("--gcap-doctor") or not is_missing:
            raise
        reason = str(error).split("\n")[0]
    pytest.skip(f"the test cannot make its inputs: {reason}")


# --- Vetting ----------------------------------------------------------------------------------------------------------


def pytest_collect_file(file_path, parent):
    if parent.config.getoption("--gcap-doctor") and TEST_FILE.match(file_path.name):
        return VetFile.from_parent(parent, path=file_path)
    return None


class VetFile(pytest.File):
    def collect(self):
        yield VetItem.from_parent(self, name="gcap-vet")


class VetFailure(Exception):
    """The findings of a file."""


class VetItem(pytest.Item):
    """Fails with the findings that are errors; the others are in the summary."""

    def runtest(self):
        result = vet_file(str(self.path))
        self.config.stash[FINDINGS].found += result.findings
        if any(finding.severity == "error" for finding in result.findings):
            raise VetFailure("\n".join(str(finding) for finding in result.findings))

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, VetFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, "gcap-vet"


# --- The end ----------------------------------------------------------------------------------------------------------


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[HANDED] = session.config.stash[FINDINGS].packed()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Of pytest-xdist: a worker ended. One that died handed nothing over."""
    packed = getattr(node, "workeroutput", {}).get(HANDED)
    if packed is not None:
        node.config.stash[FINDINGS].unpack(packed)


def pytest_terminal_summary(terminalreporter, config):
    findings = config.stash[FINDINGS]
    path = config.getoption("--gcap-doctor-sarif")
    problem = _write_sarif(path, findings.found) if path else None
    mild = [finding for finding in findings.found if finding.severity != "error"]
    if not mild and not findings.checks and problem is None:
        return
    terminalreporter.section("gcap-doctor")
    for finding in mild:
        terminalreporter.write_line(str(finding))
    if findings.checks:
        seconds, held = sum(each[0] for each in findings.checks), max(each[1] for each in findings.checks)
        terminalreporter.write_line(f"{len(findings.checks)} operations checked in {seconds:.1f} s; the largest graph holds "
                                    f"{held} bytes")
    if problem is not None:
        terminalreporter.write_line(problem)


def _write_sarif(path, findings):
    """A sentence where the file cannot be written."""
    try:
        formats.write_sarif(path, findings, {**KINDS, **VET_KINDS}, "pytest --gcap-doctor")
    except OSError as error:
        return f"--gcap-doctor-sarif is '{path}', which cannot be written: {error.strerror}"
    return None
