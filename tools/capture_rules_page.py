#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Prints docs/capture_rules.md: the rules of //rules and what a GPU of the conformance record answered.

    tools/capture_rules_page.py >docs/capture_rules.md

Every code, state and number of the page comes from test/conformance/recorded or from rules/; this file has the words
around them. A case of the record that it cannot put into words stops it, so no call is left out unseen.
"""

import collections
import os
import re
import sys

sys.stdout.reconfigure(encoding="utf-8")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
RECORDED = "test/conformance/recorded"
TABLES = ["h200_transcript.txt", "h200_probes_during.txt", "h200_probes_captures.txt"]
MODES = ["GLOBAL", "THREAD_LOCAL", "RELAXED"]
FRAME_NODES = 2  # of a case's graph, that are not the call's (test/conformance/capture_frame.h)

# --- What the record and the tables say ------------------------------------------------------------------------------


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


Line = collections.namedtuple("Line", "case step code name state")


def read_record():
    """The lines of the record, and what its files say of the machine."""
    lines, machines = [], set()
    for name in TABLES:
        for text in read(f"{RECORDED}/{name}").splitlines():
            machine = re.match(r"# device (.*?);", text)
            if machine:
                machines.add(machine.group(1))
            if text.startswith("#"):
                continue
            fields = [field.strip() for field in text.split(" | ")]
            lines.append(Line(*(fields + [""] * (5 - len(fields)))))
    if len(machines) != 1:
        sys.exit(f"the record is of several machines: {sorted(machines)}")
    return lines, machines.pop()


Rule = collections.namedtuple("Rule", "id name code situation remedy section")


def read_rules():
    rules, section = [], ""
    text = read("rules/capture_rules.inc")
    body = text[text.index("\n\n"):]
    row = re.compile(
        r"^// (?P<section>.*)\.$|^CAPTURE_(?:RULE|GATE)\((?P<id>R\d+), (?P<name>\w+), (?P<code>\w+),\s*"
        r'"(?P<situation>[^"]*)",\s*"(?P<remedy>[^"]*)"\)', re.MULTILINE)
    for match in row.finditer(body):
        if match["section"]:
            section = match["section"]
        else:
            rules.append(Rule(*match.group("id", "name", "code", "situation", "remedy"), section))
    if len(rules) != len(re.findall(r"^CAPTURE_(?:RULE|GATE)", body, re.MULTILINE)):
        sys.exit("a row of capture_rules.inc was not understood")
    return rules


def read_pairs(path, macro):
    return re.findall(macro + r'\((\w+),\s*"?([^")]*)"?\)', read(path))


# --- Words -----------------------------------------------------------------------------------------------------------

# The groups of calls, in the order of the page. A function belongs to the first group that fits.
GROUPS = [
    ("Begin, end and state of a capture",
     r"cudaStream(BeginCapture|EndCapture|IsCapturing|GetCaptureInfo|UpdateCapture)|cudaThreadExchange"),
    ("Events, forks and joins", r"cudaEvent|cudaStreamWaitEvent"),
    ("Streams", r"cudaStream"),
    ("Kernels and host functions", r"cudaLaunch|cudaFunc|cudaOccupancy"),
    ("Copies and fills", r"cudaMemcpy|cudaMemset"),
    ("Memory pools", r"cudaMemPool|cudaDevice(Set|Get|GetDefault)MemPool"),
    ("Memory", r"cudaMalloc|cudaFree|cudaHost|cudaPointer|cudaMemGetInfo"),
    ("Graphs", r"cudaGraph|cudaUserObject|cudaDevice(GraphMem|GetGraphMem|SetGraphMem)"),
    ("Devices and versions", r"cuda"),
]

# Cases that are not called after their function: the function, and how it is called.
NAMED = {
    "begin_again": ("cudaStreamBeginCapture", "on the capturing stream"),
    "begin_legacy": ("cudaStreamBeginCapture", "on the legacy stream"),
    "begin_on_joined": ("cudaStreamBeginCapture", "on a stream that joined the capture"),
    "nested_begin_end_other": ("cudaStreamBeginCapture", "on another stream, a fill, and its end"),
    "end_null_out": ("cudaStreamEndCapture", "without a place for the graph: ends the capture, and the graph is lost"),
    "end_on_joined": ("cudaStreamEndCapture", "on a stream that joined the capture"),
    "end_other": ("cudaStreamEndCapture", "on a stream that does not capture"),
    "fork_nowork_join": ("cudaStreamWaitEvent", "fork a stream, give it no work, join it"),
    "sync_joined": ("cudaStreamSynchronize", "a stream that joined the capture"),
    "updatedeps_set_none": ("cudaStreamUpdateCaptureDependencies", "no dependencies"),
    "updatedeps_badflag": ("cudaStreamUpdateCaptureDependencies", "with a flag that does not exist"),
    "relaxed_exchange_cudaDeviceSynchronize":
        ("cudaDeviceSynchronize", "the thread exchanged to relaxed mode"),
    "relaxed_exchange_cudaEventQuery_pre":
        ("cudaEventQuery", "an event recorded before the capture, the thread exchanged to relaxed mode"),
    "relaxed_exchange_cudaFree": ("cudaFree", "the thread exchanged to relaxed mode"),
    "relaxed_exchange_cudaMalloc": ("cudaMalloc", "the thread exchanged to relaxed mode"),
    "threadlocal_exchange_cudaMalloc": ("cudaMalloc", "the thread exchanged to thread-local mode"),
    "cudaThreadExchange_bad": ("cudaThreadExchangeStreamCaptureMode", "to a mode that does not exist"),
    "cudaMallocAsync_FreeAsync_capturing": ("cudaMallocAsync", "and cudaFreeAsync, on the capturing stream"),
    "cudaMallocAsync_capturing_FreeAsync_other":
        ("cudaMallocAsync", "on the capturing stream, then cudaFreeAsync on another stream"),
    "cudaEventRecordExternal_then_query":
        ("cudaEventRecordWithFlags", "external, on the capturing stream, then cudaEventQuery of the event"),
    "cudaEventRecordExternal_capturedevent":
        ("cudaEventRecordWithFlags", "external, on the capturing stream, an event recorded in the capture"),
    "cudaEventRecordExternal_capturing": ("cudaEventRecordWithFlags", "external, on the capturing stream"),
    "cudaEventRecordExternal_other": ("cudaEventRecordWithFlags", "external, on another stream"),
}

# How a call is called, by what follows its function in the case's name. A key may begin with what the function begins
# with and a space; such a key comes first.
HOW = {
    "": "",
    "NULL": "NULL",
    "NULL_capturing": "NULL, on the capturing stream",
    "NULL_out": "without a place for the answer",
    "bad": "with a mode that does not exist",
    "badflag": "with a flag that does not exist",
    "badflags": "with flags that do not exist",
    "badflags_capturing": "on the capturing stream, with flags that do not exist",
    "badkind": "with a kind that does not exist",
    "badmode_other": "on another stream, with a mode that does not exist",
    "badpitch_capturing": "on the capturing stream, with a pitch below the width",
    "beyond_capturing": "on the capturing stream, beyond the allocation",
    "block0_capturing": "on the capturing stream, with a block of 0 threads",
    "block0_other": "on another stream, with a block of 0 threads",
    "bogus": "an address that was never allocated",
    "bogus_capturing": "on the capturing stream, an address that was never allocated",
    "captured": "an event recorded in the capture",
    "captured_external": "on the capturing stream, an event recorded in the capture, external",
    "captured_on_other": "on another stream, an event recorded in the capture",
    "capturing": "on the capturing stream",
    "capturing_graph": "the graph of the open capture",
    "cluster3of4_capturing": "on the capturing stream, with clusters of 3 in a grid of 4",
    "cudaMalloced_capturing": "on the capturing stream, memory of cudaMalloc",
    "d2d": "device to device",
    "d2h_pageable": "device to pageable memory",
    "externalnode": "an event that an external record node uses",
    "foreign": "a node of another graph",
    "from_capturing": "from the capturing stream",
    "grid0_capturing": "on the capturing stream, with a grid of 0 blocks",
    "h2d": "pinned memory to device",
    "h2d_pageable": "pageable memory to device",
    "h2d_pinned": "pinned memory to device",
    "h2h": "host to host",
    "h2h_pageable_capturing": "on the capturing stream, between pageable memory",
    "h2h_pinned": "between pinned memory",
    "idle": "an idle stream that takes no part",
    "join": "an idle stream on an event of the capture, which joins it",
    "join_blocking": "an idle blocking stream on an event of the capture, which joins it",
    "join_external": "an idle stream on an event of the capture, external",
    "join_legacy": "the legacy stream on an event of the capture",
    "join_perthread": "the per-thread stream on an event of the capture, which joins it",
    "legacy": "on the legacy stream",
    "merge": "the capturing stream on an event of another capture",
    "never": "an event that was never recorded",
    "never_external": "the capturing stream on an event that was never recorded, external",
    "not_registered": "memory that was not registered",
    "null": "NULL",
    "nulldst": "with a NULL destination",
    "nullfn": "with a NULL function",
    "of_captured_alloc": "memory that the capture allocates",
    "of_captured_alloc_on_other": "on another stream, memory that the capture allocates",
    "other": "on another stream",
    "other_pageable_d2h": "on another stream, device to pageable memory",
    "otherblocking": "on another, blocking stream",
    "pageable_capturing": "on the capturing stream, pageable memory",
    "persisting": "the persisting L2 cache",
    "perthread": "on the per-thread stream",
    "pre": "an event recorded before the capture",
    "pre_capturing": "on the capturing stream, memory allocated before the capture",
    "pre_external": "the capturing stream on an event recorded before the capture, external",
    "pre_other": "on another stream, memory allocated before the capture",
    "programmatic_capturing": "on the capturing stream, with programmatic stream serialization",
    "reuse": "the attribute of reuse",
    "samedev": "within one device",
    "self": "the device itself",
    "shared_capturing": "on the capturing stream, with more shared memory than a block can have",
    "the_capturing_graph": "into the graph of the open capture",
    "threshold": "the release threshold",
    "timed_capturing": "on the capturing stream, an event with timing",
    "to_capturing": "to the capturing stream",
    "too_much": "more than the device has",
    "too_much_capturing": "on the capturing stream, more than the device has",
    "toolarge_capturing": "on the capturing stream, a grid too large to be resident",
    "twice_capturing": "on the capturing stream, a second time",
    "used": "the bytes in use",
    "wrongkind": "with the wrong kind",
    "zero": "0 bytes",
    "zero_capturing": "on the capturing stream, 0 bytes",
    "cudaGraphLaunch legacy": "on the legacy stream",
    "cudaGraphLaunch other": "on another stream",
    "cudaGraphUpload other": "on another stream",
    "cudaGraph other": "of another graph",
    "cudaStreamWaitEvent never": "the capturing stream on an event that was never recorded",
    "cudaStreamWaitEvent pre": "the capturing stream on an event recorded before the capture",
    "cudaStreamWaitEvent pre_other": "another stream on an event recorded before the capture",
    "cudaStreamWaitEvent NULL_capturing": "the capturing stream on a NULL event",
    "cudaStreamWaitEvent badflags_capturing": "the capturing stream, with flags that do not exist",
    "cudaStreamSynchronize capturing": "the capturing stream",
    "cudaStreamSynchronize legacy": "the legacy stream",
    "cudaStreamSynchronize other": "another stream",
    "cudaStreamSynchronize otherblocking": "another, blocking stream",
    "cudaStreamSynchronize perthread": "the per-thread stream",
    "cudaStreamQuery capturing": "the capturing stream",
    "cudaStreamQuery legacy": "the legacy stream",
    "cudaStreamQuery other": "another stream",
    "cudaStreamQuery otherblocking": "another, blocking stream",
    "cudaStreamQuery perthread": "the per-thread stream",
}

# Of these functions the capturing stream is what the case is about, though its name does not say so.
ON_CAPTURING = {
    "cudaStreamGetFlags", "cudaStreamGetId", "cudaStreamGetDevice", "cudaStreamSetAttribute", "cudaMemcpyAsync",
    "cudaMemcpy2DAsync", "cudaMemsetAsync", "cudaMemcpyPeerAsync", "cudaLaunchHostFunc", "cudaEventRecordWithFlags",
}
ELSEWHERE = ("other", "legacy", "per-thread", "capturing stream", "stream")


def words_of(case):
    """The function of a case, and how it is called there."""
    name = re.sub(r"^(probe\.)?(cap|during)\.", "", case)
    if name in NAMED:
        return NAMED[name]
    function, _, suffix = name.partition("_")
    keys = [f"{function} {suffix}", f"cudaGraph {suffix}" if function.startswith("cudaGraph") else suffix, suffix]
    how = next((HOW[key] for key in keys if key in HOW), None)
    if how is None:
        sys.exit(f"no words for the case {case}")
    if function in ON_CAPTURING and not any(word in how for word in ELSEWHERE):
        how = "on the capturing stream" + (", " + how if how else "")
    return function, how


# --- Rows ------------------------------------------------------------------------------------------------------------

Answer = collections.namedtuple("Answer", "code after end nodes")


def value(state, key):
    match = re.search(rf"\b{key}=(\S+)", state)
    return match.group(1) if match else None


def read_answers(lines):
    """case -> {(actor, mode): Answer}, of the cases in which one call is made during a capture."""
    cases = collections.OrderedDict()
    for line in lines:
        step = re.match(r"(self|other|blocking) (GLOBAL|THREAD_LOCAL|RELAXED) (op|end)$", line.step)
        if not step or not re.match(r"(probe\.)?(cap|during)\.", line.case):
            continue
        actor, mode, part = step.groups()
        key, answers = (actor, mode), cases.setdefault(line.case, {})
        if part == "op":
            answers[key] = Answer(int(line.code), value(line.state, "status"), int(value(line.state, "end") or -1),
                                  int(value(line.state, "nodes") or -1))
        else:
            answers[key] = answers[key]._replace(end=int(line.code), nodes=int(value(line.state, "nodes")))
    return cases


BLOCKING = "[blocking]"
WORK = re.compile(r"cuda(Memcpy|Memset|Launch|GraphLaunch|MallocAsync|MallocFromPool|FreeAsync|EventRecord|StreamWaitEvent|"
                  r"StreamAddCallback)")
ORDERS = re.compile(r"cuda(EventRecord|StreamWaitEvent)")  # an edge at most


class Row:
    """A call in one situation: six answers, of two threads in three modes."""

    def __init__(self, case, function, how, answers):
        self.case, self.function, self.how, self.answers = case, function, how, answers
        self.rule = None

    def cells(self):
        return [self.answers.get((actor, mode)) for actor in ("self", "other") for mode in MODES]

    def codes(self):
        return {answer.code for answer in self.cells() if answer}

    def breaks(self):
        return [answer is not None and answer.after == "INVALIDATED" for answer in self.cells()]

    def kind(self):
        """'breaks', 'by mode', 'fails' (the capture goes on), 'ends' or 'legal'."""
        cells = [answer for answer in self.cells() if answer]
        if all(answer.after == "INVALIDATED" for answer in cells):
            return "breaks"
        if any(answer.after == "INVALIDATED" for answer in cells):
            return "by mode"
        if any(answer.after == "NONE" for answer in cells):
            return "ends"
        return "fails" if any(answer.code != 0 for answer in cells) else "legal"

    def is_not_captured(self):
        runs = WORK.match(self.function) and not ORDERS.match(self.function) and "0 bytes" not in self.how
        return runs and self.kind() == "legal" and self.nodes() == "+0" and "NULL" not in self.how

    def nodes(self):
        if not WORK.match(self.function):
            return ""
        added = {answer.nodes - FRAME_NODES for answer in self.cells() if answer and answer.end == 0}
        return " or ".join(f"+{count}" for count in sorted(added)) if added else ""


def rows_of(cases):
    rows, seen = [], set()
    for case, answers in cases.items():
        function, how = words_of(case)
        if (function, how) in seen:
            continue  # recorded twice, by two frames
        seen.add((function, how))
        rows.append(Row(case, function, how, answers))
        beside = {("self", mode): answer for (actor, mode), answer in answers.items() if actor == "blocking"}
        if beside:
            rows.append(Row(case, function, (how + " " if how else "") + BLOCKING, beside))
    return rows


def cell(answer):
    if answer is None:
        return ""
    text = "ok" if answer.code == 0 else str(answer.code)
    if answer.after == "INVALIDATED":
        return f"**{answer.code}**"
    if answer.after == "NONE":
        return f"{text}, ends it"
    return text if answer.end == 0 else f"{text}, end {answer.end}"


# --- Which rule ------------------------------------------------------------------------------------------------------

# The rule that a code most often stands for, where no table names the call (rules/rules.c has the same).
BY_CODE = {902: "R16", 903: "R3", 904: "R6", 905: "R17", 906: "R15", 907: "R13", 908: "R4"}
ALSO = {"cap.begin_legacy": "R1", "cap.begin_on_joined": "R2"}  # shown by other cases, which are no call in a capture
NEVER_LEGAL = {"R11", "R12", "R13"}  # in no mode


def assign_rules(rows, rules, calls, shown_by, numbers):
    shown = {case: rule for rule, case in reversed(shown_by)}
    code_of = {rule.id: numbers.get(rule.code, 0) for rule in rules}
    for row in rows:
        if row.kind() == "legal" and row.case not in shown:
            continue
        fits = [rule for function, rule in calls if function == row.function and code_of[rule] in row.codes()]
        if row.kind() == "by mode":
            fits = [rule for rule in fits if rule not in NEVER_LEGAL] + ["R26"]
        by_code = [BY_CODE[code] for code in sorted(row.codes()) if code in BY_CODE]
        if 900 in row.codes():
            by_code.append("R11")
        if BLOCKING in row.how and 906 in row.codes():
            fits = ["R15"]
        elif row.case in ALSO:
            fits = [ALSO[row.case]]
        elif row.case in shown and (row.kind() != "legal" or code_of[shown[row.case]] == 0):
            fits = [shown[row.case]]
        if row.kind() == "fails" and not fits:
            by_code = ["R9"]
        row.rule = next(iter(fits + by_code), None)


# --- The page --------------------------------------------------------------------------------------------------------


def link(rule):
    return f"[{rule}](#{rule.lower()})" if rule else ""


def anchor(title):
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def call_table(rows):
    print("| call | how | own: global | own: thread-local | own: relaxed | other: global | other: thread-local |"
          " other: relaxed | nodes | rule |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in sorted(rows, key=lambda row: (row.function.lower(), row.how)):
        cells = " | ".join(cell(answer) for answer in row.cells())
        print(f"| `{row.function}` | {row.how} | {cells} | {row.nodes()} | {link(row.rule)} |")


def listing(rows):
    """Functions, with the situations in brackets where there are any."""
    by_function = collections.OrderedDict()
    for row in sorted(rows, key=lambda row: (row.function.lower(), row.how)):
        by_function.setdefault(row.function, []).append(row.how)
    for function, hows in by_function.items():
        said = "; ".join(how or "an ordinary call" for how in hows)
        print(f"- `{function}`" + (f": {said}" if said != "an ordinary call" else ""))


INTRODUCTION = """\
# What may be called while a CUDA stream is captured

