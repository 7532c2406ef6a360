#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Each mistake has one report, which names the calls at fault and the provider's function; no repair has any.
#   main_test.sh broken_ep
set -eu
program=$1
out=$TEST_TMPDIR/out
err=$TEST_TMPDIR/err

fail() {
  echo "FAILED: $*" >&2
  cat "$err" >&2
  exit 1
}

"$program" >"$out" 2>"$err" || fail "exit code $?"

cat >"$TEST_TMPDIR/expected" <<'END'
missing wait between streams: 1 report(s), repaired: 0
allocation in capture: 1 report(s), repaired: 0
scratch freed too early: 1 report(s), repaired: 0
staging buffer freed after capture: 1 report(s), repaired: 0
END
diff -u "$TEST_TMPDIR/expected" "$out" || fail "the counts differ"

# section TITLE: what was printed below that headline.
section() {
  awk -v title="$1" '/^--- / { inside = substr($0, 8) == title; next } inside' "$err"
}

# names TITLE TEXT...: the section has each text, and one report.
names() {
  title=$1
  section "$title" >"$TEST_TMPDIR/section"
  reports=$(grep -c '^gcap sim: ' "$TEST_TMPDIR/section") || true
  [ "$reports" -eq 1 ] || fail "'$title' has $reports reports"
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$TEST_TMPDIR/section" || fail "the report of '$title' does not say '$text'"
  done
}

names "missing wait between streams" race cudaMemcpyAsync cudaLaunchKernel missing_wait_broken
names "allocation in capture" capture cudaMalloc cudaStreamBeginCapture allocation_in_capture_broken
names "scratch freed too early" cudaFreeAsync cudaLaunchKernel early_free_broken
names "staging buffer freed after capture" cudaMemcpyAsync cudaFreeHost cudaGraphLaunch stale_staging_broken
# Each stack names the line, which fastbuild stripped: it said "(early_free.c:?)".
for file in missing_wait allocation_in_capture early_free stale_staging; do
  grep -Eq "/$file\.c:[0-9]+\)" "$err" || fail "no line of $file.c is named"
  ! grep -Fq "$file.c:?)" "$err" || fail "a line of $file.c is not known"
done
for title in "missing wait between streams" "allocation in capture" "scratch freed too early" \
  "staging buffer freed after capture"; do
  [ -z "$(section "$title, repaired")" ] || fail "'$title, repaired' prints something"
done
