#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# gcap-doctor run: what the program gets, what is reported of it, exit codes, signals, and what is left behind.
#   run_test.sh gcap-doctor checks.sh FOLDER_OF_EVENTS fake_program
set -eu
doctor=$PWD/$1
# shellcheck source=checks.sh
. "$2"
data=$PWD/$3
program=$PWD/$4
tmp=$TEST_TMPDIR
export TMPDIR=$tmp/temporary
mkdir "$TMPDIR"
unset CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH GCAP_DOCTOR_EVENTS GCAP_DOCTOR_TIME GCAP_DOCTOR_CUPTI GCAP_DOCTOR_LIMIT_MB GCAP_DOCTOR_LIBRARY
cd "$tmp"

# await COMMAND...: until it succeeds. What never comes is ended by the test's own limit.
await() {
  until "$@" 2>/dev/null; do sleep 0.01; done
}

# Nothing is left in the temporary folder.
clean() {
  [ -z "$(ls "$TMPDIR")" ] || fail "'$ran' left $(ls "$TMPDIR")"
}

# --- What is reported -------------------------------------------------------------------------------------------------

ends 0 "$doctor" run -- "$program" say hello copy "$data/broken.events"
[ "$(cat out)" = hello ] || fail "standard output is not the program's alone: $(cat out)"
has err StreamSynchronize serve.py:12
clean
ends 0 "$doctor" run --quiet -- "$program" copy "$data/broken.events"
silent err
ends 0 "$doctor" run --colour=always "$program" copy "$data/broken.events"
has err "$(printf '\033')"
ends 0 "$doctor" run -- "$program" copy "$data/healthy.events"
lacks err StreamSynchronize
ends 0 "$doctor" run --json j.json --html h.html --dot d.dot --trace t.trace --sarif s.sarif --junit u.xml --quiet \
  "$program" copy "$data/broken.events"
for file in j.json h.html d.dot t.trace s.sarif u.xml; do
  [ -s "$file" ] || fail "no $file"
done

ends 5 "$doctor" run -- "$program" exit 5
has err "the program made no call of CUDA's driver"
clean
# A child's events are the program's too, and what captured nothing is left out.
ends 0 "$doctor" run -- "$program" copy "$data/idle.events" fork "$data/broken.events"
has err StreamSynchronize "1 more processes used CUDA and captured nothing"
ends 0 "$doctor" run --json two.json -- "$program" copy "$data/healthy.events" fork "$data/broken.events"
grep -q '"culprit"' two.json || fail "the broken process is not the first"
has err "two.2.json is the report of"

# So are those of a program that a process became.
ends 0 "$doctor" run -- "$program" copy "$data/idle.events" second "$data/broken.events"
has err StreamSynchronize "1 more processes used CUDA and captured nothing"
clean
# One that failed without a capture is reported, and takes no other one with it.
sed '/cuStreamBeginCapture/d; /^node/d; /cuStreamSynchronize	/d; /cuStreamEndCapture/s/.*/call	n=4	t=4000	end=4500	thread=1	function=cuGraphLaunch	result=400	stack=2	stream=1/' \
  "$data/broken.events" >launch.events
ends 1 "$doctor" explain launch.events
has out cudaGraphLaunch
lacks out "capture 1"
ends 0 "$doctor" run --quiet --json many.json -- "$program" copy "$data/healthy.events" fork "$data/idle.events" \
  fork "$data/broken.events" fork launch.events fork "$data/idle.events"
has err "2 more processes used CUDA and captured nothing" "many.2.json is" "many.3.json is"
[ ! -e many.4.json ] || fail "an idle process was reported"
grep -q cuGraphLaunch many.json many.2.json || fail "the failed launch is not among the first"
# One time for the names of all of them, however many there are.
mkdir hanging
printf '#!/bin/sh\necho >>"%s"\nexec sleep 3600\n' "$tmp/asked" >hanging/c++filt
chmod +x hanging/c++filt
forks=
: >asked
for _ in 1 2 3 4 5 6 7 8; do forks="$forks fork $data/broken.events"; done
# shellcheck disable=SC2086  # one word each
PATH=$tmp/hanging:$PATH GCAP_DOCTOR_SYMBOLIZER_SECONDS=1 ends 0 "$doctor" run --json eight.json -- "$program" $forks
[ -s eight.8.json ] || fail "not all of eight processes were reported"
[ "$(wc -l <asked)" -le 1 ] || fail "names were asked for $(wc -l <asked) times, though the first time took all of it"

