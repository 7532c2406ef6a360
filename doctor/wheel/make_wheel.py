#!/usr/bin/env python3
# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""Makes the wheel gcap-doctor of files that are built: the command, the recorder's library, the pages of the rules.

    make_wheel.py --version-of MODULE.bazel --out FOLDER FILE...

In the package, bin, lib and share are as in an installed prefix, since the command finds the rest from its own folder.
The same files give the same bytes. The wheel's tag names the oldest C library that both binaries run with.
"""

import argparse
import base64
import hashlib
import os
import re
import struct
import sys
import zipfile

PACKAGE = "gcap_doctor"
MACHINES = {62: "x86_64", 183: "aarch64"}  # of an ELF file
OLDEST = 17  # the first C library of a manylinux tag by version

METADATA = """Metadata-Version: 2.1
Name: gcap-doctor
Version: {version}
Summary: Why did my CUDA-graph capture fail: names the call, its stack in C and in Python, the rule and the remedy
License: Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

    gcap-doctor run -- python serve.py

runs any program that captures CUDA graphs, and says of each capture that failed which call broke it, where it was made,
which rule it broke, and what to do instead. `gcap-doctor --help` has the rest.

    gcap_doctor.check(fn, *inputs).raise_if_faulty()

proves that an operation of PyTorch is capturable, also as a fixture of pytest, and `gcap-doctor vet tests/` finds tests of
captures that prove nothing.
"""
ENTRY_POINTS = f"""[console_scripts]
gcap-doctor = {PACKAGE}:main

[pytest11]
gcap-doctor = {PACKAGE}.pytest_plugin
"""


def read(path):
    with open(path, "rb") as file:
        return file.read()


def version_of(module):
    found = re.search(r'^module\(.*?^ *version = "([^"]+)"', read(module).decode(), re.MULTILINE | re.DOTALL)
    if found is None:
        sys.exit(f"make_wheel: {module} has no version: expected one in module(...)")
    return found[1]


def tag_of(binaries):
    """The wheel's tag: the machine, and the newest version of the C library that a binary names."""
    machines = {struct.unpack_from("<H", binary, 18)[0] if binary[:4] == b"\x7fELF" else None for binary in binaries}
    if len(machines) != 1 or not machines <= MACHINES.keys():
        sys.exit(f"make_wheel: the binaries' machines are {machines}: expected one of {sorted(MACHINES)}")
    minors = [int(minor) for binary in binaries for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", binary)]
    if not minors:
        sys.exit("make_wheel: the binaries name no version of the C library: expected shared linking with glibc")
    return f"py3-none-manylinux_2_{max(minors + [OLDEST])}_{MACHINES[machines.pop()]}"


def place_of(path):
    """Where a file goes in the wheel, and its mode."""
    name = os.path.basename(path)
    if name == "gcap-doctor":
        return f"{PACKAGE}/bin/{name}", 0o755
    if name == "libgcap_doctor.so":
        return f"{PACKAGE}/lib/{name}", 0o755
    if name.endswith(".md"):
        return f"{PACKAGE}/share/gcap/doctor/rules/{name}", 0o644
    if name.endswith(".py") and f"/{PACKAGE}/" in path:
        return f"{PACKAGE}/{path.rpartition(f'/{PACKAGE}/')[2]}", 0o644
    if os.path.basename(os.path.dirname(path)) == "python" and name.endswith(".py"):
        return f"{PACKAGE}/share/gcap/doctor/python/{name}", 0o644
    if name == "LICENSE":
        return "licenses/LICENSE", 0o644
    sys.exit(f"make_wheel: no place for {path}")


def record_of(files, info):
    lines = []
    for name, (content, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join(lines) + f"{info}/RECORD,,\n"


def pack(paths, version, out):
    """Writes the wheel and gives its path."""
    info = f"{PACKAGE}-{version}.dist-info"
    files = {}
    for path in paths:
        name, mode = place_of(path)
        files[f"{info}/{name}" if name.startswith("licenses/") else name] = (read(path), mode)
    tag = tag_of([content for _, (content, mode) in sorted(files.items()) if mode == 0o755])
    wheel_file = f"Wheel-Version: 1.0\nGenerator: gcap\nRoot-Is-Purelib: false\nTag: {tag}\n"
    for name, text in [("METADATA", METADATA.format(version=version)), ("WHEEL", wheel_file),
                       ("entry_points.txt", ENTRY_POINTS)]:
        files[f"{info}/{name}"] = (text.encode(), 0o644)
    files[f"{info}/RECORD"] = (record_of(files, info).encode(), 0o644)
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, f"{PACKAGE}-{version}-{tag}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        # RECORD last, as a reader of wheels expects.
        for name in sorted(files, key=lambda name: (name.endswith("/RECORD"), name)):
            entry = zipfile.ZipInfo(name)  # of 1980
            entry.create_system = 3  # has modes
            entry.external_attr = (0o100000 | files[name][1]) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, files[name][0])
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version-of", required=True, help="MODULE.bazel")
    parser.add_argument("--out", required=True, help="the folder of the wheel")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    print(pack(arguments.files, version_of(arguments.version_of), arguments.out))


if __name__ == "__main__":
    main()
