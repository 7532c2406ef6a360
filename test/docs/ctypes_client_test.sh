#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The Python client prints what its source says, on the shared library and the simulator, and leaves nothing behind.
#   ctypes_client_test.sh LIBGCAP SOURCE STAND_IN...
set -eu
library=$1
source=$2
shift 2
command -v python3 >/dev/null || { echo "python3 is not installed: $source needs it" && exit 1; }
runtime=
for file; do
  case $file in */libcudart.so.*) runtime=$file ;; esac
done

sed -n '/^import/q; s|^#     ||p' "$source" >"$TEST_TMPDIR/expected"
[ -s "$TEST_TMPDIR/expected" ] || { echo "the comment at the top of $source shows no output" && exit 1; }
export PYTHONDONTWRITEBYTECODE=1
GCAP_SIM_CHECKS=leak=record python3 "$source" "$library" "$runtime" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err" || {
  cat "$TEST_TMPDIR/out" "$TEST_TMPDIR/err"
  exit 1
}
diff -u "$TEST_TMPDIR/expected" "$TEST_TMPDIR/out"
diff -u /dev/null "$TEST_TMPDIR/err"

# Without its arguments it says what it takes.
if python3 "$source" 2>"$TEST_TMPDIR/err"; then echo "it runs without a library" && exit 1; fi
grep -q '^usage: ' "$TEST_TMPDIR/err"
