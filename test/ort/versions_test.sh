#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# versions_test.sh RUNTIME PROGRAM...: runs the tests in the programs with another ONNX Runtime than the one that they
# were made for: the line RUNTIME of the file $GCAP_ORT_RUNTIMES.
set -euo pipefail

export GCAP_ORT_RUNTIME=$1
shift
if ! grep -q "^$GCAP_ORT_RUNTIME " "$GCAP_ORT_RUNTIMES"; then
    echo "skipped: no ONNX Runtime $GCAP_ORT_RUNTIME: set GCAP_ORT_FETCH=pip"
    exit 0
fi
export TEST_PREMATURE_EXIT_FILE=
unset XML_OUTPUT_FILE GTEST_OUTPUT
for program in "$@"; do
    "$program" --gtest_brief=1 | tee "$TEST_TMPDIR/log"
    grep -q "tests ran\|tests from" "$TEST_TMPDIR/log"
    ! grep -q "set GCAP_ORT_FETCH" "$TEST_TMPDIR/log"
done
