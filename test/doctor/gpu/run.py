#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Runs gcap-doctor on a GPU over the programs beside this file, and compares what it finds with what each program says.

    run.py --doctor PREFIX/bin/gcap-doctor [--mistakes PROGRAM] [--stale PROGRAM] [--plugin libwaiting_plugin.so]
           [--keep FOLDER] [--record FOLDER]
    run.py --doctor PREFIX/bin/gcap-doctor --mistakes PROGRAM --stale PROGRAM --recorded FOLDER

The second reads what --record wrote on a GPU, so it needs none. FOLDER/awaited.txt has the names of the programs, one a
line, that nobody recorded yet. Prints the tables of docs/doctor_runs.md; the last line is "N passed, N failed". A program
says what is to be found in a line `doctor: KIND RULE FUNCTION`, and marks the line at fault with `# culprit`; `-` is "any".
Programs for gcap-doctor audit mark the lines where memory is allocated and freed, too.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 180  # of one program
OVERHEAD_ROUNDS = 3


def expectation(path):
    """What a script says is to be found: kind, rule, function, [function in C], and the line at fault."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    words = next(line for line in lines if line.startswith("# doctor: ")).split()[2:]
    marked = [number for number, line in enumerate(lines, 1) if line.endswith("# culprit")]
    return words, marked[0] if marked else None


def doctor(arguments, name, command, extra=(), environment=None, how="run"):
    """Runs a program under gcap-doctor; gives the report, what the terminal showed, and the seconds."""
    report = os.path.join(arguments.keep, f"{name}.json")
    events = os.path.join(arguments.keep, name)
    page = os.path.join(arguments.keep, f"{name}.html")
    begin = time.monotonic()
    ran = subprocess.run(
        [arguments.doctor, how, "--events", events, "--json", report, "--html", page, *extra, "--", *command],
        capture_output=True, text=True, timeout=SECONDS, env={**os.environ, **(environment or {})}, check=False)
    seconds = time.monotonic() - begin
    with open(os.path.join(arguments.keep, f"{name}.txt"), "w", encoding="utf-8") as file:
        file.write(ran.stdout + ran.stderr)
    try:
        with open(report, encoding="utf-8") as file:
            return json.load(file), ran.stdout + ran.stderr, seconds
    except (OSError, ValueError) as error:
        return {"findings": [], "error": str(error)}, ran.stdout + ran.stderr, seconds


def record(arguments, name):
    """Keeps the events of a program, with the folders of the checkout and of Python's packages cut short."""
    found = glob.glob(os.path.join(arguments.keep, f"{name}.*.events"))
    if not arguments.record or not found or os.path.exists(os.path.join(arguments.record, f"{name}.awk")):
        return
    with open(max(found, key=os.path.getsize), encoding="utf-8") as file:
        text = file.read()
    packages = os.path.dirname(os.path.dirname(json.__file__))
    for folder, short in [(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "/gcap"),
                          (os.path.join(sys.prefix, "lib", os.path.basename(packages)), "/python"), (sys.prefix, "/python")]:
        text = text.replace(folder, short)
    with open(os.path.join(arguments.record, f"{name}.events"), "w", encoding="utf-8") as file:
        file.write(text)


def frames(finding, language):
    at = finding.get("raised") if language == "python" else None
    return (at or finding.get("call") or {}).get(language) or []


def judge(report, words, script, line):
    """"" if the report says what was expected, else what is wrong; and the finding."""
    kind, rule, function = words[:3]
    in_c = words[3] if len(words) > 3 else "-"
    serious = [finding for finding in report["findings"] if finding["severity"] in ("error", "warning")]
    if kind == "none":
        return ("" if not serious and "error" not in report else f"found {[f['sentence'] for f in serious]}"), None
    chosen = [finding for finding in report["findings"] if finding["kind"] == kind]
    if kind == "refused":
        # Where the exception was recorded, it is the finding, and the framework's question is its second call. The
        # recordings of before exceptions were recorded have the question alone.
        chosen = [{**finding, "call": finding["other"], "raised": finding["call"]} for finding in report["findings"]
                  if finding["kind"] == "exception"] or chosen
    if not chosen:
        return f"no finding {kind}: {[f['kind'] for f in report['findings']]} {report.get('error', '')}", None
    finding = chosen[0]
    call = finding.get("call") or {}
    found_rule = (finding.get("rule") or {}).get("id", "-")
    if rule not in ("-", found_rule):
        return f"rule {found_rule}, expected {rule}", finding
    if function != "-" and function not in str(call.get("function")).split():
        return f"call {call.get('function')}, expected {function}", finding
    if in_c != "-" and not any(in_c in (frame.get("function") or "") for frame in frames(finding, "c")):
        return f"no {in_c} in the C stack", finding
    if line is not None and not any(
            frame.get("line") == line and os.path.basename(frame.get("file") or "") == os.path.basename(script)
            for frame in frames(finding, "python")):
        return f"no line {line} of the script in the Python stack", finding
    return "", finding


