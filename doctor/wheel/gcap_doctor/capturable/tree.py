# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The leaves of what a function takes or returns: of tuples, lists, dictionaries and dataclasses, each with its name."""

import dataclasses


def leaves(value, name):
    """[(name, leaf)], in a fixed order: 'output', 'output[1]', "output['logits']", 'output.hidden'."""
    found = []
    _walk(value, name, found, set())
    return found


def _walk(value, name, found, above):
    if id(value) in above:  # a container within itself
        return
    if isinstance(value, (tuple, list, dict)) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        for key, child in _children(value):
            _walk(child, name + key, found, above | {id(value)})
    else:
        found.append((name, value))


def _children(value):
    if isinstance(value, dict):
        return [(f"[{key!r}]", child) for key, child in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{field}", child) for field, child in zip(value._fields, value)]
    if isinstance(value, (tuple, list)):
        return [(f"[{index}]", child) for index, child in enumerate(value)]
    return [(f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]

