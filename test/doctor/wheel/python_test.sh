#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The wheel's Python, without PyTorch and without a GPU, in each interpreter of this machine from 3.9 on: those on PATH, and
# those in pyenv's folder.
#   python_test.sh [--with MODULE] FILE_OF_THE_PACKAGE TEST.py...
# --with: in those that have the module.
set -eu
module=sys
if [ "$1" = --with ]; then
  module=$2
  shift 2
fi
package=$(cd "$(dirname "$1")/.." && pwd)
[ "$(basename "$(dirname "$1")")" = gcap_doctor ] || {
  echo "$1: expected a file of the folder gcap_doctor" >&2
  exit 1
}
shift
export PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 HOME=$TEST_TMPDIR

# interpreters: one path for each version.
interpreters() {
  user=$(getent passwd "$(id -u)" | cut -d: -f6)
  for python in python3 python3.9 python3.10 python3.11 python3.12 python3.13 python3.14 \
    "$user"/.pyenv/versions/3.*/bin/python3; do
    "$python" -c 'import sys, '"$module"'; v = sys.version_info; v >= (3, 9) and print("%d.%d" % v[:2], sys.executable)' 2>/dev/null || true
  done | sort -u -k1,1 | cut -d' ' -f2
}

found=$(interpreters)
[ -n "$found" ] || {
  echo "skipped: no python3 from 3.9 on with the module $module" >&2
  exit 0
}
for python in $found; do
  for test in "$@"; do
    echo "=== $("$python" --version), $(basename "$test")"
    "$python" -s -W error::SyntaxWarning "$test" -q
  done
done
