#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# test/bare/bare_test.sh: what tools/bare hides, what it lets pass, and what it leaves. Bazel's sandbox has a namespace
# of its own, so this is no target of Bazel's: .ci/run calls it. Prints a line for each check.
#
# Where no mount namespace may be made, that fails with CI=true; otherwise only the refusals are checked.
# shellcheck disable=SC2016,SC2317  # what the inner shell expands; functions that it calls
set -euo pipefail
cd "$(dirname "$0")/../.."
bare=$PWD/tools/bare
work=$(mktemp -d)
failed=0

finish() {
    # Bazel makes folders that nobody may write to.
    chmod -R u+w "$work" && rm -rf "$work"
}
trap finish EXIT

# check NAME WANTED GOT
check() {
    if [[ $2 == "$3" ]]; then
        echo "ok: $1"
    else
        printf 'FAILED: %s: expected\n%s\ngot\n%s\n' "$1" "$2" "$3"
        failed=1
    fi
}

# code_of COMMAND...: prints its exit code.
code_of() {
    local code=0
    "$@" >/dev/null 2>&1 || code=$?
    echo "$code"
}

# gone PROCESS: waits until it is; says so if it stays.
gone() {
    local try
    for try in {1..300}; do
        [[ -e /proc/$1 && $(ps -o stat= "$1") != Z* ]] || return 0
        sleep 0.1
    done
    echo "process $1 stays after $try looks"
}

# --- Refusals ---------------------------------------------------------------------------------------------------------

export XDG_CACHE_HOME=$work/cache
check "no command" 2 "$(code_of "$bare")"
check "an option" 2 "$(code_of "$bare" --help)"
check "its sentence" "tools/bare: '--help': expected a command, such as: tools/bare ./bazelw test //..." \
    "$("$bare" --help 2>&1)"
mkdir "$work/refusing"
printf '#!/bin/sh\necho "unshare: no" >&2\nexit 1\n' >"$work/refusing/unshare"
chmod +x "$work/refusing/unshare"
check "no namespace" 125 "$(PATH=$work/refusing:$PATH code_of "$bare" true)"
check "its sentence" "tools/bare: no mount namespace may be made here (unshare: no)" \
    "$(PATH=$work/refusing:$PATH "$bare" true 2>&1)"
check "no place" 125 "$(XDG_CACHE_HOME=/proc code_of "$bare" true)"

if ! "$bare" true; then
    [[ ${CI:-} != true ]] || exit 1
    echo "skipped: what passes and what is hidden, since no mount namespace may be made here"
    exit $failed
fi

# --- What passes ------------------------------------------------------------------------------------------------------

check "the exit code" 7 "$(code_of "$bare" sh -c 'exit 7')"
check "a command that is not there" 127 "$(code_of "$bare" "$work/nothing")"
check "arguments, a line of input, a folder and a variable" "<a b><><*> line $work value" \
    "$(cd "$work" && echo line | VARIABLE=value "$bare" bash -c \
        'printf "<%s>" "$@"; echo " $(cat) $PWD $VARIABLE"' - 'a b' '' '*')"
mkfifo "$work/ready"
"$bare" bash -c 'trap "exit 9" TERM; sleep 1000 & echo $! >"$0"; wait' "$work/ready" &
read -r left <"$work/ready"
kill -TERM $!
code=0
wait $! || code=$?
check "a signal" 9 "$code"
check "what an interrupted command left is ended" "" "$(gone "$left")"

# --- Bazel ------------------------------------------------------------------------------------------------------------

# value FIELD FILE: of what `bazel info` printed.
value() {
    sed -n "s/^$1: //p" "$2"
}

# state: what must be after a bare run as it was before.
state() {
    env -u XDG_CACHE_HOME ./bazelw info server_pid output_base 2>/dev/null
    ls -l .bazel 2>/dev/null || true
    mount
}