# --- Files of events --------------------------------------------------------------------------------------------------

# kept FILE: it has what the program recorded, and the run.
kept() {
  grep -q "	run=[0-9.]*$" "$1" || fail "$1 has no run"
  sed 's/	run=[0-9.]*$//' "$1" | cmp - "$data/broken.events" || fail "'$ran' did not keep the file"
}

mkdir kept
ends 0 "$doctor" run --events kept/run -- "$program" copy "$data/broken.events"
kept kept/run.*.events
# Files of an earlier run are not this one's.
ends 0 "$doctor" run --events kept/run --exit-code -- "$program" copy "$data/healthy.events"
lacks err StreamSynchronize
# Nor are those of a run beside it, of a program that no run recorded, and of what is no file.
(
  await [ -s kept/beside.1.events ]
  code=0
  "$doctor" run --exit-code --quiet --events kept/beside -- "$program" copy "$data/broken.events" || code=$?
  echo $code >kept/beside.code
) 2>/dev/null &
ends 0 "$doctor" run --exit-code --events kept/beside -- bash -c '
  cp "$1/broken.events" kept/beside.1.events; ln -s beside.1.events kept/beside.2.events; mkfifo kept/beside.3.events
  until [ -s kept/beside.code ]; do sleep 0.01; done; exec "$2" copy "$1/healthy.events"' bash "$data" "$program"
lacks err StreamSynchronize
[ "$(cat kept/beside.code)" = 1 ] || fail "the run beside another one ended with $(cat kept/beside.code), expected 1"
ends 0 "$doctor" run --events bare -- "$program" print GCAP_DOCTOR_EVENTS
has out "GCAP_DOCTOR_EVENTS=$tmp/bare"
ends 3 "$doctor" run --events no/such -- "$program" say hello
has err "run: --events is 'no/such': expected a name in a folder that can be written to"
silent out
# The variable says it where the option does not.
GCAP_DOCTOR_EVENTS=kept/variable ends 0 "$doctor" run -- "$program" copy "$data/broken.events" print GCAP_DOCTOR_EVENTS
has err StreamSynchronize
has out "GCAP_DOCTOR_EVENTS=$tmp/kept/variable"
kept kept/variable.*.events
GCAP_DOCTOR_EVENTS=no/such ends 0 "$doctor" run --events kept/option -- "$program" print GCAP_DOCTOR_EVENTS
has out "GCAP_DOCTOR_EVENTS=$tmp/kept/option"
GCAP_DOCTOR_EVENTS=no/such ends 3 "$doctor" run -- "$program" say hello
has err "run: GCAP_DOCTOR_EVENTS is 'no/such': expected a name in a folder that can be written to"
silent out
GCAP_DOCTOR_EVENTS='' ends 0 "$doctor" run -- "$program" copy "$data/broken.events"
has err StreamSynchronize
clean

# A relative folder for temporary files is that of the command, wherever the program goes.
TMPDIR=temporary ends 1 "$doctor" run --exit-code -- bash -c 'cd / && exec "$@"' bash "$program" copy "$data/broken.events"
clean
# What the program puts into the folder of the events is neither read nor removed, and said.
folder='$(dirname "$GCAP_DOCTOR_EVENTS")'
mkdir victim
cp "$data/broken.events" victim/run.1.events
for made in "mkdir $folder/sub" "mkfifo $folder/run.1.events" "ln -s $tmp/victim/run.1.events $folder/run.1.events" \
  "touch $folder/other"; do
  ends 0 "$doctor" run -- bash -c "$made"
  has err "run: the folder $TMPDIR/gcap-doctor." "stays: it has what the program put there" "made no call"
  lacks err StreamSynchronize
  [ "$(ls "$TMPDIR"/gcap-doctor.* | wc -l)" = 1 ] || fail "'$ran' left $(ls "$TMPDIR"/gcap-doctor.*)"
  rm -r "$TMPDIR"/gcap-doctor.*
