# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""As a user: the wheel is made, installed in a new virtual environment, and runs the script of examples/ort_plugin_ep.

    wheel_test.py ORT_WHEEL LIBRARY RUN.py DIGITS_MODEL.py
"""

import os
import re
import subprocess
import sys

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper


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
    inputs(python, script, model, environment)
    refusals(python, script, environment)


def inputs(python, script, model, environment):
    """Shapes and contents of inputs are given by name."""
    images = os.path.join(environment["HOME"], "images.npy")
    numpy.save(images, numpy.ones((3, 1, 8, 8), numpy.float32))
    for option in (("--shape", "images=4x1x8x8"), ("--input", f"images={images}")):
        done = run(python, script, model, "--runs", "1", *option, env=environment)
        assert done.returncode == 0, f"exit code {done.returncode}"
    for code, said, *option in (
        (2, "'images=4x' is not NAME=SIZExSIZE", "--shape", "images=4x"),
        (2, "'images=none.npy' is not NAME=FILE.npy", "--input", "images=none.npy"),
        (1, "the model has no input pictures, it has images", "--shape", "pictures=1"),
    ):
        done = run(python, script, model, *option, env=environment)
        assert done.returncode == code and said in done.stderr, f"exit code {done.returncode}"


def refusals(python, script, environment):
    """A model that is not captured ends the script with a sentence, and nothing of the EP is left."""
    x, low = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2]), ("low", [])))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    z = helper.make_tensor_value_info("z", TensorProto.INT64, [1, "n"])
    neg, clip = helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Clip", ["x", "low"], ["y"])
    for nodes, ins, outs, said in (
        ([neg, helper.make_node("NonZero", ["y"], ["z"])], [x], [y, z], "1 NonZero (no kernel)"),
        ([clip], [x, low], [y], "on the host, where a replay would"),
    ):
        graph = helper.make_graph(nodes, "graph", ins, outs)
        model = os.path.join(environment["HOME"], "refused.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), model)
        done = run(python, script, model, "--runs", "1", env=environment)
        assert done.returncode == 1 and said in done.stderr, f"exit code {done.returncode}"
        assert not any(word in done.stderr for word in ("Traceback", "leak", "kept")), "not ended in order"


if __name__ == "__main__":
    main(*sys.argv[1:])
