# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""parse.py FOLDER: parses the samples' reports there and compares them with what the samples were made of."""

import base64
import hashlib
import json
import pathlib
import re
import sys
import urllib.parse
import xml.etree.ElementTree

FOLDER = pathlib.Path(sys.argv[1])


def refuse(text):
    raise ValueError(f"{text} is no JSON")


def read(name):
    # Strict: UTF-8 alone, no NaN.
    return json.loads((FOLDER / name).read_bytes().decode("utf-8"), parse_constant=refuse)


def same(what, value, expected):
    if value != expected:
        sys.exit(f"{what} is {value!r}, expected {expected!r}")


def check_broken():
    report = read("broken.json")
    same("the format", (report["format"], report["version"]), ("gcap-doctor", 1))
    same("the program", (report["program"], report["pid"], report["ended"]), ("python serve.py", 7, True))
    culprit, lost = report["findings"]
    same("the kind", (culprit["kind"], culprit["severity"], culprit["certain"]), ("culprit", "error", True))
    same("the rule", (culprit["rule"]["id"], culprit["rule"]["page"]), ("R11", "docs/rules/r11.md"))
    call = culprit["call"]
    same("the call", (call["number"], call["function"], call["result"]), (4, "cudaStreamSynchronize", 900))
    same("the line", call["python_line"], "serve.py:12 in body")
    same("the site", call["call_site"], "at::native::_local_scalar_dense_cuda (libtorch_cuda.so)")
    same("the Python stack", [frame["line"] for frame in call["python"]], [99, 12, 41])
    same("the C stack", [frame["offset"] for frame in call["c"]], ["0x2a41f0", "0x71a30", "0x1f3a771", "0x22"])
    same("the other call", culprit["other"]["function"], "cudaStreamBeginCapture")
    same("the count", (lost["count"], lost["call"]["thread"]["name"], lost["other"]), (3, "loader", None))
    capture, = report["captures"]
    same("the capture", (capture["number"], capture["outcome"], capture["graph"]), (1, "broken", None))
    same("its culprit", capture["culprit"]["number"], 4)
    graph, = report["graphs"]
    same("the edges", graph["edges"], [["0x100000000", "0x100000001"]])


def check_healthy():
    report = read("healthy.json")
    same("the findings", report["findings"], [])
    same("the replays", (report["replays"], report["untied_times"]), (1000, 1))
    graph, = report["graphs"]
    same("the times", [node["ns"] for node in graph["nodes"]], [1000, 2000, 3000, 4000])
    same("the layers", [node["layer"] for node in graph["nodes"]], [0, 1, 1, 2])
    same("by line", graph["by_python_line"][0], {"name": "app.py:30 in head", "nodes": 2, "ns": 7000})
    for grouping in "by_kernel", "by_call_site", "by_python_line":
        same(grouping, sum(group["ns"] for group in graph[grouping]), graph["ns"])
        same(grouping, sum(group["nodes"] for group in graph[grouping]), 4)


def check_labelled():
    graph, = read("labelled.json")["graphs"]
    same("the labels", [node.get("label") for node in graph["nodes"]], [None, "step > attention", "step", "step"])
    same("by label", {group["name"]: group["ns"] for group in graph["by_label"]},
         {"step": 7000, "step > attention": 2000, "(no label)": 1000})
    same("the whole", sum(group["ns"] for group in graph["by_label"]) + graph["between_ns"], graph["whole_ns"])


def check_others():
    hostile = read("hostile.json")
    same("the end of a name", hostile["captures"][0]["thread"]["name"].endswith("&lt;\"'"), True)
    same("an escape", "\x1b[31m\ufffd\ufffd(" in hostile["findings"][0]["sentence"], True)
    many = read("many.json")
    same("findings", len(many["findings"]), 52)
    same("notes", many["notes"], ["first note", "second note", "third note"])
    same("damage", (many["damage"]["lines"], many["ended"]), (1, False))
    large = read("large.json")
    same("nodes", len(large["graphs"][0]["nodes"]), 1000)


check_broken()
check_healthy()
check_labelled()
check_others()


# --- Traces ---------------------------------------------------------------------------------------------------------


