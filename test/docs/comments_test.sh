#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What authors of EPs read is there: each paragraph of declarations in ep.h and ep_ops.h begins with a comment, or each
# of its lines has one behind it; and what a few comments must say, they say.
#   comments_test.sh ep_guide.md
# The headers lie below the current folder.
set -eu
export LC_ALL=C
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# uncommented HEADER: the declarations, of functions, types and members, that nothing explains, a line each.
uncommented() {
  awk '
    /^#|^extern "C"|^}|^$/ { explained = 0; next }
    /^ *\/\// { explained = 1; next }
    /^typedef (struct|enum) .*\{$/ {
      if (!explained) print
      explained = 0
      next
    }
    /^ *static inline/ { inside = 1 }
    !explained && !inside && !continued && !/;  *\/\/|,  *\/\// { print }
    { continued = !/[;{}]/; if (/^}/) inside = 0 }' "$1"
}

# comment_of HEADER NAME: the lines of the comment above the declaration of NAME.
comment_of() {
  awk -v name="$2" '
    /^ *\/\// { text = text " " $0; next }
    $0 ~ "(^|[^a-z_])" name "($|[^a-z_])" { print text; exit }
    { text = "" }' "$1"
}

# says HEADER NAME WORDS: the comment above NAME has the words.
says() {
  comment_of "$1" "$2" | tr -d '/' | tr -s ' ' | grep -qF -- "$3" ||
    fail "the comment of $2 in $1 does not say '$3'"
}

# expect_uncommented WHAT SED_SCRIPT: of ep_ops.h that the script has changed, the check says WHAT.
expect_uncommented() {
  sed "$2" include/gcap/kit/ep_ops.h >"$TEST_TMPDIR/changed.h"
  ! cmp -s include/gcap/kit/ep_ops.h "$TEST_TMPDIR/changed.h" || fail "'$2' changes nothing"
  uncommented "$TEST_TMPDIR/changed.h" | grep -qF -- "$1" || fail "'$1' was not found after '$2'"
}

cd "$TEST_SRCDIR/$TEST_WORKSPACE"
guide=$1
for header in ep.h ep_ops.h; do
  uncommented "include/gcap/kit/$header" >"$TEST_TMPDIR/found"
  [ ! -s "$TEST_TMPDIR/found" ] || fail "$header has no comment on: $(cat "$TEST_TMPDIR/found")"
done
expect_uncommented '(*trim)' '/Default: trims the scratch/d'
expect_uncommented 'const char* name;' 's|required; copied||; s|name;  *//.*|name;|'
expect_uncommented 'gcap_ep_create(' '/^\/\/ Makes an EP from a table/,/^GCAP_API/{/^\/\//d}'

# How long a stream may be kept: by a kernel, and by who asks for a thread's context.
says include/gcap/kit/ep.h 'typedef struct gcap_kernel_context' 'borrowed until compute returns'
says lib/runtime/thread_context.h 'typedef struct gcap_thread_context' 'until its thread or its set ends'
# When runs may be concurrent.
says include/gcap/runtime.h supports_concurrent_runs 'all threads share one stream'
sed -n '/^## When runs may be concurrent/,/^## Shapes/p' "$guide" >"$TEST_TMPDIR/section"
for word in user_compute_stream gpu_external_alloc use_ep_level_unified_stream graph.scope is_concurrent_run_supported; do
  grep -qF "$word" "$TEST_TMPDIR/section" || fail "$guide does not say what $word has to do with concurrent runs"
done
exit $failed
