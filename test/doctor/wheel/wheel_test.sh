#!/bin/bash
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# The wheel as its user meets it: a fresh environment, pip without any index, the command, and nothing left afterwards.
#   wheel_test.sh make_wheel.py checks.sh EVENTS MODULE.bazel FILE...
set -eu
maker=$1
# shellcheck source=../command/checks.sh
. "$2"
events=$PWD/$3
module=$4
version=$(sed -n 's/^    version = "\(.*\)",$/\1/p' "$module" | head -1)
shift 4

skip() {
  echo "skipped: $*" >&2
  exit 0
}

command -v python3 >/dev/null || skip "no python3"
for folder in made again; do
  python3 -I -B "$maker" --version-of "$module" --out "$TEST_TMPDIR/$folder" "$@"
done
cmp "$TEST_TMPDIR"/made/*.whl "$TEST_TMPDIR"/again/*.whl || fail "the same files gave another wheel"
wheel=$(echo "$TEST_TMPDIR"/made/*.whl)
# What it refuses.
for stray in "$maker" "$module"; do
  ends 1 python3 -I -B "$maker" --version-of "$module" --out "$TEST_TMPDIR/none" "$stray"
  has err "make_wheel: no place for $stray"
done
cd "$TEST_TMPDIR"
export HOME=$PWD PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
unset PYTHONPATH PYTHONHOME GCAP_DOCTOR_LIBRARY CUDA_INJECTION64_PATH

# --- The file ---------------------------------------------------------------------------------------------------------

name=${wheel##*/}
case $name in
  gcap_doctor-"$version"-py3-none-manylinux_2_[1-9]*_*.whl) ;;
  *) fail "the wheel is called $name" ;;
esac
python3 - "$wheel" <<'CHECK' || fail "the wheel's RECORD is not so"
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(record).decode()))}
assert sorted(rows) == sorted(wheel.namelist()), set(rows) ^ set(wheel.namelist())
for name, (digest, size) in rows.items():
    content = wheel.read(name)
    wanted = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    assert name == record or (digest, int(size)) == (wanted, len(content)), name
tag = "-".join(sys.argv[1][:-4].rsplit("-", 3)[1:])
assert f"Tag: {tag}\n" in wheel.read(record.replace("RECORD", "WHEEL")).decode(), tag
CHECK
# No binary asks for a newer C library than the name says. readelf is of another make than what made the name.
if command -v readelf >/dev/null; then
  minor=${name#*manylinux_2_}
  minor=${minor%%_*}
  mkdir content
  (cd content && python3 -m zipfile -e "$wheel" .)
  newest=$(readelf --version-info content/gcap_doctor/bin/gcap-doctor content/gcap_doctor/lib/libgcap_doctor.so |
    grep -o 'GLIBC_2\.[0-9]*' | sed 's/.*\.//' | sort -n | tail -1)
  [ "$newest" -le "$minor" ] || fail "a binary needs glibc 2.$newest, the wheel says 2.$minor"
fi

# --- Installed --------------------------------------------------------------------------------------------------------

python3 -m venv environment >log 2>&1 || {
  cat log >&2
  [ "$failures" = 0 ] || exit 1
  skip "this python3 makes no environments; Debian's needs the package python3-venv"
}
(cd environment && find . ! -name '*.pyc' ! -name __pycache__ | sort) >before
ends 0 environment/bin/python -m pip install --no-index "$wheel"
export PATH=$PWD/environment/bin:$PATH
doctor=environment/bin/gcap-doctor

ends 0 "$doctor" --version
[ "$(cat out)" = "gcap-doctor $version" ] || fail "--version printed $(cat out)"
ends 0 environment/bin/python -m gcap_doctor --version
has out "$version"
ends 0 "$doctor" run -- python -c 'print(1)'
[ "$(cat out)" = 1 ] || fail "the program's output is $(cat out)"
has err "the program made no call of CUDA's driver"
ends 0 "$doctor" run -- python -c 'import os; print(os.environ["CUDA_INJECTION64_PATH"])'
[ -r "$(cat out)" ] || fail "there is no library $(cat out)"
case $(cat out) in
  "$(realpath environment)"/*) ;;
  *) fail "the library is not that of the environment: $(cat out)" ;;
esac
# As the driver loads it: it writes its events, here that there is no CUPTI.
touch no_cupti.so
ends 0 "$doctor" run --cupti no_cupti.so -- python -c '
import ctypes, os
print(ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection())'
[ "$(cat out)" = 1 ] || fail "the library's start returned $(cat out)"
has err "no_cupti.so', which cannot be loaded"
ends 6 "$doctor" run -- python -c 'raise SystemExit(6)'
ends 1 "$doctor" explain "$events"
has out StreamSynchronize
# vet, through the script and through the command that the script becomes for the rest.
printf 'import torch\n\n\ndef test_x():\n    g = torch.cuda.CUDAGraph()\n    with torch.cuda.graph(g):\n        op()\n' >test_x.py
for each in "$doctor" environment/lib/python3*/site-packages/gcap_doctor/bin/gcap-doctor; do
  ends 1 "$each" vet test_x.py --sarif x.sarif --junit x.xml
  has out "test_x.py:6: error never_replayed: "
  ends 2 "$each" vet --html x
  has err "gcap-doctor: vet: '--html' is no option of it"
done
ends 0 python -c 'from importlib.metadata import distribution
print([(each.group, each.name, each.value) for each in distribution("gcap-doctor").entry_points])'
has out "('console_scripts', 'gcap-doctor', 'gcap_doctor:main')" "('pytest11', 'gcap-doctor', 'gcap_doctor.pytest_plugin')"
# Without PyTorch, check() says so in a sentence.
ends 1 python -c 'import gcap_doctor; gcap_doctor.check(len)'
has err "CannotCheck: PyTorch cannot be imported"
ends 0 "$doctor" explain --rule R11
has out '# R11' '```python'

ends 0 environment/bin/python -m pip uninstall --yes gcap-doctor
(cd environment && find . ! -name '*.pyc' ! -name __pycache__ | sort) >after
diff before after >&2 || fail "'>' is left after the uninstallation"
finish