def check_trace(name):
    trace = read(name + ".trace")
    events = trace["traceEvents"]
    tracks = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for event in events:
        same("the kind of event", event["ph"] in "MXi", True)
        if event["ph"] != "M":
            same("a time", isinstance(event["ts"], float) and event["ts"] >= 0, True)
        if event["ph"] == "X":
            same("a duration", event["dur"] >= 0, True)
            same("a track", (event["pid"], event["tid"]) in tracks, True)
    return events


def check_traces():
    events = check_trace("broken")
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    same("the tracks", sorted(names.values()),
         ["'loader'", "'python3'", "stream 1 (nonblocking)", "stream 2 (nonblocking)"])
    culprit, = [e for e in events if e["ph"] == "X" and e["name"] == "cudaStreamSynchronize" and e["pid"] == 1]
    same("the culprit", (culprit["ts"], culprit["dur"], culprit["cat"]), (1080.0, 10.0, "failed"))
    same("its line", culprit["args"]["python"], "serve.py:12 in body")
    capture, = [e for e in events if e["ph"] == "X" and e["cat"] == "capture"]
    same("the capture", (capture["ts"], capture["dur"], capture["pid"]), (1000.0, 220.0, 2))
    findings = [e for e in events if e["ph"] == "i"]
    same("the findings", [(e["name"], e["tid"], e["ts"]) for e in findings],
         [("culprit", 1, 1080.0), ("lost_call", 2, 1085.0)])
    labels = [(e["name"], e["ts"], e["dur"], e["tid"]) for e in check_trace("labelled") if e.get("cat") == "label"]
    same("the labels", labels, [("step", 0.5, 0.5, 1), ("attention", 0.5, 0.1, 1)])
    for name in "healthy", "hostile", "many":
        check_trace(name)
    same("slices of a large one", len([e for e in check_trace("large") if e["ph"] == "X"]), 1 + 2 * 1002)


check_traces()


# --- SARIF ----------------------------------------------------------------------------------------------------------

# By the schema of SARIF 2.1.0: the members of an object that must be there, and others that may be; no other is allowed.
SARIF = {
    "log": ("version runs", "$schema"),
    "run": ("tool", "invocations results"),
    "tool": ("driver", ""),
    "driver": ("name", "rules"),
    "rule": ("id", "name shortDescription help"),
    "text": ("text", ""),
    "invocation": ("executionSuccessful", "commandLine toolExecutionNotifications"),
    "notification": ("message", "level"),
    "result": ("message", "ruleId ruleIndex level occurrenceCount locations relatedLocations properties"),
    "location": ("", "id physicalLocation logicalLocations message"),
    "physical": ("artifactLocation", "region address"),
    "artifact": ("", "uri"),
    "region": ("startLine", ""),
    "address": ("", "relativeAddress"),
    "logical": ("", "fullyQualifiedName kind"),
}
SARIF_PARTS = {
    "runs": "run", "tool": "tool", "driver": "driver", "rules": "rule", "shortDescription": "text", "help": "text",
    "message": "text", "invocations": "invocation", "toolExecutionNotifications": "notification", "results": "result",
    "locations": "location", "relatedLocations": "location", "physicalLocation": "physical",
    "artifactLocation": "artifact", "region": "region", "address": "address", "logicalLocations": "logical",
}


def check_sarif_object(kind, value):
    needed, others = (set(words.split()) for words in SARIF[kind])
    same(f"what a {kind} lacks", needed - value.keys(), set())
    same(f"what a {kind} may not have", value.keys() - needed - others, set())
    for member, part in value.items():
        if member in SARIF_PARTS:
            for item in part if isinstance(part, list) else [part]:
                check_sarif_object(SARIF_PARTS[member], item)
        elif member == "uri":
            same("the characters of a URI", re.fullmatch(r"(?:[A-Za-z0-9/._~-]|file:///|%[0-9A-F]{2})*", part) is None, False)
        elif member == "startLine":
            same("a line", part >= 1, True)
        elif member == "level":
            same("a level", part in ("error", "warning", "note"), True)


def read_sarif(name):
    log = read(name + ".sarif")
    same("the version", log["version"], "2.1.0")
    check_sarif_object("log", log)
    run, = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    same("rules that are there twice", len(rules), len(set(rules)))
    for result in run["results"]:
        same("the rule of an index", rules[result["ruleIndex"]], result["ruleId"])
    return run


