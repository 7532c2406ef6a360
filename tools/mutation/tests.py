# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""From the name of a test to the programs that have it: the sources say the cases, one query of Bazel the programs."""

import dataclasses
import os
import re
import xml.etree.ElementTree

CASE = re.compile(r"^(TYPED_TEST|TEST)(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
QUERY = 'kind("(cc_test|sh_test|cc_library|genrule) rule", //...)'
GTEST_MAIN = "@googletest//:gtest_main"


@dataclasses.dataclass
class Program:
    label: str
    sources: set  # also those of which the one source of a merged program is made
    files: set  # what it is made of in any way: sources, and those of its libraries
    merged: bool
    shell: bool
    gtest: bool
    size: str
    tags: list
    args: list
    env: dict

    def direct(self):
        """Whether it can be started without Bazel, which expands $(location)."""
        return self.gtest and not any("$" in value for value in [*self.args, *self.env.values()])

    def path(self):
        return self.label[2:].replace(":", "/")


def cases(root):
    """The sources and the macro of each Suite.Case below test/."""
    found = {}
    for folder, _, names in os.walk(os.path.join(root, "test")):
        for name in names:
            if not name.endswith(".cc"):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                for match in CASE.finditer(file.read()):
                    suite, case = match.group(2, 3)
                    found.setdefault(f"{suite}.{case}", []).append((os.path.relpath(path, root), match.group(0)))
    return found


def filter_of(name, macro):
    """The filter of GoogleTest that has the case, with all its parameters."""
    suite, case = name.split(".")
    if macro.startswith("TYPED_TEST"):
        return f"{suite}/*.{case}:*/{suite}/*.{case}"
    if macro.startswith("TEST_P"):
        return f"*/{name}/*:{name}/*"
    return name


def path_of(label):
    """Of //package:name, the path."""
    return label[2:].replace(":", "/").lstrip("/")


class Rules:
    """The rules of the tree, as `bazel query --output=xml` tells them."""

    def __init__(self, text):
        self.rules = {rule.get("name"): rule for rule in xml.etree.ElementTree.fromstring(text).iter("rule")}
        self.reached = {}

    def labels(self, rule, name):
        return [item.get("value") for item in rule.findall(f"./list[@name='{name}']/label")]

    def strings(self, rule, name):
        return [item.get("value") for item in rule.findall(f"./list[@name='{name}']/string")]

    def string(self, rule, name):
        found = rule.find(f"./string[@name='{name}']")
        return "" if found is None else found.get("value")

    def env(self, rule):
        pairs = rule.findall("./dict[@name='env']/pair")
        return {pair[0].get("value"): pair[1].get("value") for pair in pairs}

    def files(self, label):
        """The files that a target is made of."""
        if label not in self.reached:
            self.reached[label] = set()
            rule = self.rules.get(label)
            # The file that a genrule makes is named, not the rule.
            rule = rule if rule is not None else self.rules.get(label.removesuffix(".cc") + "_unit")
            if rule is None:
                found = {path_of(label)} if label.startswith("//") else set()
            else:
                found = set()
                for field in ("srcs", "hdrs", "textual_hdrs", "deps", "data"):
                    for other in self.labels(rule, field):
                        found |= self.files(other)
            self.reached[label] = found
        return self.reached[label]

    def program(self, label):
        rule = self.rules[label]
        sources = set()
        merged = False
        for source in self.labels(rule, "srcs"):
            unit = self.rules.get(source.removesuffix(".cc") + "_unit")
            merged = merged or unit is not None
            sources |= {source} if unit is None else set(self.labels(unit, "srcs"))
        return Program(label, {path_of(source) for source in sources}, self.files(label), merged,
                       rule.get("class") == "sh_test", GTEST_MAIN in self.labels(rule, "deps"),
                       self.string(rule, "size"), self.strings(rule, "tags"), self.strings(rule, "args"),
                       self.env(rule))


class Tests:
    """All tests of the tree."""

    def __init__(self, root, query):
        rules = Rules(query)
        self.cases = cases(root)
        self.programs = {label: rules.program(label) for label, rule in rules.rules.items()
                         if rule.get("class") in ("cc_test", "sh_test")}
        merged = set()
        for program in self.programs.values():
            if program.merged:
                merged |= program.sources
        # A source that is in a merged program is built there alone.
        self.chosen = [program for program in self.programs.values()
                       if program.merged or not program.sources <= merged]

    def names(self):
        return self.cases.keys() | self.programs.keys()

    def programs_of(self, names):
        """The programs that have these tests, each with the filters of its cases, or with None for all of it."""
        found = {}
        for name in names:
            if name in self.programs:
                found[name] = None
                continue
            for source, macro in self.cases[name]:
                for program in self.chosen:
                    if source in program.sources and found.get(program.label, []) is not None:
                        found.setdefault(program.label, []).append(filter_of(name, macro))
        return {label: None if filters is None else sorted(set(filters)) for label, filters in found.items()}
