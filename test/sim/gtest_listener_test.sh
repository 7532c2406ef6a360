#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The listener fails exactly the tests in which a check reports, with the report in the failure.
#   gtest_listener_test.sh gtest_listener_program
set -eu
program=$1
out=$TEST_TMPDIR/out
# The inner run is not the one that Bazel shards, filters and reports.
unset TESTBRIDGE_TEST_ONLY TEST_SHARD_INDEX TEST_TOTAL_SHARDS TEST_SHARD_STATUS_FILE XML_OUTPUT_FILE GTEST_OUTPUT || true

fail() {
  echo "FAILED: $*" >&2
  cat "$out" >&2
  exit 1
}

# failed TEST... -- ARGUMENT...: exactly these tests fail.
failed() {
  : >"$TEST_TMPDIR/expected"
  while [ "$1" != -- ]; do
    echo "$1" >>"$TEST_TMPDIR/expected"
    shift
  done
  shift
  ! "$program" "$@" >"$out" 2>/dev/null || fail "$program $* succeeds"
  sed -n 's/^\[  FAILED  \] \(Listener\.[A-Za-z]*\) .*/\1/p' "$out" | sort -u >"$TEST_TMPDIR/got"
  diff -u "$TEST_TMPDIR/expected" "$TEST_TMPDIR/got" || fail "$program $* fails other tests"
}

failed Listener.FailsALeak Listener.FailsARace --
grep -q 'cudaStreamCreateWithFlags' "$out" || fail "the leak's failure does not name the call"
failed Listener.FailsARace -- ignore_leaks
grep -q 'cudaMemsetAsync' "$out" || fail "the race's failure does not name the calls"
