#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Every CUDA call of the program fails once, in a process of its own: each time the program either prints the figures of
# a run without a fault and ends well, or ends with exit code 1 and a sentence that names the call. Nothing is left
# behind but what a failed call was to end, or what a sentence says is kept: memory that may still be in use. A calm run
# of a few images tells how many calls there are.
#   inject_fault_test.sh digits DATA_FILE FLAG...
# GCAP_FAULT=N in the environment walks over one call only.
set -eu
export LC_ALL=C
program=$1
data=$TEST_TMPDIR/data
shift
source_data=$(dirname "$1")
shift
out=$TEST_TMPDIR/out
err=$TEST_TMPDIR/err
failures=0

fail() {
  echo "FAILED: digits $flags --inject-fault $n: $*" >&2
  sed 's/^/  stderr: /' "$err" >&2
  sed 's/^/  stdout: /' "$out" >&2
  failures=$((failures + 1))
}

# few FILE SHAPE_IN SHAPE_OUT BYTES: the file's first BYTES of data under a header of the same length.
few() {
  head -c 128 "$source_data/$1" | sed "s/$2/$3/" >"$data/$1"
  head -c $((128 + $4)) "$source_data/$1" | tail -c "$4" >>"$data/$1"
}

# Two images in one batch, so that a run takes a moment.
mkdir "$data"
cp "$source_data"/*.npy "$data/"
chmod u+w "$data"/*
few heldout_images.npy '(360, 1, 8, 8), }' '(2, 1, 8, 8), }  ' $((2 * 64 * 4))
few heldout_labels.npy '(360,), }' '(2,), }  ' $((2 * 4))
flags="--json --runs 1 --batch 2 $*"

# Each failed call is told on stderr, and each leak at the end.
export GCAP_SIM_LOG=errors GCAP_SIM_CHECKS=leak=record
# run FLAG...: the program's exit code, what it printed in $out and $err.
run() {
  code=0
  # shellcheck disable=SC2086 # one word a flag
  "$program" --data "$data" $flags "$@" >"$out" 2>"$err" || code=$?
}

# What must be the same with a fault: all that is neither a time nor a count of attempts. Put into `found`. Here and
# below bash looks itself: hundreds of runs would start thousands of programs to look.
figures() {
  local text=$1
  found=
  while [[ $text =~ \"(accuracy|images|max_abs_diff[a-z_]*|nodes)\":\ [^,}]* ]]; do
    found+=${BASH_REMATCH[0]}$'\n'
    text=${text#*"${BASH_REMATCH[0]}"}
  done
}

n=0
run
[ "$code" -eq 0 ] && [ ! -s "$err" ] || { fail "exit code $code, expected 0 and silence"; exit 1; }
figures "$(<"$out")"
calm=$found
[ "$(wc -l <<<"$calm")" -ge 5 ] || { fail "no figures"; exit 1; }
calls=$(sed 's/.*"cuda_calls": \([0-9]*\)}.*/\1/' "$out")
[ "$calls" -ge 100 ] || { fail "$calls CUDA calls, expected at least 100"; exit 1; }

# judge: what one fault may come to.
judge() {
  local line call= named= said=() leaked= told=
  # The log's first line is the call that was hit: `gcap sim: #7 thread 1 cudaMalloc(64 bytes) -> 999 cudaErrorUnknown`.
  while IFS= read -r line; do
    if [[ $line != "gcap sim: #"* ]]; then
      said+=("$line")
    elif [[ -z $call && $line =~ ^gcap\ sim:\ #[0-9]*\ thread\ [0-9]*\ ([A-Za-z0-9_]*)\(.*\ -\>\ 999\  ]]; then
      call=${BASH_REMATCH[1]}
    fi
  done <"$err"
  [ -n "$call" ] || fail "no call was hit, and a calm run makes $calls"
  for line in "${said[@]}"; do
    # What fails at the end of a thread has nobody to answer to but the log.
    if [[ $line =~ ^(digits|application_alloc|gcap\ error):\  && $line == *"$call"* ]]; then named=1; fi
    if [[ $line == "gcap sim: leak"* ]]; then leaked=1; fi
    if [[ $line == "gcap error: "* || $line == *" kept"* || $line == *"are lost" ]]; then told=1; fi
  done
  case $code in
    0)
      figures "$(<"$out")"
      [ "$found" = "$calm" ] || fail "wrong figures and exit code 0; expected: $calm"
      recovered=$((recovered + 1))
      ;;
    1) [ -n "$named" ] || fail "no sentence names $call, which failed" ;;
    *) fail "exit code $code, expected 0 or 1" ;;
  esac
  case $call in
    *Destroy* | *Free*) ;; # what it was to end is left
    *) [ -z "$leaked" ] || [ -n "$told" ] || fail "something leaked, and no sentence says so" ;;
  esac
}

recovered=0
first=${GCAP_FAULT:-1}
last=${GCAP_FAULT:-$calls}
n=$first
while [ "$n" -le "$last" ]; do
  run --inject-fault "$n"
  judge
  n=$((n + 1))
done
echo "digits $flags: $((last - first + 1)) of $calls calls failed in turn; $recovered runs ended well all the same"
[ "$failures" -eq 0 ] || exit 1
