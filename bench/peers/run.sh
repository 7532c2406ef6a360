#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# run.sh PACK OUT.json [ROUNDS]: measures gcap's scratch and its peers by the same workloads on this machine's first
# GPU, prints the tables, and leaves every run in OUT.json. PACK is what pack.sh made. Each round runs every program
# once in turn, with a few repetitions, so that what the machine does meanwhile meets them all. A peer that cannot be
# built or run is said and left out; exit code 1 then.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

REPETITIONS=3
TIMEOUT_S=100 # of one program in one round
PROGRAMS=(gcap cuda_async rmm torch cupy)

pack=$(realpath "${1:?usage: run.sh PACK OUT.json [ROUNDS]}") || exit 1
out=$(realpath "${2:?usage: run.sh PACK OUT.json [ROUNDS]}") || exit 1
rounds=${3:-3}
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
if [[ -z $driver ]]; then
    echo "run.sh: nvidia-smi says nothing: this machine has no NVIDIA GPU" >&2
    exit 1
fi
export GCAP_REQUIRE_GPU=1
# For Google Benchmark.
export LD_LIBRARY_PATH=$pack/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
bench/peers/build.sh "$pack" "$work" || failed=1
"$work/write_draws" "$work" || exit

# command NAME JSON: what measures it, an array in `line`.
command() {
    local google=(--benchmark_out="$2" --benchmark_out_format=json --benchmark_repetitions="$REPETITIONS")
    case $1 in
    gcap) line=("$pack/bin/scratch_bench" --device_memory "${google[@]}") ;;
    cuda_async) line=("$pack/bin/cuda_async_bench" "${google[@]}") ;;
    rmm) line=("$work/rmm_bench" "${google[@]}") ;;
    torch) line=("$work/torch_bench" "${google[@]}") ;;
    cupy) line=(bench/peers/cupy_bench.py --draws "$work" --traces bench/scratch/traces
        --repetitions "$REPETITIONS" --out "$2") ;;
    esac
}

# measure NAME: runs it; says why it has failed, and leaves no file then.
measure() {
    local name=$1 json=$work/$1.$round.json
    command "$name" "$json"
    SECONDS=0
    if [[ ! -x ${line[0]} ]]; then
        echo "run.sh: $name is left out: ${line[0]} is not there" >&2
    elif timeout "$TIMEOUT_S" "${line[@]}" >"$work/log" 2>&1; then
        echo "$name, round $round: $SECONDS s"
        return 0
    else
        echo "run.sh: $name is left out: it failed with exit code $? after $SECONDS s:" >&2
        tail -n 20 "$work/log" >&2
    fi
    rm -f "$json"
    return 1
}

for ((round = 1; round <= rounds; ++round)); do
    good=()
    for program in "${PROGRAMS[@]}"; do
        if measure "$program"; then
            good+=("$program")
        else
            failed=1
        fi
    done
    PROGRAMS=("${good[@]}")
done

shopt -s nullglob
files=()
for program in "${PROGRAMS[@]}"; do
    files+=("$work/$program".*.json)
done
python3 - "$out" "${files[@]}" <<'PYTHON' || exit
import json, sys
reports = [json.load(open(path, encoding="utf-8")) for path in sys.argv[2:]]
runs = [run for report in reports for run in report["benchmarks"] if run["run_type"] == "iteration"]
merged = {"context": reports[0]["context"], "benchmarks": runs}
json.dump(merged, open(sys.argv[1], "w", encoding="utf-8"), indent=1)
PYTHON
bench/report.py --driver "$driver" --commit "$(cat "$pack/commit.txt")" "$out" || failed=1
exit "$failed"
