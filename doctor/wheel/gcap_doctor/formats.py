# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Findings as SARIF 2.1.0 and as the XML of JUnit, with the members that gcap-doctor's own reports have.

A finding has kind, severity, sentence, remedy, rule (R11, or None), file, line and function.
"""

import json
import os
import sys
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"


def _rule_id(finding):
    return finding.rule or finding.kind


def _uri(path):
    """Relative to the working folder where the file is below it, as code hosts want it."""
    relative = os.path.relpath(path)
    if not relative.startswith(".."):
        return quote(relative.replace(os.sep, "/"))
    return "file://" + quote(os.path.abspath(path))


def _location(finding):
    physical = {"artifactLocation": {"uri": _uri(finding.file)}}
    if finding.line:
        physical["region"] = {"startLine": finding.line}
    location = {"physicalLocation": physical}
    if finding.function:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.function, "kind": "function"}]
    return location


def _result(finding, index):
    result = {"ruleId": _rule_id(finding), "ruleIndex": index, "level": finding.severity,
              "message": {"text": f"{finding.sentence}. Remedy: {finding.remedy}."}}
    if finding.file:
        result["locations"] = [_location(finding)]
    result["properties"] = {"kind": finding.kind}
    return result


def sarif(findings, kinds, command_line=None):
    """The object; `kinds` has (severity, meaning, remedy) by kind."""
    ids = list(dict.fromkeys(_rule_id(finding) for finding in findings))
    rules = []
    for name in ids:
        rule = {"id": name}
        if name in kinds:
            rule["shortDescription"] = {"text": kinds[name][1]}
            rule["help"] = {"text": kinds[name][2]}
        rules.append(rule)
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": "gcap-doctor", "rules": rules}},
        "invocations": [{"commandLine": command_line or " ".join(sys.argv), "executionSuccessful": True}],
        "results": [_result(finding, ids.index(_rule_id(finding))) for finding in findings]}]}


def write_sarif(path, findings, kinds, command_line=None):
    text = json.dumps(sarif(findings, kinds, command_line), indent=1, ensure_ascii=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


# --- JUnit ------------------------------------------------------------------------------------------------------------


def _clean(text):
    """What XML cannot hold becomes U+FFFD."""
    return "".join(character if character in "\t\n\r" or " " <= character < "\ud800" or "\ue000" <= character <= "\ufffd"
                   or character > "\uffff" else "\ufffd" for character in text)


def _attribute(name, value):
    return f" {name}={quoteattr(_clean(str(value)), {chr(10): '&#10;', chr(13): '&#13;', chr(9): '&#9;'})}"


def _case(finding):
    name = f"{finding.kind}, {finding.file}:{finding.line}" if finding.file else finding.kind
    text = escape(_clean(f"what: {finding.sentence}\nremedy: {finding.remedy}\n"))
    head = f"    <testcase{_attribute('classname', 'gcap-doctor')}{_attribute('name', name)}"
    if finding.file:
        head += _attribute("file", finding.file) + _attribute("line", finding.line)
    head += ' time="0">\n'
    if finding.severity != "error":
        return f"{head}      <system-out>level: {finding.severity}\n{text}</system-out>\n    </testcase>\n"
    return (f"{head}      <failure{_attribute('type', _rule_id(finding))}{_attribute('message', finding.sentence)}>{text}"
            "</failure>\n    </testcase>\n")


def _suite(name, findings):
    cases = "".join(_case(finding) for finding in findings)
    if not findings:
        cases = '    <testcase classname="gcap-doctor" name="no finding" time="0"/>\n'
    failures = sum(finding.severity == "error" for finding in findings)
    count = max(1, len(findings))
    return count, failures, (f'  <testsuite{_attribute("name", name)} tests="{count}" failures="{failures}" errors="0" '
                             f'skipped="0" time="0">\n{cases}  </testsuite>\n')


def junit(suites, name="gcap-doctor"):
    """`suites`: (name, findings)."""
    made = [_suite(*each) for each in suites]
    tests, failures = sum(each[0] for each in made), sum(each[1] for each in made)
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<testsuites{_attribute("name", name)} tests="{tests}" failures="{failures}" errors="0" skipped="0" time="0">\n'
            + "".join(each[2] for each in made) + "</testsuites>\n")


def write_junit(path, suites, name="gcap-doctor"):
    with open(path, "w", encoding="utf-8") as file:
        file.write(junit(suites, name))
