#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# dependencies_test.sh FILE PACKAGE...: fails when FILE lists a package that is not named, or not the first one, the
# module itself, without which the list would prove nothing.
set -eu

file=$1
shift
module=$1

grep --quiet --line-regexp --fixed-strings "$module" "$file" || {
    echo "$module does not link itself: it links $(tr '\n' ' ' <"$file")"
    exit 1
}

failed=0
while read -r linked; do
    case " $* " in
        *" $linked "*) ;;
        *)
            echo "$module links $linked, which its row does not name; it names: $*"
            failed=1
            ;;
    esac
done <"$file"
exit $failed
