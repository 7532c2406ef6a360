#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The report of a short run of each benchmark: a title, the device, a row for each benchmark, a cell for each counter;
# and that of made-up figures of allocators.
#   report_test.sh report.py BENCHMARK...
set -eu
report=$1
shift
jsons=
for benchmark in "$@"; do
  json=$TEST_TMPDIR/$(basename "$benchmark").json
  "$benchmark" --benchmark_filter='(nodes:10*/(ids:1/)?|holes:2/|batch:1/)iterations' --benchmark_repetitions=2 --benchmark_out="$json" \
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
expect_line() {
  grep -Fxq -- "$1" "$TEST_TMPDIR/table" && return
  echo "no line '$1' in:"
  cat "$TEST_TMPDIR/table"
  exit 1
}
expect 'driver 1\.2, 20[0-9-]{8}, commit abc; 2 repetitions'
expect '^### Replay'
expect '^\| 10 \| 1 (\| [0-9,.]+ \([0-9,.]+ \.\. [0-9,.]+\) ){5}\|$'
expect '^### Capture'
expect '^\| 100 (\| [0-9,.]+ \([0-9,.]+ \.\. [0-9,.]+\) ){5}\|$'
expect '^### Holes of nothing'
expect '^\| 2 (\| -?[0-9,.]+ \(-?[0-9,.]+ \.\. -?[0-9,.]+\) ){11}\|$'
expect '^### The digits network with holes'
expect '^\| 1 (\| [0-9,.]+ \([0-9,.]+ \.\. [0-9,.]+\) ){14}\|$'

# --- Allocators: made-up figures, of which every cell can be worked out by hand ---------------------------------------
run() { # NAME MEASURED
  printf '{"name": "%s", "run_type": "iteration", %s},' "$1" "$2"
}
{
  printf '{"context": {"device": "a device", "date": "2030-01-02T03:04:05"}, "benchmarks": ['
  for ns in 10 20 30; do
    run BM_Pair/gcap/bytes:256/min_time:0.010 "\"real_time\": $ns"
    run BM_Pair/torch/bytes:256/min_time:0.010 "\"real_time\": $((ns * 12))"
    run BM_Mixed/harness/live:16 '"real_time": 2'
  done
  for rate in 4 6 8; do
    run BM_Threads/gcap/iterations:1/real_time/threads:1 "\"ops_per_second\": ${rate}e6"
    run BM_Threads/gcap/iterations:1/real_time/threads:4 "\"ops_per_second\": ${rate}0e6"
  done
  run BM_Trace/gcap/trace:made_up '"items_per_second": 50e6, "held_bytes": 3145728, "peak_live_bytes": 2097152'
  run BM_Trace/rmm_arena/trace:made_up '"items_per_second": 20e6, "held_bytes": 2621440, "peak_live_bytes": 2097152'
  run BM_Trace/harness/trace:made_up '"items_per_second": 500e6'
  printf '{"name": "BM_Pair/gcap/bytes:256_mean", "run_type": "aggregate", "real_time": 999}]}'
} >"$TEST_TMPDIR/scratch.json"
"$report" --driver 1.2 --commit abc "$TEST_TMPDIR/scratch.json" >"$TEST_TMPDIR/table"

# Percentiles lie between neighbours: of 10, 20, 30 the 5th is 11.
expect '^a device, driver 1\.2, 2030-01-02, commit abc; 3 repetitions: the median of these'
expect_line '|  | goal | gcap | RMM arena | PyTorch | the loop alone |'
expect_line "| pair, bytes 256 | <= 25; PyTorch's >= 10 x |\
 20.0 (11.0 .. 29.0) |  | 240.0 (132.0 .. 348.0), 12.0 x |  |"
expect_line '| mixed, live 16 | <= 60, and flat |  |  |  | 2.0 (2.0 .. 2.0) |'
expect_line '| trace made_up |  | 20.0 (20.0 .. 20.0) | 50.0 (50.0 .. 50.0), 2.5 x |  | 2.0 (2.0 .. 2.0) |'
expect_line '| threads 1 | >= 0.8 of ideal | 6.00 (4.20 .. 7.80), 1.00 of ideal |'
expect_line '| threads 4 | >= 0.8 of ideal | 60.00 (42.00 .. 78.00), 2.50 of ideal |'
expect_line "| trace made_up (2.00) | <= PyTorch's and RMM's | 1.50 | 1.25 |"

echo '{"context": {}, "benchmarks": [{"name": "BM_Other", "run_type": "iteration"}]}' >"$TEST_TMPDIR/other"
if "$report" "$TEST_TMPDIR/other" 2>"$TEST_TMPDIR/sentence"; then
  echo "a file without a known benchmark is accepted"
  exit 1
fi
grep -q "none of BM_Replay, BM_Capture, BM_Holes, BM_Digits, BM_Mixed, BM_Pair, BM_Threads, BM_Trace is in it" "$TEST_TMPDIR/sentence"
