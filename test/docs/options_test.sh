#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# docs/options.md is what its program prints of the table of options.
#   options_test.sh PROGRAM PAGE
set -eu
program=$1
page=$2

"$program" >"$TEST_TMPDIR/printed.md"
diff "$page" "$TEST_TMPDIR/printed.md" || {
  echo "FAILED: $page is stale; run: ./bazelw run //docs:options_page >$page" >&2
  exit 1
}
[ "$(grep -c '^| `' "$page")" -gt 60 ] || {
  echo "FAILED: $page lists too few options" >&2
  exit 1
}
