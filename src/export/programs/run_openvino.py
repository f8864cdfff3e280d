#!/usr/bin/env python3
"""Runs model.xml as Berth placed it: @title@.

Needs the Python packages openvino and numpy.
"""
import argparse
import pathlib
import sys
import time

try:
    import numpy as np
    import openvino as ov
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is missing: python3 -m pip install numpy openvino")

# The devices by the name under which the model's nodes ask for them, and how each computes.
DEVICES = {
@devices@}
# Names of the CPU beside its own, for devices that are a share of its cores.
MORE_CPUS = [@more_cpus@]


def compile_model(folder):
    core = ov.Core()
    for name in MORE_CPUS:
        core.register_plugin("openvino_intel_cpu_plugin", name)
    for name, settings in DEVICES.items():
        core.set_property(name, settings)
    model = core.read_model(folder / "model.xml")
    # HETERO asks every node, constants too. An IR keeps no such thing at its nodes: it is kept at the model, by name.
    for node in model.get_ordered_ops():
        affinity = model.get_rt_info(["affinity", node.get_friendly_name()]).astype(str)
        node.get_rt_info()["affinity"] = affinity
    return core.compile_model(model, "HETERO:" + ",".join(DEVICES))


def make_input(port):
    kind = port.get_element_type().to_dtype()
    if np.issubdtype(kind, np.floating):
        return np.random.default_rng(0).standard_normal(port.get_shape()).astype(kind)
    return np.ones(port.get_shape(), kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", help="an .npz with an array per input (default: made up)")
    parser.add_argument("--outputs", help="an .npz to write the outputs to")
    parser.add_argument("--runs", type=int, default=5, help="how often to run it (default: 5)")
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error("--runs: at least 1")

    compiled = compile_model(pathlib.Path(__file__).resolve().parent)
    given = np.load(arguments.inputs) if arguments.inputs else {}
    inputs = {}
    for port in compiled.inputs:
        named = [name for name in port.get_names() if name in given]
        inputs[port] = given[named[0]] if named else make_input(port)
    request = compiled.create_infer_request()
    for _ in range(arguments.runs):
        began = time.perf_counter()
        results = request.infer(inputs)
        print(f"{1e3 * (time.perf_counter() - began):.2f} ms")
    outputs = {}
    for position, port in enumerate(compiled.outputs):
        names = sorted(port.get_names()) or [f"output_{position}"]
        print(names[0], results[port].dtype, results[port].shape)
        outputs.update((name, results[port]) for name in names)
    if arguments.outputs:
        np.savez(arguments.outputs, **outputs)


if __name__ == "__main__":
    main()
