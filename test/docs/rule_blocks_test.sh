#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The C blocks of docs/rules/ on the simulator: rule_blocks.c runs what this makes of the pages. Blocks that only a
# compiler of another language or NVIDIA's libraries would take are left out, as the page says. Then rule_logs.cc holds
# gcap-doctor to them: it must name the rule of each mistake, and find nothing in a repair.
#   rule_blocks_test.sh libgcapsim.a RULE_LOGS GCAP_SIM_H RULE_BLOCKS_C EXTRACT_BLOCK PAGE...
set -eu
export LC_ALL=C
archive=$PWD/$1
rule_logs=$PWD/$2
shift 2
cd "$TEST_SRCDIR/$TEST_WORKSPACE"
headers=$(dirname "$1")
runner=$2
extract=$3
shift 3
tmp=$TEST_TMPDIR

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# arguments FUNCTION: of its parameters in standard input, as "given->stream, given->memory".
arguments() {
  tr '\n' ' ' | sed -e "s/.*void $1(\([^)]*\)).*/\1/" -e 's/[^,]*[ *]\([a-z_]*\)\(,\|$\)/given->\1\2 /g' -e 's/, *$//'
}

pages=
for page in "$@"; do
  case $page in
    *README.md) awk -v language=c -f "$extract" "$page" >"$tmp/prelude" ;;
    *) pages="$pages $page" ;;
  esac
done
for page in $pages; do
  rule=$(basename "$page" .md)
  code=$(sed -n 's/^Answer: nothing (0 .*/0/p; s/^Answer: \([0-9]*\) .*/\1/p' "$page")
  for which in mistake repair; do
    awk -v title="## The $which in C" '/^## / { inside = $0 == title } inside' "$page" >"$tmp/section"
    ! grep -q '^<!-- Not \(compiled\|run\): ' "$tmp/section" || continue
    awk -v language=c -f "$extract" "$tmp/section" >"$tmp/block"
    {
      echo '#include "test/docs/rule_blocks.h"'
      echo "#define $which ${which}_of_$rule"
      cat "$tmp/prelude"
      echo "#line 1 \"$page ($which)\""
      cat "$tmp/block"
      echo "void run_${rule}_$which(const struct given* given);"
      echo "void run_${rule}_$which(const struct given* given) { $which($(arguments "$which" <"$tmp/block")); }"
    } >"$tmp/${rule}_$which.c"
    echo "BLOCK($rule, $which, $code)"
  done
done >"$tmp/blocks.inc"
[ "$(grep -c mistake "$tmp/blocks.inc")" -gt 50 ] || fail "there are too few blocks to run"

"$CC" -std=c11 -D_GNU_SOURCE -g1 -Wall -Wextra -Werror -I. -I"$headers" -I"$tmp" "$runner" "$tmp"/r*_*.c "$archive" \
  -lpthread -lm -o "$tmp/rule_blocks"
mkdir "$tmp/logs"
RULE_BLOCKS_LOGS=$tmp/logs "$tmp/rule_blocks" >"$tmp/said" 2>"$tmp/errors" || { cat "$tmp/errors" && cat "$tmp/said" && fail "see above"; }
"$rule_logs" 100 "$tmp"/logs/*.log || fail "gcap-doctor found something else, see above"
