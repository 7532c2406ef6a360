#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# gcap-doctor explain and report: what they print and write, their exit codes, files that cannot be read or written.
#   explain_test.sh gcap-doctor checks.sh FOLDER_OF_EVENTS R11.MD
set -eu
doctor=$1
# shellcheck source=checks.sh
. "$2"
data=$3
tmp=$TEST_TMPDIR
unset NO_COLOR
export TERM=xterm

# --- Text -------------------------------------------------------------------------------------------------------------

ends 1 "$doctor" explain "$data/broken.events"
has out StreamSynchronize serve.py:12 R11
silent err
lacks out "$(printf '\033')"
ends 1 "$doctor" explain --colour always "$data/broken.events"
has out "$(printf '\033')"
ends 0 "$doctor" explain "$data/healthy.events"
lacks out StreamSynchronize
ends 0 "$doctor" explain "$data/idle.events"
ends 1 "$doctor" explain - <"$data/broken.events"
has out StreamSynchronize
# The worst first, whatever the order of the files.
ends 1 "$doctor" explain "$data/healthy.events" "$data/broken.events"
[ "$(head -1 "$tmp/out")" = "$data/broken.events:" ] || fail "the broken one is not the first: $(head -1 "$tmp/out")"
has out "$data/healthy.events:"

ends 1 "$doctor" explain "$data/damaged.events"
has out StreamSynchronize "could not be read" "line 13"

# --- Rules ------------------------------------------------------------------------------------------------------------

for rule in R11 r11 11; do
  ends 0 env GCAP_DOCTOR_RULES="$(dirname "$4")" "$doctor" explain --rule "$rule"
  cmp "$tmp/out" "$4" || fail "--rule $rule is not $4"
done
# Without the pages, what the table says.
cp "$doctor" "$tmp/alone"
ends 0 "$tmp/alone" explain --rule R11
has out "R11: a call that a capturing stream cannot be given" "cudaErrorStreamCaptureUnsupported (900)" "remedy: do it before"
mkdir -p "$tmp/prefix/bin" "$tmp/prefix/share/gcap/doctor/rules"
cp "$doctor" "$tmp/prefix/bin/"
echo "the page" >"$tmp/prefix/share/gcap/doctor/rules/r11.md"
ends 0 "$tmp/prefix/bin/gcap-doctor" explain --rule R11
[ "$(cat "$tmp/out")" = "the page" ] || fail "the installed page is not printed"

# --- Files that cannot be read ----------------------------------------------------------------------------------------

# unreadable TEXT ARGUMENT...
unreadable() {
  text=$1
  shift
  ends 3 "$doctor" "$@"
  has err "$text"
}

unreadable "cannot read $tmp/none: No such file" explain "$tmp/none"
unreadable "$tmp is a folder: expected a file of events" explain "$tmp"
unreadable "/dev/null has no events: line 1: the file is empty" explain /dev/null
head -c 4096 "$doctor" >"$tmp/binary"
unreadable "$tmp/binary has no events: line 1: the first line is not that of a file of events" explain "$tmp/binary"
unreadable "cannot read $tmp/none" explain "$data/broken.events" "$tmp/none"
silent out

# --- Reports ----------------------------------------------------------------------------------------------------------

ends 1 "$doctor" explain --json "$data/broken.events"
has out '"culprit"' R11
ends 1 "$doctor" report "$data/broken.events" --json "$tmp/one.json" --html "$tmp/one.html" --dot "$tmp/one.dot" \
  --trace "$tmp/one.trace" --sarif "$tmp/one.sarif" --junit "$tmp/one.xml"
silent out
grep -q '"culprit"' "$tmp/one.json" || fail "no culprit in the JSON"
grep -qi '<html' "$tmp/one.html" || fail "no page"
grep -q '^digraph' "$tmp/one.dot" || fail "no graph in Graphviz's language"
grep -q StreamSynchronize "$tmp/one.trace" || fail "no call in the trace"
grep -q '"ruleId": "R11"' "$tmp/one.sarif" || fail "no result in SARIF"
grep -q '<failure type="R11"' "$tmp/one.xml" || fail "no failed case for JUnit"
ends 0 "$doctor" report "$data/healthy.events" --text --json=-
has out '"' serve.py

ends 1 "$doctor" report "$data/healthy.events" "$data/broken.events" --json "$tmp/two.json"
has err "$tmp/two.2.json is the report of $data/healthy.events"
cmp "$tmp/two.json" "$tmp/one.json" || fail "the first file is not the report of the worst recording"

unreadable "cannot write $tmp/no/page.html: No such file" report "$data/broken.events" --html "$tmp/no/page.html"
[ ! -w /dev/full ] || unreadable "cannot write all of /dev/full: No space" report "$data/broken.events" --json /dev/full
# --- Differences, with the exit codes of diff(1) ----------------------------------------------------------------------

ends 0 "$doctor" diff "$data/broken.events" "$data/broken.events"
silent out
silent err
ends 1 "$doctor" diff "$data/healthy.events" "$data/broken.events"
has out "outcome: graph, then broken" "error only in the second: culprit at /opt/app/serve.py:12 in step"
silent err
ends 0 "$doctor" diff "$data/healthy.events" - <"$data/healthy.events"
ends 2 "$doctor" diff "$data/healthy.events" "$tmp/none"
has err "cannot read $tmp/none: No such file"
printf 'gcap-events\tversion=1\tprogram=p\nnote\ttext=no CUPTI was found\n' >"$tmp/unrecorded.events"
ends 2 "$doctor" diff "$data/healthy.events" "$tmp/unrecorded.events"
has err "diff: no calls were recorded in $tmp/unrecorded.events: no CUPTI was found"
silent out
{ cat "$data/healthy.events"; printf 'call\tn=99\nnote\ttext=the recording stopped at its limit\n'; } >"$tmp/cut.events"
ends 0 "$doctor" diff "$data/healthy.events" "$tmp/cut.events"
has err "1 lines of $tmp/cut.events could not be read" "reached its limit"
[ ! -w /dev/full ] || "$doctor" diff "$data/healthy.events" "$data/broken.events" >/dev/full 2>"$tmp/full" && fail "wrote /dev/full"
grep -q "cannot write all of standard output" "$tmp/full" || fail "nothing is said of /dev/full"

if command -v python3 >/dev/null; then
  "$doctor" explain --json "$data/healthy.events" "$data/broken.events" >"$tmp/both.json" || true
  for file in "$tmp/one.json" "$tmp/two.2.json" "$tmp/both.json" "$tmp/one.trace"; do
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$file" || fail "$file is no JSON"
  done
fi
finish
