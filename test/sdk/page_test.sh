#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# CMake has a target for each module of the architecture page that is in libgcap; docs/adopt.md shows the example's
# CMakeLists.txt, and names no target that gcap.cmake does not make.
#   page_test.sh adopt.md architecture.md CMakeLists.txt gcap.cmake extract_block.awk
set -eu
page=$1
architecture=$2
example=$3
targets=$4
extract=$5
tmp=$TEST_TMPDIR
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# Operators and the simulator are libraries of their own; internal and rules are nothing to link.
awk '/^## / { inside = $0 == "## Modules" } inside && /^\|/ && ++line > 2 { print $2 }' "$architecture" |
  grep -vx -e internal -e ops -e sim -e rules | sort >"$tmp/modules.page"
[ "$(wc -l <"$tmp/modules.page")" -gt 10 ] || fail "$architecture has no modules to compare with"
sed -n 's/^set(gcap_modules \(.*\))$/\1/p' "$targets" | tr ' ' '\n' | sort >"$tmp/modules.cmake"
diff -u "$tmp/modules.page" "$tmp/modules.cmake" >&2 || fail "'-' is $architecture, '+' is $targets"

awk -v language=cmake -f "$extract" "$page" >"$tmp/block"
awk '/^cmake_minimum_required/ { begun = 1 } begun' "$example" | diff -u - "$tmp/block" >&2 ||
  fail "'-' is $example from its first command on, '+' is $page"

grep -o 'gcap::[a-z_]*' "$targets" | sort -u >"$tmp/known"
sed 's/^/gcap::/' "$tmp/modules.cmake" >>"$tmp/known"
# The page's part on C++ has names of gcap.hpp.
sed '/^## C++/,$d' "$page" | grep -o 'gcap::[a-z_]*' | sort -u | grep -vxF -f "$tmp/known" >"$tmp/unknown" || true
[ ! -s "$tmp/unknown" ] || fail "$page names targets that $targets does not: $(tr '\n' ' ' <"$tmp/unknown")"
exit $failed
