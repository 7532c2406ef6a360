#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The program as its user meets it: every flag's run succeeds and prints one JSON object, every mistake ends in exit
# code 2 with a sentence that names it and nothing on standard output.
#   main_test.sh digits DATA_FILE
set -eu
program=$1
data=$(dirname "$2")
out=$TEST_TMPDIR/out
err=$TEST_TMPDIR/err
failures=0

fail() {
  echo "FAILED: $*" >&2
  sed 's/^/  stderr: /' "$err" >&2
  failures=$((failures + 1))
}

# good FLAG...: exit code 0 and one object of all fields on one line.
good() {
  if ! "$program" --runs 2 --json "$@" >"$out" 2>"$err"; then
    fail "$* fails"
  elif [ "$(wc -l <"$out")" -ne 1 ]; then
    fail "$* prints $(wc -l <"$out") lines, expected 1"
  fi
  for field in device accuracy images max_abs_diff_eager_replay max_abs_diff_reference eager_ns_median eager_ns_p99 \
    replay_ns_median replay_ns_p99 nodes captures replays scratch_reserved_bytes scratch_peak_bytes \
    cuda_calls; do
    grep -q "\"$field\": " "$out" || fail "$* prints no field $field"
  done
}

# bad TEXT FLAG...: exit code 2, TEXT in the sentence on standard error, nothing on standard output.
bad() {
  text=$1
  shift
  code=0
  "$program" "$@" >"$out" 2>"$err" || code=$?
  [ "$code" -eq 2 ] || fail "$* ends with exit code $code, expected 2"
  [ ! -s "$out" ] || fail "$* prints something on standard output"
  grep -qF -- "$text" "$err" || fail "$* does not say '$text'"
}

good --batch 360
good --batch 7 --seed 5
good --batch 360 --no-graph
good --batch 360 --holes
grep -qF '"holes": 1,' "$out" || fail "--holes makes no hole"
good --batch 360 --holes --async --threads 2
good --batch 360 --holes --no-graph
good --batch 360 --async
good --batch 360 --user-stream
good --batch 360 --async --user-stream
good --batch 360 --external-allocator
good --batch 360 --threads 2 --async --external-allocator
good --batch 360 --data "$data"
GCAP_SIM_DEVICES=2 good --batch 360 --device 1
GCAP_SIM_DEVICES=2 good --batch 360 --device 1 --user-stream
GCAP_SIM_DEVICES=2 good --batch 360 --device 1 --threads 2 --external-allocator
good --batch 360 --trace-file "$TEST_TMPDIR/trace"
[ "$(grep -c '^a' "$TEST_TMPDIR/trace")" -eq "$(grep -c '^f' "$TEST_TMPDIR/trace")" ] || fail "the trace is uneven"
grep -qv '^a [0-9]* [0-9]* [0-9]*$\|^f [0-9]*$' "$TEST_TMPDIR/trace" && fail "the trace has other lines"

bad "--frob" --frob
bad "--batch is '0'" --batch 0
bad "4096" --batch=99999999999999999999
bad "--runs" --runs
bad "--device is '64'" --device 64
bad "--threads is 2" --threads 2 --user-stream
bad "stray" stray
bad "$TEST_TMPDIR/none/conv1_weight.npy" --data "$TEST_TMPDIR/none"

# broken NAME TEXT: the data with one broken file is refused by name.
broken() {
  bad "$1.npy" --data "$TEST_TMPDIR/data"
  grep -qF "$2" "$err" || fail "a broken $1 does not say '$2'"
  cp -f "$data/$1.npy" "$TEST_TMPDIR/data/"
}
mkdir "$TEST_TMPDIR/data"
cp "$data"/*.npy "$TEST_TMPDIR/data/"
chmod u+w "$TEST_TMPDIR"/data/*
head -c 500 "$data/fc1_weight.npy" >"$TEST_TMPDIR/data/fc1_weight.npy"
broken fc1_weight truncated
cp -f "$data/fc2_bias.npy" "$TEST_TMPDIR/data/conv1_bias.npy"
broken conv1_bias "(10,)"
# The last four bytes of a float32 file are its last element: 7FC00000, a NaN.
size=$(wc -c <"$data/conv2_bias.npy")
{ head -c $((size - 4)) "$data/conv2_bias.npy" && printf '\000\000\300\177'; } >"$TEST_TMPDIR/data/conv2_bias.npy"
broken conv2_bias nan
rm "$TEST_TMPDIR/data/heldout_labels.npy"
broken heldout_labels "cannot open"

[ "$failures" -eq 0 ] || exit 1
