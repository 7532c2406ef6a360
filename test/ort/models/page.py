# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What came of the models, as lines and as the page docs/ort_models.md."""

import collections
import re

import onnxruntime as ort

HEAD = """# Models of others, in ONNX Runtime

[test/ort/models/run.py](../test/ort/models/run.py) writes this page. Its
[list](../test/ort/models/list.toml) names models that packages of Python's index ship, and exports of networks with
random weights. The program fetches them, runs each on the EP of
[examples/ort_plugin_ep](../examples/ort_plugin_ep/plugin.c), and compares the outputs with the CPU EP's:

    pip install onnxruntime=={runtime} onnx numpy {exporters}
    ./bazelw build //examples/ort_plugin_ep:libgcap_ort_plugin_ep.so
    python test/ort/models/run.py CACHE --page docs/ort_models.md \\
        --library .bazel/bin/examples/ort_plugin_ep/libgcap_ort_plugin_ep.so

With ONNX Runtime {runtime}, on the simulator:

"""

COLUMNS = """
Nodes: those on the EP, of all, after ONNX Runtime's own rewriting. Left: the nodes for which ONNX Runtime refuses graphs,
each operator with the reason; +shapes: nodes that compute shapes on the CPU, which are no obstacle. Error: the largest
difference from the CPU EP, as a part of an output's largest element, eagerly and in a replay with other inputs than those
of the capture. Fixed: captured with the dimensions of the inputs fixed; `=`: no dimension is open.

| model | kind | nodes | left | error | captured | fixed |
|---|---|---|---|---|---|---|
"""

NEEDS = """
## What refuses them

Each operator with its reason: in how many models, and in how many of these no other operator refuses the graphs.

| operator | reason | in | alone | in, fixed | alone, fixed |
|---|---|---|---|---|---|
"""


def number(value):
    return "0" if value == 0 else f"{value:.1e}"


def operators_of(trial):
    """Operators that refuse a graph, with their reasons."""
    return {(operator, re.sub(r"and \w+ reads", "and another reads", why)) for _, operator, why in trial.get("left", ())}


class Row:
    """A model of the list, and what trial.py says of it."""

    def __init__(self, model, result):
        self.model, self.result = model, result
        self.shipped = result.get("shipped", {})
        self.with_fixed = result.get("fixed", self.shipped)

    def _worst(self):
        errors = [self.result.get("eager", 0.0)]
        errors += [trial["error"] for trial in (self.shipped, self.with_fixed) if trial.get("captured")]
        return max(errors)

    def trouble(self):
        """Why the model counts as no run, or nothing."""
        if "missing" in self.result:
            return self.result["missing"]
        if "failure" in self.result:
            return f"{self.result.get('step') or 'at the end'}: {self.result['failure']}"
        if not self._worst() <= self.model.tolerance:
            return f"WRONG: differs by {self._worst():.1e}, allowed is {self.model.tolerance:.1e}"
        return ""

    def is_bad(self):
        return bool(self.trouble())

    def is_missing(self):
        return "missing" in self.result

    def is_captured(self):
        return not self.is_bad() and self.shipped["captured"]

    def is_captured_fixed(self):
        return not self.is_bad() and self.with_fixed["captured"]

    def left(self):
        """What refuses the graphs, and how many nodes compute shapes."""
        named = self.shipped.get("left", ())
        text = ", ".join(f"{count} {operator} ({why})" for count, operator, why in named)
        shapes = self.result["nodes"] - self.result["on_ep"]
        shapes -= sum(count for count, _, why in named if not why.startswith("on the CPU"))
        return (text + (f" +{shapes} shapes" if shapes > 0 else "")).strip()

    @staticmethod
    def _verdict(trial):
        if trial["captured"]:
            return "yes"
        if trial["left"]:
            return "no: " + ", ".join(sorted({operator for operator, _ in operators_of(trial)}))
        return "no: " + trial["why"]

    def line(self):
        if self.is_bad():
            return f"{self.model.name}: {self.trouble()}"
        nodes = f"{self.result['on_ep']} of {self.result['nodes']} nodes"
        return f"{self.model.name}: {nodes}; captured: {self._verdict(self.shipped)}; fixed: {self._fixed()}"

    def _fixed(self):
        return self._verdict(self.with_fixed) if "fixed" in self.result else "="

    def cells(self):
        if self.is_bad():
            cells = [self.model.name, self.model.kind, "", "", "", self.trouble(), ""]
        else:
            errors = [self.result["eager"]] + ([self.shipped["error"]] if self.is_captured() else [])
            error = " / ".join(map(number, errors))
            if not self.result["depends"]:
                error += ", of outputs that these inputs do not change"
            nodes = f"{self.result['on_ep']}/{self.result['nodes']}"
            cells = [self.model.name, self.model.kind, nodes, self.left(), error, self._verdict(self.shipped),
                     self._fixed()]
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def count(rows):
    bad = sum(row.is_bad() and not row.is_missing() for row in rows)
    return (
        f"{len(rows)} models: {sum(map(Row.is_captured, rows))} are captured as they are, "
        f"{sum(map(Row.is_captured_fixed, rows))} with their dimensions fixed; "
        f"{sum(map(Row.is_missing, rows))} could not be fetched, {bad} failed or were wrong"
    )


def groups(rows):
    """The models that were there first, and those that were added, each with a title."""
    for further, title in ((False, "The first list"), (True, "Further models, chosen before they were run")):
        chosen = [row for row in rows if row.model.further == further]
        if chosen:
            yield title, chosen


def totals(rows):
    return [f"{title}: {count(chosen)}" for title, chosen in groups(rows)]


def needs(rows):
    """(operator, reason) -> in how many models, alone in how many; as shipped and with fixed dimensions."""
    found = collections.defaultdict(lambda: [0, 0, 0, 0])
    for row in rows:
        if row.is_bad():
            continue
        for place, trial in ((0, row.shipped), (2, row.with_fixed)):
            refused = operators_of(trial)
            for operator in refused:
                found[operator][place] += 1
                found[operator][place + 1] += len({name for name, _ in refused}) == 1
    return sorted(found.items(), key=lambda item: (-item[1][0], -item[1][2], item[0]))


def write(rows, exporters):
    """The page's text."""
    pins = " ".join(f"{name}=={version}" for name, version in exporters.items())
    text = HEAD.format(runtime=ort.__version__, exporters=pins)
    text += "".join(f"- {line}\n" for line in totals(rows))
    for title, chosen in groups(rows):
        text += f"\n## {title}\n" + COLUMNS + "".join(row.cells() + "\n" for row in chosen)
    allowed = [row.model for row in rows if row.model.because]
    if allowed:
        text += "\nWhere more than 1e-4 is allowed:\n\n"
        text += "".join(f"- {model.name}, {model.tolerance:.0e}: {model.because}\n" for model in allowed)
    text += NEEDS
    text += "".join(f"| {operator} | {why} | {' | '.join(map(str, counts))} |\n"
                    for (operator, why), counts in needs(rows))
    return text
