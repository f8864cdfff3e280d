#!/usr/bin/env python3
"""Predicted beside measured for plans that ONNX Runtime runs: `berth plan`, `berth export --to onnxruntime`, run.py.

    tools/onnxruntime/measure.py --berth build/release/berth -o out MODEL.onnx ...

Needs the Python packages numpy, onnx and onnxruntime (onnxruntime-gpu for a GPU; 1.29 or later). It measures what ONNX Runtime makes
of this processor and its GPU (a device file, `machine.yaml`), profiles each model on both, plans, exports and runs the
plans in turns, and prints the tables of docs/gpu.md; with --alone it runs each model on each of the two, and predicts
that, no more. Weights that a model lacks are made up. Seeds are fixed; times are medians. An interrupt ends it early,
with the tables of the models that are done.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

GPU = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
# As the kind of a device in a device file, and as the name of the device here.
DEVICES = {"cpu": CPU, "gpu": GPU}
# machine.yaml without half_rate_outputs: small ops run at the rate of large ones.
SAME_RATE = "same_rate.yaml"
# machine.yaml with ops that cost nothing, and 1 us, beside their work.
OVERHEADS = {"overhead_0.yaml": "0us", "overhead_1.yaml": "1us"}


# --- models -----------------------------------------------------------------------------------------------------------


def with_weights(path, batch):
    """The model with numbers in the place of weights that were left out (a ConstantOfShape of a constant shape)."""
    model = onnx.load(path)
    graph = model.graph
    for port in graph.input:
        if batch:
            port.type.tensor_type.shape.dim[0].dim_value = batch
    if batch:  # what the file says of the sizes between was for another batch
        del graph.value_info[:]
        for port in graph.output:
            port.type.tensor_type.shape.dim[0].dim_value = batch
    stored = {tensor.name: tensor for tensor in graph.initializer}
    first_use = {}
    for node in graph.node:
        for index, name in enumerate(node.input):
            first_use.setdefault(name, (node.op_type, index))
    generator = np.random.default_rng(0)
    kept = []
    for node in graph.node:
        shape = stored.get(node.input[0]) if node.op_type == "ConstantOfShape" else None
        dims = [int(size) for size in numpy_helper.to_array(shape)] if shape is not None else []
        value = node.attribute[0].t if node.attribute else None
        if np.prod(dims, dtype=np.int64) < 64 or value is None or value.data_type != TensorProto.FLOAT:
            kept.append(node)
            continue
        op, index = first_use.get(node.output[0], ("", 0))
        if len(dims) < 2:  # biases small; scales and variances, which multiply or divide, about one
            scales = op in ("BatchNormalization", "LayerNormalization", "Mul") and index in (0, 1, 4)
            weights = np.ones(dims) if scales else 0.01 * generator.standard_normal(dims)
        else:  # so that values neither grow nor fade from layer to layer
            fan_in = dims[-2] if op == "MatMul" else np.prod(dims) / dims[0]
            weights = generator.standard_normal(dims) / np.sqrt(fan_in)
        graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), node.output[0]))
    del graph.node[:]
    graph.node.extend(kept)
    return model


def make_inputs(session):
    generator = np.random.default_rng(0)
    inputs = {}
    for port in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in port.shape]
        floating = "float" in port.type
        value = generator.standard_normal(shape) if floating else np.ones(shape)
        kind = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}.get(port.type)
        if kind is None:
            sys.exit(f"input {port.name} is {port.type}: this tool makes up float, int64 and int32 only")
        inputs[port.name] = value.astype(kind)
    return inputs


# --- sessions ---------------------------------------------------------------------------------------------------------


def prepare_runtime():
    ort.set_global_thread_pool_sizes(0, 1)
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()  # CUDA's libraries, where they are Python packages


def open_session(model, device, *, optimise=True, profile=None, tf32=True):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.use_per_session_threads = False  # one pool for the process, as run.py has it
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    if profile:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    settings = {"use_tf32": "1" if tf32 else "0"} if DEVICES[device] == GPU else {}
    session = ort.InferenceSession(model, options, [(DEVICES[device], settings)])
    if session.get_providers()[0] != DEVICES[device]:
        sys.exit(f"{DEVICES[device]} cannot be loaded; ONNX Runtime took {session.get_providers()[0]} in its place")
    return session


def seconds_of(call, least=0.02, most=200, warm_up=3, calls=5):
    """The median of as many calls as take `least` seconds, after some that warm up."""
    for _ in range(warm_up):
        call()
    times = []
    while len(times) < calls or (sum(times) < least and len(times) < most):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


# --- the machine ------------------------------------------------------------------------------------------------------


def small_model(nodes, inputs, outputs, weights=()):
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs + outputs]
    graph = helper.make_graph(nodes, "micro", ports[:len(inputs)], ports[len(inputs):],
                              [numpy_helper.from_array(value, name) for name, value in weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


def chain_of(length, kind, x, w, **attributes):
    """Equal ops one after another, from the tensor t0 of x's shape, each with the weights w."""
    nodes = [helper.make_node(kind, [f"t{i}", "w"], [f"t{i + 1}"], **attributes) for i in range(length)]
    return small_model(nodes, [("t0", x.shape)], [(f"t{length}", x.shape)], [("w", w)])


