#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# What gcap's objects define for others. Each name starts with gcap_, so that no program has a function of the same name
# by chance; and each is hidden, so that a plugin which links gcap exports none of them. DW.ref. names are the compiler's,
# of code that is cleaned up when an exception passes; they are hidden too, and alike in every object.
#   symbols_test.sh ARCHIVE...
set -eu

status=0
for archive in "$@"; do
    # Of each global symbol that is defined: its visibility and its name. Kernels that nvcc compiled are never hidden.
    readelf --symbols --wide "$archive" |
        awk '($5 == "GLOBAL" || $5 == "WEAK") && $7 != "UND" && $8 !~ /^DW\.ref\./ { print $6, $8 }' | sort -u >"$TEST_TMPDIR/symbols"
    [ -s "$TEST_TMPDIR/symbols" ] || { echo "$archive defines nothing: it is read wrongly" && status=1; }
    if grep -v ' gcap_[a-z0-9_]*$' "$TEST_TMPDIR/symbols"; then
        echo "$archive defines the names above: expected gcap_…"
        status=1
    fi
    if grep -v '^HIDDEN ' "$TEST_TMPDIR/symbols" | grep -v '_kernel$'; then
        echo "$archive exports the names above: expected -fvisibility=hidden"
        status=1
    fi
done
exit $status
