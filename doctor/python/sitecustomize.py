# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What `gcap-doctor audit` has an interpreter run as it starts: it lets the audit follow the allocators of frameworks.

The folder of this file is the first one of PYTHONPATH, so this file stands in the place of another sitecustomize, which is
run after it. Nothing here may end the program or say a word: what cannot be followed is a note of the report.
"""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def follow():
    import gcap_doctor_follow

    gcap_doctor_follow.start()


def run_other():
    """Runs the sitecustomize that this one hides."""
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    follow()
except Exception:  # of an interpreter that this file does not know: the recorder notes that nothing is followed
    pass
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE or path == ""]
run_other()
