#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# gcap-doctor audit: a launch on memory that was freed, at the launch and in each report.
#   audit_test.sh gcap-doctor checks.sh audited_program audited_program.c libfake_cupti.so libfake_driver.so
set -eu
doctor=$PWD/$1
# shellcheck source=checks.sh
. "$2"
program=$PWD/$3
source=$PWD/$4
cupti=$PWD/$5
driver=$PWD/$6
export GCAP_DOCTOR_PYTHON=$PWD/doctor/python
cd "$TEST_TMPDIR"
unset GCAP_DOCTOR_SYMBOLIZER GCAP_DOCTOR_EVENTS CUDA_INJECTION64_PATH GCAP_DOCTOR_AUDIT

ends 0 "$doctor" audit --cupti "$cupti" --events kept --json out.json --html out.html --sarif out.sarif --junit out.xml \
  -- "$program" "$driver"
[ "$(cat out)" = "done" ] || fail "the program's output is $(cat out)"
has err "gcap-doctor: audit: " "uses memory that was freed" "launched a graph on memory that was freed" \
  "argument 0 of kernel fill points into 4096 bytes of device memory" remedy
if command -v addr2line >/dev/null || command -v llvm-symbolizer >/dev/null; then
  # Each place is the line of its call.
  for place in allocated:cuMemAlloc_v2 freed:cuMemFree_v2; do
    line=$(grep -n "\"${place#*:}\"" "$source" | cut -d: -f1)
    grep -q "${place%%:*} .*audited_program.c:$line" err || fail "no line $line for ${place%%:*} in: $(cat err)"
  done
  has out.sarif relatedLocations '"allocated"' '"freed"'
  grep -q '^allocated: ' out.xml || fail "JUnit's report has no place: $(cat out.xml)"
fi
has out.json '"stale_memory"' '"places"' '"allocated"' '"freed"' release
has out.html "where it was allocated," "where it was freed,"
ends 1 "$doctor" audit --cupti "$cupti" --exit-code --quiet -- "$program" "$driver"
# What was kept says the same.
ends 1 "$doctor" explain --json kept.*.events
cmp out out.json || fail "explain of the events is not what audit reported"

ends 0 "$doctor" audit --cupti "$cupti" --exit-code -- "$program" "$driver" healthy
lacks err "audit: "
lacks err "memory that was freed"
# A program that becomes another one is audited in both.
ends 1 "$doctor" audit --cupti "$cupti" --exit-code --events twice -- "$program" "$driver" again
[ "$(cat out)" = "done" ] || fail "the program's output is $(cat out)"
counts=$(grep -c '^stale' twice.*.events | sed 's/.*://' | sort | xargs)
[ "$counts" = "0 1" ] || fail "the two files have $counts launches on memory that was freed"
grep -q "program=.* healthy" twice.*.2.events || fail "no file of the program after exec(): $(ls twice.*)"
has err "launched a graph on memory that was freed"
# Interpreters find what follows frameworks' allocators first, and the program's own folders behind it.
PYTHONPATH=/theirs ends 0 "$doctor" audit --quiet -- sh -c 'echo "$PYTHONPATH"'
[ "$(cat out)" = "$GCAP_DOCTOR_PYTHON:/theirs" ] || fail "PYTHONPATH is $(cat out)"
# A command that was copied out of its prefix has neither.
mkdir -p alone/bin
cp "$doctor" alone/bin/gcap-doctor
GCAP_DOCTOR_LIBRARY=$cupti GCAP_DOCTOR_PYTHON='' PYTHONPATH=/theirs ends 0 alone/bin/gcap-doctor audit --quiet -- \
  sh -c 'echo "$PYTHONPATH"'
has err "audit: share/gcap/doctor/python is not installed"
[ "$(cat out)" = /theirs ] || fail "PYTHONPATH is $(cat out)"
# run follows no memory.
ends 0 "$doctor" run --cupti "$cupti" --exit-code -- "$program" "$driver"
lacks err "memory that was freed"
ends 2 "$doctor" audit
has err "no program"
finish
