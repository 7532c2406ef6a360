#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# docs/rules/ has a page for each rule of the table and no other: with the rule's words, code and number, its sections,
# and blocks that Python parses and C's compiler accepts: those of C that rule_blocks_test does not compile and run. The
# index has each of the pages, and so has the page of all rules.
#   rule_pages_test.sh RULES DRIVER_TYPES CAPTURE_RULES_PAGE EXTRACT_BLOCK PAGE...
set -eu
export LC_ALL=C
cd "$TEST_SRCDIR/$TEST_WORKSPACE"
rules=$1
driver_types=$2
all_rules=$3
extract=$4
shift 4
pages=$(dirname "$1")
headers=$(dirname "$driver_types")
tmp=$TEST_TMPDIR
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# The table as "R1|code|situation|remedy".
table() {
  { sed -e '/^ *\/\//d' "$rules" | tr '\n' ' ' && echo; } | sed -e 's/CAPTURE_[A-Z]*(/\n/g' |
    sed -n 's/^\(R[0-9]*\), [A-Z_0-9]*, \([A-Za-z]*\), *"\([^"]*\)", *"\([^"]*\)").*/\1|\2|\3|\4/p'
}

# section TITLE PAGE: the lines of one section.
section() {
  awk -v title="## $1" '/^## / { inside = $0 == title; next } inside' "$2"
}

# block_count LANGUAGE: how many blocks of it standard input has.
block_count() {
  grep -c "^\`\`\`$1\$" || true
}

# check_words PAGE ID CODE SITUATION REMEDY: what the page has from the table.
check_words() {
  number=$(sed -n "s/^ *$3 = \([0-9]*\),\{0,1\}\$/\1/p" "$driver_types")
  answer="$number \`$3\`"
  [ "$3" != cudaSuccess ] || answer="nothing (0 \`cudaSuccess\`)"
  anchor=$(echo "$2" | tr R r)
  [ "$(head -n 1 "$1")" = "# $2: $4" ] || fail "$1: its title is not '# $2: $4'"
  grep -qxF "Answer: $answer. Its row among [the rules](../capture_rules.md#$anchor)." "$1" ||
    fail "$1: its answer is not '$answer', with a link to the row"
  section "The repair in C" "$1" | tr '\n' ' ' | grep -qF "What to do: $5." || fail "$1: the repair is not 'What to do: $5.'"
}

# check_sections PAGE: the sections in their order, with words and blocks.
check_sections() {
  [ "$(grep '^## ' "$1" | tr '\n' '|')" = "## What happens|## The mistake in C|## The repair in C|## In PyTorch|" ] ||
    fail "$1: its sections are $(grep '^## ' "$1" | tr '\n' '|')"
  [ "$(section "What happens" "$1" | wc -w)" -ge 20 ] || fail "$1: 'What happens' says next to nothing"
  for which in mistake repair; do
    section "The $which in C" "$1" >"$tmp/section"
    [ "$(block_count 'c\( no-compile\)\{0,1\}' <"$tmp/section")" -eq 1 ] || fail "$1: the $which in C is not one block"
    [ "$(block_count 'c no-compile' <"$tmp/section")" -eq "$(grep -c '^<!-- Not compiled: .* -->$' "$tmp/section")" ] ||
      fail "$1: the $which in C has no reason why it is not compiled, or has one too many"
    grep -q "^void $which(\|no-compile" "$tmp/section" || fail "$1: the block has no function $which"
  done
  section "In PyTorch" "$1" >"$tmp/section"
  case $(block_count python <"$tmp/section") in
    0) [ "$(wc -w <"$tmp/section")" -ge 10 ] || fail "$1: no reason why PyTorch cannot make the mistake" ;;
    2) [ "$(grep -cx 'The mistake:\|The repair:' "$tmp/section")" -eq 2 ] || fail "$1: which block is the mistake?" ;;
    *) fail "$1: 'In PyTorch' has neither a mistake and a repair nor none of both" ;;
  esac
}

# check_code PAGE: C blocks that rule_blocks_test does not run, behind the index's lines.
check_code() {
  for which in mistake repair; do
    section "The $which in C" "$1" >"$tmp/section"
    grep -q '^<!-- Not run: .* -->$' "$tmp/section" || continue
    { cat "$tmp/prelude" && awk -v language=c -f "$extract" "$tmp/section"; } >"$tmp/block.c"
    "$CC" -std=c11 -fsyntax-only -Wall -Wextra -Werror -I"$headers" "$tmp/block.c" || fail "$1: the $which does not compile"
  done
}

check_index() {
  grep -qF "| [$2]($1.md) | $3 | " "$pages/README.md" || fail "the index has no row of $2 with '$3'"
  grep -qF "<a id=\"$1\"></a>[$2](rules/$1.md) | " "$all_rules" || fail "$all_rules does not link to the page of $2"
}

awk -v language=c -f "$extract" "$pages/README.md" >"$tmp/prelude"
grep -q '#include <cuda_runtime_api.h>' "$tmp/prelude" || fail "the index has no block of includes"
table >"$tmp/table"
[ "$(wc -l <"$tmp/table")" -eq "$(grep -c '^CAPTURE_' "$rules")" ] || fail "a row of $rules was not understood"
while IFS='|' read -r id code situation remedy; do
  name=$(echo "$id" | tr R r)
  [ -e "$pages/$name.md" ] || { fail "$id has no page" && continue; }
  check_words "$pages/$name.md" "$id" "$code" "$situation" "$remedy"
  check_sections "$pages/$name.md"
  check_code "$pages/$name.md"
  check_index "$name" "$id" "$situation"
done <"$tmp/table"

# No page, and no row of the index, without a rule.
for page in "$@"; do
  name=$(basename "$page" .md)
  [ "$name" = README ] || grep -q "^$(echo "$name" | tr r R)|" "$tmp/table" || fail "$page is of no rule"
done
[ "$(grep -c '^| \[R' "$pages/README.md")" -eq "$(wc -l <"$tmp/table")" ] || fail "the index has rows of no rule"

# Python. One process parses all: it takes longer to begin than to parse.
command -v python3 >/dev/null || fail "python3 is not installed: the pages' Python blocks are parsed by it"
python3 - "$@" <<'END' || fail "a Python block does not parse"
import ast, re, sys
count = 0
for page in sys.argv[1:]:
    with open(page, encoding="utf-8") as file:
        for block in re.findall(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL):
            ast.parse(block, page)
            count += 1
sys.exit(f"only {count} blocks" if count < 60 else 0)
END
exit $failed