<!-- Generated by tools/capture_rules_page.py from rules/ and test/conformance/recorded/. Do not edit. -->

A stream capture (`cudaStreamBeginCapture`) records work instead of running it. Some calls break it: they answer an
error, or none, and the capture is *invalidated*, which often shows only at its end. Some fail and leave it active, so that
it ends well in a graph that lacks their work. And some run at once, beside the capture. Which call does what depends on
the call, on the mode of the capture (`cudaStreamCaptureModeGlobal`, `ThreadLocal` or `Relaxed`), and on the thread that
makes the call.

This page says what a GPU answered, call by call. Nothing in its tables was taken from documentation.

- [In short](#in-short): what breaks a capture, and what does not
- [The tables](#the-tables): each call in each mode, on the capturing thread and on another one
- [Begin and end, step by step](#begin-and-end-step-by-step): other threads, other streams, forks, two captures
- [The rules](#the-rules): R1, R2, … by which gcap, its simulator and these tables name a mistake, each with its remedy
- [Reproduce it](#reproduce-it) on your GPU

## How the answers were obtained

The machine: **{machine}**.

Each case ran in a process of its own: a thread begins a capture, captures a fill, lets a thread make one call, captures
another fill, and ends the capture. After each step the code, the last error and the state of the capture were written
down. The raw lines are in [{recorded}](../{recorded}). This page is
generated from them, and a test compares it with them.

Here are {num_rows} situations of {num_functions} functions. The answers are one machine's: another driver may answer
otherwise. [Reproduce it](#reproduce-it) takes a minute.
"""

MODES_TEXT = """\
## In short

The runtime knows three classes of calls that a capture forbids:

- **Never legal.** The call names what a capture holds, such as the capturing stream, an event recorded in the capture, or
  the legacy stream beside a capture of a blocking stream; or it waits for the whole device; or it gives the capturing
  stream a kernel that no device can run, or an event that is none. It breaks the capture in every mode, whichever thread
  makes the call.
- **Unsafe.** The call may synchronize or allocate implicitly. It breaks a capture in global mode whichever thread makes
  it, one in thread-local mode if the capturing thread makes it, and none in relaxed mode. A thread can exchange its own
  mode around such a call (`cudaThreadExchangeStreamCaptureMode`); [the mode of a thread](#the-mode-of-a-thread) says what
  that changes.
- **Refused.** The call answers an error and the capture continues. Its end succeeds, and the graph lacks the work: so the
  first error of every call in a capture must be kept, and the graph rejected ([R9](#r9)).

And there is a fourth, without an error: work for another stream, the legacy stream among them, is **not captured**. It
runs at once, in no order with the graph.

So: capture in thread-local mode, on a stream that was created with `cudaStreamNonBlocking`; allocate, load, tune and
create handles before; look at every result; and treat a capture as failed when any call in it failed.

In the lists below, *[blocking]* means that the capturing stream is a blocking one.
"""

READING = """\
## The tables

*own*: the capturing thread makes the call; *other*: another thread does, which captures nothing. The three modes are
those of the capture; where nothing else is said, the capturing stream is non-blocking and the thread that makes the call
has the default mode, global.

| cell | meaning |
|---|---|
| ok | success, and the capture continues |
| **900** | the code that the call answered; the capture is invalidated: its end answers {end_code} and gives no graph |
| 1 | the code that the call answered; the capture continues and ends well, without the work ([R9](#r9)) |
| …, ends it | the capture is over |
| (empty) | not recorded |

*[blocking]*: the capturing stream is a blocking one. *nodes*: how many nodes a call that issues work added to the graph,
where the capture ended well; +0 without an error: the work is empty, or was not captured. *rule*: the rule that the call
breaks, or meets.
"""

REPRODUCTION = """\
## Reproduce it

With Bazel, a CUDA toolkit and a GPU, from a checkout:

    ./bazelw test --config=gpu //test/conformance:conformance_test      # compares your GPU with this record
    ./bazelw build --config=cuda //test/conformance:conformance_test
    .bazel/bin/test/conformance/conformance_test --record=cap.          # prints your GPU's own lines, by the case's name

On a machine with a driver alone: `tools/gpu_pack` (CONTRIBUTING.md). The cases of these tables are called `cap.…`,
`during.…` and `probe.cap.…` (`test/conformance/*_cases.cc`). Without a GPU the same program asks gcap's simulator, which
is held to the same lines; what differs is listed with its reason in `test/conformance/expected_differences.inc`.
"""


def print_short(rows):
    titles = [
        ("breaks", "Breaks a capture in every mode in which it was tried"),
        ("by mode", "Breaks a capture by mode and thread"),
        ("fails", "Fails, and the capture continues without the work"),
    ]
    for kind, title in titles:
        print(f"### {title}\n")
        listing([row for row in rows if row.kind() == kind])
        print()
    print("### Succeeds, and is not in the graph\n")
    listing([row for row in rows if row.is_not_captured()])
    print()
    legal = sorted({row.function for row in rows} - {row.function for row in rows if row.kind() != "legal"}, key=str.lower)
    print("### Legal wherever it was tried\n")
    print(", ".join(f"`{function}`" for function in legal) + ".\n")


def print_exchange(lines):
    """Who is barred: the mode of the capture by the mode of the thread."""
    answers = {}
    for line in lines:
        step = re.match(r"capture (\w+) thread (\w+) (own|other) thread: cudaMalloc$", line.step)
        if line.case == "mode.exchange_matrix" and step:
            answers[step.groups()] = (line.code, value(line.state, "status"))
    print("### The mode of a thread\n")
    print("`cudaMalloc` by the mode of the capture (rows) and the mode to which the calling thread exchanged (columns);\n"
          "case `mode.exchange_matrix`.\n")
    print("| capture | own: global | own: thread-local | own: relaxed | other: global | other: thread-local |"
          " other: relaxed |")
    print("|---|---|---|---|---|---|---|")
    for capture in MODES:
        cells = []
        for who in ("own", "other"):
            for thread in MODES:
                code, status = answers[(capture, thread, who)]
                cells.append(f"**{code}**" if status == "INVALIDATED" else "ok" if code == "0" else code)
        print(f"| {mode_name(capture)} | {' | '.join(cells)} |")
    print()


STEPS = [
    ("begin.legacy", "A capture of the legacy stream"),
    ("begin.per_thread", "A capture of the per-thread stream"),
    ("end.twice", "Ended twice"),
    ("end.empty", "Ended without a node"),
    ("end.other_thread", "Ended by another thread"),
    ("end.wrong_stream", "Ended on another stream"),
    ("end.unjoined_nowork", "A fork without work is not joined"),
    ("end.unjoined_work", "A fork with work is not joined"),
    ("end.events_of_ended", "The events of a capture that has ended"),
    ("end.unsafe_while_invalidated", "Unsafe calls while a capture is invalidated"),
    ("merge.two_captures", "Two captures meet"),
]


def counted(nodes):
    return f"{nodes} node" + ("" if nodes == "1" else "s")


def print_two_threads(lines):
    """Two captures at once, by their modes: whose does an unsafe call break?"""
    answers = {}
    for line in lines:
        step = re.match(r"main (\w+) other (\w+) (other thread: cudaMalloc|other thread: end|main: end)$", line.step)
        if line.case == "mode.two_threads" and step:
            answers[step.groups()] = "ok" if line.code == "0" else f"**{line.code}**"
    print("### Two threads capture\n")
    print("Each captures a stream of its own, and the second calls `cudaMalloc`; case `mode.two_threads`.\n")
    print("| mode of the first | mode of the second | `cudaMalloc` | end of the second | end of the first |")
    print("|---|---|---|---|---|")
    for first in MODES:
        for second in MODES:
            steps = [answers.get((first, second, step), "")
                     for step in ("other thread: cudaMalloc", "other thread: end", "main: end")]
            print(f"| {mode_name(first)} | {mode_name(second)} | {' | '.join(steps)} |")
    print()


def mode_name(mode):
    return mode.lower().replace("_", "-")


def check_classes(rows):
    """The page says how unsafe calls depend on mode and thread: all of them must."""
    own_unsafe, other_unsafe = [True, True, False], [True, False, False]
    for row in rows:
        if row.kind() != "by mode" or "exchanged" in row.how:
            continue
        breaks = [answer and answer.after == "INVALIDATED" for answer in row.cells()]
        if breaks[:3] != own_unsafe or (breaks[3:] != other_unsafe and any(row.cells()[3:])):
            sys.exit(f"{row.case} breaks captures in another way than unsafe calls do: {breaks}")


def print_steps(lines):
    print("## Begin and end, step by step\n")
    print("What each step answered, by the mode of the capture. In brackets: the state of the streams after it.\n")
    for case, title in STEPS:
        table = collections.OrderedDict()
        seen = collections.Counter()
        for line in lines:
            step = re.match(r"(GLOBAL|THREAD_LOCAL|RELAXED) (.*)", line.step)
            if line.case != case or not step or step[2] == "after" or line.code == "-":
                continue
            seen[(step[1], step[2])] += 1
            state = " ".join(re.findall(r"\b(?:status|origin|joined|fork|s|s2)=(\w+)", line.state)).lower()
            nodes = value(line.state, "nodes")
            text = "ok" if line.code == "0" else line.code
            notes = [note for note in (state, counted(nodes) if nodes not in (None, "-1") else "") if note]
            key = (step[2], seen[(step[1], step[2])])
            table.setdefault(key, {})[step[1]] = text + (f" ({', '.join(notes)})" if notes else "")
        if not table:
            sys.exit(f"the record has no steps of {case}")
        print(f"### {title}\n\nCase `{case}`.\n")
        print("| step | global | thread-local | relaxed |\n|---|---|---|---|")
        for (step, _), answers in table.items():
            print(f"| {step} | " + " | ".join(answers.get(mode, "") for mode in MODES) + " |")
        print()


def print_rules(rules, calls, shown_by, not_shown, numbers):
    print("## The rules\n")
    print("A number is a rule's for good. *Answer* is what the call answers; \"nothing\" means that no code does.\n"
          "*Shown by* names cases of the record. Each rule's link leads to a page with the mistake and its repair, in C and in\n"
          "PyTorch.\n")
    section = None
    for rule in rules:
        if rule.section != section:
            section = rule.section
            print(f"### {section}\n")
            print("| rule | what happens | answer | what to do | shown by |\n|---|---|---|---|---|")
        answer = "nothing" if rule.code == "cudaSuccess" else f"{numbers[rule.code]} `{rule.code}`"
        cases = ", ".join(f"`{case}`" for id, case in shown_by if id == rule.id)
        reason = next((reason for id, reason in not_shown if id == rule.id), "")
        functions = ", ".join(f"`{function}`" for function, id in calls if id == rule.id)
        what = rule.situation + (f" ({functions})" if functions else "")
        print(f'| <a id="{rule.id.lower()}"></a>[{rule.id}](rules/{rule.id.lower()}.md) | {what} | {answer} | {rule.remedy} |'
              f" {cases or 'not here: ' + reason} |")
        following = rules.index(rule) + 1
        if following == len(rules) or rules[following].section != section:
            print()


def main():
    lines, machine = read_record()
    rules = read_rules()
    calls = read_pairs("rules/capture_calls.inc", "CAPTURE_CALL")
    shown_by = read_pairs("test/conformance/rule_cases.inc", "SHOWN_BY")
    not_shown = read_pairs("test/conformance/rule_cases.inc", "NOT_SHOWN")
    numbers = {line.name: int(line.code) for line in lines if line.code.isdigit()}
    unknown = {rule.code for rule in rules} - set(numbers)
    for name in TABLES_FOR_CODES:
        for text in read(f"{RECORDED}/{name}").splitlines():
            fields = text.split(" | ")
            if len(fields) > 3 and fields[3] in unknown:
                numbers[fields[3]] = int(fields[2])
    rows = rows_of(read_answers(lines))
    assign_rules(rows, rules, [(function, rule) for function, rule in calls], shown_by, numbers)

    functions = {row.function for row in rows}
    machine = machine[0].upper() + machine[1:]
    print(INTRODUCTION.format(machine=machine, recorded=RECORDED, num_rows=len(rows), num_functions=len(functions)))
    print(MODES_TEXT)
    check_classes(rows)
    print_short(rows)
    print_exchange(lines)
    print_two_threads(lines)
    print(READING.format(end_code=numbers["cudaErrorStreamCaptureInvalidated"]))
    names = {line.code: line.name for line in lines if line.code.isdigit()}
    used = sorted({answer.code for row in rows for answer in row.cells() if answer and answer.code != 0})
    print("Codes: " + ", ".join(f"{code} `{names[str(code)]}`" for code in used) + ".\n")
    left = rows
    for title, pattern in GROUPS:
        chosen = [row for row in left if re.match(pattern, row.function)]
        left = [row for row in left if row not in chosen]
        print(f"### {title}\n")
        call_table(chosen)
        print()
    print_steps(lines)
    print_rules(rules, calls, shown_by, not_shown, numbers)
    print(REPRODUCTION, end="")


# Where codes are that no capture answers.
TABLES_FOR_CODES = ["h200_probes_graphs.txt", "h200_transcript.txt"]

if __name__ == "__main__":
    main()
