# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What doctor/python uses of PyTorch. TORCH_STUB says what this version lacks."""
import os
import types

__version__ = "2.99"
LACKS = os.environ.get("TORCH_STUB", "")
version = types.SimpleNamespace(cuda=None if LACKS == "cuda" else "13.0")
_C = types.SimpleNamespace(_activate_gpu_trace=lambda: print("traced", flush=True))

from torch import cuda  # noqa: E402
