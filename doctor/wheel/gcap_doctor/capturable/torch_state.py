# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The tensors that an operation can reach without its arguments.

Looked through are modules (parameters and buffers), bound objects, closures, defaults, partial arguments, the globals that
the function's code names, and the attributes and containers of those, to a depth. What lies deeper, or in C++, the caller
names in state=.
"""

import functools
import os
import types

DEPTH = 4
MOST_ITEMS = 10_000  # of a container
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, types.BuiltinFunctionType)


def device_of(torch, inputs):
    """The index of the device of the first tensor of the inputs that is on one, else the current device."""
    from gcap_doctor.capturable import tree

    for index, value in enumerate(inputs):
        for _, leaf in tree.leaves(value, str(index)):
            if isinstance(leaf, torch.Tensor) and leaf.is_cuda:
                return leaf.device.index
    return torch.cuda.current_device()


def tensors_of(torch, fn):
    """[(name, tensor)], each object once."""
    finder = _Finder(torch, os.path.dirname(torch.__file__))
    finder.look(fn, "", DEPTH)
    return finder.found


class _Finder:
    def __init__(self, torch, framework):
        self.torch, self.framework, self.found, self.seen = torch, framework + os.sep, [], set()

    def look(self, value, name, depth):
        if isinstance(value, _PLAIN) or id(value) in self.seen or depth < 0:
            return
        self.seen.add(id(value))
        if isinstance(value, self.torch.Tensor):
            self.found.append((name, value))
        elif isinstance(value, self.torch.nn.Module):
            for kind in (value.named_parameters(), value.named_buffers()):
                for part, tensor in kind:
                    self.look(tensor, f"{name}.{part}".lstrip("."), depth)
            self._attributes(value, name, depth)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.look(part, name, depth)
        elif isinstance(value, types.MethodType):
            self.look(value.__self__, name or "self", depth)
            self.look(value.__func__, name, depth)
        elif isinstance(value, types.FunctionType):
            self._function(value, name, depth)
        elif isinstance(value, dict):
            for key, part in list(value.items())[:MOST_ITEMS]:
                self.look(part, f"{name}[{key!r}]", depth - 1)
        elif isinstance(value, (list, tuple, set)):
            for index, part in enumerate(list(value)[:MOST_ITEMS]):
                self.look(part, f"{name}[{index}]", depth - 1)
        else:
            self._attributes(value, name, depth)

    def _attributes(self, value, name, depth):
        for attribute, part in list(getattr(value, "__dict__", {}).items()):
            if not attribute.startswith("__"):
                self.look(part, f"{name}.{attribute}".lstrip("."), depth - 1)

    def _function(self, fn, name, depth):
        if fn.__code__.co_filename.startswith(self.framework):
            return
        prefix = f"{name}." if name else ""
        for variable, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
            try:
                self.look(cell.cell_contents, prefix + variable, depth - 1)
            except ValueError:  # not bound yet
                pass
        for part in (fn.__defaults__ or (), fn.__kwdefaults__ or {}):
            self.look(part, prefix + "default", depth - 1)
        for variable in _names(fn.__code__):
            if variable in fn.__globals__:
                self.look(fn.__globals__[variable], prefix + variable, depth - 1)
        wrapped = getattr(fn, "__wrapped__", None)
        if wrapped is not None:
            self.look(wrapped, name, depth)


def _names(code):
    """The names that a function's code takes from outside, also those of the functions within it."""
    found = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _names(constant)
    return list(dict.fromkeys(found))
