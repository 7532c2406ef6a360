#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What the simulator's archives define for others: functions of CUDA, cuBLAS, cuBLASLt and cuDNN, and names of its own. Only
# watch_free replaces functions of the C library, those two, and it is in no other archive.
#   symbols_test.sh ARCHIVE...
set -eu

status=0
for archive in "$@"; do
  case $archive in
    *libwatch_free*) allowed='free|realloc' ;;
    *) allowed='(cuda|__cuda|cublas|cudnn)[A-Z].*|gcap_sim_.*' ;;
  esac
  nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u >"$TEST_TMPDIR/names"
  # An archive that is read wrongly has no name at all; under a sanitizer the two functions are left out.
  [ -s "$TEST_TMPDIR/names" ] || { echo "FAILED: $archive defines nothing"; status=1; }
  if grep -Evx "$allowed" "$TEST_TMPDIR/names" >"$TEST_TMPDIR/others"; then
    echo "FAILED: $archive defines what is not its own:"
    cat "$TEST_TMPDIR/others"
    status=1
  fi
done
exit $status
