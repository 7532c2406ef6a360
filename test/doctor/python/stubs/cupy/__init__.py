# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What doctor/python uses of CuPy. CUPY_STUB=hooks lacks the hooks."""
import os
import types

hooks = []


class MemoryHook:
    def __enter__(self):
        hooks.append(self)


cuda = types.SimpleNamespace(MemoryHook=MemoryHook)
if os.environ.get("CUPY_STUB") == "hooks":
    del cuda.MemoryHook
