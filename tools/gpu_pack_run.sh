#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# run.sh: runs every program of this GPU pack (made by tools/gpu_pack) and ends in "N passed, N failed, N skipped": test
# cases, and one for each benchmark, soak and example. Exit code 0 when nothing failed, 1 when something did, 2 when the
# machine lacks what the pack needs. GCAP_REQUIRE_GPU=1 is set: a test that skips for want of a GPU has failed.
#
#   run.sh [PART]    only the programs whose path has PART in it: `run.sh bench/soak`
#
# GCAP_PACK_SOAK_REPLAYS says how often the soak replays; GCAP_PACK_TIMEOUT_S, how long a program may take.
#
# cuBLAS and cuDNN are looked for in LD_LIBRARY_PATH, the system's library cache, /usr/local/cuda*, and the packages
# of python3 and of virtual environments in $HOME and /opt.
set -uo pipefail
cd "$(dirname "$0")" || exit 2

PACK=$PWD
# A program that takes longer hangs.
TIMEOUT_S=${GCAP_PACK_TIMEOUT_S:-600}
FAILED_LOG_LINES=60
SOAK_REPLAYS=${GCAP_PACK_SOAK_REPLAYS:-100000}
PART=${1:-}

die() {
    echo "run.sh: $*" >&2
    exit 2
}

# Prints every folder that may hold NVIDIA's libraries, likeliest first.
library_folders() {
    tr ':' '\n' <<<"${LD_LIBRARY_PATH:-}"
    ldconfig -p 2>/dev/null | sed -n 's|.* => \(.*\)/lib\(cublas\|cublasLt\|cudnn\)\.so.*|\1|p'
    printf '%s\n' /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /usr/local/cuda*/extras/CUPTI/lib64
    local packages
    while read -r packages; do
        printf '%s\n' "$packages"/nvidia/*/lib
    done < <(python3 -c 'import sys; print("\n".join(p for p in sys.path if p.endswith("-packages")))' 2>/dev/null)
    printf '%s\n' "$HOME"/{.venv,venv}/lib/python3*/site-packages/nvidia/*/lib \
        /opt/{*,*/.venv,*/venv}/lib/python3*/site-packages/nvidia/*/lib
}

# folder_of LIBRARY: prints its folder; nothing if there is none.
folder_of() {
    local folder
    while read -r folder; do
        if [[ -n $folder && -e $folder/$1 ]]; then
            echo "$folder"
            return
        fi
    done < <(library_folders)
}

# Sets LD_LIBRARY_PATH to the folder of every library the programs link or open, then the pack's own.
find_libraries() {
    local library found path=
    while read -r library; do
        found=$(folder_of "$library")
        [[ -n $found ]] || die "$library not found: install it, or add its folder to LD_LIBRARY_PATH"
        echo "$library: $found"
        path=$path$found:
    done <libraries.txt
    # What tests open when they run (test/support/driver_calls.cc, test/graph/toolkit_libraries.cc).
    for library in libcupti.so.13 libcufft.so.12 libcurand.so.10 libcusparse.so.12; do
        found=$(folder_of "$library")
        echo "$library: ${found:-not found, so the tests that open it skip}"
        path=$path${found:+$found:}
    done
    export LD_LIBRARY_PATH=$path$PACK/lib
}

# run_program KIND WORKSPACE PATH: runs it where Bazel would and counts what it says.
run_program() {
    local kind=$1 workspace=$2 path=$3 code good=0 bad=0 left=0 arguments=()
    local log=$work/log xml=$work/cases.xml
    rm -f "$xml"
    case $kind in
    bench) arguments=(--benchmark_min_time=0.01) ;;
    table) arguments=(--small) ;; # a benchmark that is no Google Benchmark
    soak) arguments=("--replays=$SOAK_REPLAYS") ;;
    esac
    echo "=== $kind $path"
    (
        cd "$PACK/runfiles/$workspace" || exit 2
        export TEST_SRCDIR=$PACK/runfiles TEST_WORKSPACE=$workspace TEST_TMPDIR=$work
        [[ $kind != test ]] || export GTEST_OUTPUT=xml:$xml
        exec timeout "$TIMEOUT_S" "./$path" "${arguments[@]}"
    ) </dev/null >"$log" 2>&1
    code=$?
    # Google Benchmark ends well even if a benchmark could not run.
    if [[ $kind == bench ]] && grep --quiet 'ERROR OCCURRED' "$log"; then
        code=1
    fi
    if [[ -s $xml ]]; then
        read -r good bad left < <(awk -f "$PACK/count_cases.awk" "$xml")
    fi
    # One that is no GoogleTest program counts as one; so does one that fails outside its test cases.
    if ((code != 0 && bad == 0)); then
        bad=1
    elif ((code == 0 && good + left == 0)); then
        good=1
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    skipped=$((skipped + left))
    if ((code != 0)); then
        tail -n "$FAILED_LOG_LINES" "$log"
        echo "FAILED with exit code $code"
    elif [[ $kind != test ]]; then
        cat "$log"
    fi
    echo "$good passed, $bad failed, $left skipped"
}

passed=0
failed=0
skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "gcap GPU pack of commit $(cat commit.txt)"
command -v nvidia-smi >/dev/null || die "nvidia-smi not found: this machine has no NVIDIA driver"
gpus=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader) || die "nvidia-smi failed: $gpus"
echo "GPU, driver: $gpus"
find_libraries
export GCAP_REQUIRE_GPU=1

while read -r kind workspace path <&3; do
    [[ $path == *"$PART"* ]] || continue
    run_program "$kind" "$workspace" "$path"
done 3<programs.txt

echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
