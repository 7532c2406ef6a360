# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""As a user: the wheel is made, installed in a new virtual environment, and runs the script of examples/ort_plugin_ep.

    wheel_test.py ORT_WHEEL LIBRARY RUN.py DIGITS_MODEL.py
"""

import os
import re
import subprocess
import sys

import numpy
import onnxruntime


def run(*command, **kwargs):
    """Runs a command, shows what it says, and gives the result."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, **kwargs)
    print("$", *command, f"\n{done.stdout}{done.stderr}")
    return done


def output_of(*command, **kwargs):
    done = run(*command, **kwargs)
    assert done.returncode == 0, f"exit code {done.returncode}"
    return done.stdout.strip()


def install(wheel, folder):
    """Installs the wheel alone, and gives the new environment's Python."""
    output_of(sys.executable, "-m", "venv", "--without-pip", folder)
    python = os.path.join(folder, "bin", "python")
    packages = output_of(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-cache-dir"]
    output_of(*pip, "--target", packages, wheel)
    return python


def main(ort_wheel, library, script, digits_model):
    temporary = os.environ["TEST_TMPDIR"]
    os.environ["HOME"] = temporary
    wheel = output_of(sys.executable, ort_wheel, "--library", library, "--out", temporary)
    assert "+simulator-py3-none-" in wheel, wheel
    python = install(wheel, os.path.join(temporary, "environment"))

    # Of the test's packages the script sees what its first lines ask for.
    modules = {os.path.dirname(os.path.dirname(module.__file__)) for module in (numpy, onnxruntime)}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sorted(modules))}
    model = os.path.join(temporary, "digits.onnx")
    output_of(sys.executable, digits_model, model)
    names = "from gcap_onnxruntime_ep import *; print(get_ep_name(), get_ep_names(), get_library_path())"
    said = output_of(python, "-c", names, env=environment)
    assert re.fullmatch(r"gcap \['gcap'\] " + re.escape(temporary) + r".*\.so", said), said

    done = run(python, script, model, "--runs", "10", env=environment)
    assert done.returncode == 0, f"exit code {done.returncode}"
    assert len(re.findall(r"^.{28} +[0-9.]+ us +[0-9.]+ us$", done.stdout, re.MULTILINE)) == 4, "expected four times"
    assert "leak" not in done.stderr, "something of the EP was left at the end"
    done = run(python, script, model, "--runs", "1", "--dimension", "batch=2", env=environment)
    assert done.returncode == 0, f"exit code {done.returncode}"
    done = run(python, script, model, "--dimension", "batch", env=environment)
    assert done.returncode == 2 and "'batch' is not NAME=SIZE" in done.stderr, f"exit code {done.returncode}"
    done = run(python, script, model, "--runs", "1", "--tolerance", "-1", env=environment)
    assert done.returncode == 1 and "allowed is -1" in done.stderr, "a difference beyond the tolerance is a failure"


if __name__ == "__main__":
    main(*sys.argv[1:])
