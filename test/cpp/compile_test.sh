#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# gcap.hpp compiles without a warning by the build's compiler, $CC, and by each other that the machine has, as each C++
# from 17 on, with exceptions and without; and what it refuses, it refuses with the reason.
#   compile_test.sh each_template.cc
# The headers lie below the current folder.
set -eu
source=$1
failed=0
strict="-pedantic -Wall -Wextra -Wshadow -Werror -fsyntax-only -Iinclude -Isim/include"

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# expect_refusal REASON BODY: a function with that body does not compile, for that reason.
expect_refusal() {
  printf '#include "gcap/gcap.hpp"\nvoid f(gcap_runtime_t* runtime) { (void)runtime; %s }\n' "$2" >"$TEST_TMPDIR/bad.cc"
  # shellcheck disable=SC2086  # one flag a word
  ! "$compiler" -x c++ -std=c++17 $strict "$TEST_TMPDIR/bad.cc" 2>"$TEST_TMPDIR/said" || fail "$compiler takes '$2'"
  grep -qF -- "$1" "$TEST_TMPDIR/said" || fail "of '$2' $compiler says: $(cat "$TEST_TMPDIR/said")"
}

seen=
for compiler in "$CC" g++ clang++ clang++-14; do
  command -v "$compiler" >/dev/null || continue
  # Of gcc's and g++'s lines all is equal but the first word.
  version=$("$compiler" --version | sed '1s/^[^ ]*//; q')
  case $seen in *"|$version|"*) continue ;; esac
  seen="$seen|$version|"
  for standard in c++17 c++20 c++2b; do
    for exceptions in -fexceptions -fno-exceptions; do
      # shellcheck disable=SC2086  # one flag a word
      "$compiler" -x c++ "-std=$standard" $exceptions $strict "$source" || fail "$compiler -std=$standard $exceptions"
    done
  done
  expect_refusal "nobody owns what this function makes" \
    '(void)gcap::own<gcap_runtime_get_allocator>(runtime, GCAP_MEMORY_DEVICE);'
  expect_refusal "this function may fail: call it as in C" \
    '(void)gcap::filled_by<gcap_runtime_get_resources>(runtime);'
  expect_refusal "gcap has no dtype for this type" 'double d = 0; (void)gcap::tensor(&d);'
  expect_refusal "at most GCAP_MAX_RANK dimensions" 'float d; (void)gcap::tensor(&d, {1, 1, 1, 1, 1, 1, 1, 1, 1});'
  expect_refusal "the struct has padding" 'struct { char c; int i; } key = {}; (void)gcap::key_of(key);'
  expect_refusal "more than GCAP_GRAPH_KEY_MAX_BYTES" 'struct { char c[257]; } key = {}; (void)gcap::key_of(key);'
  expect_refusal "deleted" '(void)gcap::key_of(3);'
  expect_refusal "nodiscard" 'gcap::own<gcap_stream_create>(0);'
done
[ -n "$seen" ] || fail "there is no compiler '$CC'"
exit $failed