done
ends 0 "$doctor" run -- bash -c "rmdir $folder && ln -s $tmp/victim $folder"
has err "stays: the program put something else in the place of the folder of the events"
[ -s victim/run.1.events ] || fail "a file behind a link was removed"
rm "$TMPDIR"/gcap-doctor.*
ends 0 "$doctor" run -- bash -c "rmdir $folder"
clean

# --- The recorder's library -------------------------------------------------------------------------------------------

# It is loaded and says why it records nothing; the program runs on.
echo "no library" >text.so
ends 5 "$doctor" run --cupti text.so -- "$program" inject say after exit 5
has out "initialized: 1" after
has err "GCAP_DOCTOR_CUPTI is '$tmp/text.so', which cannot be loaded" "nothing is recorded"
has err "gcap-doctor: no calls were recorded"
ends 0 "$doctor" run --cupti text.so --json note.json -- "$program" inject
grep -q "cannot be loaded" note.json || fail "the note is not in the JSON"

# --- The environment --------------------------------------------------------------------------------------------------

everything="print GCAP_DOCTOR_TIME print GCAP_DOCTOR_LIMIT_MB print GCAP_DOCTOR_CUPTI print CUDA_INJECTION64_PATH"
touch cupti.so library.so
# shellcheck disable=SC2086  # one word each
ends 0 "$doctor" run -- "$program" $everything
has out "GCAP_DOCTOR_TIME=" "libgcap_doctor.so"
lacks out "GCAP_DOCTOR_TIME=1"
# shellcheck disable=SC2086
GCAP_DOCTOR_LIBRARY=library.so ends 0 "$doctor" run --time --limit-mb 12 --cupti cupti.so "$program" $everything
has out GCAP_DOCTOR_TIME=1 GCAP_DOCTOR_LIMIT_MB=12 "GCAP_DOCTOR_CUPTI=$tmp/cupti.so" \
  "CUDA_INJECTION64_PATH=$tmp/library.so"
GCAP_DOCTOR_LIBRARY=library.so ends 0 "$doctor" run -- "$program" print NVTX_INJECTION64_PATH
has out "NVTX_INJECTION64_PATH=$tmp/library.so"
NVTX_INJECTION64_PATH=/opt/other.so ends 0 "$doctor" run -- "$program" print NVTX_INJECTION64_PATH
has out "NVTX_INJECTION64_PATH=/opt/other.so"
CUDA_INJECTION64_PATH=/opt/other.so ends 0 "$doctor" run -- "$program" print CUDA_INJECTION64_PATH
has err "CUDA_INJECTION64_PATH is '/opt/other.so', another tool's: CUDA loads one, so the program gets"
has out libgcap_doctor.so
GCAP_DOCTOR_LIBRARY=/no/such.so ends 3 "$doctor" run -- "$program" say hello
has err "GCAP_DOCTOR_LIBRARY is '/no/such.so': expected the path of libgcap_doctor.so"
silent out
# Alone, without what is installed beside it.
mkdir alone
cp "$doctor" alone/
ends 3 alone/gcap-doctor run -- "$program" say hello
has err "libgcap_doctor.so, which records, is neither in $tmp/alone nor in ../lib beside it" GCAP_DOCTOR_LIBRARY
mkdir -p prefix/bin prefix/lib
cp "$doctor" prefix/bin/
touch prefix/lib/libgcap_doctor.so
ends 0 prefix/bin/gcap-doctor run -- "$program" print CUDA_INJECTION64_PATH
has out "CUDA_INJECTION64_PATH=$tmp/prefix/lib/libgcap_doctor.so"

