# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""A Python program that is recorded: it breaks a capture in a function whose name is not ASCII, as a library would.

Usage: python_program.py RECORDER FAKE_CUPTI WAY
WAY: unlocked (the interpreter's lock is given back around the driver's call), locked (it is not), thread (another
thread of Python)
"""
import ctypes
import sys
import threading

recorder, fake_path, way = sys.argv[1:]
load = ctypes.PyDLL if way == "locked" else ctypes.CDLL
fake = load(fake_path)
assert load(recorder).InitializeInjection() == 1
STREAM = ctypes.c_void_p(0x1000)


class Begin(ctypes.Structure):
    _fields_ = [("stream", ctypes.c_void_p), ("mode", ctypes.c_int)]


class End(ctypes.Structure):
    _fields_ = [("stream", ctypes.c_void_p), ("graph", ctypes.c_void_p)]


def call(number, name, arguments, result):
    fake.fake_cupti_call(number, name, ctypes.byref(arguments), result)


def größe():
    call(126, b"cuStreamSynchronize", STREAM, 900)  # THE LINE


def deep(depth):
    if depth == 0:
        call(17, b"cuCtxSynchronize", STREAM, 0)
    else:
        deep(depth - 1)


def query():
    call(125, b"cuStreamQuery", STREAM, 1)  # calls that fail are not counted together


def steps():
    """A generator: its frame moves while the thread's others stand."""
    query()  # FIRST
    yield
    query()  # SECOND
    yield


def loop():
    for _ in range(20):
        query()  # THIRD
        for _ in steps():
            pass
        (lambda: query())()  # FOURTH


def made(name, lines):
    """A function of the given number of lines, each of which calls, in a file of its own."""
    space = {"asked": asked}
    exec(compile("\n".join([f"def {name}():"] + ["    asked()"] * lines), name + ".py", "exec"), space)
    return space[name]


def asked():
    call(120, b"cuEventQuery", STREAM, 0)


def many():
    for name in ("long", "other", "long"):
        made(name, 30)()
    for number in range(40):  # each may have the place of the last one
        made(f"short_{number}", 1)()


def body():
    if way == "thread":
        thread = threading.Thread(target=größe)
        thread.start()
        thread.join()
    else:
        größe()
    loop()
    many()
    deep(150)


call(539, b"cuStreamBeginCapture_v2", Begin(0x1000, 0), 0)
error = ValueError("still raised")
try:
    try:
        raise error
    finally:
        # The recorder must not touch the error that is on its way.
        body()
except ValueError as caught:
    assert caught is error
call(497, b"cuStreamEndCapture", End(0x1000, None), 901)
