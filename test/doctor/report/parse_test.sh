#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# parse_test.sh WRITE_SAMPLE PARSE_PY: what reports for programs are to a parser.
set -eu

write=$1
parse=$2

command -v python3 >/dev/null || { echo "python3 is not installed: $parse needs it" && exit 1; }
for sample in broken healthy hostile many large; do
    "$write" "$sample" json >"$TEST_TMPDIR/$sample.json"
done
PYTHONDONTWRITEBYTECODE=1 python3 "$parse" "$TEST_TMPDIR"
