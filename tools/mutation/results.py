# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The file of results, JSON: "listed", from the last run of a list, and "drawn", for each module from its last run."""

import datetime
import json
import os

from mutation import drawn, tree
from mutation.lists import Problem

BEGIN = "<!-- mutations: written by tools/mutate -->"
END = "<!-- mutations end -->"


def load(path):
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except ValueError as error:
        raise Problem(f"'{path}' is no file of results: {error}") from error


def stamp(copy):
    """Of what a result is."""
    return {"commit": tree.git(copy.checkout, "rev-parse", "--short", "HEAD").strip(),
            "uncommitted_changes": tree.git(copy.checkout, "status", "--porcelain").strip() != "",
            "date": datetime.date.today().isoformat()}


def store(path, everything):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(everything, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def save_listed(path, copy, content):
    store(path, {**load(path), "listed": {**stamp(copy), **content}})


def save_module(path, copy, name, report):
    everything = load(path)
    everything.setdefault("drawn", {})[name] = {**stamp(copy), **report}
    store(path, everything)


def sum_of(modules):
    """All modules as one."""
    return {key: sum(each[key] for each in modules) for key in ("drawn", "built", "caught", "survived", "equivalent")}


def drawn_table(modules):
    """A row for each module, and one for all."""
    lines = ["| module | drawn | built | caught | survived | equivalent | caught of the others |",
             "|---|---|---|---|---|---|---|"]
    for name, count in [*modules.items(), ("all", sum_of(modules.values()))]:
        lines.append(f"| {name} | {count['drawn']} | {count['built']} | {count['caught']} | {count['survived']} | "
                     f"{count['equivalent']} | {drawn.share(count)} % |")
    return "\n".join(lines)


def listed_table(by_kind):
    lines = ["| mutations of | caught | not caught | did not build | is no test | left out |",
             "|---|---|---|---|---|---|"]
    for kind, name in (("row", "rows of the seeds"), ("rule", "rules"), ("defect", "mended defects"), ("all", "all")):
        lines.append("| " + " | ".join([name, *[str(count) for count in by_kind[kind].values()]]) + " |")
    return "\n".join(lines)


def when(stamped):
    changes = ", with uncommitted changes" if stamped["uncommitted_changes"] else ""
    return f"{stamped['date']}, {stamped['commit']}{changes}"


def page_text(everything):
    """The figures as a page has them."""
    parts = []
    if "listed" in everything:
        parts.append(f"`tools/mutate --all` ({when(everything['listed'])}):\n")
        parts.append(listed_table(everything["listed"]["by_kind"]) + "\n")
    if "drawn" in everything:
        modules = everything["drawn"]
        runs = sorted({f"seed {each['seed']}, {when(each)}" for each in modules.values()})
        parts.append(f"`tools/mutate --drawn --asan` ({'; '.join(runs)}):\n")
        parts.append(drawn_table(modules) + "\n")
    return "\n".join(parts)


def write_page(page, path):
    everything = load(path)
    if not everything:
        raise Problem(f"--json '{path}' has no results: run tools/mutate --all or --drawn with it first")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Problem(f"--write '{page}' lacks the marks: expected {BEGIN} and {END}, a line each")
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{before}{begin}\n\n{page_text(everything)}\n{end}{after}")
