#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# examples/external_allocator as its user meets it: right as it is, and a race when the order of streams is ignored.
#   external_example_test.sh external_allocator
set -eu
out=$TEST_TMPDIR/out
"$1" >"$out" 2>&1 || {
  cat "$out"
  exit 1
}

expect() {
  grep -Eq -- "$1" "$out" && return
  echo "no line like '$1' in:"
  cat "$out"
  exit 1
}
expect '^gcap over a small pool, which held [1-9][0-9]* KiB$'
expect '^12 runs: 0 wrong; 1 captures, 10 replays$'
expect '^([1-9][0-9]*) allocs, \1 frees, [1-9][0-9]* times the cache was emptied; 0 of these calls in a capture$'

"$1" --on-its-stream >"$out" 2>&1 || {
  cat "$out"
  exit 1
}
expect '^gcap over a small pool, which held [1-9][0-9]* KiB, on its stream$'
expect '^12 runs: 0 wrong; 1 captures, 10 replays$'

if "$1" --careless >"$out" 2>&1; then
  echo "--careless did not fail"
  cat "$out"
  exit 1
fi
expect '^gcap sim: race on [0-9]+ bytes of device memory'
expect 'write by memset on stream'
