#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The words of the public headers: phrases that readers stumbled over do not come back, and each function that returns a
# status lists its errors.
# The headers lie below the current folder.
set -eu
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

# A phrase, and in brackets what to write.
phrases='
nobody knows [unknown]
for ever\> [until the process ends]
whoever [name the one]
all the same [name what happens nevertheless]
goes on [stays open, continues]
\<(he|his|him)\> [the caller, its]
\<(is|are|be) asked\> [is queried, is requested]
\<(tells|tell) [returns, says whether]
\<has ready\> [has prepared]
\<needs? (it|them)? ?not\> [does not need]
\<as it was before\> [before …]
\<some day\> [later]
synchronis [synchroniz-, as CUDA spells it]
initialis [initializ-]
'

# Their interface is being changed; they are read afterwards.
pending='graph.h ep.h ep_ops.h options.h runtime.h session.h'

cd "$TEST_SRCDIR/$TEST_WORKSPACE"
headers=$(find -L include -name '*.h' | sort)
[ "$(echo "$headers" | wc -l)" -gt 15 ] || fail "there are no headers to read"
for header in $headers; do
  case " $pending " in
    *" $(basename "$header") "*) continue ;;
  esac
  echo "$phrases" | sed -n 's/ \[\(.*\)\]$/|\1/p' | while read -r line; do
    # Alternatives in a pattern have the same separator: the advice follows the last one.
    grep -niE "//.*${line%|*}" "$header" | sed "s|\$| -- write: ${line##*|}|" || true
  done >"$TEST_TMPDIR/found"
  [ ! -s "$TEST_TMPDIR/found" ] || fail "$header: $(cat "$TEST_TMPDIR/found")"

  # status.h makes statuses, so a status that its functions return is no failure of theirs.
  [ "$(basename "$header")" != status.h ] || continue
  awk -v header="$header" '
    /^\/\// { if (/^\/\/   ([A-Z][A-Z_]+,?|others|errors of) /) listed = 1; next }
    /^GCAP_API gcap_status_t/ && !listed { sub(/\(.*/, "", $3); print header ": " $3 " lists no errors" }
    { listed = 0 }' "$header" >"$TEST_TMPDIR/found"
  [ ! -s "$TEST_TMPDIR/found" ] || fail "$(cat "$TEST_TMPDIR/found")"
done
exit $failed
