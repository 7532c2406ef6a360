#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# All parts together: the command, the recorder in a program, its events, the analysis, symbols and reports.
#   whole_test.sh gcap-doctor checks.sh broken_program broken_program.c libfake_cupti.so
set -eu
doctor=$PWD/$1
# shellcheck source=checks.sh
. "$2"
program=$PWD/$3
source=$PWD/$4
cupti=$PWD/$5
cd "$TEST_TMPDIR"
unset GCAP_DOCTOR_SYMBOLIZER GCAP_DOCTOR_EVENTS CUDA_INJECTION64_PATH

ends 0 "$doctor" run --cupti "$cupti" --events kept --json out.json --html out.html -- "$program"
[ "$(cat out)" = "done" ] || fail "the program's output is $(cat out)"
has err "capture 1 broke: cudaStreamSynchronize answered 900" R11 remedy
if command -v addr2line >/dev/null || command -v llvm-symbolizer >/dev/null; then
  line=$(grep -n 'cuStreamSynchronize", &stream, 900' "$source" | cut -d: -f1)
  has err "wait_for_stream at " "broken_program.c:$line"
  has err "capture at " "broken_program.c:$(grep -n 'cuStreamBeginCapture_v2", &begin' "$source" | cut -d: -f1)"
fi
grep -q wait_for_stream out.json || fail "the JSON has no stack"
grep -q cudaStreamSynchronize out.html || fail "the page has no call"
ends 1 "$doctor" run --cupti "$cupti" --exit-code --quiet -- "$program"
# What was kept says the same.
ends 1 "$doctor" explain --json kept.*.events
cmp out out.json || fail "explain of the events is not what run reported"
GCAP_DOCTOR_SYMBOLIZER=none ends 1 "$doctor" explain kept.*.events
has out "cudaStreamSynchronize answered 900" broken_program
lacks out wait_for_stream
finish
