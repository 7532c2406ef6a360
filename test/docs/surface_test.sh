#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# docs/public_surface.txt has the public functions of the headers, and each user names its function; and what is wrong
# in a copy of the tree is found.   surface_test.sh TOOL
set -eu

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

command -v python3 >/dev/null || fail "python3 is not installed: $1 needs it"
export PYTHONDONTWRITEBYTECODE=1
python3 "$1" --check || fail "the list is not that of the tree"

copy=$TEST_TMPDIR/tree
list=$copy/docs/public_surface.txt
mkdir "$copy"
cp -rL bench docs examples include kit lib ops ort tools "$copy"
chmod -R u+w "$copy"
cp "$list" "$TEST_TMPDIR/list"

# expect_found NEEDLE FILE SCRIPT [COMMAND]: what the sed script does to a file of the copy is found, and NEEDLE said.
expect_found() {
  cp "$copy/$2" "$TEST_TMPDIR/kept"
  sed -i "$3" "$copy/$2"
  ! cmp -s "$copy/$2" "$TEST_TMPDIR/kept" || fail "'$3' changes nothing in $2"
  ! python3 "$copy/tools/surface" "${4:---check}" >"$TEST_TMPDIR/said" 2>&1 || fail "'$3' in $2 is not found"
  grep -qF -- "$1" "$TEST_TMPDIR/said" || fail "'$3' in $2: expected '$1': $(cat "$TEST_TMPDIR/said")"
  cp "$TEST_TMPDIR/kept" "$copy/$2"
  cmp -s "$list" "$TEST_TMPDIR/list" || fail "'$3' in $2: the list was written"
}

header=include/gcap/version.h
file=docs/public_surface.txt
expect_found "gcap_more: is in $header, and not in the list" $header '/^GCAP_API/i GCAP_API int gcap_more(void);'
expect_found "gcap_gone: is in the list, and no public function" $file '$ a gcap_gone version.h core none'
expect_found "gcap_stream_create: is in include/gcap/stream.h, and not in the list" $file '/^gcap_stream_create /d'
expect_found "expected stream.h, core" $file '/^gcap_stream_create /s/stream.h/graph.h/'
expect_found "expected stream.h, core" $file '/^gcap_stream_create /s/ core / kit /'
expect_found "does not name it any more" $file '/^gcap_stream_create /s/[^ ]*$/examples\/cpu_shapes\/cpu_shapes.c/'
expect_found "is not there" $file '/^gcap_stream_create /s/[^ ]*$/examples\/gone.c/'
expect_found "is no user" $file '/^gcap_stream_create /s/[^ ]*$/lib\/stream\/stream.c/'
expect_found "is of the module that defines it" $file '/^gcap_session_create /s/[^ ]*$/kit\/session\/session.c/'
expect_found "nothing inline in" $file '/^gcap_stream_create /s/[^ ]*$/inline/'
# An enum of a function's name does not call it.
cp "$copy/include/gcap/stream.h" "$TEST_TMPDIR/stream.h"
sed -i '/^GCAP_API int gcap_stream_device/i GCAP_API int gcap_stream_flags(void);' "$copy/include/gcap/stream.h"
expect_found "nothing inline in" $file '$ a gcap_stream_flags stream.h core inline'
cp "$TEST_TMPDIR/stream.h" "$copy/include/gcap/stream.h"
expect_found "no 'judged' line says so" $file '/^gcap_stream_create /s/[^ ]*$/end/'
expect_found "are without a user: expected at most" $file '/^gcap_stream_create /s/[^ ]*$/none/'
expect_found "the number falls with them" $file 's/^without a user: .*/without a user: 900/'
expect_found "there is no line 'without a user: N'" $file '/^without a user/d'
expect_found "is judged, and no public function" $file '/^without a user/a judged gcap_gone validator a reason'
expect_found "expected 'judged NAME WORD REASON'" $file '/^without a user/a judged gcap_scratch_validate useful a reason'

# A comment and a string name nothing.
user=$(sed -n 's/^gcap_runtime_create_from .* //p' "$list")
expect_found "gcap_runtime_create_from: its user $user does not name" "$user" \
  's/gcap_runtime_create_from/"gcap_runtime_create_from" \/\/ gcap_runtime_create_from\n/'

# Nor do they in Python.
script=$(sed -n 's/^gcap_struct_init .* //p' "$list")
expect_found "gcap_struct_init: its user $script does not name" "$script" \
  's/gcap\.gcap_struct_init(.*/pass  # gcap_struct_init "gcap_struct_init"/'

# Who loses its user becomes no `none` by itself.
expect_found "gcap_runtime_create_from: nothing uses it" "$user" 's/gcap_runtime_create_from/gcap_other/' --write

# What is written anew is right, has the judgements, and stays the same.
sed -i '/^# Names whose word/a judged gcap_scratch_validate validator a reason' "$list"
cp "$list" "$TEST_TMPDIR/list"
python3 "$copy/tools/surface" --write
python3 "$copy/tools/surface" --check
grep '^judged ' "$TEST_TMPDIR/list" >"$TEST_TMPDIR/judged"
grep '^judged ' "$list" | diff "$TEST_TMPDIR/judged" - || fail "--write loses judgements"
cp "$list" "$TEST_TMPDIR/list"
python3 "$copy/tools/surface" --write
diff "$TEST_TMPDIR/list" "$list" || fail "--write writes another list each time"
