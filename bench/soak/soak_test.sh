#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A short soak, on the simulator: its memory is flat, and what the program may not be asked for is refused.
#   soak_test.sh SOAK
set -eu
soak=$1

"$soak" --replays=1000000
for wrong in --replays --replays=0 --replays=12x --replays=-1 --benchmark; do
  if "$soak" "$wrong" 2>"$TEST_TMPDIR/error"; then
    echo "FAILED: $wrong is accepted" >&2
    exit 1
  fi
  grep -q '^soak: allowed' "$TEST_TMPDIR/error"
done