def on_device(device, model, inputs, optimise=False, **settings):
    """Seconds of a run whose inputs and outputs stay on the device."""
    session = open_session(model, device, optimise=optimise, **settings)
    binding = session.io_binding()
    place = "cuda" if DEVICES[device] == GPU else "cpu"
    held = [ort.OrtValue.ortvalue_from_numpy(value, place, 0) for value in inputs.values()]
    for name, value in zip(inputs, held):
        binding.bind_ortvalue_input(name, value)
    for port in session.get_outputs():
        binding.bind_ortvalue_output(
            port.name, ort.OrtValue.ortvalue_from_shape_and_type(port.shape, np.float32, place, 0))
    return seconds_of(lambda: session.run_with_iobinding(binding), 0.3)


def machine():
    """What ONNX Runtime makes of the processor and its GPU: numbers for a device file."""
    found = {}
    for device in DEVICES:
        numbers = found[device] = {}
        size = 4096 if device == "gpu" else 2048
        a = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
        product = chain_of(1, "MatMul", a, a)
        numbers["matmul"] = 2 * size**3 / on_device(device, product, {"t0": a}, tf32=False)
        if device == "gpu":
            numbers["matmul_tf32"] = 2 * size**3 / on_device(device, product, {"t0": a}, tf32=True)
        image = np.random.default_rng(0).standard_normal((8, 256, 56, 56)).astype(np.float32)
        kernel = np.random.default_rng(1).standard_normal((256, 256, 3, 3)).astype(np.float32)
        count = 4  # and optimised, since on a processor ONNX Runtime then keeps tensors in another layout
        convolutions = chain_of(count, "Conv", image, kernel, pads=[1] * 4)
        flops = 2 * image.size * 256 * 9 * count
        numbers["conv"] = flops / on_device(device, convolutions, {"t0": image}, optimise=True, tf32=False)
        if device == "gpu":
            numbers["conv_tf32"] = flops / on_device(device, convolutions, {"t0": image}, optimise=True, tf32=True)
        large = np.ones(1 << 26, np.float32)
        addition = small_model([helper.make_node("Add", ["x", "z"], ["y"])], [("x", large.shape), ("z", large.shape)],
                               [("y", large.shape)])
        numbers["bandwidth"] = 3 * large.nbytes / on_device(device, addition, {"x": large, "z": large})
        tiny = np.ones(1, np.float32)
        numbers["per_op"] = chain_seconds(device, 201, "Add", tiny, tiny)
        if device == "gpu":
            numbers["half_rate_outputs"] = half_rate_outputs(device, numbers["conv"])
        numbers["hand_over"] = {}
        for count in (1, 1 << 24):  # through the program's memory, as run.py hands tensors from part to part
            value = np.ones(count, np.float32)
            model = small_model([helper.make_node("Neg", ["x"], ["y"])], [("x", value.shape)], [("y", value.shape)])
            session = open_session(model, device, optimise=False)
            numbers["hand_over"][4 * count] = seconds_of(lambda: session.run(None, {"x": value}), 0.3)
    return found


