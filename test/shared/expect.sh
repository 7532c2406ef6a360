# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What the tests of programs share; they source it, and set $libraries, the folder of the stand-ins.
# shellcheck shell=sh disable=SC2154

err=$TEST_TMPDIR/err
: >"$err"

fail() {
    echo "FAILED: $*"
    cat "$err"
    exit 1
}

# run WANTED COMMAND...: expects the exit code, and leaves what it prints as errors in $err.
run() {
    wanted=$1
    shift
    code=0
    LD_LIBRARY_PATH=$PWD/$libraries "$@" 2>"$err" || code=$?
    [ "$code" -eq "$wanted" ] || fail "the exit code of '$*' is $code, expected $wanted"
}

# reports PATTERN: just one report was printed, and it has the pattern.
reports() {
    [ "$(grep -c '^gcap sim: ' "$err")" -eq 1 ] || fail "expected one report"
    grep -q "$1" "$err" || fail "expected '$1'"
    # In stacks there are the program's functions alone: those of the simulator are told by their libraries or files.
    ! grep -E '^ +at (gcap_sim_|[^ ]* \([^/t]|.*lib(cu|gcapsim))' "$err" || fail "a stack has a function of the simulator"
}

# program_runs PROGRAM: program.c does what it should, and is told what the checks find.
program_runs() {
    ! nm -D "$1" | grep gcap_sim || fail "the program has names of the simulator"
    run 0 "$1"
    [ ! -s "$err" ] || fail "a right program is told of something"

    run 134 "$1" race
    reports '^gcap sim: race on 64 bytes'
    grep -q 'at capture (.*program.c:' "$err" || fail "the report does not name the function that captured"

    # What goes in the program's exit handlers and destructors is no leak.
    run 0 "$1" leak
    reports '^gcap sim: leak of 1 of the kind "event"'
    grep -q 'at forget_one_event' "$err" || fail "the report does not name the function that made the event"
    # The environment is how such a program is controlled.
    GCAP_SIM_CHECKS=leak=off run 0 "$1" leak
    [ ! -s "$err" ] || fail "a check that is off reports"
}
