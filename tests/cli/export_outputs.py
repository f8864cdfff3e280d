"""Whether what `berth export` wrote gives the outputs of the whole model: export_outputs.py RUNTIME MODEL FOLDER.

Feeds the same random inputs to the model, as the runtime itself reads it, and to FOLDER/run.py. Prints the largest
difference as a share of each output's largest magnitude; exit code 1 above 1e-4.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np


def random_input(name, shape, kind):
    generator = np.random.default_rng(len(name))
    if np.issubdtype(kind, np.floating):
        return generator.standard_normal(shape).astype(kind)
    return generator.integers(0, 2, shape).astype(kind)


def run_openvino(model):
    import openvino as ov

    core = ov.Core()
    read = core.read_model(model)
    compiled = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    inputs = {}
    for port in compiled.inputs:
        inputs[port.get_any_name()] = random_input(port.get_any_name(), port.get_shape(), port.get_element_type().to_dtype())
    results = compiled(inputs)
    return inputs, {port.get_any_name(): results[port] for port in compiled.outputs}


def run_onnxruntime(model):
    import onnxruntime as ort

    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    inputs = {}
    for port in session.get_inputs():
        inputs[port.name] = random_input(port.name, [size if isinstance(size, int) else 1 for size in port.shape], kinds[port.type])
    names = [port.name for port in session.get_outputs()]
    return inputs, dict(zip(names, session.run(names, inputs)))


def main():
    runtime, model, folder = sys.argv[1:4]
    inputs, expected = {"openvino": run_openvino, "onnxruntime": run_onnxruntime}[runtime](model)
    with tempfile.TemporaryDirectory() as beside:
        fed, got = str(pathlib.Path(beside) / "in.npz"), str(pathlib.Path(beside) / "out.npz")
        np.savez(fed, **inputs)
        command = [sys.executable, str(pathlib.Path(folder) / "run.py"), "--inputs", fed, "--outputs", got, "--runs", "2"]
        command += sys.argv[4:]
        subprocess.run(command, check=True)
        given = dict(np.load(got))
    worst = 0.0
    for name, value in expected.items():
        assert given[name].shape == value.shape, (name, given[name].shape, value.shape)
        assert np.isfinite(value).all() and np.std(value) > 0, f"{name} would compare nothing"
        worst = max(worst, float(np.abs(given[name] - value).max() / np.abs(value).max()))
    print(f"largest difference {worst:.1e} in {len(expected)} outputs")
    return 0 if expected and worst <= 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
