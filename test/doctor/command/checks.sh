# shellcheck shell=sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What the tests of the command share, for `.`: each check says what it expected, and the script ends by `finish`.

failures=0

# What a report says is not to depend on how soon a symbolizer answers.
export GCAP_DOCTOR_SYMBOLIZER_SECONDS=3600

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# ends CODE COMMAND...: runs it; its outputs are in $out and $err.
ends() {
  expected=$1
  shift
  ran=$*
  set +e
  "$@" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err"
  code=$?
  set -e
  [ "$code" = "$expected" ] || {
    fail "'$ran' ended with $code, expected $expected"
    cat "$TEST_TMPDIR/err" >&2
  }
}

# has out|err TEXT...: the last command's output has each of the texts.
has() {
  where=$1
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$TEST_TMPDIR/$where" || {
      fail "'$ran': std$where has no '$text', but:"
      cat "$TEST_TMPDIR/$where" >&2
    }
  done
}

# lacks out|err TEXT
lacks() {
  if grep -F -- "$2" "$TEST_TMPDIR/$1" >&2; then fail "'$ran': std$1 has '$2'"; fi
}

# silent out|err: nothing was printed there.
silent() {
  [ ! -s "$TEST_TMPDIR/$1" ] || {
    fail "'$ran': std$1 is not empty:"
    cat "$TEST_TMPDIR/$1" >&2
  }
}

finish() {
  [ "$failures" = 0 ] || exit 1
  exit 0
}