def where(finding, script):
    for frame in frames(finding or {}, "python"):
        if os.path.basename(frame.get("file") or "") == os.path.basename(script):
            return f"{os.path.basename(script)}:{frame['line']}"
    return "-"


def row(name, finding, problem, place):
    call = (finding or {}).get("call") or {}
    rule = ((finding or {}).get("rule") or {}).get("id")
    kind = (finding or {}).get("kind", "none")
    return (f"| {name} | {kind} | {rule or '-'} | {call.get('function') or '-'} |"
            f" {call.get('result', '-')} | {place} | {'yes' if not problem else 'NO: ' + problem} |")


def listed(program):
    """What a C program says is to be found, by the names of its mistakes."""
    text = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    return [(name, words) for name, *words in (entry.split() for entry in text.splitlines())]


def judge_known(finding):
    """Whether it is known where the memory was allocated and freed."""
    known = {place["what"] for place in (finding or {}).get("places", []) if place["call"]}
    missing = {"allocated", "freed"} - known
    return f"not known where the memory was {' and '.join(sorted(missing))}" if missing else ""


def judge_recorded(arguments, name, words, script, judge_more):
    """Of a recording the names of static functions are gone with the program, so the C stack is not compared."""
    events = os.path.join(arguments.recorded, f"{name}.events")
    ran = subprocess.run([arguments.doctor, "report", events, "--json", "-"], capture_output=True, text=True, check=False)
    if ran.returncode > 1:
        return ran.stderr
    line = expectation(script)[1] if script else None
    problem, finding = judge(json.loads(ran.stdout), words[:3], script, line)
    return problem or (judge_more(finding) if words[0] == "stale_memory" else "")


# No call frees them that the driver sees.
NOT_PINNED = ("pageable", "variable")


def recorded_cases(arguments):
    """Name, words, script and what else is judged of each program that may have a recording."""
    cases = [(f"c_{name}", words, "", None) for name, words in listed(arguments.mistakes)]
    for name, words in listed(arguments.stale):
        cases.append((f"stale_{name}", words, "", judge_known if name not in NOT_PINNED else lambda finding: ""))
    for script in glob.glob(os.path.join(HERE, "python", "*.py")) + [os.path.join(HERE, "ort", "waiting.py")]:
        cases.append((os.path.basename(script)[:-3], expectation(script)[0], script, None))
    for script in glob.glob(os.path.join(HERE, "audit", "*.py")):
        cases.append((f"audit_{os.path.basename(script)[:-3]}", expectation(script)[0], script,
                      lambda finding, script=script: judge_places(finding, script)))
    return cases


def run_recorded(arguments):
    cases = recorded_cases(arguments)
    with open(os.path.join(arguments.recorded, "awaited.txt"), encoding="utf-8") as file:
        awaited = set(file.read().split())
    there = {os.path.basename(path)[:-7] for path in glob.glob(os.path.join(arguments.recorded, "*.events"))}
    names = {case[0] for case in cases}
    problems = [f"{name}: no program has this name" for name in sorted((there | awaited) - names)]
    problems += [f"{name}: has a recording: strike it out of awaited.txt" for name in sorted(there & awaited)]
    judged, bad = [case for case in cases if case[0] not in awaited - there], 0
    for name, words, script, judge_more in judged:
        problem = judge_recorded(arguments, name, words, script, judge_more)
        bad += bool(problem)
        problems += [f"{name}: {problem}"] if problem else []
        print(f"{name}: {problem or 'as expected'}")
    print(f"{len(awaited)} awaited\n" + "".join(f"FAILED {problem}\n" for problem in problems), end="")
    print(f"{len(judged) - bad} passed, {len(problems)} failed")
    return 1 if problems or not judged else 0


HEAD = "| program | finding | rule | call | answered | place | as expected |\n|---|---|---|---|---|---|---|"


def run_scripts(arguments, outcomes):
    print("### Python\n\n" + HEAD)
    scripts = sorted(glob.glob(os.path.join(HERE, "python", "*.py")))
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        names = [os.path.basename(script)[:-3] for script in scripts]
        reports = list(pool.map(lambda pair: doctor(arguments, pair[0], [sys.executable, pair[1]]), zip(names, scripts)))
    for script, name, (report, _, _) in zip(scripts, names, reports):
        words, line = expectation(script)
        problem, finding = judge(report, words, script, line)
        print(row(name, finding, problem, where(finding, script)))
        record(arguments, name)
        outcomes.append(not problem)


