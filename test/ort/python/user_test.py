# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""What a user of the Python module meets, with the log that the user sees.

    user_test.py LIBRARY

A model that is refused for graphs is refused with one warning, which names the nodes in the way. A model of unknown
ranks is captured. Threads run a session, hand their outputs on, and end: nothing is left of them.
"""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

KEPT = ("kept", "leak")


def model(nodes, inputs, outputs, initializers=(), opset=17):
    values = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in each]
              for each in (inputs, outputs)]
    graph = helper.make_graph(nodes, "graph", *values, list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return made.SerializeToString()


def model_of_unknown_rank():
    """A Reshape to a computed shape in an old opset, as exporters write it: ONNX Runtime infers no rank."""
    gathers = [helper.make_node("Gather", ["shape", f"i{i}"], [f"d{i}"], axis=0) for i in range(3)]
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        *gathers,
        helper.make_node("Mul", ["d0", "d1"], ["p"]),
        helper.make_node("Unsqueeze", ["p"], ["u0"], axes=[0]),
        helper.make_node("Unsqueeze", ["d2"], ["u1"], axes=[0]),
        helper.make_node("Concat", ["u0", "u1"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["z"]),
        helper.make_node("MatMul", ["z", "w"], ["y"]),
    ]
    initializers = [numpy_helper.from_array(np.array(i), f"i{i}") for i in range(3)]
    initializers.append(numpy_helper.from_array(np.ones((4, 4), np.float32), "w"))
    return model(nodes, [("x", ["n", 3, 4])], [("y", ["p", 4])], initializers, opset=12)


def model_of_control_flow():
    """An If, whose branches have an operator that the EP lacks, and a function that ONNX Runtime inlines to one."""

    def branch(op_type, name):
        nodes = [helper.make_node(op_type, ["x"], [name + "_in"]),
                 helper.make_node("RandomUniformLike", [name + "_in"], [name])]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])])

    nodes = [
        helper.make_node("Neg", ["x0"], ["x"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Neg", "then"), else_branch=branch("Abs", "else")),
        helper.make_node("CastLike", ["y", "d"], ["z"]),
    ]
    values = [helper.make_tensor_value_info(name, kind, shape)
              for name, kind, shape in (("x0", TensorProto.FLOAT, [2]), ("c", TensorProto.BOOL, []),
                                        ("z", TensorProto.DOUBLE, [2]))]
    double = numpy_helper.from_array(np.zeros(1), "d")
    graph = helper.make_graph(nodes, "graph", values[:2], values[2:], [double])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def model_that_is_asked_of_twice():
    """A node that reads one value on the host and on the device, before a function that ONNX Runtime inlines."""
    nodes = [helper.make_node("Squeeze", ["z", "z"], ["s"]), helper.make_node("Add", ["x", "s"], ["a"]),
             helper.make_node("CastLike", ["a", "z"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.INT64, [3]) for name in "xy")
    graph = helper.make_graph(nodes, "graph", [x], [y], [numpy_helper.from_array(np.array([0]), "z")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def model_of_a_shared_constant():
    """A constant that an And reads on the device, and a Dropout of a branch on the host."""
    t, e, x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "texyz")
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    then_branch = helper.make_graph([helper.make_node("Dropout", ["w", "ratio", "no"], ["t"])], "then", [], [t])
    else_branch = helper.make_graph([helper.make_node("Neg", ["w"], ["e"])], "else", [], [e])
    nodes = [helper.make_node("Greater", ["x", "y"], ["g"]), helper.make_node("And", ["g", "no"], ["h"]),
             helper.make_node("Where", ["h", "x", "y"], ["w"]),
             helper.make_node("If", ["c"], ["z"], then_branch=then_branch, else_branch=else_branch)]
    constants = [numpy_helper.from_array(np.array(False), "no"),
                 numpy_helper.from_array(np.array(0.5, np.float32), "ratio")]
    graph = helper.make_graph(nodes, "graph", [x, y, c], [z], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def session(made, device, dimensions=(), **entries):
    options = ort.SessionOptions()
    if made in (model_that_is_asked_of_twice(), model_of_a_shared_constant()):  # constants would be folded
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    for name, size in dimensions:
        options.add_free_dimension_override_by_name(name, size)
    options.add_provider_for_devices([device], entries)
    return ort.InferenceSession(made, options)


def try_graphs(device):
    for name, made in (("control flow", model_of_control_flow()), ("asked twice", model_that_is_asked_of_twice())):
        try:
            session(made, device, enable_cuda_graph="1")
            print(f"{name}: captured")
        except Exception as error:  # ONNX Runtime's own classes have no common one
            print(f"{name}:", str(error).splitlines()[0])
    made = model_of_unknown_rank()
    for name, dimensions in (("as it is", ()), ("with n fixed", [("n", 1)])):
        each = session(made, device, dimensions, enable_cuda_graph="1")
        binding = each.io_binding()
        x = ort.OrtValue.ortvalue_from_numpy(np.ones((1, 3, 4), np.float32), "cuda", 0)
        y = ort.OrtValue.ortvalue_from_numpy(np.zeros((3, 4), np.float32), "cuda", 0)
        binding.bind_ortvalue_input("x", x)
        binding.bind_ortvalue_output("y", y)
        for factor in (1, 2):
            x.update_inplace(np.full((1, 3, 4), factor, np.float32))
            each.run_with_iobinding(binding)
            assert (y.numpy() == 4 * factor).all(), y.numpy()
        print(f"{name}: captured")


def share_a_constant(device):
    """ONNX Runtime keeps the constant on the device, where a kernel that reads on the host cannot look."""
    each = session(model_of_a_shared_constant(), device)
    x, y = np.array([1, 4], np.float32), np.array([2, 3], np.float32)
    z = each.run(None, {"x": x, "y": y, "c": np.array(True)})[0]
    assert (z == [2, 3]).all(), z


def hand_on_tensors(device):
    """Since 1.30, bind_output of "cuda" finds the memory of a plugin's device."""
    made = session(model([helper.make_node("Neg", ["x"], ["y"])], [("x", ["n"])], [("y", ["n"])]), device)
    results = []

    def work():
        binding = made.io_binding()
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(np.ones(1000, np.float32), "cuda", 0))
        binding.bind_output("y", "cuda", 0)
        made.run_with_iobinding(binding)
        results.append(binding.get_outputs()[0])

    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(results) == 20 and all((result.numpy() == -1).all() for result in results)