# Channels and height of square convolutions at a batch of 1, as ResNet-50 and Inception-V3 have them.
CONVOLUTIONS = [(32, 112), (64, 56), (256, 56), (128, 28), (512, 28), (192, 17), (768, 17), (256, 14), (1024, 14), (512, 7)]


def chain_seconds(device, length, kind, x, w, tf32=False, **attributes):
    """Of one op, in a chain of so many equal ones whose tensors stay on the device."""
    def seconds(count):
        return on_device(device, chain_of(count, kind, x, w, **attributes), {"t0": x}, tf32=tf32)
    return (seconds(length) - seconds(1)) / (length - 1)


def half_rate_outputs(device, peak):
    """How many values a convolution must make to run at half the rate that a large one has: the median over four sizes.

    A convolution that makes n values is taken to run at peak * n / (n + half_rate_outputs). The launch is not taken off:
    in a chain the next one is launched while a kernel runs.
    """
    found = []
    for channels, height in ((64, 56), (128, 28), (256, 14), (512, 7)):
        x, w, flop = square_convolution(np.random.default_rng(0), 3, channels, height)
        seconds = chain_seconds(device, 21, "Conv", x, w, pads=[1] * 4)
        found.append(x.size * max(seconds * peak / flop - 1, 0))
    return statistics.median(found)


def square_convolution(generator, kernel, channels, height):
    """Input, weights and FLOP of a convolution whose output has the shape of its input."""
    x = generator.standard_normal((1, channels, height, height)).astype(np.float32)
    w = generator.standard_normal((channels, channels, kernel, kernel)) / np.sqrt(channels * kernel**2)
    return x, w.astype(np.float32), 2 * x.size * channels * kernel**2


