#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What an interpreter tells the recorder of PyTorch's and CuPy's blocks, with stand-ins of both.
#   follow_test.sh checks.sh libtold.so sitecustomize.py
set -eu
# shellcheck source=../command/checks.sh
. "$1"
told=$PWD/$2
folder=$(dirname "$PWD/$3")
stubs=$PWD/test/doctor/python/stubs
other=$PWD/test/doctor/python/other
command -v python3 >/dev/null || {
  echo "skipped: no python3" >&2
  exit 0
}
export CUDA_INJECTION64_PATH=$told GCAP_DOCTOR_AUDIT=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$folder:$stubs
unset TORCH_STUB CUPY_STUB

# prints EXPECTED CODE: what a Python program prints.
prints() {
  ends 0 python3 -c "$2"
  [ "$(cat "$TEST_TMPDIR/out")" = "$1" ] || fail "printed $(cat "$TEST_TMPDIR/out"), expected $1"
  silent err
}

capture='import torch
graph = torch.cuda.CUDAGraph()
graph.capture_end()
'
# Before a graph is instantiated the blocks are told that are handed out, but for those of graphs' pools.
prints 'follow pytorch
traced
seen 0x1000 512 7 12	serve.py	load

seen 0x1600 64 7 -
instantiated
freed 0x1000 CUDACachingAllocator.free' "$capture
from torch.cuda import _gpu_trace
assert len(_gpu_trace.callbacks) == 1
_gpu_trace.callbacks[0](0x1000)"
# The trace is switched on once.
ends 0 python3 -c "$capture
graph.capture_end()"
[ "$(grep -c traced "$TEST_TMPDIR/out")" = 1 ] || fail "traced twice"

# A version that is not known is named, once, and the capture goes on.
TORCH_STUB=pools prints "follow pytorch
traced
note PyTorch 2.99 does not tell its blocks as this version of gcap-doctor knows (KeyError: 'segment_pool_id'), so blocks \
that PyTorch takes back are not followed.
instantiated
instantiated" "$capture
graph.capture_end()"
TORCH_STUB=history ends 0 python3 -c "$capture"
has out "note PyTorch keeps no history" "seen 0x1600" instantiated
TORCH_STUB=cuda prints instantiated "$capture"

prints 'follow cupy
made 0x4000 1024 8 MemoryPool.malloc
freed 0x4000 MemoryPool.free' 'import cupy
hook = cupy.hooks[0]
hook.malloc_postprocess(device_id=0, size=1000, mem_size=1024, mem_ptr=0x4000, pmem_id=1)
hook.free_preprocess(device_id=0, mem_size=1024, mem_ptr=0x4000, pmem_id=1)'
CUPY_STUB=hooks ends 0 python3 -c 'import cupy'
has out "note CuPy ? has no hooks" "blocks that CuPy takes back are not followed"

# The program's own sitecustomize runs, and the program finds its modules as without the audit.
PYTHONPATH=$folder:$other prints 'the other sitecustomize
True' "import sys
print('$folder' not in sys.path)"
# Without an audit nothing is watched, and with a recorder that cannot be loaded nothing is said.
GCAP_DOCTOR_AUDIT=0 prints instantiated "$capture"
CUDA_INJECTION64_PATH=/nowhere prints instantiated "$capture"
finish
