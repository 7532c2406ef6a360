#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# link.sh ARCHIVE FOLDER: makes shared libraries of the simulator's archive, libgcapsim.a, in the folder: stand-ins with
# the names, sonames and symbol versions of NVIDIA's, and the simulator itself, libgcapsim_core.so, which they need.
# $CC and $NM name the compiler and nm.
#
# The idea: one process has one simulator, whatever libraries it loads and however it loads them. So all code and state
# are in the core, and a stand-in has nothing but jumps: to what the core's gcap_sim_entry_<name> points to. The core's
# exports all begin with gcap_sim_; a stand-in exports the names of CUDA that are its own, and no other.
set -eu
export LC_ALL=C

[ $# -eq 2 ] || { echo "usage: link.sh ARCHIVE FOLDER" && exit 2; } >&2
archive=$1
folder=$2
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

shared() {
    "${CC:-cc}" -shared -fPIC -Wl,--no-as-needed -Wl,-z,defs "$@"
}

mkdir -p "$folder"
"${NM:-nm}" -g --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^gcap_sim_/ { print $3 }' | sort -u >"$work/names"
[ -s "$work/names" ] || { echo "link.sh: '$archive' has no function of CUDA: expected libgcapsim.a" && exit 1; } >&2

# --- The core ---------------------------------------------------------------------------------------------------------

# It stays when its last user is closed: its threads' ends, its fork handlers and the reports at exit are still to come.
while read -r name; do
    echo "void $name(void); void (*const gcap_sim_entry_$name)(void) = $name;"
done <"$work/names" >"$work/entries.c"
echo '{ global: gcap_sim_*; local: *; };' >"$work/core.map"
shared -std=c11 -o "$folder/libgcapsim_core.so" "$work/entries.c" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
    -Wl,-soname,libgcapsim_core.so -Wl,--version-script="$work/core.map" -Wl,-Bsymbolic -Wl,-z,nodelete -lpthread -lm

# --- The stand-ins ----------------------------------------------------------------------------------------------------

: >"$work/taken"

# stand_in LIBRARY NAMES [NEEDED]: NAMES is a regular expression for what is left; the version is the library's name.
stand_in() {
    grep -Ex "$2" "$work/names" | comm -13 "$work/taken" - >"$work/own"
    sort -o "$work/taken" "$work/taken" "$work/own"
    { echo '#include "forward.S"' && sed 's/.*/FORWARD(&)/' "$work/own"; } >"$work/jumps.S"
    { echo "$1 { global:" && sed 's/$/;/' "$work/own" && echo "local: *; };"; } >"$work/exports.map"
    # shellcheck disable=SC2016  # $ORIGIN is the loader's
    shared -nostdlib -o "$folder/$1" -I"$here" "$work/jumps.S" -L"$folder" ${3:+"-l:$3"} -l:libgcapsim_core.so \
        -Wl,-soname,"$1" -Wl,--version-script="$work/exports.map" -Wl,--enable-new-dtags -Wl,-rpath,'$ORIGIN'
}

stand_in libcudart.so.13 '(__)?cuda[A-Z].*'
stand_in libcublasLt.so.13 'cublasLt[A-Z].*'
stand_in libcublas.so.13 'cublas[A-Z].*' libcublasLt.so.13
stand_in libcudnn.so.9 'cudnn[A-Z].*'

comm -23 "$work/names" "$work/taken" >"$work/left"
[ ! -s "$work/left" ] || { echo "link.sh: no library has these functions of $archive:" && cat "$work/left" && exit 1; } >&2
