#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The program prints one JSON object; with --eager the same tokens; and what it does not allow it names.
#   main_test.sh decoder
set -eu
program=$1
out=$TEST_TMPDIR/out
export GCAP_SIM_CHECKS=all=record

fail() {
  echo "FAILED: decoder $*" >&2
  cat "$out".* >&2
  exit 1
}

# run NAME FLAG...: what the program prints, in $out.NAME; its tokens in $out.NAME.tokens.
run() {
  name=$1
  shift
  "$program" "$@" >"$out.$name" 2>"$out.$name.err" || fail "$*: exit code $?"
  [ ! -s "$out.$name.err" ] || fail "$*: not silent"
  python3 -c 'import json, sys; print(json.load(sys.stdin)["tokens"])' <"$out.$name" >"$out.$name.tokens" ||
    fail "$*: no JSON"
}

# refused SENTENCE FLAG...: the program ends with code 2 and the sentence.
refused() {
  sentence=$1
  shift
  code=0
  "$program" "$@" >"$out.refused" 2>&1 || code=$?
  [ "$code" -eq 2 ] && grep -qF -- "$sentence" "$out.refused" || fail "$*: exit code $code, expected 2 and: $sentence"
}

run graphs --sequences 8 --threads 2 --graphs 2 --memory 1536
run eager --sequences 8 --threads 2 --eager
cmp "$out.graphs.tokens" "$out.eager.tokens" || fail "--eager: other tokens"
grep -q '"captures": 0, "replays": 0' "$out.eager" || fail "--eager: captured"
! grep -q '"captures": 0' "$out.graphs" || fail "--graphs 2: not captured"
run holes --sequences 8 --threads 2 --holes
run eager_holes --sequences 8 --threads 2 --eager --holes
for name in holes eager_holes; do
  cmp "$out.$name.tokens" "$out.eager.tokens" || fail "--holes: other tokens"
done
grep -q '"holes": [1-9]' "$out.holes" || fail "--holes: no graph has a hole"
grep -q '"holes": 0' "$out.graphs" || fail "--graphs 2: a graph has a hole"
run help_is_none --steps 3

"$program" --help | grep -q -- '--sequences N ' || fail "--help: no option"
refused "--threads is '9', allowed are whole numbers from 1 to 8" --threads 9
refused "--steps is 'many', allowed" --steps many
refused "--seed is '', allowed" --seed
refused "unknown option '--fast', allowed are those of --help" --fast
