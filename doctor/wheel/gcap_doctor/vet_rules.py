# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What a walk through a test gives away: each rule names what would go unnoticed."""

import ast

from gcap_doctor.vet_walk import Memory

# kind: (severity, what is wrong, what to do)
KINDS = {
    "never_replayed": ("error", "a graph is captured and never replayed: capturing runs nothing",
                       "replay the graph after new values were copied into its inputs, and compare with an eager run"),
    "no_capture": ("warning", "the test's name or its text says CUDA graph, and nothing in it captures",
                   "capture the operation and replay the graph, or rename the test"),
    "no_assert": ("error", "nothing is asserted after the replay",
                  "compare the outputs after the replay with those of an eager run on the same inputs"),
    "weak_assert": ("error", "what is asserted after the replay is of shapes, types or finite values alone",
                    "compare the values with those of an eager run"),
    "same_tensor": ("error", "a result is compared with itself",
                    "compare with a tensor of its own memory: the clone of an eager run's output"),
    "warm_up_output": ("error", "the expected values are the buffer that the replay writes",
                       "clone the eager run's output before the capture: expected = out.clone()"),
    "stale_output": ("error", "the output holds the warm-up's values when the replay begins: a replay that does nothing "
                              "passes",
                     "poison the output before the replay, as with out.fill_(float('nan')), and change the inputs"),
    "replay_against_replay": ("error", "replays are compared with replays alone",
                              "compare with an eager run: a graph that is wrong is wrong each time"),
    "unchanged_inputs": ("warning", "the graph is replayed with the inputs that were captured alone",
                         "copy other values into the same tensors before a replay, and compare with an eager run on them"),
    "dropped_comparison": ("error", "the result of a comparison is dropped", "write assert before it"),
    "always_true": ("error", "an assertion that cannot fail", "assert the comparison itself"),
    "loose_tolerance": ("warning", "the tolerance allows any result",
                        "take the tolerance of the data type, and of what two eager runs differ by"),
    "swallowed": ("error", "an exception of the capture is caught, and the test passes",
                  "let the exception pass, or expect it with pytest.raises"),
    "skipped_on_failure": ("error", "a capture that fails skips the test", "skip by what the machine has, before the capture"),
    "skipped": ("warning", "the test is skipped or may fail, whatever the graph does",
                "skip where a GPU is missing alone, and say so in skipif"),
    "unreadable": ("warning", "a file that is not Python", "mend the file; nothing in it was vetted"),
}


def judge(walk):
    """[(kind, sentence with {test}, line, severity or None for the kind's)]"""
    if not walk.is_of_capture:
        return []
    found = []
    for rule in (_skips, _swallows, _replays, _asserts, _comparisons, _dropped, _inputs):
        found += rule(walk)
    return found


def _skips(walk):
    return [("skipped", f"{{test}} {how}", line, None) for line, how in walk.skips]


def _swallows(walk):
    words = {"swallowed": "{test} catches an exception of the capture and goes on",
             "skipped_on_failure": "{test} is skipped when the capture fails, which is what it should tell"}
    return [(kind, words[kind], line, None) for line, kind in walk.swallowed]


def _replays(walk):
    certain = [capture for capture in walk.captures if capture.certain and not capture.expects_failure]
    if certain and not walk.replays and not walk.graph_escapes and not walk.unknown_graph_call:
        return [("never_replayed", "{test} captures a graph and never replays it", certain[0].line, None)]
    if not walk.captures and not walk.replays and not walk.unknown_graph_call and not walk.skips:
        return [("no_capture", "{test} says CUDA graph and neither captures nor replays one", walk.function.lineno, None)]
    return []


def _after_replay(walk):
    return [each for each in walk.comparisons if each.replays]


def _asserts(walk):
    if not walk.replays:
        return []
    after = _after_replay(walk)
    if not after:
        return [("no_assert", "{test} asserts nothing after it replays", walk.replays[0].line, None)]
    if all(each.weak for each in after):
        return [("weak_assert", "{test} compares no value after the replay", after[0].line, None)]
    return []


def _comparisons(walk):
    found, of_graph_alone, others = [], [], False
    for each in _after_replay(walk):
        if isinstance(each.node, ast.Assert) and _is_constant(each.node.test):
            found.append(("always_true", "{test} has an assertion that cannot fail", each.line, None))
        if _is_loose(each.node):
            found.append(("loose_tolerance", "{test} allows a relative difference of 1 or more", each.line, None))
        for left, right, same_words in each.pairs if not each.weak else ():
            finding = _judge_pair(walk, each, left, right, same_words)
            if finding:
                found.append(finding)
            elif _is_graphs(left) and _is_graphs(right):
                of_graph_alone.append(each)
            else:
                others = True
    if of_graph_alone and not others and not found:
        found.append(("replay_against_replay", "{test} compares what replays left with what other replays left, and nothing "
                                               "with an eager run", of_graph_alone[0].line, None))
    return found


def _is_graphs(value):
    return isinstance(value, Memory) and value.root().captured


def _judge_pair(walk, comparison, left, right, same_words):
    if isinstance(left, Memory) and left is right:
        if same_words or left.captured:
            return "same_tensor", "{test} compares a tensor with itself", comparison.line, None
        return "warm_up_output", "{test} compares the output with another name of the same buffer", comparison.line, None
    for side in (left, right):
        if isinstance(side, Memory) and _is_stale(walk, comparison, side):
            return ("stale_output", "{test} compares an output that the warm-up wrote already, and that nothing cleared "
                                    "before the replay", comparison.line, None)
    return None


def _is_stale(walk, comparison, memory):
    shared = any(memory in memories and memory in walk.calls_captured.get(call, ())
                 for call, memories in walk.calls_before.items())
    return shared and not any(replay.written for replay in walk.replays[:comparison.replays])


def _is_constant(test):
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple):
        return bool(test.elts)
    if isinstance(test, ast.Attribute):
        return test.attr in ("allclose", "equal")  # a method that is not called
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and any(_is_constant(each) for each in test.values)


def _is_loose(node):
    return any(keyword.arg == "rtol" and isinstance(keyword.value, ast.Constant)
               and isinstance(keyword.value.value, (int, float)) and keyword.value.value >= 1
               for each in ast.walk(node) if isinstance(each, ast.Call) for keyword in each.keywords)


def _dropped(walk):
    return [("dropped_comparison", "{test} compares and drops the result", line, None) for line in walk.dropped]


def _inputs(walk):
    """Whether any replay had other inputs. Where nothing was written at all, not even the output was cleared."""
    compared = [each for each in _after_replay(walk) if not each.weak]
    if not walk.replays or not compared or not any(capture.certain for capture in walk.captures):
        return []
    outputs = {id(value) for each in compared for pair in each.pairs for value in pair[:2] if isinstance(value, Memory)}
    for replay in walk.replays:
        if any(memory is None or (id(memory) not in outputs and not memory.captured) for memory in replay.written):
            return []
    if any(kind in ("stale_output", "warm_up_output", "same_tensor") for kind, *_ in _comparisons(walk)):
        return []
    cleared = any(replay.written for replay in walk.replays)
    return [("unchanged_inputs", "{test} replays with the inputs that it captured, so a value that the graph froze would "
                                 "not show", walk.replays[0].line, "note" if cleared else None)]
