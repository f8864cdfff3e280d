#!/usr/bin/env python3
"""Writes tests/data/loops: a Loop, a Scan and an If, each a model of one op.

Made with onnx 1.23; the tests do not need it. Run in tests/data/loops.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(1)
node = helper.make_node


def tensor(name, *dims, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, list(dims))


def weight(name, *dims):
    return numpy_helper.from_array(random.random(dims, dtype=np.float32), name)


def constant(name, value, type):
    return numpy_helper.from_array(np.array(value, type), name)


def save(name, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, name + ".onnx")


# Nine rounds, two states, and what every round makes.
body = helper.make_graph(
    [node("MatMul", ["s", "W"], ["m"]), node("Tanh", ["m"], ["t"]), node("Add", ["t", "c"], ["c_next"]),
     node("Identity", ["go"], ["go_next"]), node("Identity", ["t"], ["scanned"])],
    "body",
    [tensor("i", type=TensorProto.INT64), tensor("go", type=TensorProto.BOOL), tensor("s", 4, 32), tensor("c", 4, 32)],
    [tensor("go_next", type=TensorProto.BOOL), tensor("t", 4, 32), tensor("c_next", 4, 32), tensor("scanned", 4, 32)],
    [weight("W", 32, 32)])
save("loop", [node("Loop", ["rounds", "begin", "x", "c0"], ["y", "c1", "all"], body=body)],
     [tensor("x", 4, 32), tensor("c0", 4, 32)], [tensor("y", 4, 32), tensor("c1", 4, 32), tensor("all", 9, 4, 32)],
     [constant("rounds", 9, np.int64), constant("begin", True, bool)])

# A recurrence over eleven elements.
body = helper.make_graph(
    [node("MatMul", ["x1", "U"], ["a"]), node("MatMul", ["h0", "V"], ["b"]), node("Add", ["a", "b"], ["d"]),
     node("Sigmoid", ["d"], ["h1"]), node("Identity", ["h1"], ["o"])],
    "body", [tensor("h0", 4, 16), tensor("x1", 4, 8)], [tensor("h1", 4, 16), tensor("o", 4, 16)],
    [weight("U", 8, 16), weight("V", 16, 16)])
save("scan", [node("Scan", ["begin", "x"], ["last", "all"], body=body, num_scan_inputs=1)],
     [tensor("begin", 4, 16), tensor("x", 11, 4, 8)], [tensor("last", 4, 16), tensor("all", 11, 4, 16)])

# A product, or no more than a maximum.
then = helper.make_graph([node("MatMul", ["x", "P"], ["r1"])], "then", [], [tensor("r1", 4, 32)], [weight("P", 32, 32)])
otherwise = helper.make_graph([node("Relu", ["x"], ["r2"])], "otherwise", [], [tensor("r2", 4, 32)])
save("branch", [node("If", ["which"], ["y"], then_branch=then, else_branch=otherwise)],
     [tensor("which", type=TensorProto.BOOL), tensor("x", 4, 32)], [tensor("y", 4, 32)])
