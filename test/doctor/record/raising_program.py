# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""A Python program whose captures meet exceptions.

Usage: raising_program.py RECORDER FAKE_CUPTI WAY
WAY: left (an exception leaves a capture, which is ended as it passes), uncaught (it leaves the program, and nobody ends
the capture), handled (it is handled in a capture that nobody ends), inside (it is handled within the capture), before
(one that was handled when the capture began), thread (it leaves a capture of another thread), odd (its message is no
text)
"""
import contextlib
import ctypes
import sys
import threading

recorder, fake_path, way = sys.argv[1:]
fake = ctypes.CDLL(fake_path)
STREAM = ctypes.c_void_p(0x1000)


class Begin(ctypes.Structure):
    _fields_ = [("stream", ctypes.c_void_p), ("mode", ctypes.c_int)]


class End(ctypes.Structure):
    _fields_ = [("stream", ctypes.c_void_p), ("graph", ctypes.c_void_p)]


class Odd(Exception):
    def __str__(self):
        call(17, b"cuCtxSynchronize", STREAM)
        return "the program's own code"


def call(number, name, arguments):
    fake.fake_cupti_call(number, name, ctypes.byref(arguments), 0)


def begin():
    call(539, b"cuStreamBeginCapture_v2", Begin(0x1000, 0))


def end():
    call(497, b"cuStreamEndCapture", End(0x1000, None))


def query():
    call(125, b"cuStreamQuery", STREAM)


@contextlib.contextmanager
def captured():
    begin()
    try:
        yield
    finally:
        end()


def refuse():
    if way == "odd":
        raise Odd(5)
    raise ValueError("no such läyer")  # THE LINE


def left():
    with captured():
        query()
        refuse()


def uncaught():
    begin()
    refuse()


def handled():
    begin()
    try:
        refuse()
    except ValueError:
        query()


def inside():
    with captured():
        try:
            refuse()
        except ValueError:
            pass
        query()


def before():
    try:
        refuse()
    except ValueError:
        with captured():
            query()


assert ctypes.CDLL(recorder).InitializeInjection() == 1
bodies = {"left": left, "odd": left, "thread": left, "uncaught": uncaught, "handled": handled, "inside": inside,
          "before": before}
if way == "uncaught":
    uncaught()
with contextlib.suppress(ValueError, Odd):
    if way == "thread":
        thread = threading.Thread(target=bodies[way])
        thread.start()
        thread.join()
    else:
        bodies[way]()
