#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The report of a short run of each benchmark: a title, the device, a row for each benchmark, a cell for each counter.
#   report_test.sh report.py BENCHMARK...
set -eu
report=$1
shift
jsons=
for benchmark in "$@"; do
  json=$TEST_TMPDIR/$(basename "$benchmark").json
  "$benchmark" --benchmark_filter='nodes:10*/(ids:1/)?iterations' --benchmark_repetitions=2 --benchmark_out="$json" \
    --benchmark_out_format=json >/dev/null 2>&1
  jsons="$jsons $json"
done
# shellcheck disable=SC2086  # one path a word
"$report" --driver 1.2 --commit abc $jsons >"$TEST_TMPDIR/table"

expect() {
  grep -Eq -- "$1" "$TEST_TMPDIR/table" && return
  echo "no line like '$1' in:"
  cat "$TEST_TMPDIR/table"
  exit 1
}
expect 'driver 1\.2, 20[0-9-]{8}, commit abc; 2 repetitions'
expect '^### Replay'
expect '^\| 10 \| 1 (\| [0-9,.]+ \([0-9,.]+ \.\. [0-9,.]+\) ){5}\|$'
expect '^### Capture'
expect '^\| 100 (\| [0-9,.]+ \([0-9,.]+ \.\. [0-9,.]+\) ){5}\|$'

echo '{"context": {}, "benchmarks": [{"name": "BM_Other", "run_type": "iteration"}]}' >"$TEST_TMPDIR/other"
if "$report" "$TEST_TMPDIR/other" 2>"$TEST_TMPDIR/sentence"; then
  echo "a file without a known benchmark is accepted"
  exit 1
fi
grep -q "none of BM_Replay, BM_Capture is in it" "$TEST_TMPDIR/sentence"
