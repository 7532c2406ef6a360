#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The core does not use the kit. No target of the core brings a file of the kit along, no source of the core includes
# one, and the core's umbrella headers compile where there is no kit.   storeys_test.sh SOURCE... SOURCE: all sources of
# the core, below the current folder.
set -eu
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# kit_in FILE...: what of the kit is among the files, or is included by one of them, a line each.
kit_in() {
  printf '%s\n' "$@" | grep -E '^(kit|ops|ort|include/gcap/kit)/' || true
  grep -HE '^ *# *include *["<](kit|ops|ort|gcap/kit)/' "$@" || true
}

# expect_found WHAT FILE: of the file, the check says WHAT.
expect_found() {
  kit_in "$2" | grep -qF -- "$1" || fail "'$1' was not found in $2"
}

# The check itself.
mkdir -p "$TEST_TMPDIR/lib"
bad=$TEST_TMPDIR/lib/bad.c
for header in gcap/kit/ep.h kit/ep/hold.h ops/kernels/half.h ort/ep.h; do
  echo "#include \"$header\"" >"$bad"
  expect_found "$header" "$bad"
done
echo '#include <gcap/kit/ep.h>' >"$bad"
expect_found gcap/kit/ep.h "$bad"

[ $# -gt 100 ] || fail "there are no sources to read"
found=$(kit_in "$@")
[ -z "$found" ] || fail "the core has what is the kit's: $found"

# alone HEADER LANGUAGE: it compiles by the core's headers alone.
alone() {
  ! [ -e include/gcap/kit ] || fail "the kit's headers are here: this would prove nothing"
  # shellcheck disable=SC2086  # the language and its standard
  echo "#include \"$1\"" | "$CC" -fsyntax-only -Wall -Wextra -Werror -Iinclude -Isim/include -x $2 - ||
    fail "$1 does not compile without the kit"
}
alone gcap/gcap.h "c -std=c11"
alone gcap/gcap.h "c++ -std=c++17"
alone gcap/gcap.hpp "c++ -std=c++17"
exit $failed
