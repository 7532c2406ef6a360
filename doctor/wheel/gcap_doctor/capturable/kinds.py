# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What check() can find: each kind with its severity, its meaning and its remedy.

The words of kinds that gcap-doctor's reports have too (culprit, unjoined, escaped, pageable, empty_graph, differs) are
those of docs/doctor.md. A remedy ends without a full stop, as in the table of rules.
"""

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)

# kind: (severity, what happened, what to do)
KINDS = {
    "eager_failed": (ERROR, "the operation fails without any graph",
                     "make the operation run eagerly with these inputs first"),
    "culprit": (ERROR, "a call that a capture cannot hold broke the capture",
                "do it before the capture or after the replay, and keep the result on the device"),
    "unjoined": (ERROR, "work on another stream never came back to the capturing stream",
                 "let the capturing stream wait for the other stream before the operation returns: "
                 "torch.cuda.current_stream().wait_stream(other)"),
    "refused": (ERROR, "the operation raised an exception while it was captured, and not in eager runs",
                "take the branch that raises out of the captured work"),
    "empty_graph": (ERROR, "the capture holds no work",
                    "launch on torch.cuda.current_stream(), not on a stream of the operation's own or the default one"),
    "escaped": (ERROR, "work that was submitted beside the capture ran once and is in no graph",
                "launch on torch.cuda.current_stream(), or make the other stream wait for the capturing one before, and "
                "the capturing one for the other after"),
    "nothing_compared": (ERROR, "the operation returns no tensor and changes none that check() knows",
                         "return the results, pass the tensor that is written as an input, or name it in state="),
    "not_repeatable": (ERROR, "two eager runs with the same inputs, state and seeds differ",
                       "keep what changes from call to call in a tensor on the device that the operation updates, name a "
                       "tensor that it keeps in state=, and draw from PyTorch's default generator"),
    "unwritten": (ERROR, "a replay does not write an output",
                  "find the work that writes it: it ran on a stream or thread outside of the capture, or only at the "
                  "first call"),
    "uninitialised": (ERROR, "a replay reads memory that no work of the graph wrote before",
                      "clear or fill the workspace inside the operation, with work on the capturing stream"),
    "frozen": (ERROR, "a replay with other inputs gives the results of the inputs that were captured",
               "read the value on the device: no .item(), no Python number and no CPU tensor that depends on the inputs, "
               "and copy new values into the same tensors"),
    "not_reset": (ERROR, "a second replay in a row gives another result than a second eager run",
                  "reset counters, semaphores and accumulators inside the operation, on the capturing stream"),
    "stream_bound": (ERROR, "a replay on another stream gives another result",
                     "let all work of the operation be in the graph, ordered by the stream that it is captured on"),
    "freed_memory": (ERROR, "a replay reads memory that was given back",
                     "keep the tensor for as long as the graph replays, or make it inside of the captured work"),
    "overwrites": (ERROR, "a replay writes memory that was given back and belongs to somebody else",
                   "keep the tensor for as long as the graph replays, or make it inside of the captured work"),
    "differs": (ERROR, "a replay gives another result than the eager run",
                "compare the operation's steps one by one: gcap-doctor run names work that is in no graph"),
    "replay_failed": (ERROR, "a replay failed",
                      "keep all memory that the graph uses for as long as it replays; compute-sanitizer names the kernel"),
    "device_lost": (ERROR, "the device answers no call of this process any more",
                    "start another process; the check that ended with replay_failed before is at fault"),
    "pageable": (WARNING, "a copy of the graph reads or writes pageable host memory at each replay",
                 "copy through a pinned tensor that lives as long as the graph, or copy outside of the graph"),
    "kept": (WARNING, "the operation keeps tensors of the capture after the graph and its outputs are gone",
             "clone what is to outlive the graph; the memory is written by each replay, and by nobody once the graph is "
             "gone"),
    "same_outputs": (NOTE, "other inputs give the same results, so a frozen input would not show",
                     "pass other=(...) with inputs for which the results differ"),
    "other_refused": (NOTE, "the operation does not take the other inputs that check() made",
                      "pass other=(...) with inputs that it takes"),
    "not_watched": (NOTE, "the capture could not be watched for work beside it",
                    "gcap-doctor run names such work in any program"),
}


def severity_of(kind):
    return KINDS[kind][0]