def run_mistakes(arguments, outcomes):
    print("\n### CUDA C\n\n" + HEAD)
    for name, words in listed(arguments.mistakes):
        report, _, _ = doctor(arguments, f"c_{name}", [arguments.mistakes, name])
        problem, finding = judge(report, words, "", None)
        place = next((f"{os.path.basename(frame['file'])}:{frame['line']}" for frame in frames(finding or {}, "c")
                      if "culprit" in (frame.get("function") or "") and frame.get("file")), "-")
        print(row(name, finding, problem, place))
        record(arguments, f"c_{name}")
        outcomes.append(not problem)


def marked_lines(script, mark):
    with open(script, encoding="utf-8") as file:
        return [number for number, line in enumerate(file, 1) if re.search(rf"#.*\b{mark}\b", line)]


def judge_places(finding, script):
    """Whether the memory was allocated and freed at the lines that a script marks."""
    for what in ("allocated", "freed"):
        lines = marked_lines(script, what)
        places = [place["call"] or {} for place in (finding or {}).get("places", []) if place["what"] == what]
        found = [frame.get("line") for place in places for frame in place.get("python", [])
                 if os.path.basename(frame.get("file") or "") == os.path.basename(script)]
        if lines and not set(lines) & set(found):
            return f"{what} at lines {found}, expected {lines}"
    return ""


def judge_functions(finding, name):
    """Whether the memory was allocated and freed in the functions of a C program that are called so."""
    for what, verb in (("allocated", "allocate"), ("freed", "release")):
        for place in (finding or {}).get("places", []):
            stack = (place["call"] or {}).get("c", [])
            if place["what"] == what and not any(f"{verb}_{name}" in (frame.get("function") or "") for frame in stack):
                return f"not {what} in {verb}_{name}"
    return ""


def run_audit(arguments, outcomes):
    print("\n### Audit\n\n" + HEAD)
    for script in sorted(glob.glob(os.path.join(HERE, "audit", "*.py"))):
        name = os.path.basename(script)[:-3]
        words, line = expectation(script)
        report, text, _ = doctor(arguments, f"audit_{name}", [sys.executable, script], how="audit")
        problem, finding = judge(report, words, script, line)
        problem = problem or judge_places(finding, script)
        if not problem and (words[0] == "none") == ("gcap-doctor: audit:" in text):
            problem = "the launch was told, or not told, on standard error"
        print(row(name, finding, problem, where(finding, script)))
        record(arguments, f"audit_{name}")
        outcomes.append(not problem)
    if not arguments.stale:
        return
    for name, words in listed(arguments.stale):
        report, _, _ = doctor(arguments, f"stale_{name}", [arguments.stale, name], how="audit")
        problem, finding = judge(report, words, "", None)
        problem = problem or judge_functions(finding, name)
        print(row(f"c_{name}", finding, problem, "-"))
        record(arguments, f"stale_{name}")
        outcomes.append(not problem)


def run_onnxruntime(arguments, outcomes):
    script = os.path.join(HERE, "ort", "waiting.py")
    words, line = expectation(script)
    report, _, _ = doctor(arguments, "waiting", [sys.executable, script, arguments.plugin])
    problem, finding = judge(report, words, script, line)
    print("\n### ONNX Runtime\n\n" + HEAD)
    print(row("waiting", finding, problem, where(finding, script)))
    record(arguments, "waiting")
    outcomes.append(not problem)


def overhead(arguments, name, extra=(), environment=None, plain=False, how="run"):
    command = [sys.executable, os.path.join(HERE, "overhead.py"), name]
    if plain:
        text = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    else:
        _, text, _ = doctor(arguments, f"overhead_{name}", command, extra, environment, how)
    found = re.search(r"^overhead \S+ (\S+) (\S+) (\S+) (\S+) (\S+)$", text, re.MULTILINE)
    return [float(number) for number in found.groups()] if found else None


