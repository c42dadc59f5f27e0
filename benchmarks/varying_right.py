#!/usr/bin/env python3
"""Libraries of ranges of whole networks at five sizes, beside ONNX Runtime: a table of the largest differences, or of why a model is refused.

    benchmarks/varying_right.py --hone build/release/tools/hone/hone [--threads 2] [MODEL ...]

A MODEL is one of models/, which have fixed shapes: texts get a batch of 1..4, images that, too, and sides of 160..224, unless a layer needs those
that the network was made for. ONNX Runtime computes each element of a batch alone. A difference is that of the worst element, divided by the
largest of its output.
"""
import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import model_files
from varying_shapes import HoneAt

SIZES = 5
FIXED_SIDES = {"alexnet", "vgg16", "inception_v3", "ssdlite320_full", "ssd_inception_v2"}  # a layer or a table needs its sides
SIDES = (160, 224)


class Dim:
    """An extent: its ends, and the name by which it is equal to others."""

    def __init__(self, name, least, most):
        self.name, self.least, self.most = name, least, most


def dims_of_entry(name, shape):
    dims = [Dim("batch", 1, 4)]
    for d, extent in enumerate(shape[1:], 1):
        open_side = len(shape) == 4 and d >= 2 and name not in FIXED_SIDES
        dims.append(Dim(f"side{d}", *SIDES) if open_side else Dim("", extent, extent))
    return dims


def opened(path, folder):
    """The model for ONNX Runtime, without the extents that it was made for."""
    model = onnx.load(path)
    for given in model.graph.input:
        for d, dim in enumerate(given.type.tensor_type.shape.dim):
            dim.dim_param = f"{given.name}_{d}"
    del model.graph.value_info[:]
    for made in model.graph.output:
        made.type.tensor_type.ClearField("shape")
    onnx.save_model(model, folder / "opened.onnx")
    return folder / "opened.onnx"


def option(name, dims):
    return f"--shape={name}=" + ",".join(str(d.least) if d.least == d.most else f"{d.least}..{d.most}" for d in dims)


def sizes_of(dims, turn, step, rng):
    """Values of all names: the largest, the smallest, then any multiples of the step."""
    values = {}
    for of_input in dims.values():
        for dim in of_input:
            if dim.name in values or dim.least == dim.most:
                continue
            by = step if dim.name.startswith("side") else 1
            values[dim.name] = (dim.most, dim.least)[turn] if turn < 2 else int(rng.integers(dim.least // by, dim.most // by + 1)) * by
    return values


def array(entry, shape, rng):
    """An input of the manifest's kind."""
    dtype, made = np.dtype(entry["dtype"]), entry["generate"]
    if made["kind"] == "normal":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(made.get("low", 0), made.get("high", 2), shape).astype(dtype)


def by_rows(session, inputs, batch):
    """ONNX Runtime's outputs of each element of the batch, joined."""
    rows = [session.run(None, {name: x[i:i + 1] for name, x in inputs.items()}) for i in range(batch)]
    return [np.concatenate(parts) for parts in zip(*rows, strict=True)]


def difference(found, expected):
    if found.shape != expected.shape:
        return np.inf
    most = np.abs(expected).max(initial=0)
    return float(np.abs(found.astype(np.float64) - expected.astype(np.float64)).max(initial=0) / max(most, 1e-30))


def check(arguments, name, folder):
    """(ranges as text, largest difference) of a model of models/; an error as text."""
    entry, path = model_files.entry(name), model_files.filled(name)
    dims = {given["name"]: dims_of_entry(name, given["shape"]) for given in entry["inputs"]}
    library = folder / f"{name}.so"
    options = [option(given, of) for given, of in dims.items()]
    done = subprocess.run([arguments.hone, "compile", path, "-o", library, "--no-db", "--threads", str(arguments.threads), *options],
                          capture_output=True, text=True, check=False)
    ranges = "batch 1..4" + (", sides {}..{}".format(*SIDES) if any(d.name.startswith("side") for of in dims.values() for d in of) else "")
    if done.returncode != 0:
        return ranges, done.stderr.strip().splitlines()[-1]
    step = int(done.stderr.split("multiples of ")[1].split(",")[0]) if "multiples of " in done.stderr else 1
    if step > 1:
        ranges += f" by {step}"
    session = onnxruntime.InferenceSession(str(opened(path, folder)), providers=["CPUExecutionProvider"])
    rng, worst, engine = np.random.default_rng(1), 0.0, None
    for turn in range(SIZES):
        sizes = sizes_of(dims, turn, step, rng)
        inputs = {given["name"]: array(given, [sizes.get(d.name, d.most) for d in dims[given["name"]]], rng) for given in entry["inputs"]}
        if engine is None:
            engine = HoneAt(library, inputs, arguments.threads)
        engine.set(inputs)
        for found, expected in zip(engine.run(), by_rows(session, inputs, sizes["batch"]), strict=True):
            worst = max(worst, difference(found, expected))
    engine.close()
    return ranges, f"{worst:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    names = arguments.models or [entry["name"] for entry in model_files.entries()]
    with tempfile.TemporaryDirectory() as temporary:
        for name in names:
            print(f"| {name} | {' | '.join(check(arguments, name, Path(temporary)))} |", flush=True)


if __name__ == "__main__":
    main()
