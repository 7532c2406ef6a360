# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""parse.py FOLDER: parses the samples' reports there and compares them with what the samples were made of."""

import json
import pathlib
import sys

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
check_others()
