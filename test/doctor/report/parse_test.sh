#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# parse_test.sh WRITE_SAMPLE PARSE_PY: what reports for programs are to a parser: JSON, XML and the page's policy to
# Python, graphs to Graphviz where it is installed.
set -eu

write=$1
parse=$2

command -v python3 >/dev/null || { echo "python3 is not installed: $parse needs it" && exit 1; }
for sample in broken healthy labelled hostile many large empty; do
    "$write" "$sample" json >"$TEST_TMPDIR/$sample.json"
    "$write" "$sample" trace >"$TEST_TMPDIR/$sample.trace"
    "$write" "$sample" html >"$TEST_TMPDIR/$sample.html"
    "$write" "$sample" sarif >"$TEST_TMPDIR/$sample.sarif"
    "$write" "$sample" junit >"$TEST_TMPDIR/$sample.xml"
done
PYTHONDONTWRITEBYTECODE=1 python3 "$parse" "$TEST_TMPDIR"

if command -v dot >/dev/null; then
    for sample in broken healthy labelled hostile small; do
        "$write" "$sample" dot | dot -Tsvg >"$TEST_TMPDIR/$sample.svg" 2>"$TEST_TMPDIR/said" || {
            cat "$TEST_TMPDIR/said"
            exit 1
        }
        grep -q '</svg>' "$TEST_TMPDIR/$sample.svg"
    done
else
    echo "Graphviz is not installed: its part is skipped"
fi
