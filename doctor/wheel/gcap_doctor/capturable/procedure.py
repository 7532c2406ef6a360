# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The procedure of check(), for any device that captures.

The idea: the results of eager runs are the truth. The operation is captured once; before each replay all that the graph
may write is poisoned, the inputs and the operation's state get the values that the eager run began with, and afterwards
outputs, inputs and state are compared with what the eager run left. The steps differ in what happens before and between
replays, so the first step that fails says what is wrong. Nothing here knows PyTorch: a Backend does what touches the
device (torch_backend.py is one, the tests have another).

Invariants: a reference is a copy, never a tensor of a run; whatever happens, inputs, state and the seeds of random numbers
are put back; no tensor of an eager run is held while a replay runs. Locking: none; a check is one thread's.
"""

import gc
import random
import sys
import time
import weakref

from gcap_doctor.capturable import places, tree
from gcap_doctor.capturable.report import Finding, Report, Step

POISON = 0xFF  # NaN in each float format, -1 in integers
OTHER_POISON = 0x00
SEEDS = (20231, 77003)  # for the inputs, and for other inputs: what the host draws must differ


class Difference:
    """How a tensor differs: at `index` are `actual` and `expected`; `largest` of all, `count` elements of `of`.

    `poisoned` counts those that hold the poison, `nans` those that are NaN and should not be."""

    def __init__(self, index=(), actual=None, expected=None, largest=None, count=1, of=1, poisoned=0, nans=0, text=None):
        self.index, self.actual, self.expected, self.largest = index, actual, expected, largest
        self.count, self.of, self.poisoned, self.nans, self.text = count, of, poisoned, nans, text

    def value(self):
        """What can be compared with the value of another difference; NaNs are equal."""
        return self.index, str(self.actual), self.count, self.text

    def sentence(self, name):
        if self.text:
            return f"{name} {self.text}"
        index = ", ".join(str(number) for number in self.index)
        largest = "" if self.largest is None else f", the largest difference is {self.largest:.3g}"
        return (f"{name} differs first at [{index}]: {self.actual} where the eager run has {self.expected}; {self.count} of "
                f"{self.of} elements differ{largest}")


class CaptureFailed(Exception):
    """A backend's capture() raises it: `finding` is what was found."""

    def __init__(self, finding):
        super().__init__(finding.sentence)
        self.finding = finding


class Backend:
    """What a device must offer. Methods may raise what they like: an exception of capture() other than CaptureFailed, of
    replay() or of wait() is a failure of the operation; one of any other method is a failure of the device."""

    def is_tensor(self, leaf):
        """Whether the leaf lives on the device, or is a tensor of the host."""
        raise NotImplementedError

    folders = ()  # of the framework: frames of files in there are not the user's

    def describe(self, tensor):
        """What two tensors have in common that can hold each other's values: 'float32 [4, 3] on cuda:0'."""
        raise NotImplementedError

    def state(self, fn):
        """[(name, tensor)] that the operation can reach without its arguments."""
        raise NotImplementedError

    def identity(self, tensor):
        """What is equal for two tensors of the same elements in memory."""
        raise NotImplementedError

    def copy(self, tensor):
        """A tensor of its own memory with the same values."""
        raise NotImplementedError

    def assign(self, tensor, values):
        """Writes the values, a copy() of the tensor, into the tensor's memory."""
        raise NotImplementedError

    def other(self, tensor, evenly):
        """A copy with other values that the operation should take as well, or None where only the caller can know such.
        `evenly`: all elements change by one factor."""
        raise NotImplementedError

    def compare(self, actual, expected, tolerance):
        """None where equal bit for bit (NaN equals NaN), else a Difference whose count is 0 within the tolerance."""
        raise NotImplementedError

    def seed(self, number):
        """Seeds the device's random numbers; restore_seeds() takes back what the first seed() met."""
        raise NotImplementedError

    def restore_seeds(self):
        raise NotImplementedError

    def eager(self, fn, inputs):
        """Runs fn(*inputs) on the stream that captures later, waits, and returns what it returned."""
        raise NotImplementedError

    def begin(self, buffers):
        """Called once, with the named inputs and state; returns more of state, such as gradients that are there."""
        return []

    def gradients(self, buffers):
        """[(name, tensor)] of what a backward pass left at the named tensors since."""
        return []

    def forget_gradients(self, buffers):
        """Takes that away."""

    def end(self, buffers):
        """Called last: what begin() saw is as it was."""

    def capture(self, fn, inputs):
        """Captures fn(*inputs); returns a graph: an object with `outputs` and `is_empty`. Raises CaptureFailed."""
        raise NotImplementedError

    def watch(self, fn, inputs):
        """Captures once more, for what the first capture does not tell: a list of Finding. The graph is dropped."""
        return []

    def poison(self, graph, tensors, byte):
        """Fills the graph's own memory, and the tensors, with the byte."""
        raise NotImplementedError

    def replay(self, graph, times, elsewhere):
        """Replays, on the stream that captured or `elsewhere`, and waits."""
        raise NotImplementedError

    def churn(self, give_back):
        """Takes the memory that the allocator holds free and fills it with poison; `give_back`: gives it to the driver
        first. Returns an object with damaged(), the bytes that changed since, and release()."""
        raise NotImplementedError

    def held_bytes(self, graph):
        """Bytes of the device that live as long as the graph."""
        raise NotImplementedError

    def release(self, graph):
        """Ends the graph and drops its outputs; returns the bytes of its memory that are still in use."""
        raise NotImplementedError

    def is_lost(self):
        """Whether the device answers no more."""
        raise NotImplementedError


