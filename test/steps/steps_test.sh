#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The last lines of a run of the checks name each case that failed with its first message, however much was printed
# before, and a step that went well adds nothing to them.
#   steps_test.sh STEPS COUNT_CASES FAILED_CASES
set -euo pipefail

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

checkout=$TEST_TMPDIR/checkout
mkdir -p "$checkout/.ci" "$checkout/tools"
cp "$1" "$checkout/.ci/steps.sh"
cp "$2" "$3" "$checkout/tools/"
cd "$checkout"

# A Bazel whose tests are the folders of the folder that it is given: each has a log, and the status that its file
# `status` names. It fails, as one does that has built nothing, where the folder has a file `stderr`.
cat >bazelw <<'END'
#!/bin/bash
[[ $1 == test ]] || exit 0
folder=$2 code=0
for argument; do
    case $argument in --build_event_json_file=*) events=${argument#*=} ;; esac
done
if [[ -e $folder/stderr ]]; then
    echo '{"id":{"progress":{}},"progress":{"stderr":"'"$(cat "$folder/stderr")"'"}}'
    code=1
fi >>"$events"
for name in "$folder"/*/; do
    [[ -e $name/test.log ]] || continue
    status=$(cat "$name/status")
    echo '{"id":{"testResult":{"label":"//'"${name%/}"'","run":1}},"testResult":{"testActionOutput":[{"name":"test.log",'\
'"uri":"file://'"$PWD/$name"'test.log"}],"status":"'"$status"'"}}' >>"$events"
    [[ $status == PASSED ]] || code=3
done
exit "$code"
END
chmod +x bazelw

# has FOLDER STATUS: a test, whose log is the standard input.
has() {
    mkdir -p "$1"
    echo "$2" >"$1/status"
    cat >"$1/test.log"
}

has good/passes PASSED <<'END'
[ RUN      ] Good.Case
good.cc:1: Failure
[  FAILED  ] Good.Case (0 ms)
END
has bad/one FAILED <<'END'
[ RUN      ] One.Passes
[       OK ] One.Passes (0 ms)
[ RUN      ] One.Fails
one.cc:7: Failure
Expected equality of these values:
  2
  3

one.cc:9: Failure
the second message
[  FAILED  ] One.Fails (0 ms)
[ RUN      ] One.FailsToo
one.cc:20: Failure
Failed
[  FAILED  ] One.FailsToo, where GetParam() = 1 (0 ms)
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] One.Fails
[  FAILED  ] One.FailsToo, where GetParam() = 1
END
has bad/race FAILED <<'END'
[ RUN      ] Race.Ends
WARNING: ThreadSanitizer: data race (pid=4)
  Write of size 8
SUMMARY: ThreadSanitizer: data race lib/a.c:1 in f
END
has bad/leak FAILED <<'END'
[ RUN      ] Leak.Passes
[       OK ] Leak.Passes (0 ms)
==12==ERROR: LeakSanitizer: detected memory leaks
END
has bad/script FAILED <<'END'
a first line
the last line

END
has bad/slow TIMEOUT <<'END'
[ RUN      ] Slow.Case
-- Test timed out at 2026-01-01 00:00:00 UTC --
END
mkdir not_built many
printf '%s' 'INFO: of no interest\nERROR: lib/a.c:3: Compiling failed: \"gcc\" ended\n' >not_built/stderr
for ((i = 0; i < 80; ++i)); do
    echo "FAILED: $i" | has "many/test_$i" FAILED
done

cat >.ci/run <<'END'
#!/bin/bash
. "$(dirname "$0")/steps.sh"
speaks() { seq 1000; echo "speaks: error: a word" && echo "1 passed, 1 failed" && return 1; }
for folder in "$@"; do test_step "tests of $folder" ./bazelw test "$folder"; done
counted_step "counted" speaks
step "well" true
finish
END

# run FOLDER...: leaves the end of what is printed in `end`.
run() {
    if bash .ci/run "$@" >all 2>&1; then fail "a step failed, and the run did not: $(cat all)"; fi
    tail -n 60 all | sed -n '/^=== what failed/,$p' >end
}

run good bad not_built
sed '/^=== all steps/,$d' end | diff - <(cat <<'END'
=== what failed
tests of bad:
//bad/leak: FAILED
  ==12==ERROR: LeakSanitizer: detected memory leaks
//bad/one: FAILED
  One.Fails: one.cc:7: Failure | Expected equality of these values: |   2 |   3
  One.FailsToo: one.cc:20: Failure | Failed
//bad/race: FAILED
  Race.Ends: the program ended in this case
  WARNING: ThreadSanitizer: data race (pid=4)
  SUMMARY: ThreadSanitizer: data race lib/a.c:1 in f
//bad/script: FAILED
  the last line
//bad/slow: TIMEOUT
  Slow.Case: the program ended in this case
  -- Test timed out at 2026-01-01 00:00:00 UTC --
tests of not_built:
  ERROR: lib/a.c:3: Compiling failed: "gcc" ended
counted:
  speaks: error: a word
END
) || fail "these lines ('>') were expected of what failed"

# Many failures leave room for the steps, and for those of other steps.
run many bad many many many
[[ $(head -n 1 end) == "=== what failed" ]] || fail "the last 60 lines lack the begin of what failed"
grep -q '^tests of bad:' end || fail "the failures of one step push out those of the next"
grep -q '^  and 145 lines more$' end || fail "it is not said how many lines are left out: $(cat end)"
[[ $(tail -n 1 end) == *" failed" ]] || fail "the count is not the last line"
