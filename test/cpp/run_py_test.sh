#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# examples/pytorch_extension/run.py says what is missing: PyTorch, a CUDA toolkit. Where nothing is, it checks itself.
#   run_py_test.sh run.py
set -eu
script=$1

# expect_said TEXT: run.py fails and says so, with the torch of the folder `fake`.
expect_said() {
  ! PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$TEST_TMPDIR/fake" python3 "$script" >"$TEST_TMPDIR/said" 2>&1 || exit 1
  grep -qF -- "$1" "$TEST_TMPDIR/said" || { cat "$TEST_TMPDIR/said" >&2 && exit 1; }
}

mkdir -p "$TEST_TMPDIR/fake/torch/utils"
echo 'raise ImportError("no such wheel")' >"$TEST_TMPDIR/fake/torch/__init__.py"
expect_said "cannot import torch: no such wheel"

cat >"$TEST_TMPDIR/fake/torch/__init__.py" <<'PYTHON'
__version__ = "0"
class version:
    cuda = "0"
PYTHON
touch "$TEST_TMPDIR/fake/torch/utils/__init__.py"
echo 'CUDA_HOME = None' >"$TEST_TMPDIR/fake/torch/utils/cpp_extension.py"
expect_said "PyTorch finds no CUDA toolkit: set CUDA_HOME"

echo "CUDA_HOME = '$TEST_TMPDIR'" >"$TEST_TMPDIR/fake/torch/utils/cpp_extension.py"
expect_said "lacks CUDA's headers or libcudart.so"
