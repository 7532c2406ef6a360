# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Where something is in the user's Python: of a function, of an exception, of the call that runs now."""

import functools
import inspect
import os
import sys

OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def of_function(fn):
    """(name, file, line) of what is called; file and line are None for what is not written in Python."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    target = inspect.unwrap(fn) if callable(fn) else fn
    target = getattr(target, "__func__", target)
    if not hasattr(target, "__code__"):
        # An object that is called; a module of PyTorch has its work in forward().
        for method in ("forward", "__call__"):
            found = getattr(type(target), method, None)
            if hasattr(found, "__code__"):
                return type(target).__name__, found.__code__.co_filename, found.__code__.co_firstlineno
        return getattr(target, "__name__", type(target).__name__), None, None
    code = target.__code__
    return getattr(target, "__qualname__", code.co_name).replace("<locals>.", ""), code.co_filename, code.co_firstlineno


def is_users(file, folders):
    """Whether the file is neither of gcap-doctor's nor in one of the framework's folders, nor no file at all."""
    if file.startswith("<"):
        return False
    return not any(file.startswith(folder + os.sep) for folder in (OWN, *folders))


def of_error(error, folders):
    """(file, line, function) of the user's innermost frame that an exception passed."""
    found, trace = (None, None, None), error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_users(code.co_filename, folders):
            found = code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next
    return found


def of_caller(folders):
    """(file, line, function) of the innermost frame of the user's that runs."""
    frame = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename, folders):
        frame = frame.f_back
    if frame is None:
        return None, None, None
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
