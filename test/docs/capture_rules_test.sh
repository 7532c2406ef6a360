#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# docs/capture_rules.md is what its generator prints of the rules and the record, and has a place for each rule that a
# message may name.
#   capture_rules_test.sh PAGE GENERATOR RULES
set -eu
page=$1
generator=$2
rules=$3

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

command -v python3 >/dev/null || fail "python3 is not installed: $generator needs it"
python3 "$generator" >"$TEST_TMPDIR/generated.md"
diff "$page" "$TEST_TMPDIR/generated.md" ||
  fail "$page is not what $generator prints of rules/ and the record; run: $generator >$page"

ids=$(sed -n 's/^CAPTURE_[A-Z]*(R\([0-9]*\),.*/\1/p' "$rules")
[ "$(echo "$ids" | wc -l)" -gt 60 ] || fail "there are no rules in $rules"
for id in $ids; do
  grep -q "<a id=\"r$id\"></a>\\[R$id\\]" "$page" || fail "rule R$id has no anchor #r$id"
done
