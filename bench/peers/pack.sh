#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# pack.sh: makes peers_pack/, what run.sh needs on a machine with a GPU that cannot fetch anything: the benchmarks of
# gcap and of bare cudaMallocAsync as Bazel builds them, RMM's wheels, and the Google Benchmark that the programs built
# there link. It needs a CUDA toolkit, pip, and Debian's libbenchmark-dev. Extra arguments go to `bazel build`.
set -euo pipefail
cd "$(dirname "$0")/../.."

PACK=peers_pack
PROGRAMS=(//bench/scratch:scratch_bench //bench/peers:cuda_async_bench)
FLAGS=(--config=cuda --config=opt --//bazel:cuda_rpath=False --strip=always "$@")
# The wheel of RMM has CCCL's and NVTX's headers in it.
WHEELS=('librmm-cu13==26.10.*' 'rapids-logger==0.3.*')
PLATFORMS=(manylinux_2_28_x86_64 manylinux_2_27_x86_64 manylinux_2_24_x86_64 manylinux_2_17_x86_64)
BENCHMARK_LIBRARY=/usr/lib/x86_64-linux-gnu/libbenchmark.so.1debian
BENCHMARK_HEADERS=/usr/include/benchmark

die() {
    echo "pack.sh: $*" >&2
    exit 1
}

[[ -e $BENCHMARK_LIBRARY && -d $BENCHMARK_HEADERS ]] ||
    die "$BENCHMARK_LIBRARY or $BENCHMARK_HEADERS is not there: apt-get install libbenchmark-dev"
./bazelw build "${FLAGS[@]}" "${PROGRAMS[@]}"
bin=$(./bazelw info "${FLAGS[@]}" bazel-bin 2>/dev/null)

rm -rf "$PACK"
mkdir -p "$PACK"/{bin,lib,include,wheels}
for program in "${PROGRAMS[@]}"; do
    path=${program#//}
    cp --dereference "$bin/${path/://}" "$PACK/bin/"
done
cp --dereference "$BENCHMARK_LIBRARY" "$PACK/lib/"
cp -r "$BENCHMARK_HEADERS" "$PACK/include/"
python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
    "${PLATFORMS[@]/#/--platform=}" --dest "$PACK/wheels" "${WHEELS[@]}" || die "pip could not download: ${WHEELS[*]}"
commit=$(git rev-parse --short HEAD 2>/dev/null) || commit=unknown
[[ -z $(git status --porcelain 2>/dev/null) ]] || commit="$commit with local changes"
echo "$commit" >"$PACK/commit.txt"
chmod -R u+w,a+rX "$PACK"
size=$(du --summarize --human-readable "$PACK" | cut -f 1)
echo "pack.sh: $size in $PACK/: take the repository and it there, and start bench/peers/run.sh $PACK OUT.json"
