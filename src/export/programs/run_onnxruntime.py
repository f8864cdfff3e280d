#!/usr/bin/env python3
"""Runs the parts of a model one after another, as manifest.json has them: @title@.

Needs the Python packages onnxruntime and numpy.
"""
import argparse
import contextlib
import json
import pathlib
import sys
import time

import numpy as np
import onnxruntime as ort


class Parts:
    def __init__(self, folder, provider=None):
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.sessions = []
        # Parts take turns. With a pool of threads for all of them, threads of those that wait take no processor time
        # from the one that runs; where devices have different numbers of threads, these sleep between their ops.
        threads = {part["threads"] for part in self.manifest["parts"] if provider or "CPU" in part["provider"]}
        one_pool = len(threads) < 2
        if one_pool:
            with contextlib.suppress(ort.capi.onnxruntime_pybind11_state.Fail):  # the process has one
                ort.set_global_thread_pool_sizes(max(threads, default=0), 1)
        if hasattr(ort, "preload_dlls") and any("CUDA" in part["provider"] for part in self.manifest["parts"]):
            ort.preload_dlls()  # CUDA's libraries, where they are Python packages
        for part in self.manifest["parts"]:
            chosen, settings = (provider, {}) if provider else (part["provider"], part["provider_options"])
            # ONNX Runtime would quietly take the CPU instead.
            if chosen not in ort.get_available_providers():
                sys.exit(f"part {part['file']} is for {part['device']}: this onnxruntime has no {chosen}, but "
                         f"{', '.join(ort.get_available_providers())}; --provider runs all parts with one")
            options = ort.SessionOptions()
            options.use_per_session_threads = not one_pool
            if not one_pool:
                options.intra_op_num_threads = part["threads"]
                options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = ort.InferenceSession(folder / part["file"], options, [(chosen, settings)])
            # Nor does it stop where the provider is there and its libraries or its device are not.
            if chosen not in session.get_providers():
                sys.exit(f"part {part['file']} is for {part['device']}: onnxruntime has {chosen} but cannot load it "
                         f"here (the lines above may say why); --provider runs all parts with one")
            self.sessions.append(session)

    def run(self, inputs):
        values = dict(inputs)
        for part, session in zip(self.manifest["parts"], self.sessions):
            fed = {name: values[name] for name in part["inputs"]}
            values.update(zip(part["outputs"], session.run(part["outputs"], fed)))
        return {port["name"]: values[port["name"]] for port in self.manifest["outputs"]}


def make_input(port):
    if port["type"].startswith("float"):
        return np.random.default_rng(0).standard_normal(port["shape"]).astype(port["type"])
    return np.ones(port["shape"], port["type"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", help="an .npz with an array per input (default: made up)")
    parser.add_argument("--outputs", help="an .npz to write the outputs to")
    parser.add_argument("--runs", type=int, default=5, help="how often to run it (default: 5)")
    parser.add_argument("--provider", help="run all parts with this one, as CPUExecutionProvider")
    arguments = parser.parse_args()

    parts = Parts(pathlib.Path(__file__).resolve().parent, arguments.provider)
    given = np.load(arguments.inputs) if arguments.inputs else {}
    inputs = {}
    for port in parts.manifest["inputs"]:
        inputs[port["name"]] = given[port["name"]] if port["name"] in given else make_input(port)
    for _ in range(arguments.runs):
        began = time.perf_counter()
        outputs = parts.run(inputs)
        print(f"{1e3 * (time.perf_counter() - began):.2f} ms")
    for name, value in outputs.items():
        print(name, value.dtype, value.shape)
    if arguments.outputs:
        np.savez(arguments.outputs, **outputs)


if __name__ == "__main__":
    main()
