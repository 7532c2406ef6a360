#!/bin/sh
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Runs mutate_test.py. Where Python is older than tools/mutate needs, the command must say so, and that is all.
#   mutate_test.sh MUTATE_TEST_PY MUTATE
set -eu
command -v python3 >/dev/null || {
  echo "FAILED: python3 is not installed: $2 needs it" >&2
  exit 1
}
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  exec python3 "$1" "$(dirname "$2")"
fi
said=$(python3 "$2" --check 2>&1) && code=0 || code=$?
echo "$said"
[ "$code" -eq 2 ] && [ "${said#mutate: this is Python 3.*: expected 3.11 or later}" = "" ]
