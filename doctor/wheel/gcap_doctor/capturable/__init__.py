# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""check(): proves that an operation is capturable, or says why it is not. docs/capturable.md is the manual."""

from gcap_doctor.capturable import tree
from gcap_doctor.capturable.kinds import KINDS
from gcap_doctor.capturable.procedure import Check, Options
from gcap_doctor.capturable.report import CannotCheck, Finding, NotCapturable, Report

__all__ = ["check", "CannotCheck", "Finding", "NotCapturable", "Report"]
MODES = ("global", "thread_local", "relaxed")
MOST_WARM_UPS = 1000


def check(fn, *inputs, other=None, warm_up=3, rtol=None, atol=None, bitwise=False, state=None, mode="global", allow=(),
          name=None, backend=None):
    """Captures fn(*inputs) as a CUDA graph, replays it in every way that breaks bad graphs, and compares with eager runs.

    fn        any callable; what it returns, what it writes into its inputs and into its state, and the gradients that it
              leaves are compared
    inputs    tensors, and tuples, lists, dictionaries and dataclasses of them, are the graph's static inputs: check() copies
              other values into them, and puts back what was there. Anything else is passed as it is
    other     a tuple of other inputs, of the same shapes. By default each floating-point tensor is multiplied by factors
              between 0.5 and 1, and integers stay
    warm_up   eager runs before anything is judged
    rtol, atol  what floating-point results may differ by, if not bit for bit; by default that of torch.testing by data
              type, plus what two eager runs differ by
    bitwise   no difference is allowed
    state     the tensors that fn keeps, in any container. By default those of modules, closures, bound objects and globals
              that fn names
    mode      of the capture: "global", "thread_local" or "relaxed"
    allow     kinds of findings that do not count, such as "pageable"
    name      what the report calls fn

    Returns a Report. Raises CannotCheck where nothing can be checked: torch is missing, there is no CUDA device, an argument
    is wrong, or a capture is open. Thread: one check at a time, and nothing else on the device meanwhile.
    """
    _validate(fn, warm_up, rtol, atol, mode, allow)
    if backend is None:
        from gcap_doctor.capturable import torch_backend

        backend = torch_backend.make(mode, inputs)
    if other is not None:
        other = other if isinstance(other, tuple) else (other,)
        _validate_other(backend, inputs, other)
    options = Options(other, warm_up, rtol, atol, bitwise, state, allow, name)
    return Check(backend, fn, inputs, options).run()


def _validate(fn, warm_up, rtol, atol, mode, allow):
    if not callable(fn):
        raise CannotCheck(f"fn is {fn!r}: expected what can be called")
    if not isinstance(warm_up, int) or not 1 <= warm_up <= MOST_WARM_UPS:
        raise CannotCheck(f"warm_up is {warm_up!r}: expected a number from 1 to {MOST_WARM_UPS}")
    for word, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not (isinstance(value, (int, float)) and 0 <= value < 1e30):
            raise CannotCheck(f"{word} is {value!r}: expected None or a number from 0")
    if mode not in MODES:
        raise CannotCheck(f"mode is {mode!r}: expected {', '.join(MODES)}")
    if isinstance(allow, str):
        raise CannotCheck(f"allow is {allow!r}: expected a tuple of kinds, such as ({allow!r},)")
    for kind in allow:
        if kind not in KINDS:
            raise CannotCheck(f"allow has {kind!r}: expected kinds of {', '.join(sorted(KINDS))}")


def _validate_other(backend, inputs, other):
    def described(values):
        return [(name, backend.describe(leaf)) for index, value in enumerate(values)
                for name, leaf in tree.leaves(value, f"input {index}") if backend.is_tensor(leaf)]

    wanted, given = described(inputs), described(other)
    for (name, expected), (other_name, actual) in zip(wanted, given):
        if (name, expected) != (other_name, actual):
            raise CannotCheck(f"other has {other_name} as {actual}: expected {name} as {expected}")
    if len(wanted) != len(given):
        raise CannotCheck(f"other has {len(given)} tensors: expected {len(wanted)}, as many as the inputs")
