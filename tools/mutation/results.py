# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The file of results, JSON: "listed", of the last run of a list, and "drawn", by seed and module, of the last run."""

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
    """Of what results are: asked for when the copy is made, since the working tree may change meanwhile."""
    return {"commit": tree.git(copy.checkout, "rev-parse", "--short", "HEAD").strip(),
            "uncommitted_changes": tree.git(copy.checkout, "status", "--porcelain").strip() != "",
            "date": datetime.date.today().isoformat()}


def store(path, everything):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(everything, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def save_listed(path, copy, content):
    store(path, {**load(path), "listed": {**copy.stamp, **content}})


def save_module(path, copy, name, report):
    everything = load(path)
    of_seed = everything.setdefault("drawn", {}).setdefault(str(report["seed"]), {})
    of_seed[name] = {**copy.stamp, **report}
    store(path, everything)


def sum_of(modules):
    """All modules as one."""
    keys = ("drawn", "built", "caught", "by_asan_alone", "survived", "equivalent")
    return {key: sum(each.get(key, 0) for each in modules) for key in keys}


def drawn_table(modules):
    """A row for each module, and one for all."""
    lines = ["| module | drawn | built | caught | by asan alone | survived | equivalent | caught of the others |",
             "|---|---|---|---|---|---|---|---|"]
    for name, count in [*modules.items(), ("all", sum_of(modules.values()))]:
        lines.append(f"| {name} | {count['drawn']} | {count['built']} | {count['caught']} | "
                     f"{count.get('by_asan_alone', 0)} | {count['survived']} | "
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


def judged(report, equivalent):
    """A module's results, with what survived and was named as equivalent since."""
    named = sum((each["file"], each["was"], each["becomes"]) in equivalent for each in report.get("survivors", []))
    return {**report, "survived": report["survived"] - named, "equivalent": report["equivalent"] + named}


def page_text(everything, equivalent):
    """The figures as a page has them."""
    parts = []
    if "listed" in everything:
        parts.append(f"`tools/mutate --all` ({when(everything['listed'])}):\n")
        parts.append(listed_table(everything["listed"]["by_kind"]) + "\n")
    if "drawn" in everything:
        for seed, modules in sorted(everything["drawn"].items(), key=lambda item: int(item[0])):
            runs = sorted({when(each) for each in modules.values()})
            asan = " --asan" if any("by_asan_alone" in each for each in modules.values()) else ""
            parts.append(f"`tools/mutate --drawn{asan} --seed {seed}` ({'; '.join(runs)}):\n")
            table = drawn_table({name: judged(report, equivalent) for name, report in modules.items()})
            parts.append(table + "\n")
    return "\n".join(parts)


def write_page(page, path, equivalent):
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
        file.write(f"{before}{begin}\n\n{page_text(everything, equivalent)}\n{end}{after}")