echo from outside | ends 0 "$doctor" run -- "$program" read
has out "from outside"
TMPDIR=/no/such ends 3 "$doctor" run -- "$program" say hello
has err "cannot make a folder in /no/such: No such file" "set TMPDIR, or give --events"

# --- Exit codes -------------------------------------------------------------------------------------------------------

ends 1 "$doctor" run --exit-code -- "$program" copy "$data/broken.events"
ends 0 "$doctor" run --exit-code -- "$program" copy "$data/healthy.events"
ends 4 "$doctor" run --exit-code -- "$program" copy "$data/broken.events" exit 4
ends 137 "$doctor" run -- "$program" copy "$data/broken.events" kill 9
has err StreamSynchronize
ends 127 "$doctor" run -- ./no_program
has err "run: cannot start './no_program': No such file"
clean
ends 126 "$doctor" run -- ./cupti.so
has err "run: cannot start './cupti.so': Permission denied"
ends 3 "$doctor" run --json no/file.json -- "$program" say hello
has err "run: cannot write no/file.json, the value of --json: No such file"
silent out
ends 3 "$doctor" run --json kept -- "$program" say hello
has err "run: cannot write kept, the value of --json: Is a directory"
silent out
# A pipe gets the report, whenever its reader comes.
mkfifo pipe
cat pipe >early.json &
reader=$!
ends 0 "$doctor" run --json pipe -- "$program" copy "$data/broken.events"
wait "$reader" || fail "the pipe's reader met no end"
cmp early.json j.json || fail "the pipe's reader got another report than the file"
rm out
(
  await grep -qx over out
  cat pipe >late.json
) &
reader=$!
ends 0 "$doctor" run --json pipe -- "$program" copy "$data/broken.events" say over
wait "$reader" || fail "the pipe's late reader met no end"
cmp late.json j.json || fail "the pipe's late reader got another report than the file"
# A report of nothing takes the place of an earlier one.
for file in none.json none.html none.dot none.trace; do echo earlier >"$file"; done
ends 0 "$doctor" run --json none.json --html none.html --dot none.dot --trace none.trace --quiet -- "$program" say hello
silent err
grep -q '"ended": true' none.json || fail "the report of nothing says nothing of the end"
grep -q "$program say hello" none.json || fail "the report of nothing does not name the program"
grep -q "the program made no call of CUDA's driver" none.json || fail "the report of nothing does not say why"
! grep -x earlier none.* || fail "an earlier report was kept"
# Words are joined in a time of their number: the square of these would be 36 GB.
# shellcheck disable=SC2046  # a word each
ends 0 "$doctor" run --json words.json --quiet -- true $(seq 30000000 30090000)
grep -q ' 30000000 30000001 .* 30090000"' words.json || fail "the command line is not that of the program"
# With --exit-code, that nothing was recorded is no success: no call of CUDA, no CUPTI, a file that is none of events.
unrecorded="run: --exit-code: no process was recorded, so nothing is known of its captures"
ends 3 "$doctor" run --exit-code -- "$program" say hello
has err "$unrecorded"
ends 3 "$doctor" run --exit-code --quiet --cupti text.so -- "$program" inject
has err "$unrecorded"
ends 3 "$doctor" run --exit-code --json none.json -- "$program" copy /dev/null
has err "$unrecorded"
grep -q "no file of events could be read" none.json || fail "the report of an unreadable file does not say why"
ends 4 "$doctor" run --exit-code -- "$program" exit 4
ends 0 "$doctor" run --exit-code -- "$program" copy "$data/idle.events"
lacks err "$unrecorded"
# Options of the program are its own.
ends 0 "$doctor" run "$program" say --json
has out --json
# What cannot be read is said, and the program's code stays.
ends 0 "$doctor" run -- "$program" copy /dev/null
has err "has no events: line 1: the file is empty"

# --- Signals ----------------------------------------------------------------------------------------------------------

