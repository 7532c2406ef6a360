#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What docs/seeds.md says of the tree is so: each row is there once, each test and label that it names exists, each
# function, type, header and file too, no row is without a test, and a row whose tests all skip on a plain checkout says
# what they need.
#   seeds_test.sh seeds.md WITH_ORT ON_GPU TEST_NAMES...
# TEST_NAMES: the tests of one package each, as gcap_test_names lists them; WITH_ORT and ON_GPU: the cases among them
# that need ONNX Runtime or a GPU. The sources lie below the current folder.
set -eu
export LC_ALL=C
failed=0
num_rows=163  # of the five seeds

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# problems PAGE: a line for each thing that is wrong with it, after the lines "path PATH".
problems() {
  awk -v num_rows="$num_rows" '
    FILENAME == ARGV[1] { needs[$1] = "with ONNX Runtime"; next }
    FILENAME == ARGV[2] { needs[$1] = "on a GPU"; next }
    FILENAME == ARGV[3] && /^\/\/test\/ort\/python:/ { needs[$1] = "with ONNX Runtime" }
    FILENAME == ARGV[3] { known[$1] = 1; next }
    !/^\| *[0-9]/ { next }
    {
      n = split($0, cell, / *\| */)
      row = cell[2]
      ++times[row]
      if (n != 7) print "row " row " has " n - 2 " cells, expected 5"
      if (cell[3] == "") print "row " row " has no behavior"
      check_places(cell[4], 1)
      check_places(cell[6], 0)
      check_tests(cell[5])
    }
    END {
      for (i = 1; i <= num_rows; ++i) {
        if (times[i] != 1) print "row " i " is there " times[i] + 0 " times, expected once"
        delete times[i]
      }
      for (row in times) print "row " row " is none of the rows 1 to " num_rows
    }
    # What stands in backticks in `text` is put into `quoted`, and taken out of the text, which is returned.
    function take_quoted(text, quoted,    parts, count, i, rest) {
      split("", quoted)
      count = split(text, parts, "`")
      for (i = 1; i <= count; ++i) {
        if (i % 2 == 1) rest = rest parts[i]
        else quoted[i / 2] = parts[i]
      }
      return rest
    }
    # Of an `only` cell each quoted word is a place; elsewhere paths and names of gcap are.
    function check_places(text, only,    quoted, i) {
      take_quoted(text, quoted)
      for (i in quoted) {
        if (quoted[i] ~ /^(gcap|GCAP)_[A-Za-z0-9_]+$/) {
          if (!(quoted[i] in known)) print "row " row " names " quoted[i] ", which no public header has"
        } else if (quoted[i] ~ /^(kit\/)?[a-z_]+\.h$/) {
          print "path include/gcap/" quoted[i]
        } else if (quoted[i] ~ /\//) {
          print "path " quoted[i]
        } else if (only) {
          print "row " row " names " quoted[i] ", which is no place"
        }
      }
    }
    function check_tests(text,    said, need, quoted, rest, tests, i) {
      if (match(text, /^(with ONNX Runtime|on a GPU): /)) {
        said = substr(text, 1, RLENGTH - 2)
        text = substr(text, RLENGTH + 1)
      }
      rest = take_quoted(text, quoted)
      for (i in quoted) {
        if (!tests++) need = needs[quoted[i]]
        if (needs[quoted[i]] != need) need = ""  # some run without it
        if (quoted[i] !~ /[.\/]/ || !(quoted[i] in known)) {
          print "row " row " names the test " quoted[i] ", which does not exist"
        }
      }
      gsub(/, /, "", rest)
      if (rest != "") print "row " row " says \"" rest "\" among its tests"
      if (!tests) print "row " row " has no test"
      if (said != need) print "row " row " says \"" said "\" before its tests, expected \"" need "\""
    }' "$with_ort" "$on_gpu" "$TEST_TMPDIR/known" "$1" | sort -u >"$TEST_TMPDIR/found"
  sed -n 's/^path //p' "$TEST_TMPDIR/found" | while read -r path; do
    [ -e "$path" ] || echo "the page names $path, which does not exist"
  done
  grep -v -e '^path ' "$TEST_TMPDIR/found" || true
}

