#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# build.sh PACK OUT: builds in OUT what measures the other allocators: rmm_bench from RMM's wheels in PACK (pack.sh),
# torch_bench from the PyTorch that python3 imports, and write_draws. It needs g++ 11 or later and CUDA's headers and
# libcudart.so, of a toolkit or of a package of python3; for torch_bench a PyTorch with its headers. What is missing is
# said, and the rest is built: the exit code is 1 then.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

FLAGS=(-O2 -DNDEBUG -Wall -Wextra -I. -pthread)

pack=$(realpath "${1:?usage: build.sh PACK OUT}") || exit 1
out=$(realpath "${2:?usage: build.sh PACK OUT}") || exit 1
failed=0

missing() {
    echo "build.sh: $*" >&2
    failed=1
    return 1
}

# first FILE...: the first that is there.
first() {
    local file
    for file in "$@"; do
        [[ -e $file ]] && echo "$file" && return
    done
    return 1
}

# Folders where a CUDA toolkit may be, likeliest first; none has a glob character left in it.
toolkits() {
    local nvcc
    echo "${CUDA_HOME:-}"
    nvcc=$(command -v nvcc) && dirname "$(dirname "$(realpath "$nvcc")")"
    shopt -s nullglob
    printf '%s\n' /usr/local/cuda /usr/local/cuda-*
    python3 -c 'import sys; print(*[p + "/nvidia/cu13" for p in sys.path if p.endswith("-packages")], sep="\n")'
}

find_cuda() {
    local roots
    mapfile -t roots < <(toolkits | sed '/^$/d')
    header=$(first "${roots[@]/%//include/cuda_runtime_api.h}" \
        "${roots[@]/%//targets/x86_64-linux/include/cuda_runtime_api.h}") ||
        missing "cuda_runtime_api.h is in none of: ${roots[*]}; set CUDA_HOME" || return
    cudart=$(first "${roots[@]/%//lib64/libcudart.so.13}" "${roots[@]/%//lib/libcudart.so.13}" \
        "${roots[@]/%//targets/x86_64-linux/lib/libcudart.so.13}") ||
        missing "libcudart.so.13 is in none of: ${roots[*]}; set CUDA_HOME" || return
    echo "CUDA: $(dirname "$header"), $cudart"
    cuda=(-isystem "$(dirname "$header")" -isystem "$pack/include" "$cudart" "$pack/lib/libbenchmark.so.1debian"
        "-Wl,-rpath,$(dirname "$cudart"):$pack/lib")
}

build_rmm() {
    local wheel site=$out/site rmm logger
    mkdir -p "$site"
    first "$pack"/wheels/librmm_cu13-*.whl >/dev/null ||
        missing "no librmm_cu13 wheel in $pack/wheels: run pack.sh" || return
    for wheel in "$pack"/wheels/*.whl; do
        python3 -m zipfile -e "$wheel" "$site" || missing "$wheel cannot be unpacked" || return
    done
    rmm=$site/librmm logger=$site/rapids_logger
    g++ -std=c++17 "${FLAGS[@]}" -isystem "$rmm/include/rapids" -isystem "$rmm/include" -isystem "$logger/include" \
        bench/peers/rmm_bench.cc "${cuda[@]}" -o "$out/rmm_bench" "$rmm/lib64/librmm.so" \
        "$logger/lib64/librapids_logger.so" "-Wl,-rpath,$rmm/lib64:$logger/lib64" || missing "rmm_bench does not build"
}

# The flags are as PyTorch says: it may have been built with the library's old strings.
build_torch() {
    local root old_strings
    read -r root old_strings < <(python3 -c \
        'import os, torch; print(os.path.dirname(torch.__file__), int(torch.compiled_with_cxx11_abi()))' 2>/dev/null)
    [[ -n ${root:-} ]] || missing "python3 ($(command -v python3)) cannot import torch" || return
    [[ -e $root/include/c10/cuda/CUDACachingAllocator.h ]] ||
        missing "$root has no include/c10/cuda/CUDACachingAllocator.h: a PyTorch without its headers" || return
    [[ -e $root/lib/libc10_cuda.so ]] || missing "$root/lib has no libc10_cuda.so: a PyTorch without CUDA" || return
    g++ -std=c++20 "${FLAGS[@]}" "-D_GLIBCXX_USE_CXX11_ABI=$old_strings" -isystem "$root/include" \
        bench/peers/torch_bench.cc "${cuda[@]}" -o "$out/torch_bench" "$root/lib/libc10_cuda.so" "$root/lib/libc10.so" \
        "-Wl,-rpath,$root/lib" -Wl,--unresolved-symbols=ignore-in-shared-libs || missing "torch_bench does not build"
}

command -v g++ >/dev/null || missing "g++ is not there" || exit
first "$pack/lib/libbenchmark.so.1debian" >/dev/null ||
    missing "$pack/lib/libbenchmark.so.1debian is not there: run pack.sh" || exit
g++ -std=c++17 "${FLAGS[@]}" bench/peers/write_draws.cc -o "$out/write_draws" || missing "write_draws does not build"
if find_cuda; then
    build_rmm
    build_torch
fi
exit "$failed"
