#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# build.sh FRAMEWORK OUT [SITE]: builds the example over a framework's pool as OUT/FRAMEWORK, with gcc and g++ alone:
#   small   the pool in this folder
#   rmm     RMM 26.10, from SITE: a folder with what `pip install --no-deps --target SITE librmm-cu13 rapids-logger` or
#           the unpacked wheels put there
#   torch   the PyTorch that python3 imports; it must have been built for CUDA
# It needs CUDA's headers and libcudart.so, of a toolkit (CUDA_HOME, nvcc or /usr/local/cuda) or of a package of
# python3. gcap's sources are compiled in place.
set -euo pipefail
cd "$(dirname "$0")/../.."

die() {
    echo "build.sh: $*" >&2
    exit 1
}

[[ $# -ge 2 ]] || die "usage: build.sh small|rmm|torch OUT [SITE]"
framework=$1
mkdir -p "$2"
out=$(realpath "$2")

# Folders where CUDA may be, likeliest first, one a line.
cuda_folders() {
    local nvcc
    echo "${CUDA_HOME:-}"
    nvcc=$(command -v nvcc) && dirname "$(dirname "$(realpath "$nvcc")")"
    echo /usr/local/cuda
    python3 -c 'import sys; print("\n".join(p + "/nvidia/cu13" for p in sys.path if p.endswith("-packages")))' || true
}

# find_in_cuda NAME FOLDER...: the first such file below a folder where CUDA may be.
find_in_cuda() {
    local name=$1 root folder
    shift
    while read -r root; do
        for folder in "$@"; do
            [[ -n $root && -e $root/$folder/$name ]] && echo "$root/$folder/$name" && return
        done
    done < <(cuda_folders 2>/dev/null)
    die "$name is in no CUDA toolkit that this machine has; set CUDA_HOME"
}

header=$(find_in_cuda cuda_runtime_api.h include targets/x86_64-linux/include)
cudart=$(find_in_cuda libcudart.so.13 lib64 lib targets/x86_64-linux/lib)
flags=(-O2 -I. -Iinclude -isystem "$(dirname "$header")" -pthread)
libraries=("$cudart")

case $framework in
small) standard=c++17 ;;
rmm)
    standard=c++17
    site=$(realpath "${3:?build.sh: rmm needs the folder with the wheels of librmm and rapids_logger}")
    [[ -d $site/librmm && -d $site/rapids_logger ]] || die "$site has no librmm and rapids_logger"
    flags+=(-isystem "$site/librmm/include/rapids" -isystem "$site/librmm/include"
        -isystem "$site/rapids_logger/include")
    libraries+=("$site/librmm/lib64/librmm.so" "$site/rapids_logger/lib64/librapids_logger.so")
    ;;
torch)
    standard=c++20
    read -r torch new_strings < <(python3 -c \
        'import os, torch; print(os.path.dirname(torch.__file__), int(torch.compiled_with_cxx11_abi()))') ||
        die "python3 cannot import torch"
    [[ -e $torch/lib/libc10_cuda.so ]] || die "$torch was not built for CUDA: it has no lib/libc10_cuda.so"
    flags+=(-isystem "$torch/include" "-D_GLIBCXX_USE_CXX11_ABI=$new_strings")
    # libc10_cuda.so links libraries of CUDA's that python3 finds by itself.
    libraries+=("$torch/lib/libc10_cuda.so" "$torch/lib/libc10.so" "-Wl,--unresolved-symbols=ignore-in-shared-libs")
    ;;
*) die "FRAMEWORK is '$framework', expected small, rmm or torch" ;;
esac

objects=$out/objects
rm -rf "$objects"
mkdir -p "$objects"
compile() {
    gcc -std=c11 -D_GNU_SOURCE "${flags[@]}" -c "$1" -o "$objects/${1//\//_}.o"
}
for source in lib/*/*.c; do
    compile "$source"
done
rpath=()
for library in "${libraries[@]}"; do
    [[ $library == -* ]] || rpath+=("-Wl,-rpath,$(dirname "$library")")
done
here=examples/external_allocator
g++ "-std=$standard" -Wall -Wextra "${flags[@]}" $here/main.cc $here/callbacks.cc "$here/${framework}_framework.cc" \
    "$objects"/*.o "${libraries[@]}" "${rpath[@]}" -o "$out/$framework"
rm -rf "$objects"
echo "built $out/$framework"