# expect_found WHAT SED_SCRIPT: of the page that the script has changed, the check says WHAT.
expect_found() {
  sed "$2" "$page" >"$TEST_TMPDIR/changed.md"
  ! cmp -s "$page" "$TEST_TMPDIR/changed.md" || fail "'$2' changes nothing"
  problems "$TEST_TMPDIR/changed.md" >"$TEST_TMPDIR/said"
  grep -qF -- "$1" "$TEST_TMPDIR/said" || fail "'$1' was not found, but '$(cat "$TEST_TMPDIR/said")'"
}

# The check itself, by the page with one mistake each.
check_the_check() {
  row='| 2 | it waits | `gcap_session_run` | `Runtime.DestroyOfNullIsFine` |  |'
  whole="s/^| 2 |.*/$row/"
  expect_found "row 2 is there 0 times" '/^| 2 |/d'
  expect_found "row 2 is there 2 times" '/^| 2 |/p'
  expect_found "row 1000 is none of the rows" "$whole; s/^| 2 |/| 1000 |/"
  expect_found 'row 17 says "" before its tests, expected "on a GPU"' '/^| 17 |/s/on a GPU: //'
  expect_found 'row 19 says "" before its tests, expected "with ONNX Runtime"' '/^| 19 |/s/with ONNX Runtime: //'
  expect_found 'row 2 says "on a GPU" before its tests, expected ""' "$whole; /^| 2 |/s/.Runtime[.]/on a GPU: &/"
  expect_found "row 2 names the test Runtime.Nonsense, which" "$whole; s/DestroyOfNullIsFine/Nonsense/"
  expect_found "row 2 names the test //test:none, which" "$whole; s|Runtime.DestroyOfNullIsFine|//test:none|"
  expect_found "row 2 names the test gcap_run, which" "$whole; s/Runtime.DestroyOfNullIsFine/gcap_run/"
  expect_found "row 2 has no test" "$whole; s/.Runtime.DestroyOfNullIsFine.//"
  expect_found 'row 2 says "soon"' "$whole; s/.Runtime.DestroyOfNullIsFine./soon/"
  expect_found "row 2 has no behavior" "$whole; s/it waits//"
  expect_found "row 2 has 4 cells" "$whole; s/it waits | //"
  expect_found "names gcap_nonsense, which no public header has" "$whole; s/gcap_session_run/gcap_nonsense/"
  expect_found "names nonsense, which is no place" "$whole; s/gcap_session_run/nonsense/"
  expect_found "include/gcap/nonsense.h, which does not exist" "$whole; s/gcap_session_run/nonsense.h/"
  expect_found "include/gcap/kit/nonsense.h, which does not exist" "$whole; s|gcap_session_run|kit/nonsense.h|"
  expect_found "lib/nonsense, which does not exist" "$whole; s|gcap_session_run|lib/nonsense|"
}

cd "$TEST_SRCDIR/$TEST_WORKSPACE"
page=$1
with_ort=$2
on_gpu=$3
shift 3
{
  cat "$@"
  find -L include -name '*.h' -exec grep -hoE '(gcap|GCAP)_[A-Za-z0-9_]+' {} +
} | sort -u >"$TEST_TMPDIR/known"
[ "$(wc -l <"$TEST_TMPDIR/known")" -gt 1000 ] || fail "there are no tests and headers to compare with"
check_the_check
problems "$page" >"$TEST_TMPDIR/wrong"
[ ! -s "$TEST_TMPDIR/wrong" ] || fail "$page: $(cat "$TEST_TMPDIR/wrong")"
exit $failed