def run_overhead(arguments, outcomes):
    """Each way in turn, three times; the medians. What else the machine does so falls on all ways."""
    ways = [("not recorded", (), True, ""), ("recorded", (), False, "run"),
            ("recorded with --time", ("--time",), False, "run"), ("audited", (), False, "audit")]
    found = {name: [] for name, _, _, _ in ways}
    for _ in range(OVERHEAD_ROUNDS):
        for name, extra, plain, how in ways:
            figures = overhead(arguments, name.replace(" ", "_").replace("--", ""), extra, None, plain, how)
            outcomes.append(figures is not None)
            if figures:
                found[name].append(figures)
    print("\n### Overhead\n\n| | replay, outside of captures | eager launch, outside of captures | capture of 200 nodes "
          "| of 200 places | instantiation of 1,000 nodes |\n|---|---|---|---|---|---|")
    for name, figures in found.items():
        if figures:
            replay, eager, *long = (sorted(column)[len(column) // 2] for column in zip(*figures))
            print(f"| {name} | {replay:.2f} us | {eager:.2f} us |" + "".join(f" {us / 1000:.1f} ms |" for us in long))


def run_thousand(arguments, outcomes):
    """The times of a graph's nodes against the whole, and what a report of a large graph costs."""
    script = os.path.join(HERE, "python", "thousand_nodes.py")
    report, text, _ = doctor(arguments, "thousand_time", [sys.executable, script], ("--time",))
    graphs = [graph for graph in report.get("graphs", []) if graph.get("whole_ns")]
    print("\n### A graph of 1,000 nodes\n")
    if not graphs:
        print("no device times")
        outcomes.append(False)
        return
    graph = max(graphs, key=lambda entry: entry["whole_ns"])
    nodes_us, whole_us = graph["ns"] / 1000, graph["whole_ns"] / 1000
    by_events = re.search(r"replay_us (\S+)", text)
    off = nodes_us / whole_us - 1
    print(f"Device time of a replay: {nodes_us:.1f} us as the sum of {len(graph['nodes'])} nodes, {whole_us:.1f} us from the "
          f"first node's start to the last one's end ({off:+.2%}); {by_events[1] if by_events else '-'} us by the program's "
          "own events, recorded.")
    outcomes.append(abs(off) <= 0.03)
    events = max(glob.glob(os.path.join(arguments.keep, "thousand_time*.events")), key=os.path.getsize)
    page = os.path.join(arguments.keep, "thousand.html")
    begin = time.monotonic()
    subprocess.run([arguments.doctor, "report", events, "--html", page], check=False)
    seconds = time.monotonic() - begin
    size = os.path.getsize(page)
    print(f"`gcap-doctor report --html`: {seconds:.2f} s, {size} bytes.")
    outcomes.append(seconds < 2 and size < 1_000_000)


def run_labels(arguments, outcomes):
    """Labelled and unlabelled work against the replay's time by the program's own events."""
    script = os.path.join(HERE, "python", "labelled.py")
    report, text, _ = doctor(arguments, "labelled_time", [sys.executable, script], ("--time",))
    graphs = [graph for graph in report.get("graphs", []) if graph.get("by_label")]
    by_events = re.search(r"^replay (\d+) ns$", text, re.MULTILINE)
    print("\n### Labels\n")
    if not graphs or not by_events:
        print("no labels, or no replay")
        outcomes.append(False)
        return
    graph = graphs[0]
    labels = {group["name"]: group["ns"] for group in graph["by_label"]}
    parts = sum(labels.values()) + graph["between_ns"]
    off = parts / int(by_events[1]) - 1
    print(", ".join(f"{name} {ns / 1000:.1f} us" for name, ns in labels.items()) +
          f", between nodes {graph['between_ns'] / 1000:.1f} us; by the program's own events {int(by_events[1]) / 1000:.1f} us"
          f" ({off:+.2%}).")
    outcomes.append(abs(off) <= 0.02 and set(labels) == {"step > product", "step > activation", "(no label)"})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--doctor", required=True)
    parser.add_argument("--mistakes")
    parser.add_argument("--stale")
    parser.add_argument("--plugin")
    parser.add_argument("--record", help="a folder for the events, for --recorded")
    parser.add_argument("--recorded", help="a folder of events, which are judged instead of running anything")
    parser.add_argument("--keep", default=tempfile.mkdtemp(), help="where event files and reports stay")
    parser.add_argument("--jobs", type=int, default=6)
    arguments = parser.parse_args()
    if arguments.recorded:
        return run_recorded(arguments)
    os.makedirs(arguments.keep, exist_ok=True)
    if arguments.record:
        os.makedirs(arguments.record, exist_ok=True)
    outcomes = []
    run_scripts(arguments, outcomes)
    if arguments.mistakes:
        run_mistakes(arguments, outcomes)
    run_audit(arguments, outcomes)
    if arguments.plugin:
        run_onnxruntime(arguments, outcomes)
    run_overhead(arguments, outcomes)
    run_thousand(arguments, outcomes)
    run_labels(arguments, outcomes)
    print(f"\n{sum(outcomes)} passed, {len(outcomes) - sum(outcomes)} failed")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