class Options:
    """See check()."""

    def __init__(self, other=None, warm_up=3, rtol=None, atol=None, bitwise=False, state=None, allow=(), name=None):
        self.other, self.warm_up, self.rtol, self.atol, self.bitwise = other, warm_up, rtol, atol, bitwise
        self.state, self.allow, self.name = state, allow, name


class _Stop(Exception):
    """The rest makes no sense; the finding is in the report."""


class Check:
    def __init__(self, backend, fn, inputs, options):
        self.backend, self.fn, self.inputs, self.options = backend, fn, inputs, options
        name, file, line = places.of_function(fn)
        self.report = Report(options.name or name, file, line)
        self.graph = self.others = None
        self.poisonable, self.gradients = [], []  # of the graph
        self.step = ""
        self.noise = {}  # by name, the largest difference of two equal eager runs

    # --- Values ------------------------------------------------------------------------------------------------------

    def _find_buffers(self):
        """The tensors whose values a run begins with: inputs, then state; each memory once."""
        named = [pair for index, value in enumerate(self.inputs) for pair in tree.leaves(value, f"input {index}")]
        inputs = [(name, leaf) for name, leaf in named if self.backend.is_tensor(leaf)]
        if self.options.state is None:
            state = self.backend.state(self.fn)
        else:
            state = [pair for pair in tree.leaves(self.options.state, "state") if self.backend.is_tensor(pair[1])]
        seen, buffers = set(), []
        for name, tensor in inputs + state:
            identity = self.backend.identity(tensor)
            if identity not in seen:
                seen.add(identity)
                buffers.append((name, tensor))
        self.num_inputs = sum(1 for name, _ in buffers if name.startswith("input "))
        return buffers + self.backend.begin(buffers)

    def _set(self, values):
        for (_, tensor), value in zip(self.buffers, values):
            self.backend.assign(tensor, value)

    def _seed(self, number):
        _seed_host(number)
        self.backend.seed(number)

    def _results(self, value):
        """What an eager run leaves: what it returned, the gradients, and the buffers."""
        return tree.leaves(value, "output") + self.backend.gradients(self.buffers) + self.buffers

    def _replayed(self):
        """What a replay leaves, in the same order."""
        return tree.leaves(self.graph.outputs, "output") + self.gradients + self.buffers

    def _snapshot(self, items):
        """[(name, leaf)] with tensors as copies, which outlive the run."""
        return [(name, self.backend.copy(leaf) if self.backend.is_tensor(leaf) else leaf) for name, leaf in items]

    def _run_eagerly(self, values, seed, times=1):
        self.backend.forget_gradients(self.buffers)
        self._set(values)
        self._seed(seed)
        for _ in range(times):
            value = self.backend.eager(self.fn, self.inputs)
        return value

    def _refer(self, values, seed, times=1):
        return self._snapshot(self._results(self._run_eagerly(values, seed, times)))

    def _compare(self, items, reference):
        """[(name, Difference)] of what is out of tolerance, in order; remembers whether all was bit for bit."""
        wrong = []
        if [name for name, _ in items] != [name for name, _ in reference]:
            return [("output", Difference(text=f"has the parts {', '.join(name for name, _ in items)}, and in the eager "
                                               f"run {', '.join(name for name, _ in reference)}"))]
        for (name, actual), (_, expected) in zip(items, reference):
            difference = self._compare_leaf(name, actual, expected)
            if difference is not None and difference.count:
                wrong.append((name, difference))
            if difference is not None:
                self.report.bitwise = False
        return wrong

    def _compare_leaf(self, name, actual, expected):
        is_tensor = self.backend.is_tensor(actual)
        if is_tensor != self.backend.is_tensor(expected):
            return Difference(text=f"is {actual!r} and in the eager run {expected!r}")
        if is_tensor:
            tolerance = None if self.options.bitwise else (self.options.rtol, self.options.atol, self.noise.get(name, 0))
            return self.backend.compare(actual, expected, tolerance)
        try:
            same = bool(actual == expected)
        except Exception:  # of a user's class: it cannot be compared
            return None
        if same or type(actual).__eq__ is object.__eq__ or actual != actual:  # no value; NaN
            return None
        return Difference(text=f"is the Python value {actual!r} and in the eager run {expected!r}")

    # --- Findings ----------------------------------------------------------------------------------------------------

    def _find(self, kind, sentence, **more):
        more.setdefault("file", self.report.file)
        more.setdefault("line", self.report.line)
        self.report.add(Finding(kind, sentence, **more), self.options.allow)

    def _stop(self, kind, sentence, **more):
        self._find(kind, sentence, **more)
        raise _Stop

    # --- The eager runs ----------------------------------------------------------------------------------------------

    def _warm_up(self):
        try:
            for _ in range(self.options.warm_up):
                self._run_eagerly(self.start, SEEDS[0])
        except Exception as error:
            file, line, function = places.of_error(error, self.backend.folders)
            self._stop("eager_failed", f"an eager run raised {describe(error)}", file=file, line=line, function=function)

    def _judge_eager(self):
        """The references of the first inputs, and whether eager runs repeat."""
        self.first = self._refer(self.start, SEEDS[0])
        value = self._run_eagerly(self.start, SEEDS[0])
        if not any(self.backend.is_tensor(leaf) for _, leaf in tree.leaves(value, "output")) and not self._changed(value):
            self._stop("nothing_compared", "the operation returns no tensor, and its inputs and state are what they were: "
                                           "nothing can be compared")
        wrong = self._compare(self._results(value), self.first)
        if wrong:
            name, difference = wrong[0]
            self._stop("not_repeatable", "of two eager runs with the same inputs, state and seeds, the second one's "
                       + difference.sentence(name).replace("where the eager run has", "where the first one has"))
        self._measure_noise(value)
        self.report.bitwise = True
        del value
        self.twice = self._refer(self.start, SEEDS[0], times=2)

    def _changed(self, value):
        """Whether a run leaves gradients, or other values in its buffers than it began with."""
        if self.backend.gradients(self.buffers):
            return True
        return any(self.backend.compare(tensor, before, None) is not None
                   for (_, tensor), before in zip(self.buffers, self.start))

    def _measure_noise(self, value):
        for (name, actual), (_, expected) in zip(self._results(value), self.first):
            if self.backend.is_tensor(actual):
                difference = self.backend.compare(actual, expected, None)
                if difference is not None and difference.largest is not None:
                    self.noise[name] = difference.largest

    def _make_other(self):
        """The values of other inputs, and what the eager run makes of them; None where there are none."""
        if self.options.other is not None:
            return self._take_other()
        for evenly in (False, True):
            self._set(self.start)
            values = [self.backend.other(tensor, evenly) for _, tensor in self.buffers[:self.num_inputs]]
            if all(value is None for value in values):
                return None
            values = [start if value is None else value for value, start in zip(values, self.start)]
            values += self.start[self.num_inputs:]
            try:
                return values, self._refer(values, SEEDS[1])
            except Exception as error:
                refusal = describe(error)
        self._find("other_refused", f"with other inputs the eager run raised {refusal}")
        return None

    def _take_other(self):
        named = [pair for index, value in enumerate(self.options.other) for pair in tree.leaves(value, f"input {index}")]
        given = dict(named)
        values = [self.backend.copy(given[name]) for name, _ in self.buffers[:self.num_inputs]]
        values += self.start[self.num_inputs:]
        try:
            return values, self._refer(values, SEEDS[1])
        except Exception as error:
            self._stop("eager_failed", f"with the inputs of other= the eager run raised {describe(error)}")

    # --- The capture -------------------------------------------------------------------------------------------------

    def _capture(self):
        last = self._run_eagerly(self.start, SEEDS[0])  # held, so that no output of the capture has its memory
        taken = {self.backend.identity(leaf) for _, leaf in self._results(last) if self.backend.is_tensor(leaf)}
        self.backend.forget_gradients(self.buffers)
        self._set(self.start)
        self._seed(SEEDS[0])
        try:
            self.graph = self.backend.capture(self.fn, self.inputs)
        except CaptureFailed as failed:
            self.report.add(failed.finding, self.options.allow)
            raise _Stop from None
        self.gradients = self.backend.gradients(self.buffers)
        self.poisonable = [leaf for _, leaf in self._replayed()
                           if self.backend.is_tensor(leaf) and self.backend.identity(leaf) not in taken]
        if self.graph.is_empty:
            self._stop("empty_graph", "the capture ended without a node: all work of the operation ran elsewhere, or it has "
                                      "none, as an operation that returns views")
        self.report.held_bytes = self.backend.held_bytes(self.graph)

    def _watch(self):
        # The graph's outputs stay the first capture's: what the second one makes is dropped with it.
        self._set(self.start)
        self._seed(SEEDS[0])
        for finding in self.backend.watch(self.fn, self.inputs):
            self.report.add(finding, self.options.allow)

    # --- The replays -------------------------------------------------------------------------------------------------

    def _replay(self, values, seed, times=1, elsewhere=False, byte=POISON):
        self.backend.poison(self.graph, self.poisonable, byte)
        self._set(values)
        self._seed(seed)
        try:
            self.backend.replay(self.graph, times, elsewhere)
        except Exception as error:
            self.report.steps.append(Step(self.step, describe(error), 0.0))
            self._stop("replay_failed", f"{self.step}: a replay failed with {describe(error)}")

    def _try(self, name, values, reference, seed=SEEDS[0], **how):
        """A step; returns what is wrong."""
        self.step, began = name, time.monotonic()
        self._replay(values, seed, **how)
        wrong = self._compare(self._replayed(), reference)
        sentence = wrong[0][1].sentence(wrong[0][0]) if wrong else None
        self.report.steps.append(Step(name, sentence, time.monotonic() - began))
        return wrong

    def _judge_same(self):
        wrong = self._try("same inputs", self.start, self.first)
        if not wrong:
            return
        poisoned = [pair for pair in wrong if pair[1].poisoned]
        if poisoned:
            name, difference = poisoned[0]
            self._stop("unwritten", f"a replay leaves {difference.poisoned} of {difference.of} elements of {name} as they "
                                    f"were before it: no work of the graph writes them")
        sentence = wrong[0][1].sentence(wrong[0][0])
        other, again = self._tell_apart(OTHER_POISON), self._tell_apart(POISON)
        if again != [pair[1].value() for pair in wrong]:
            self._stop("not_reset", f"each replay with the same inputs gives another result; of the first one {sentence}")
        if other != again:
            self._stop("uninitialised", f"a replay's result depends on what lay in the graph's memory before: {sentence}")
        self._stop("differs", f"a replay with the same inputs: {sentence}")

    def _tell_apart(self, byte):
        """The wrong values of a further replay with the same inputs, over memory that is filled with the byte."""
        self._replay(self.start, SEEDS[0], byte=byte)
        return [difference.value() for _, difference in self._compare(self._replayed(), self.first)]

    def _judge_other(self):
        if self.others is None:
            return
        values, reference = self.others
        wrong = self._try("other inputs", values, reference, seed=SEEDS[1])
        if not wrong:
            return
        name, difference = wrong[0]
        stale = self._compare([pair for pair in self._replayed() if pair[0] == name],
                              [pair for pair in self.first if pair[0] == name])
        what = "a replay with other inputs" if stale else "a replay with other inputs gives the result of the captured ones"
        self._stop("frozen", f"{what}: {difference.sentence(name)}")

    def _judge_rest(self):
        for name, how, reference, kind, sentence in (
                ("twice in a row", {"times": 2}, self.twice, "not_reset",
                 "after two replays in a row, against two eager runs"),
                ("another stream", {"elsewhere": True}, self.first, "stream_bound", "on another stream")):
            wrong = self._try(name, self.start, reference, **how)
            if wrong:
                self._stop(kind, f"{sentence}: {wrong[0][1].sentence(wrong[0][0])}")

    def _run_in_between(self):
        """An eager run, in which the operation may give back what it keeps: state is not held here meanwhile."""
        values = self.others[0] if self.others else self.start
        state = [(name, weakref.ref(tensor), start) for (name, tensor), start in
                 list(zip(self.buffers, self.start))[self.num_inputs:]]
        self._set(values)
        self.buffers, self.start = self.buffers[:self.num_inputs], self.start[:self.num_inputs]
        try:
            self._run_eagerly(values[:self.num_inputs], SEEDS[1])
            gc.collect(1)  # what the runs of this check left is young
        finally:
            for name, reference, start in state:
                if reference() is not None:
                    self.buffers.append((name, reference()))
                    self.start.append(start)

    def _of_living(self, reference):
        """The reference, without state that the operation replaced."""
        names = {name for name, _ in self._replayed()}
        return [pair for pair in reference if pair[0] in names]

    def _judge_churned(self):
        """Eager runs in between, and memory that the operation gave back in other hands."""
        for name, give_back in (("churned allocator", False), ("emptied allocator", True)):
            self._run_in_between()
            churned = self.backend.churn(give_back)
            try:
                wrong = self._try(name, self.start, self._of_living(self.first))
                damaged = churned.damaged()
            finally:
                churned.release()
            if damaged:
                self._stop("overwrites", f"a replay wrote {damaged} bytes of memory that the operation gave back and that "
                                         "was allocated anew since")
            if wrong:
                self._stop("freed_memory", "after an eager run, and with freed memory in other hands: "
                           + wrong[0][1].sentence(wrong[0][0]))

    # --- The whole ---------------------------------------------------------------------------------------------------

    def _judge(self):
        self._warm_up()
        self._judge_eager()
        self.others = self._make_other()
        if self.others is not None and self._same_results(self.others[1]):
            self._find("same_outputs", "other inputs give the same results as the first ones")
        self._capture()
        self._watch()
        self._judge_same()
        self._judge_other()
        self._judge_rest()
        self._judge_churned()

    def _same_results(self, reference):
        """Of all but the buffers that no run writes."""
        idle = {name for (name, _), before, (_, after) in zip(self.buffers, self.start, self.first[-len(self.buffers):])
                if self.backend.compare(before, after, None) is None}
        return all(name in idle or self._compare_leaf(name, leaf, other) is None
                   for (name, leaf), (_, other) in zip(self.first, reference))

    def _end(self):
        if self.graph is None or self.backend.is_lost():
            return
        self.poisonable, self.gradients = [], []
        graph, self.graph = self.graph, None
        self.backend.forget_gradients(self.buffers)
        self.report.kept_bytes = self.backend.release(graph)
        if self.report.kept_bytes:
            self._find("kept", f"{self.report.kept_bytes} bytes of the graph's memory stay in use after the graph and its "
                               "outputs are gone")

    def run(self):
        began, drawn = time.monotonic(), _host_seeds()
        if self.backend.is_lost():
            self._find("device_lost", "the device answered no call when the check began")
            return self.report
        self.buffers = self._find_buffers()
        self.start = [self.backend.copy(tensor) for _, tensor in self.buffers]
        try:
            self._judge()
        except _Stop:
            pass
        finally:
            _restore_host(drawn)
            self._put_back()
        self.report.seconds = time.monotonic() - began
        return self.report

    def _put_back(self):
        self.backend.restore_seeds()
        self._end()
        if self.backend.is_lost():
            if "replay_failed" not in self.report.kinds():
                self._find("device_lost", "the device answers no call since this check")
        else:
            self._set(self.start)
            self.backend.end(self.buffers)


def _numpy_random():
    numpy = sys.modules.get("numpy")
    return getattr(numpy, "random", None)


def _host_seeds():
    numpy = _numpy_random()
    return random.getstate(), numpy.get_state() if numpy else None


def _seed_host(number):
    random.seed(number)
    if _numpy_random():
        _numpy_random().seed(number)


def _restore_host(seeds):
    random.setstate(seeds[0])
    if seeds[1] is not None:
        _numpy_random().set_state(seeds[1])


def describe(error):
    """'ValueError: text', the first line of the text."""
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