state >"$work/before"
for run in first second; do
    # "inside", below, does not see what this leaves at home.
    "$bare" bash -c 'touch "$HOME/left" && ./bazelw build //docs/rules:pages && ./bazelw info server_pid output_base' \
        >"$work/$run" 2>/dev/null
done
for name in server_pid output_base; do
    check "$name of its own" "" "$(grep -Fx -f "$work/before" <<<"$name: $(value "$name" "$work/first")" || true)"
done
check "the same output_base again" "$(value output_base "$work/first")" "$(value output_base "$work/second")"
check "what was built stays" "$(value output_base "$work/first")" \
    "$(dirname "$work"/cache/gcap-bare/*/bazel/*/action_cache)"
for run in first second; do check "the end of the $run server" "" "$(gone "$(value server_pid "$work/$run")")"; done
state >"$work/after"
check "the server outside, Bazel's links and the mounts" "" "$(diff "$work/before" "$work/after")"

# --- What is hidden ---------------------------------------------------------------------------------------------------

# look: prints what a program here sees of things that a bare machine lacks, and of "other" ones beside them.
look() {
    local name
    for name in nvcc ptxas git other; do ! command -v "$name" >/dev/null || echo "program $name"; done
    for name in nvidia cupy torch onnxruntime other; do
        ! python3 -c "import $name" 2>/dev/null || echo "package $name"
    done
    for name in CUDA_HOME GCAP_CUDA_FETCH GCAP_ORT_FETCH PYTHONPATH LIBRARY_PATH OTHER; do
        ! printenv "$name" >/dev/null || echo "variable $name"
    done
    [[ ! -e $WHEELS ]] || echo "wheels"
    [[ ! -s user.bazelrc ]] || echo "settings"
    ! find "$HOME" -mindepth 1 -maxdepth 1 ! -name .bazelrc ! -name '.hidden.*' | grep . >/dev/null || echo "home"
    ! find /usr/local/cuda*/ -mindepth 1 -maxdepth 1 2>/dev/null | grep . >/dev/null || echo "toolkit"
    for name in stdio cublasLt; do ! echo "#include <$name.h>" | cc -E - >/dev/null 2>&1 || echo "header $name"; done
    for name in libm.so.6 libcudart.so.13; do
        ! python3 -c "import ctypes; ctypes.CDLL('$name')" 2>/dev/null || echo "library $name"
    done
}

mkdir -p "$work/bin" "$work/cache/gcap/ort-1.0.0"
for name in nvcc ptxas git other; do
    printf '#!/bin/sh\n' >"$work/bin/$name"
    chmod +x "$work/bin/$name"
done
python3 -m venv --without-pip "$work/venv"
packages=$(echo "$work"/venv/lib/python3*/site-packages)
for name in nvidia cupy torch onnxruntime other; do
    mkdir "$packages/$name"
    touch "$packages/$name/__init__.py"
done
export PATH=$work/venv/bin:$work/bin:$PATH OTHER=1 PYTHONPATH=$work LIBRARY_PATH=$work
export WHEELS=$work/cache/gcap/ort-1.0.0 CUDA_HOME=$work GCAP_CUDA_FETCH=pip GCAP_ORT_FETCH=pip
look >"$work/outside"
"$bare" bash -c "$(declare -f look); look" >"$work/inside" 2>"$work/errors" || cat "$work/errors"
for name in "program nvcc" "package onnxruntime" "variable CUDA_HOME" wheels; do
    check "outside: $name" "$name" "$(grep -x "$name" "$work/outside")"
done
# Where there is none, the comparison below says less.
grep -x 'toolkit\|header cublasLt\|library libcudart.*' "$work/outside" | sed 's/^/this machine has: /' || true
check "inside" "$(printf '%s\n' 'program other' 'package other' 'variable OTHER' 'header stdio' 'library libm.so.6')" \
    "$(<"$work/inside")"
exit $failed
