#!/usr/bin/env python3
"""Runs the parts of a model one after another, as manifest.json has them: @title@.

Needs the Python packages onnxruntime and numpy.
"""
import argparse
import json
import pathlib
import sys
import time

try:
    import numpy as np
    import onnxruntime as ort
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is missing: python3 -m pip install numpy onnxruntime")

CUDA = "CUDAExecutionProvider"


class Parts:
    """The parts as sessions. Parts take turns, so threads of those that wait should not take processor time from the
    one that runs: with `one_pool` all use the process's pool of threads, which ort.set_global_thread_pool_sizes makes
    (every session of the process must use it then); without it each has its own, which sleep between their ops."""

    def __init__(self, folder, provider=None, one_pool=False):
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.sessions = []
        if hasattr(ort, "preload_dlls") and CUDA in {provider or part["provider"] for part in self.manifest["parts"]}:
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
            # Nor does it stop where it has the provider and lacks its libraries or its device.
            if chosen not in session.get_providers():
                sys.exit(f"part {part['file']} is for {part['device']}: onnxruntime has {chosen} but cannot load it "
                         "here (the lines above may say why); --provider runs all parts with one")
            self.sessions.append(session)

    def run(self, inputs):
        values = dict(inputs)
        for part, session in zip(self.manifest["parts"], self.sessions):
            fed = {name: values[name] for name in part["inputs"]}
            values.update(zip(part["outputs"], session.run(part["outputs"], fed)))
        return {port["name"]: values[port["name"]] for port in self.manifest["outputs"]}


def processor_threads(folder, provider):
    """How many threads the processor's parts have, if all have as many; else None. 0: as many as ONNX Runtime likes."""
    parts = json.loads((folder / "manifest.json").read_text())["parts"]
    threads = {part["threads"] for part in parts if part["provider"] == "CPUExecutionProvider"}
    if provider or not threads:
        return max(threads, default=0)
    return threads.pop() if len(threads) == 1 else None


def make_input(port):
    if port["type"].startswith("float"):
        return np.random.default_rng(0).standard_normal(port["shape"]).astype(port["type"])
    if port["type"] == "string":
        return np.full(port["shape"], "a", dtype=object)
    return np.ones(port["shape"], port["type"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", help="an .npz with an array per input (default: made up)")
    parser.add_argument("--outputs", help="an .npz to write the outputs to")
    parser.add_argument("--runs", type=int, default=5, help="how often to run it (default: 5)")
    parser.add_argument("--provider", help="run all parts with this one, as CPUExecutionProvider")
    arguments = parser.parse_args()

    if arguments.runs < 1:
        parser.error("--runs: at least 1")

    folder = pathlib.Path(__file__).resolve().parent
    threads = processor_threads(folder, arguments.provider)
    one_pool = threads is not None and hasattr(ort, "set_global_thread_pool_sizes")  # older ones have no such pool
    if one_pool:
        ort.set_global_thread_pool_sizes(threads, 1)
    parts = Parts(folder, arguments.provider, one_pool)
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