def by_size(device):
    """What convolutions and products of other sizes take: kind, shape, numbers that it makes, FLOP, seconds by precision."""
    generator = np.random.default_rng(0)
    rows = []
    for kernel in (1, 3):
        for channels, height in CONVOLUTIONS:
            x, w, flop = square_convolution(generator, kernel, channels, height)
            rows.append((f"{kernel}x{kernel} convolution, {channels} channels of {height}x{height}", x, w, "Conv", flop,
                         {"pads": [kernel // 2] * 4}))
    for count in (1, 16, 128, 512, 2048):
        for columns in (768, 2048):
            x = generator.standard_normal((count, columns)).astype(np.float32)
            w = (generator.standard_normal((columns, columns)) / np.sqrt(columns)).astype(np.float32)
            rows.append((f"{count} rows times {columns}x{columns}", x, w, "MatMul", 2 * x.size * columns, {}))
    return [{"what": what, "outputs": x.size, "flop": flop,
             "seconds": {name: chain_seconds(device, 21, kind, x, w, tf32, **attributes)
                         for name, tf32 in (("f32", False), ("TF32", True))}}
            for what, x, w, kind, flop, attributes in rows]


def device_file(found, memory, gpu_name, cpu_name):
    cpu, gpu = found["cpu"], found["gpu"]
    small, large = min(cpu["hand_over"]), max(cpu["hand_over"])
    session = max(cpu["hand_over"][small] - cpu["per_op"], 1e-7)
    latency = max((gpu["hand_over"][small] - cpu["hand_over"][small] - gpu["per_op"]) / 2, 1e-7)
    bandwidth = 2 * large / (gpu["hand_over"][large] - gpu["hand_over"][small])
    peak = {name: max(found[name]["matmul"], found[name]["conv"]) for name in found}
    lines = ["name: machine", "devices:"]
    for name, model in (("cpu", cpu_name), ("gpu", gpu_name)):
        lines += [f"  {name}:  # {model}", f"    kind: {name}", f"    memory: {memory[name]}B measured (the operating system)",
                  "    peak:", f"      f32: {peak[name] / 1e9:.4g}GFLOP/s measured (the faster of a product and a convolution)",
                  f"    memory_bandwidth: {found[name]['bandwidth'] / 1e9:.4g}GB/s measured (a sum of 256 MiB tensors)",
                  f"    op_overhead: {found[name]['per_op'] * 1e6:.3g}us measured (a chain of 200 tiny ops)",
                  "    efficiency:"]
        lines += [f"      {kind}: {found[name][kind] / peak[name]:.3g} measured ({what})"
                  for kind, what in (("matmul", "one large product"), ("conv", "four large convolutions in a row"))]
        if found[name].get("half_rate_outputs"):
            lines += [f"    half_rate_outputs: {found[name]['half_rate_outputs']:.0f} "
                      "measured (four 3x3 convolutions of 25088 to 200704 values)"]
    lines += ["links:", f"  - {{latency: {latency * 1e6:.3g}us, bandwidth: {bandwidth / 1e9:.4g}GB/s, "
              "provenance: measured (a tensor to the GPU and back by the program's memory)}"]
    return "\n".join(lines) + "\n", session


# --- one model --------------------------------------------------------------------------------------------------------


def profile(arguments):
    """In a process of its own: the environment decides whether launches wait for their kernels."""
    path, device, prefix, DEVICES["gpu"] = arguments
    prepare_runtime()
    session = open_session(path, device, optimise=False, profile=prefix, tf32=False)
    inputs = make_inputs(session)
    for _ in range(12):
        session.run(None, inputs)
    print(session.end_profiling())


def profile_in_child(path, device, prefix, blocking):
    environment = {**os.environ, "CUDA_LAUNCH_BLOCKING": "1" if blocking else "0"}
    command = [sys.executable, __file__, "--profile", str(path), device, str(prefix), DEVICES["gpu"]]
    made = subprocess.run(command, env=environment, capture_output=True, text=True)
    if made.returncode != 0:
        raise RuntimeError(f"profiling on {device}: {made.stderr.strip()}")
    return pathlib.Path(made.stdout.strip().splitlines()[-1])


def kernels_ms(trace):
    """The sum of a trace's op times: their medians over the runs but the first."""
    events = json.loads(trace.read_text())
    starts = sorted(event["ts"] for event in events if event.get("name") == "model_run")
    sums = [0.0] * len(starts)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            run = sum(start <= event["ts"] for start in starts) - 1
            sums[run] += event["dur"]
    return statistics.median(sums[1:]) / 1e3


def berth(arguments, *words):
    made = subprocess.run([arguments.berth, *map(str, words)], capture_output=True, text=True)
    if made.returncode != 0:
        raise RuntimeError(f"berth {words[0]}: {made.stderr.strip()}")
    return made.stdout


def planners(seeds):
    """Title, planner, seed and budget of each plan."""
    for planner in ("single(device=cpu)", "single(device=gpu)", "auto", "heft", "one_cut"):
        yield planner, planner, 1, "5000evals"
    for seed in range(1, seeds + 1):
        planner = f"on(group=merge(size={2 ** (1 + seed % 4)}),planner=random)"
        yield f"{planner}:{seed}", planner, seed, "1evals"


def read_plan(folder, provider_settings):
    """run.py of an exported plan, as a module; its Parts run the plan."""
    specification = importlib.util.spec_from_file_location("handed_over", folder / "run.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    manifest = json.loads((folder / "manifest.json").read_text())
    for part in manifest["parts"]:
        if part["device"] == "gpu":
            part["provider"] = DEVICES["gpu"]
            part["provider_options"] = {**part["provider_options"], **provider_settings} if DEVICES["gpu"] == GPU else {}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return module.Parts(folder, one_pool=True)


def one_model(arguments, path, session_seconds, report):
    path, _, batch = str(path).partition("@")
    name = pathlib.Path(path).stem + (f", batch {batch}" if batch else "")
    folder = arguments.output / name.replace(", batch ", "_")
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "model.onnx"
    onnx.save(with_weights(path, int(batch or 0)), model)
    row = report["models"].setdefault(name, {})

    whole = {device: open_session(str(model), device, tf32=False) for device in DEVICES}
    inputs = make_inputs(whole["cpu"])
    row["measured_ms"] = {device: 1e3 * seconds_of(lambda s=session: s.run(None, inputs), 1.0)
                          for device, session in whole.items()}
    tf32 = open_session(str(model), "gpu", tf32=True)
    row["measured_ms"]["gpu, TF32"] = 1e3 * seconds_of(lambda: tf32.run(None, inputs), 1.0)
    for device in () if arguments.alone else DEVICES:
        plain = open_session(str(model), device, optimise=False, tf32=False)
        row["measured_ms"][f"{device}, not optimised"] = 1e3 * seconds_of(lambda: plain.run(None, inputs), 1.0)
    expected = dict(zip([port.name for port in whole["cpu"].get_outputs()], whole["cpu"].run(None, inputs)))

    def difference(outputs):
        worst = 0.0
        for key, right in expected.items():
            if np.issubdtype(right.dtype, np.floating):
                off = float(np.abs(outputs[key] - right).max() / max(np.abs(right).max(), 1e-30))
                worst = max(worst, math.inf if math.isnan(off) else off)
        return worst

    for label, session in (("gpu", whole["gpu"]), ("gpu, TF32", tf32)):
        outputs = dict(zip(expected, session.run(list(expected), inputs)))
        row.setdefault("difference", {})[label] = difference(outputs)

    cluster = arguments.output / "machine.yaml"
    evaluator = f"serial(subgraph_overhead={session_seconds:.3g})"

    def predict(*words):
        told = {}
        for device in DEVICES:
            try:
                out = berth(arguments, "plan", model, *words, "--evaluator", evaluator, "--planner",
                            f"single(device={device})", "--json")
                told[device] = 1e3 * json.loads(out)["score_seconds"]
            except (RuntimeError, KeyError) as error:
                told[device] = str(error)
        return told

    # What an op must cost beside its work, so that the device file alone is right for this model.
    without, with_one = (predict("--cluster", arguments.output / name) for name in OVERHEADS)
    row["overhead"] = {device: {"work_ms": without[device], "ops": round(1e3 * (with_one[device] - without[device]))}
                       for device in DEVICES if all(isinstance(told[device], float) for told in (without, with_one))}
    predicted = row["predicted_ms"] = {"machine.yaml": predict("--cluster", cluster),
                                       SAME_RATE: predict("--cluster", arguments.output / SAME_RATE)}
    for extra in arguments.also:
        predicted[extra] = predict("--cluster", extra)
    if arguments.alone:
        model.unlink()
        row["done"] = True
        return

    traces = {"cpu": profile_in_child(model, "cpu", folder / "cpu", False),
              "gpu": profile_in_child(model, "gpu", folder / "gpu", True),
              "gpu, launches only": profile_in_child(model, "gpu", folder / "launches", False)}
    row["profile_ms"] = {device: kernels_ms(trace) for device, trace in traces.items()}
    profiles = (f"profile(file=\"{traces['gpu']}\",devices=gpu,"
                f"rest=profile(file=\"{traces['cpu']}\",devices=cpu))")
    totals = "/".join(f"{row['measured_ms'][device]:.4g}ms" for device in DEVICES)
    costs = f"calibrated(totals={totals},rest={profiles})"
    predicted["profile"] = predict("--cluster", cluster, "--costs", profiles)

    plans = []
    for title, planner, seed, budget in planners(arguments.seeds):
        plan = folder / f"plan_{len(plans)}.json"
        try:
            out = json.loads(berth(arguments, "plan", model, "--cluster", cluster, "--costs", costs, "--evaluator",
                                   evaluator, "--planner", planner, "--seed", seed, "--budget", budget, "-o", plan,
                                   "--json"))
            parts = folder / f"parts_{len(plans)}"
            shutil.rmtree(parts, ignore_errors=True)
            berth(arguments, "export", plan, "--to", "onnxruntime", "-o", parts)
            running = read_plan(parts, {"use_tf32": "0"})
        except (Exception, SystemExit) as error:  # one plan that fails is a row, not the end
            report["failures"].append(f"{name}, {title}: {error}")
            continue
        plans.append({"planner": title, "parts": len(running.sessions), "transfers": out["transfer_count"],
                      "predicted_ms": 1e3 * out["score_seconds"],
                      "running": running, "times": [], "difference": difference(running.run(inputs))})
        shutil.rmtree(parts, ignore_errors=True)
    for turn in range(arguments.turns):
        for plan in plans if turn % 2 == 0 else plans[::-1]:
            plan["times"].append(seconds_of(lambda: plan["running"].run(inputs), warm_up=1, calls=2))
    for plan in plans:
        del plan["running"]
        plan["measured_ms"] = 1e3 * statistics.median(plan.pop("times"))
    row["plans"] = plans
    model.unlink()
    row["done"] = True


def without_parts(plan, session_seconds):
    """The prediction in ms, less what it has for each part; `serial` adds that to the rest."""
    return plan["predicted_ms"] - 1e3 * session_seconds * plan["parts"]


def cost_of_a_part(plans, session_seconds):
    """In ms: the median over plans of several parts of what they took beyond the prediction, per part."""
    shares = [(plan["measured_ms"] - without_parts(plan, session_seconds)) / plan["parts"]
              for plan in plans if plan["parts"] > 2]
    return max(statistics.median(shares), 0.0) if shares else 1e3 * session_seconds


def rank_correlation(a, b):
    """Spearman's; equal values share the mean of their ranks."""
    def ranks(values):
        _, which, count = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count - 1) / 2)[which]
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def table(out, head, rows):
    print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1), file=out)
    for row in rows:
        print("| " + " | ".join(row) + " |", file=out)
    print(file=out)


def predict_by_others(report):
    """Adds predictions with the op_overhead that the other models need in the median; returns that of all, in us."""
    needed = {device: {name: 1e3 * (row["measured_ms"][device] - row["overhead"][device]["work_ms"]) /
                             row["overhead"][device]["ops"]
                       for name, row in report["models"].items() if row["overhead"].get(device, {}).get("ops")}
              for device in DEVICES}
    for name, row in report["models"].items():
        told = row["predicted_ms"]["op_overhead by the others"] = dict.fromkeys(DEVICES, "")
        for device, own in row["overhead"].items():
            others = [us for other, us in needed[device].items() if other != name]
            if others:
                told[device] = own["work_ms"] + 1e-3 * own["ops"] * max(statistics.median(others), 0)
    return {device: statistics.median(values.values()) for device, values in needed.items() if values}


def write_errors(report, labels, out):
    """How far predictions of one device are off, over the models: measured times over predicted ones."""
    rows = []
    for device in DEVICES:
        for label in labels:
            factors = sorted(row["measured_ms"][device] / row["predicted_ms"][label][device]
                             for row in report["models"].values()
                             if isinstance(row["predicted_ms"][label][device], float))
            if not factors:
                continue
            off = [max(factor, 1 / factor) for factor in factors]
            rows.append([device, label, str(len(factors)), f"{statistics.median(factors):.2f}",
                         f"{factors[0]:.2f} to {factors[-1]:.2f}", f"{statistics.median(off):.2f}",
                         f"{np.percentile(off, 90):.2f}"])
    table(out, ["device", "predicted by", "models", "measured / predicted, median", "from, to", "off by a factor of, median",
                "90th percentile"], rows)
    told = [(row["measured_ms"], row["predicted_ms"]) for row in report["models"].values()]
    for label in labels:
        both = [(measured, times[label]) for measured, times in told
                if all(isinstance(times[label][device], float) for device in DEVICES)]
        right = sum((measured["cpu"] < measured["gpu"]) == (times["cpu"] < times["gpu"]) for measured, times in both)
        print(f"The faster device, by {label}: right for {right} of {len(both)} models.\n", file=out)


def write_tables(report, out):
    print(f"{report['gpu']} and {report['cpu']}, ONNX Runtime {report['onnxruntime']}; milliseconds\n", file=out)
    print(f"```yaml\n{report['device_file']}```\n", file=out)
    if report.get("sizes"):
        table(out, ["op on the GPU", "outputs", "GFLOP", "us", "TFLOP/s", "us in TF32", "TFLOP/s in TF32"],
              [[row["what"], f"{row['outputs']:,}", f"{row['flop'] / 1e9:.3g}",
                *(cell for name in ("f32", "TF32") for cell in (f"{1e6 * row['seconds'][name]:.1f}",
                                                                f"{row['flop'] / row['seconds'][name] / 1e12:.1f}"))]
               for row in report["sizes"]])
    if not report["models"]:
        return
    needed = predict_by_others(report)
    rows = []
    for name, row in report["models"].items():
        for device in DEVICES:
            told = [told[device] for told in row["predicted_ms"].values()]
            rows.append([name, device, f"{row['measured_ms'][device]:.2f}",
                         *(f"{time:.2f}" for time in [row["measured_ms"].get(f"{device}, not optimised")] if time),
                         *([f"{row['measured_ms']['gpu, TF32']:.2f}", f"{row['difference']['gpu']:.1e}"]
                           if device == "gpu" else ["", ""]),
                         *(f"{time:.2f}" if isinstance(time, float) else time for time in told)])
    labels = list(next(iter(report["models"].values()))["predicted_ms"])
    plain = ["not optimised"] if any("cpu, not optimised" in row["measured_ms"] for row in report["models"].values()) else []
    table(out, ["model", "device", "measured", *plain, "TF32", "outputs differ by", *(f"by {label}" for label in labels)], rows)
    write_errors(report, labels, out)
    print("The op_overhead that these models need, as Berth counts their ops: " +
          ", ".join(f"{device} {us:.1f} us" for device, us in needed.items()) + " in the median.\n", file=out)
    if any(row.get("plans") for row in report["models"].values()):
        write_plans(report, out)


def write_plans(report, out):
    summary, pages = [], []
    for name, row in report["models"].items():
        plans = row["plans"]
        seen = [plan for other, its in report["models"].items() if other != name for plan in its["plans"]]
        per_part = cost_of_a_part(seen, report["session_seconds"])
        plain = [plan["predicted_ms"] for plan in plans]
        fitted = [without_parts(plan, report["session_seconds"]) + per_part * plan["parts"] for plan in plans]
        # Of one part: a device alone, whose total the prediction was given. The same plan found twice counts once.
        split = list({(plan["parts"], round(plan["predicted_ms"], 9)): index
                      for index, plan in enumerate(plans) if plan["parts"] > 1}.values())
        cells = [name, str(len(split)), f"{1e3 * per_part:.0f} us"]
        measured = [plans[index]["measured_ms"] for index in split]
        for told in ([plain[index] for index in split], [fitted[index] for index in split]):
            if not split:
                cells.append("-")
                continue
            error = statistics.median(abs(guess / truth - 1) for guess, truth in zip(told, measured))
            cells.append(f"{error:.0%}, {rank_correlation(told, measured):.2f}")
        parts = [plans[index]["parts"] for index in split]
        cells.append(f"{rank_correlation(parts, measured):.2f}" if split else "-")
        cells.append(f"{max(plan['difference'] for plan in plans):.1e}")
        summary.append(cells)
        pages.append((name, [[f"`{plan['planner']}`", str(plan["parts"]), f"{told:.2f}", f"{with_parts:.2f}",
                              f"{plan['measured_ms']:.2f}"] for plan, told, with_parts in zip(plans, plain, fitted)]))
    table(out, ["model", "plans of several parts", "a part costs", "predicted", "with parts", "parts alone", "outputs differ by"], summary)
    for name, page in pages:
        print(f"{name}:\n", file=out)
        table(out, ["plan", "parts", "predicted", "with the cost of its parts", "measured"], page)


def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""


def main():
    if sys.argv[1:2] == ["--profile"]:
        return profile(sys.argv[2:6])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="ONNX files")
    parser.add_argument("--sizes", action="store_true", help="convolutions and products of many sizes on the GPU, too")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="a folder for everything")
    parser.add_argument("--berth", default="build/release/berth", help="the program")
    parser.add_argument("--also", action="append", default=[], help="further device files that predict, with cpu and gpu")
    parser.add_argument("--alone", action="store_true", help="each device alone and its predictions; no profiles, no plans")
    parser.add_argument("--seeds", type=int, default=12, help="how many random plans")
    parser.add_argument("--turns", type=int, default=5, help="how often each plan has its turn")
    parser.add_argument("--gpu", default=GPU, help="the provider of the second device")
    arguments = parser.parse_args()
    DEVICES["gpu"] = arguments.gpu
    prepare_runtime()
    arguments.output.mkdir(parents=True, exist_ok=True)

    gpu_name = first_line("nvidia-smi", "--query-gpu=name", "--format=csv,noheader") or arguments.gpu
    gpu_memory = first_line("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits") or "1024"
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    cpu_name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "a processor")
    memory = {"cpu": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "gpu": int(gpu_memory) << 20}
    found = machine()
    text, session = device_file(found, memory, gpu_name, cpu_name)
    (arguments.output / "machine.yaml").write_text(text)
    for name, overhead in OVERHEADS.items():
        (arguments.output / name).write_text(re.sub(r"op_overhead: \S+us", f"op_overhead: {overhead}", text))
    (arguments.output / SAME_RATE).write_text(
        "".join(line for line in text.splitlines(True) if "half_rate_outputs" not in line))
    report = {"gpu": gpu_name, "cpu": f"{cpu_name}, {os.cpu_count()} processors", "onnxruntime": ort.__version__,
              "machine": found, "session_seconds": session, "device_file": text, "models": {}, "failures": []}
    if arguments.sizes:
        report["sizes"] = by_size("gpu")
    for path in arguments.models:
        began = time.perf_counter()
        try:
            one_model(arguments, path, session, report)
        except KeyboardInterrupt:
            report["failures"].append(f"{path}: interrupted, and the models after it")
            break
        except (Exception, SystemExit) as error:  # the other models still count
            report["failures"].append(f"{path}: {error}")
        print(f"{path}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        (arguments.output / "report.json").write_text(json.dumps(report, indent=1, default=str))
    report["models"] = {name: row for name, row in report["models"].items()
                        if row.get("done") and (arguments.alone or row["plans"])}
    if arguments.models and not report["models"]:
        sys.exit("no model was measured:\n" + "\n".join(report["failures"]))
    with open(arguments.output / "tables.md", "w") as out:
        write_tables(report, out)
        for failure in report["failures"]:
            print(f"failed: {failure}\n", file=out)
    print((arguments.output / "tables.md").read_text())


if __name__ == "__main__":
    main()
