# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""gcap-doctor: why did my capture fail, and is my operation capturable.

The command lies in this package, with its library and the pages of the rules. check() proves an operation capturable;
`gcap-doctor vet` looks for tests of captures that prove nothing. Importing this package imports nothing else.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def __getattr__(name):
    if name in ("check", "CannotCheck", "Finding", "NotCapturable", "Report"):
        from gcap_doctor import capturable

        return getattr(capturable, name)
    raise AttributeError(f"module 'gcap_doctor' has no attribute {name!r}")


def main():
    """Becomes the command; vet, which reads Python, is Python."""
    if sys.argv[1:2] == ["vet"]:
        from gcap_doctor import vet

        return vet.main(sys.argv[2:])
    program = os.path.join(FOLDER, "bin", "gcap-doctor")
    try:
        os.execv(program, ["gcap-doctor", *sys.argv[1:]])
    except OSError as error:
        print(f"gcap-doctor: cannot start {program}: {error.strerror}; install the wheel anew", file=sys.stderr)
        return 3
