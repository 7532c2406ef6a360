# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
import types

import torch


class CUDAGraph:
    def pool(self):
        raise RuntimeError("the capture has not ended")

    def capture_end(self):
        """Ends it."""
        print("instantiated", flush=True)


def record(enabled, context, stacks):
    if torch.LACKS == "history":
        raise TypeError("no history")


memory = types.SimpleNamespace(_record_memory_history=record)


def _lazy_call(function):
    function()


def memory_snapshot():
    blocks = [{"state": "active_allocated", "size": 512, "frames": [{"filename": "??", "line": 0, "name": "c"},
                                                                  {"filename": "serve.py", "line": 12, "name": "load"}]},
              {"state": "inactive", "size": 1024, "frames": []},
              {"state": "active_allocated", "size": 64, "frames": []}]
    segments = [{"address": 0x1000, "segment_pool_id": (0, 0), "blocks": blocks},
                {"address": 0x9000, "segment_pool_id": (0, 3), "blocks": blocks}]
    if torch.LACKS == "pools":
        del segments[0]["segment_pool_id"]
    return segments
