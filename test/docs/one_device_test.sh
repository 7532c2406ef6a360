#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The program for several devices says what it finds where there is one, and leaves nothing behind.
#   one_device_test.sh PROGRAM
set -eu
program=$1

cat >"$TEST_TMPDIR/expected" <<'OUTPUT'
device 0 of 1: run 4 was a replay, y = (13, 23), read from memory of device 0
the current device was 0, and is 0
OUTPUT
GCAP_SIM_CHECKS=leak=record "$program" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err"
diff -u "$TEST_TMPDIR/expected" "$TEST_TMPDIR/out"
diff -u /dev/null "$TEST_TMPDIR/err"
