# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What an exception of a capture means: a kind, a rule of docs/rules and a remedy, by what the exception says.

The first exception of a chain that has a row's text decides, since the end of a broken capture raises another one over it.
An exception that no row knows is the operation's own.
"""

from gcap_doctor.capturable import places
from gcap_doctor.capturable.report import Finding

_PINNED = "make the host tensor pinned and keep it, copy with non_blocking=True, or copy before the replay"
_GENERATOR = "register the generator with graph.register_generator_state(generator), or draw from PyTorch's default generator"
# (text in lower case, kind, rule, what it means, remedy or None)
ROWS = (
    ("unless the cpu tensor is pinned", "culprit", "R38", "a copy between pageable host memory and the device", _PINNED),
    ("unjoined", "unjoined", "R6", "a stream that took part in the capture was not joined at its end", None),
    ("offset increment outside graph capture", "culprit", None, "a generator that the graph does not know", _GENERATOR),
    ("unregistered generator", "culprit", None, "a generator that the graph does not know", _GENERATOR),
    ("generatorimpl", "culprit", None, "a question to a generator, or a generator that the graph does not know", _GENERATOR),
    ("event last recorded in a capturing stream", "culprit", "R13",
     "a query of, or a host wait for, an event of the capture", "wait for the event after the replay"),
    ("dependency created on uncaptured work", "culprit", "R17",
     "a wait for work that was submitted outside of the capture", "wait for that work before the capture begins"),
    ("legacy stream", "culprit", "R15", "a call that uses the legacy default stream",
     "launch on torch.cuda.current_stream(), and let libraries do so"),
    ("from another thread", "culprit", "R4", "an end of the capture on another thread",
     "make all calls of a capture on the thread that began it"),
    ("merge of separate capture", "culprit", "R16", "a wait on an event of another capture",
     "keep the streams of two captures apart"),
    ("not permitted when stream is capturing", "culprit", "R11",
     "a wait for the device, a query or an allocation: .item(), .cpu(), .tolist(), nonzero(), a mask as an index, a branch "
     "on a tensor, synchronize()", None),
    ("operation not permitted", "culprit", "R11", "a call that a capture cannot hold", None),
    ("operation failed due to a previous error during capture", "culprit", None,
     "a call that failed before, and whose error somebody dropped", "gcap-doctor run names the call"),
    ("during cuda graph capture", "culprit", None, "a call that a capture cannot hold", None),
    ("cuda error", "culprit", None, "a call that failed", None),
)


def chain(error):
    """The exceptions that were handled when one another came, the first one first."""
    found, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        found.append(error)
        error = error.__context__
    return found[::-1]


def first_line(error):
    """'RuntimeError: text'"""
    lines = str(error).strip().split("\n")
    return f"{type(error).__name__}: {lines[0]}" if lines[0] else type(error).__name__


def row_of(error):
    text = str(error).lower()
    return next((row for row in ROWS if row[0] in text), None)


def explain(error, folders, function_place):
    """The Finding for an exception that left a capture."""
    causes = chain(error)
    cause = next((each for each in causes if row_of(each)), causes[0])
    file, line, function = places.of_error(cause, folders)
    if file is None:
        file, line, function = places.of_error(error, folders)
    if file is None:
        function, file, line = function_place
    row = row_of(cause)
    if row is None:
        return Finding("refused", f"the operation raised while it was captured: {first_line(cause)}", file, line, None, None,
                       function)
    _, kind, rule, meaning, remedy = row
    return Finding(kind, f"the capture broke: {meaning}; PyTorch said: {first_line(cause)}", file, line, rule, remedy,
                   function)
