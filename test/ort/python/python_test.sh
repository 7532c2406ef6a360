#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Runs a script with the Python module of one of @gcap_ort's runtimes.
#   python_test.sh RUNTIMES NAME SCRIPT ARGUMENT...
set -eu
runtimes=$1
name=$2
shift 2

skip() {
  echo "skipped: $*: set GCAP_ORT_FETCH=pip"
  exit 0
}

line=$(grep "^$name " "$runtimes") || skip "no ONNX Runtime '$name'"
python=$(echo "$line" | cut -d' ' -f3)
modules=$(echo "$line" | cut -d' ' -f4)
[ "$modules" = - ] || export PYTHONPATH="$modules"
export PYTHONDONTWRITEBYTECODE=1
"$python" -c "import numpy, onnx, pip" || skip "$python lacks a module"
exec "$python" "$@"
