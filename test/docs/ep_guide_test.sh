#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What docs/ep_guide.md says of an EP's table is so: its C block is a part of the example, whose comment names the guide,
# its table has each member of gcap_ep_ops_t once and no other, and each name of gcap that it has is in a public header.
#   ep_guide_test.sh ep_guide.md write_your_own_ep.c extract_block.awk
# The headers lie below the current folder.
set -eu
export LC_ALL=C
cd "$TEST_SRCDIR/$TEST_WORKSPACE"
page=$1
example=$2
extract=$3
tmp=$TEST_TMPDIR
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# The block, line for line, begins where its first line is.
awk -v language=c -f "$extract" "$page" >"$tmp/block"
[ -s "$tmp/block" ] || fail "$page has no C block"
awk -v first="$(head -n 1 "$tmp/block")" -v count="$(wc -l <"$tmp/block")" '
  $0 == first { begun = 1 }
  begun && count-- > 0' "$example" | diff -u "$tmp/block" - >&2 || fail "'-' is $page, '+' is $example"
grep -q docs/ep_guide.md "$example" || fail "$example does not name the guide"

# Members: those of the struct, without comments.
awk '
  /^typedef struct gcap_ep_ops \{/ { inside = 1; next }
  /^\} gcap_ep_ops_t;/ { inside = 0 }
  !inside { next }
  { sub(/\/\/.*/, "") }
  match($0, /\(\*[a-z_]+\)/) { print substr($0, RSTART + 2, RLENGTH - 3); next }
  match($0, /[a-z_]+;/) && !/\)/ { print substr($0, RSTART, RLENGTH - 1) }' include/gcap/kit/ep_ops.h | sort >"$tmp/members.header"
[ "$(wc -l <"$tmp/members.header")" -ge 13 ] || fail "ep_ops.h has no members to compare with"
awk -F'|' '/^\| `/ {
  n = split($2, words, "`")
  for (i = 2; i <= n; i += 2) print words[i]
}' "$page" | sort >"$tmp/members.page"
diff -u "$tmp/members.header" "$tmp/members.page" >&2 || fail "members: '-' is ep_ops.h, '+' is $page"

# Names.
find -L include -name '*.h' -exec grep -hoE '(gcap|GCAP)_[A-Za-z0-9_]+' {} + | sort -u >"$tmp/known"
grep -oE '\b(gcap|GCAP)_[A-Za-z0-9_]+' "$page" | grep -v '_$' | sort -u >"$tmp/named"
comm -13 "$tmp/known" "$tmp/named" >"$tmp/unknown"
[ ! -s "$tmp/unknown" ] || fail "$page has names that no public header has: $(tr '\n' ' ' <"$tmp/unknown")"

exit $failed
