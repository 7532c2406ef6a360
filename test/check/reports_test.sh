#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What a CI job makes of checks: the example writes its findings as events, and gcap-doctor makes JUnit's XML and SARIF of
# them, with the sentence, the remedy and the place of each; an operation without findings is a case that passes.
#   reports_test.sh check_operation gcap-doctor
set -eu
program=$1
doctor=$2
folder=$TEST_TMPDIR/findings
mkdir -p "$folder"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# has FILE TEXT...
has() {
  file=$1
  shift
  for text; do grep -qF -- "$text" "$file" || { cat "$file" >&2 && fail "'$text' is not in $file"; }; done
}

"$program" "$folder" >"$TEST_TMPDIR/out"
for name in "factor as an argument" "factor copied from a variable" "factor in device memory"; do
  events="$folder/$name.events"
  code=0
  "$doctor" report "$events" --junit "$TEST_TMPDIR/$name.xml" --sarif "$TEST_TMPDIR/$name.sarif" >/dev/null || code=$?
  case $name in
    *device*) [ "$code" = 0 ] || fail "$name: exit code $code" ;;
    *) [ "$code" = 1 ] || fail "$name: exit code $code" ;;
  esac
done

has "$TEST_TMPDIR/factor as an argument.xml" 'failures="1"' "a replay with other inputs differs from an eager run" \
  "frozen value" "read what decides the work on the device" "check_operation.c"
has "$TEST_TMPDIR/factor as an argument.sarif" "a replay with other inputs differs" "check_operation.c" '"startLine"'
has "$TEST_TMPDIR/factor copied from a variable.xml" 'failures="1"' "copy from pinned memory that lives as long as"
has "$TEST_TMPDIR/factor in device memory.xml" 'tests="1"' 'failures="0"' 'skipped="0"'
