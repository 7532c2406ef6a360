# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The lists of mutations in test/mutations, read and checked whole before anything runs."""

import dataclasses
import os
import re
import tomllib

FOLDER = "test/mutations"
SEEDS = "docs/seeds.md"
ARCHITECTURE = "docs/architecture.md"
EQUIVALENT = "equivalent.toml"
KEYS = ["row", "rule", "defect", "breaks", "file", "was", "becomes", "tests", "config"]
CONFIGS = ["asan", "tsan", "ubsan"]


class Problem(Exception):
    """What is wrong with the input, as a sentence for the user."""


@dataclasses.dataclass
class Entry:
    place: str  # the list, and the entry's number in it
    kind: str  # row, rule or defect
    value: object  # its number, or the defect's name
    breaks: str
    file: str
    was: str
    becomes: str
    tests: list
    config: str

    def title(self):
        return f"{self.kind} {self.value}"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def read_toml(root, path):
    try:
        return tomllib.loads(read(root, path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Problem(f"{path}: {error}") from error


def table_of(root, path, key):
    """The tables [[key]] of a file that has nothing else."""
    content = read_toml(root, path)
    for other in content:
        if other != key:
            raise Problem(f"{path}: '{other}' is unknown: expected [[{key}]] alone")
    if not isinstance(content.get(key, []), list):
        raise Problem(f"{path}: '{key}' is one table: expected [[{key}]]")
    return content.get(key, [])


def tests_of_rows(root):
    """The tests that each row of docs/seeds.md names."""
    rows = {}
    for line in read(root, SEEDS).splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 5 and cells[1].isdigit():
            rows[int(cells[1])] = re.findall(r"`([^`]+)`", cells[4])
    return rows


def rules(root):
    """The numbers of the rules in docs/architecture.md."""
    section = read(root, ARCHITECTURE).partition("## Rules that hold everywhere")[2].partition("\n## ")[0]
    return [int(number) for number in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]


def check_text(place, entry, key):
    if not isinstance(entry.get(key), str) or not entry[key].strip():
        raise Problem(f"{place}: '{key}' is {entry.get(key)!r}: expected a text")


def check_number(place, kind, value, allowed, page):
    if isinstance(value, bool) or value not in allowed:
        raise Problem(f"{place}: {kind} {value!r} is not in {page}: expected {min(allowed)} to {max(allowed)}")


def subject(place, entry, row_tests, rule_numbers):
    """What the entry is for: its kind and value."""
    kinds = [key for key in ("row", "rule", "defect") if key in entry]
    if len(kinds) != 1:
        raise Problem(f"{place}: it has {' and '.join(kinds) or 'no subject'}: expected one of row, rule, defect")
    kind = kinds[0]
    if kind == "row":
        check_number(place, kind, entry[kind], row_tests, SEEDS)
    elif kind == "rule":
        check_number(place, kind, entry[kind], rule_numbers, ARCHITECTURE)
    else:
        check_text(place, entry, kind)
    return kind, entry[kind]


def check_edit(root, place, entry):
    for key in ("breaks", "file", "was"):
        check_text(place, entry, key)
    if not isinstance(entry.get("becomes"), str):
        raise Problem(f"{place}: 'becomes' is {entry.get('becomes')!r}: expected a text")
    path = os.path.normpath(entry["file"])
    if path != entry["file"] or path.startswith(("/", "..")) or not os.path.isfile(os.path.join(root, path)):
        raise Problem(f"{place}: '{entry['file']}' is no file: expected a path from the root of the repository")
    if os.path.islink(os.path.join(root, path)):
        raise Problem(f"{place}: '{entry['file']}' is a symbolic link: expected the file itself")
    times = read(root, path).count(entry["was"])
    if times != 1:
        raise Problem(f"{place}: 'was' is {times} times in {path}: expected once")
    if entry["was"] == entry["becomes"]:
        raise Problem(f"{place}: 'becomes' is what it was: expected another text")


def check_tests(place, tests, known):
    if not isinstance(tests, list) or not tests:
        raise Problem(f"{place}: 'tests' is {tests!r}: expected a list of Suite.Case and //package:test")
    for test in tests:
        if test not in known:
            raise Problem(f"{place}: there is no test {test!r}: expected a Suite.Case or a //package:test of test/")


def make_entry(root, place, entry, row_tests, rule_numbers, known):
    for key in entry:
        if key not in KEYS:
            raise Problem(f"{place}: '{key}' is unknown: expected one of {', '.join(KEYS)}")
    kind, value = subject(place, entry, row_tests, rule_numbers)
    check_edit(root, place, entry)
    if kind != "row" and "tests" not in entry:
        raise Problem(f"{place}: 'tests' is missing: expected a list, since a {kind} names none")
    tests = entry.get("tests", row_tests.get(value))
    check_tests(place, tests, known)
    config = entry.get("config", "")
    if "config" in entry and config not in CONFIGS:
        raise Problem(f"{place}: 'config' is {config!r}: expected one of {', '.join(CONFIGS)}")
    return Entry(place, kind, value, entry["breaks"], entry["file"], entry["was"], entry["becomes"], tests, config)


def load(root, known):
    """All entries. `known`: the names of the tests that there are."""
    row_tests = tests_of_rows(root)
    rule_numbers = rules(root)
    entries = []
    folder = os.path.join(root, FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for name in names:
        if not name.endswith(".toml") or name == EQUIVALENT:
            continue
        path = f"{FOLDER}/{name}"
        for number, entry in enumerate(table_of(root, path, "mutation"), 1):
            place = f"{path}, entry {number}"
            entries.append(make_entry(root, place, entry, row_tests, rule_numbers, known))
    if not entries:
        raise Problem(f"{FOLDER} has no mutation: expected [[mutation]] in its *.toml")
    return entries


def check_complete(root, entries):
    """Each row and each rule has an entry."""
    there = {(entry.kind, entry.value) for entry in entries}
    for kind, numbers, page in (("row", tests_of_rows(root), SEEDS), ("rule", rules(root), ARCHITECTURE)):
        missing = [str(number) for number in numbers if (kind, number) not in there]
        if missing:
            raise Problem(f"{FOLDER} has no entry for {kind} {', '.join(missing)} of {page}: expected one for each")