def check_sarif():
    culprit, lost = read_sarif("broken")["results"]
    same("the rule", (culprit["ruleId"], culprit["level"], culprit["occurrenceCount"]), ("R11", "error", 1))
    place = culprit["locations"][0]["physicalLocation"]
    same("the place", (place["artifactLocation"]["uri"], place["region"]["startLine"]), ("serve.py", 12))
    same("the function", culprit["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "body")
    same("the remedy", "Remedy: read the value after the replay" in culprit["message"]["text"], True)
    same("the kind", culprit["properties"], {"kind": "culprit", "certain": True, "capture": 1})
    same("the other call", culprit["relatedLocations"][0]["message"]["text"], "cudaStreamBeginCapture")
    same("the other finding", (lost["ruleId"], lost["level"], lost["occurrenceCount"]), ("R26", "warning", 3))
    healthy = read_sarif("healthy")
    same("a healthy one", (healthy["results"], healthy["invocations"][0]["executionSuccessful"]), ([], True))
    hostile = read_sarif("hostile")["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    expected, = {call["python"][0]["file"] for finding in read("hostile.json")["findings"] for call in [finding["call"]]}
    same("a hostile path", urllib.parse.unquote(hostile).removeprefix("file://"), expected)
    many = read_sarif("many")
    same("results", len(many["results"]), 52)
    same("without a rule", many["results"][-1]["ruleId"], "pageable")
    same("notifications", [note["message"]["text"] for note in many["invocations"][0]["toolExecutionNotifications"]][1:],
         ["first note", "second note", "third note"])
    empty = read_sarif("empty")
    same("nothing recorded", (empty["results"], empty["invocations"][0]["executionSuccessful"]), ([], False))
    read_sarif("large")


check_sarif()


# --- JUnit ----------------------------------------------------------------------------------------------------------


def read_junit(name):
    suites = xml.etree.ElementTree.fromstring((FOLDER / (name + ".xml")).read_bytes())
    same("the root", suites.tag, "testsuites")
    suite, = suites
    same("the suite", suite.tag, "testsuite")
    cases = suite.findall("testcase")
    for of in suites, suite:
        for attribute, count in (("tests", len(cases)), ("failures", len(suite.findall("testcase/failure"))),
                                 ("skipped", len(suite.findall("testcase/skipped"))), ("errors", 0)):
            same(attribute, of.get(attribute), str(count))
    for case in cases:
        same("what a case needs", bool(case.get("name") and case.get("classname") and case.get("time")), True)
    return suite, cases


def check_junit():
    suite, (culprit, lost) = read_junit("broken")
    same("the program", (suite.get("name"), suite.get("timestamp")), ("python serve.py", "2023-11-14T22:13:20"))
    same("the case", culprit.get("name"), "culprit, capture 1, serve.py:12 in body")
    same("the place", (culprit.get("file"), culprit.get("line")), ("serve.py", "12"))
    failure, = culprit
    same("the failure", (failure.tag, failure.get("type")), ("failure", "R11"))
    same("its message", failure.get("message"), read("broken.json")["findings"][0]["sentence"])
    same("its remedy", "remedy: read the value after the replay" in failure.text, True)
    same("a warning passes", [part.tag for part in lost], ["system-out"])
    same("its level", lost[0].text.startswith("level: warning\n"), True)
    _, (case,) = read_junit("healthy")
    same("no finding", (case.get("name"), len(case)), ("no finding", 0))
    _, (case,) = read_junit("empty")
    same("nothing recorded", [(part.tag, part.get("message")) for part in case], [("skipped", "no CUPTI was found")])
    # XML has no escape for control characters.
    _, cases = read_junit("hostile")
    expected = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", read("hostile.json")["findings"][0]["sentence"])
    same("a hostile message", cases[0][0].get("message"), expected)
    read_junit("large")
    same("cases", len(read_junit("many")[1]), 52)


check_junit()


# --- Pages ----------------------------------------------------------------------------------------------------------


# The policy lets the page's own script run, and no other: none that carries a word of the page can.
def check_pages():
    for name in "broken", "hostile":
        page = (FOLDER / (name + ".html")).read_text(encoding="utf-8")
        script, = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        allowed, = re.findall(r"script-src ([^;]*);", page)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        same("what the policy of doctor/report/page.html allows", allowed, f"'sha256-{digest}'")


check_pages()
