# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The file of results: JSON with "listed" and "drawn", each from the last run of its mode."""

import datetime
import json
import os

from mutation import tree
from mutation.lists import Problem


def load(path):
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except ValueError as error:
        raise Problem(f"'{path}' is no file of results: {error}") from error


def save(path, mode, copy, content):
    everything = load(path)
    head = tree.git(copy.checkout, "rev-parse", "--short", "HEAD").strip()
    changed = tree.git(copy.checkout, "status", "--porcelain").strip() != ""
    everything[mode] = {"commit": head, "uncommitted_changes": changed,
                        "date": datetime.date.today().isoformat(), **content}
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(everything, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)