def be_a_user(library):
    ort.register_execution_provider_library("gcap", os.path.realpath(library))
    device = [device for device in ort.get_ep_devices() if device.ep_name == "gcap"][0]
    try_graphs(device)
    if tuple(int(part) for part in ort.__version__.split(".")[:2]) >= (1, 30):
        hand_on_tensors(device)
        share_a_constant(device)  # 1.26 does not tell a kernel of a branch that what the graph around it has is constant
    ort.unregister_execution_provider_library("gcap")


def main(library):
    user = subprocess.run([sys.executable, __file__, library, "user"], check=False, capture_output=True, text=True)
    print(user.stdout, user.stderr)
    assert user.returncode == 0, user.returncode
    for name in ("control flow", "asked twice"):
        assert re.search(rf"^{name}: .*graph capture feature", user.stdout, re.MULTILINE), name
    for name in ("as it is", "with n fixed"):
        assert f"{name}: captured" in user.stdout, name
    warnings = [line for line in user.stderr.splitlines() if "EP 'gcap' leaves" in line]
    assert len(warnings) == 2, warnings
    assert "leaves 2 of 3 nodes" in warnings[0], "of the outermost graph, as it is at last"
    for node in ("1 If (no kernel)", "1 Cast (a value of type double)"):
        assert node in warnings[0], warnings
    assert "1 Squeeze (one value is read on the host and on the device)" in warnings[1], warnings
    assert not any(word in user.stderr for word in KEPT), "something of a thread was left"
    return 0


if __name__ == "__main__":
    sys.exit(be_a_user(sys.argv[1]) if len(sys.argv) > 2 else main(sys.argv[1]))
