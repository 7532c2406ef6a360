#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Help, version, and every wrong command line: 2, and a sentence that names the argument, its value and what is allowed.
#   arguments_test.sh gcap-doctor checks.sh MODULE.bazel EVENTS
set -eu
doctor=$1
# shellcheck source=checks.sh
. "$2"
version=$(sed -n 's/^    version = "\(.*\)",$/\1/p' "$3" | head -1)
events=$4

ends 0 "$doctor" --version
[ "$(cat "$TEST_TMPDIR/out")" = "gcap-doctor $version" ] || fail "--version is not '$version' of MODULE.bazel"
ends 0 "$doctor" --help
has out "gcap-doctor run" "gcap-doctor explain" "gcap-doctor report" "Exit codes"
silent err
for command in run explain report diff; do
  ends 0 "$doctor" "$command" --help
  has out "gcap-doctor $command" "--help"
  silent err
done
ends 2 "$doctor"
has err "gcap-doctor run"

# wrong TEXT ARGUMENT...
wrong() {
  text=$1
  shift
  ends 2 "$doctor" "$@"
  has err "$text"
  silent out
}

wrong "'rnu' is no command: expected run, audit, explain, report, diff, vet" rnu
wrong "run: no program: expected gcap-doctor run" run
wrong "run: no program: expected gcap-doctor run" run --
wrong "run: '--jsno' is no option of it: expected one of --time, --events, --json" run --jsno x
wrong "explain: '--html' is no option of it: expected one of --rule" explain --html x
wrong "run: --json has no value: expected FILE" run --json
wrong "run: --json has no value: expected FILE" run --json= true
wrong "run: --time is 'yes': expected no value" run --time=yes true
wrong "run: --colour is 'red': expected auto, always or never" run --colour red true
wrong "run: --limit-mb is '0': expected a number of megabytes, 1 to" run --limit-mb 0 true
wrong "run: --limit-mb is '9x': expected a number of megabytes, 1 to" run --limit-mb=9x true
wrong "run: --limit-mb is '99999999999999999999'" run --limit-mb 99999999999999999999 true
wrong "run: --cupti is '/no/libcupti.so': expected the path of a libcupti.so" run --cupti /no/libcupti.so true
wrong "run: --html is '-': expected a file, since standard output is the program's" run --html - true
wrong "explain: no file: expected files of events, '-' for standard input, or --rule" explain
wrong "explain: --rule is 'R0': expected R1 to R" explain --rule R0
wrong "explain: --rule is 'seven': expected R1 to R" explain --rule seven
wrong "explain: --rule takes no file: 'x.events' is one too many" explain --rule R11 x.events
wrong "report: no file: expected files of events" report --text
wrong "report: no report is asked for: expected --html FILE" report "$events"
wrong "diff: 1 files: expected two files of events" diff "$events"
wrong "diff: 3 files: expected two files of events" diff "$events" "$events" "$events"
# vet is Python's: without one, and without the wheel's package, there is a sentence.
ends 3 env PATH="$TEST_TMPDIR/none" "$doctor" vet tests
has err "gcap-doctor: vet: cannot start python3, which it needs: "
if command -v python3 >/dev/null; then
  ends 3 env -u PYTHONPATH "$doctor" vet tests
  has err "has no package gcap_doctor with vet ("
fi
finish
