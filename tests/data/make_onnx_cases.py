#!/usr/bin/env python3
"""Writes onnx_cases.json: what every op of ONNX's operator set does to small tensors, by ONNX's own node tests.

usage: make_onnx_cases.py onnx_cases.json     (needs the Python package onnx, version 1.23.2, Apache-2.0)

Each case is one node with its inputs and outputs. A tensor has its type (onnx.TensorProto.DataType) and dimensions, and
its content where it has at most 64 elements that are numbers. Control flow is left out, since its bodies are graphs.
"""
import json
import math
import sys

import numpy
import onnx
from onnx import defs, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

MOST_ELEMENTS = 64
MOST_CASES = 12  # per op


def number(value):
    if isinstance(value, (bool, numpy.bool_)):
        return int(value)
    if isinstance(value, (int, numpy.integer)):
        return int(value)
    value = float(value)
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return float(f"{value:.9g}")


def tensor(array, type_proto=None):
    if isinstance(array, onnx.TensorProto):  # types that numpy lacks
        return {"type": array.data_type, "dims": list(array.dims)}
    array = numpy.asarray(array)
    kind = type_proto.tensor_type.elem_type if type_proto is not None else helper.np_dtype_to_tensor_dtype(array.dtype)
    entry = {"type": kind, "dims": list(array.shape)}
    numeric = array.dtype.kind in "biuf" and kind not in (onnx.TensorProto.BFLOAT16,)
    if array.size <= MOST_ELEMENTS and numeric:
        entry["content"] = [number(x) for x in array.flatten().tolist()]
    return entry


def value(data, type_proto):
    if data is None:  # an optional without its element
        return None
    if type_proto.HasField("optional_type"):
        return {"optional": value(data, type_proto.optional_type.elem_type)}
    if type_proto.HasField("sequence_type"):
        return {"sequence": [value(item, type_proto.sequence_type.elem_type) for item in data]}
    return tensor(data, type_proto)


def attribute(proto):
    kind = onnx.AttributeProto
    if proto.type == kind.TENSOR:
        return {"tensor": tensor(numpy_helper.to_array(proto.t))}
    if proto.type == kind.INTS:
        return {"ints": list(proto.ints)}
    if proto.type == kind.FLOATS:
        return {"floats": [number(x) for x in proto.floats]}
    if proto.type == kind.STRING:
        return {"text": proto.s.decode(errors="replace")}
    if proto.type == kind.STRINGS:
        return {"texts": [s.decode(errors="replace") for s in proto.strings]}
    if proto.type == kind.INT:
        return {"int": proto.i}
    if proto.type == kind.FLOAT:
        return {"float": number(proto.f)}
    return None


def make_case(test):
    model = test.model
    if len(model.graph.node) != 1 or model.graph.initializer or not test.data_sets:
        return None
    node = model.graph.node[0]
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    if node.domain not in ("", "ai.onnx") or "" not in opsets:
        return None
    attributes = {}
    for proto in node.attribute:
        attributes[proto.name] = attribute(proto)
        if attributes[proto.name] is None:
            return None
    inputs, outputs = test.data_sets[0]
    # What is not given has an empty name; the test's data leave it out.
    given, made = iter(zip(inputs, model.graph.input)), iter(zip(outputs, model.graph.output))

    def take(names, data):
        taken = []
        for name in names:
            if not name:
                taken.append(None)
                continue
            item, info = next(data)
            assert info.name == name, (test.name, info.name, name)
            taken.append(value(item, info.type))
        return taken

    try:
        return {
            "name": test.name,
            "op": node.op_type,
            "opset": opsets[""],
            "attributes": attributes,
            "inputs": take(node.input, given),
            "outputs": take(node.output, made),
        }
    except (AssertionError, StopIteration, AttributeError, TypeError, KeyError) as error:
        print(f"left out: {test.name}: {error!r}", file=sys.stderr)
        return None


def main(path):
    newest = defs.onnx_opset_version()
    ops = sorted({schema.name for schema in defs.get_all_schemas() if schema.domain == ""})
    by_op = {}
    seen = set()
    for test in sorted(collect_testcases(None), key=lambda test: test.name):
        if test.name.endswith("_expanded"):
            continue
        case = make_case(test)
        if case is None:
            continue
        # The same op on the same shapes under the same attributes once: types hardly matter.
        shapes = [json.dumps([item and item.get("dims", "sequence") for item in case[key]]) for key in ("inputs", "outputs")]
        key = (case["op"], json.dumps(case["attributes"], sort_keys=True), *shapes)
        if key in seen:
            continue
        seen.add(key)
        by_op.setdefault(case["op"], []).append(case)
    cases = []
    for op in sorted(by_op):
        step = max(1, len(by_op[op]) / MOST_CASES)
        cases += [by_op[op][int(i * step)] for i in range(min(MOST_CASES, len(by_op[op])))]
    with open(path, "w") as file:
        file.write('{"source": "node tests of ONNX %s (Apache-2.0), written by make_onnx_cases.py",\n' % onnx.__version__)
        file.write('"opset": %d,\n"ops": %s,\n"cases": [\n' % (newest, json.dumps(ops)))
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
        file.write("\n]}\n")
    print(f"{len(ops)} ops, {len(cases)} cases of {len(by_op)} ops", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