# signalled SIGNAL CODE WORD...: the doctor gets the signal while the program waits, and ends with the code.
signalled() {
  signal=$1 expected=$2
  shift 2
  rm -f out
  # A shell lets what runs beside it ignore SIGINT.
  env --default-signal=INT "$doctor" run -- "$program" "$@" copy "$data/broken.events" wait >out 2>err &
  pid=$!
  await grep -q waiting out
  kill -s "$signal" "$pid"
  code=0
  wait "$pid" || code=$?
  [ "$code" = "$expected" ] || fail "after $signal to it the doctor ended with $code, expected $expected"
  grep -q StreamSynchronize err || fail "after $signal there is no report"
  ran="a run ended by $signal"
  clean
}

signalled TERM 143
signalled HUP 129
signalled INT 130
signalled TERM 7 trap
signalled INT 8 trap

# --- A report that comes to nothing -----------------------------------------------------------------------------------

# Nobody reads the report: the code is the program's, and the files are written.
code=0
{ "$doctor" run --json unread.json -- "$program" copy "$data/broken.events" exit 6 2>&1 || echo $? >code; } | true
await [ -s code ]
[ "$(cat code)" = 6 ] || fail "with a report that nobody reads the doctor ended with $(cat code), expected 6"
grep -q '"culprit"' unread.json || fail "there is no JSON beside a report that nobody reads"
ran="a run whose report nobody reads"
clean
# But the program has a SIGPIPE of its own.
ends 141 "$doctor" run --quiet -- "$program" kill 13
clean

# interrupted SIGNAL CODE WORD...: the doctor gets the signal while it waits for names, and ends with the code.
mkdir slow
printf '#!/bin/sh\necho $$ >"%s"\nexec sleep 3600\n' "$tmp/reporting" >slow/c++filt
chmod +x slow/c++filt
interrupted() {
  signal=$1 expected=$2
  shift 2
  rm -f reporting
  env --default-signal=INT PATH="$tmp/slow:$PATH" \
    "$doctor" run -- "$program" "$@" >out 2>err &
  pid=$!
  await [ -s reporting ]
  kill -s "$signal" "$pid"
  code=0
  wait "$pid" || code=$?
  kill "$(cat reporting)" 2>/dev/null || true  # the tool that hung
  [ "$code" = "$expected" ] || fail "after $signal to its report the doctor ended with $code, expected $expected"
  ran="a report ended by $signal"
  clean
}

interrupted INT 130 copy "$data/broken.events"
has err "run: the report was ended by signal 2"
interrupted TERM 5 copy "$data/broken.events" exit 5
# A signal to the doctor and another one to all of its processes, as timeout sends them, are one: the report comes. The
# doctor is stopped meanwhile, so that both are there at once, though this shell may get no processor between the two;
# how far apart they may be is child_test's.
cat >twice <<'EOF'
trap '' TERM
env --default-signal=TERM "$@" &
until grep -q waiting out; do sleep 0.01; done
kill -s STOP $!
until grep -q '^State:.T' "/proc/$!/status"; do sleep 0.01; done
kill -s TERM $! 0
kill -s CONT $!
code=0
wait $! || code=$?
exit $code
EOF
ends 143 setsid -w bash twice "$doctor" run -- "$program" copy "$data/broken.events" wait
has err StreamSynchronize
clean

# A report that has no memory for all of it; what a sanitizer reserves is more.
if (ulimit -v 60000 && "$doctor" --version) >/dev/null 2>&1; then
  awk 'BEGIN {
    print "gcap-events\tversion=1\tpid=1\ttime=1\tprogram=p"
    print "thread\tid=1\tos=1"
    for (i = 1; i <= 300000; ++i) print "call\tn=" i "\tthread=1\tfunction=f\tresult=0"
  }' >large.events
  limited() { (ulimit -v 60000 && exec "$@"); }
  ends 3 limited "$doctor" run -- "$program" copy large.events
  has err "gcap-doctor: no memory for"
  clean
  ends 9 limited "$doctor" run -- "$program" copy large.events exit 9
  clean
fi
finish
