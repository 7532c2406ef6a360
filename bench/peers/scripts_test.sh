#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What the scripts say on a machine that lacks what they need, and that CuPy's benchmark, given a pool that does
# nothing, writes what the report reads.
#   scripts_test.sh FOLDER_OF_SCRIPTS write_draws report.py
set -eu
scripts=$PWD/$1 write_draws=$PWD/$2 report=$PWD/$3
cd "$TEST_TMPDIR"

# expect SENTENCE COMMAND...: it fails and says so.
expect() {
  local sentence=$1
  shift
  if "$@" >said 2>&1; then
    echo "succeeded: $*"
    exit 1
  fi
  grep -Fq -- "$sentence" said && return
  echo "no '$sentence' of $*:"
  cat said
  exit 1
}

mkdir -p bin python/cupy pack/lib pack/bin out draws no_traces
printf '#!/bin/sh\nexit 9\n' >bin/nvidia-smi
chmod +x bin/nvidia-smi
export PATH=$PWD/bin:$PATH
expect 'nvidia-smi says nothing: this machine has no NVIDIA GPU' "$scripts/run.sh" pack out.json
expect 'libbenchmark.so.1debian is not there: run pack.sh' "$scripts/build.sh" pack out

echo 'raise ImportError("there is none")' >python/cupy/__init__.py
cupy=("$scripts/cupy_bench.py" --draws draws --traces no_traces --repetitions 2 --out cupy.json)
export PYTHONPATH=$PWD/python
expect 'CuPy is missing: there is none' "${cupy[@]}"

mkdir -p python/torch
echo 'raise ImportError("there is no torch")' >python/torch/__init__.py
expect 'PyTorch is missing: there is no torch' "$scripts/digits_bench.py" digits data
expect 'PyTorch is missing: there is no torch' "$scripts/values_bench.py" values_bench
expect '--rounds is 0 and --runs 1001, allowed is 1 or more' "$scripts/values_bench.py" values_bench --rounds 0

cat >python/cupy/__init__.py <<'PYTHON'
class _Pool:
    held = 0

    def malloc(self, size):
        self.held += size
        return object()

    def total_bytes(self):
        return self.held


class _Stream:
    def __init__(self, non_blocking):
        assert non_blocking

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class cuda:
    MemoryPool, Stream = _Pool, _Stream

    class runtime:
        @staticmethod
        def getDeviceProperties(_):
            return {"name": b"a device"}
PYTHON
"$write_draws" draws
"${cupy[@]}"
"$report" cupy.json >table
for row in 'pair, bytes 256' 'mixed, live 4096' 'trace drifting' 'trace one_shape'; do
  grep -Fq "| $row |" table || expect "$row" cat table
done
grep -Fq 'a device, driver unknown' table
grep -Fq '2 repetitions' table
