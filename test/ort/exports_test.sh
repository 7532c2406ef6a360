#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A plugin exports the two functions that ONNX Runtime looks for, and nothing else.
#   exports_test.sh LIBRARY
set -eu
nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sort >"$TEST_TMPDIR/functions"
printf 'CreateEpFactories\nReleaseEpFactory\n' | diff -u - "$TEST_TMPDIR/functions"
# Symbols of data that are left are thread-local ones of ours, which the linker keeps local.
! nm -D --defined-only "$1" | grep -E ' [BDR] '
