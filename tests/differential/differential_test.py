"""Random small graphs of supported operators: compiled, run and compared with ONNX Runtime.

    HONE=build/tools/hone/hone differential_test.py [--seed N] [--models N] [--subgraphs N] [--keep FOLDER]

A model is many independent subgraphs, so that one compilation tests them all; each seed makes the same model everywhere. On a difference it
prints the seed and the smallest part that still differs, and exits with 1.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))
try:
    import engines
    import onnx
    from maker import random_subgraph
    from subgraph import merged_model, text_of
except ImportError as missing:
    sys.exit(f"the differential test needs numpy, onnx and onnxruntime ({missing}): run scripts/setup.sh")

HONE = os.environ.get("HONE", "hone")
OPSETS = (13, 17, 18, 20, 21, 22)
# Largest difference allowed, relative to the largest magnitude of the output.
TOLERANCE = {np.float32: 2e-4, np.float64: 1e-6, np.float16: 2e-2}


class Refused(Exception):
    """hone compile ended with an error message, or crashed."""


def compiled_outputs(subgraphs, opset, folder):
    """{name: array} of a model with these subgraphs."""
    model, library = folder / "model.onnx", folder / "model.so"
    onnx.save_model(merged_model(subgraphs, opset), model)
    done = subprocess.run([HONE, "compile", str(model), "-o", str(library), "--no-db", "--no-check", "--threads", "2"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(done.stderr.strip() or f"hone compile ended with exit code {done.returncode}")
    # In a process of its own: a crash is a finding like any other.
    inputs, outputs = folder / "inputs.npz", folder / "outputs.npz"
    np.savez(inputs, **{v.name: v.array for subgraph in subgraphs for v in subgraph.inputs()})
    done = subprocess.run([sys.executable, __file__, "--run", str(library), str(inputs), str(outputs)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"running it ended with exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    with np.load(outputs) as found:
        return dict(found)


def run_library(library, inputs, outputs):
    with np.load(inputs) as given:
        engine = engines.Hone(library, dict(given), 2)
    names = [name for name, _, _ in engine._tensors("output")]
    engine.run()
    np.savez(outputs, **dict(zip(names, engine.outputs, strict=True)))


def difference(found, expected, exact):
    """None, or what is wrong."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype} {list(found.shape)}, expected {expected.dtype} {list(expected.shape)}"
    if found.size == 0 or np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f"):
        return None
    if expected.dtype.type not in TOLERANCE:
        return f"{np.count_nonzero(found != expected)} of {found.size} elements differ"
    a, b = found.astype(np.float64), expected.astype(np.float64)
    error = np.where(a == b, 0, np.abs(a - b)).max() / max(1.0, np.abs(b).max())
    return None if error <= TOLERANCE[expected.dtype.type] else f"relative error {error:.2g}"


def differences(subgraphs, found):
    """[(subgraph, output, what)]"""
    wrong = []
    for subgraph in subgraphs:
        for name in subgraph.outputs:
            value = subgraph.values[name]
            what = difference(found[name], value.array, value.exact)
            if what:
                wrong.append((subgraph, name, what))
    return wrong


def still_wrong(subgraph, opset, folder, message):
    """Whether it differs or, where hone or the model failed, fails with the like message."""
    try:
        wrong = differences([subgraph], compiled_outputs([subgraph], opset, folder))
    except Refused as refused:
        return message is not None and kind_of(str(refused)) == kind_of(message)
    return message is None and bool(wrong)


def kind_of(message):
    return re.sub(r"'[^']*'|\d+", "", message)[:80]


def minimised(subgraph, outputs, opset, folder, message=None):
    """The part of a subgraph that shows the difference: results become inputs one after the other."""
    small = subgraph.restricted(subgraph.nodes, outputs)
    if not still_wrong(small, opset, folder, message):
        return subgraph
    shrinks = True
    while shrinks:
        shrinks = False
        for node in list(small.nodes):
            smaller = small.restricted([other for other in small.nodes if other is not node], small.outputs)
            if node.output[0] in small.outputs:
                read = [name for name in node.input if small.values[name].kind == "result"] if len(small.nodes) > 1 else []
                smaller = small.restricted(small.nodes, read[:1]) if read else None
            if smaller and smaller.nodes and still_wrong(smaller, opset, folder, message):
                small, shrinks = smaller, True
                break
    return small


def named_subgraph(message, subgraphs):
    """Which one an error message is about."""
    for subgraph in subgraphs:
        if f"'{subgraph.prefix}" in message or f" {subgraph.prefix}n" in message:
            return subgraph
    return None


def first_failing(subgraphs, opset, folder):
    """By halves: one subgraph whose compilation or run crashes."""
    while len(subgraphs) > 1:
        half = subgraphs[:len(subgraphs) // 2]
        try:
            compiled_outputs(half, opset, folder)
            subgraphs = subgraphs[len(half):]
        except Refused:
            subgraphs = half
    return subgraphs[0]


def check_model(seed, options, folder):
    """(number of subgraphs compared, findings, refusals) of one seed."""
    rng = np.random.default_rng(seed)
    opset = OPSETS[int(rng.integers(len(OPSETS)))]
    subgraphs = [random_subgraph(f"s{i}_", opset, rng) for i in range(options.subgraphs)]
    subgraphs = [subgraph for subgraph in subgraphs if subgraph.outputs]
    findings, refusals = [], []
    while subgraphs:
        try:
            found = compiled_outputs(subgraphs, opset, folder)
        except Refused as refused:
            message = str(refused)
            culprit = named_subgraph(message, subgraphs)
            clean = culprit is not None and message.startswith("hone: ")
            culprit = culprit or first_failing(subgraphs, opset, folder)
            if clean:
                refusals.append(message)
            else:
                small = minimised(culprit, culprit.outputs, opset, folder, message)
                findings.append((small, message))
            subgraphs = [subgraph for subgraph in subgraphs if subgraph is not culprit]
            continue
        for subgraph in subgraphs:
            wrong = differences([subgraph], found)
            if wrong:
                small = minimised(subgraph, [wrong[0][1]], opset, folder)
                findings.append((small, f"output {wrong[0][1]}: {wrong[0][2]}"))
        break
    for i, (small, what) in enumerate(findings):
        print(f"seed {seed}: {what}\n{text_of(small, opset)}", flush=True)
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            onnx.save_model(merged_model([small], opset), options.keep / f"seed{seed}_{i}.onnx")
            np.savez(options.keep / f"seed{seed}_{i}.npz", **{v.name: v.array for v in small.values.values()})
    return len(subgraphs), len(findings), refusals


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the first model")
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--subgraphs", type=int, default=25)
    parser.add_argument("--keep", type=Path, help="folder for the models that differ and the values expected of them")
    parser.add_argument("--verbose", action="store_true", help="print what hone refused")
    options = parser.parse_args()
    start, compared, failed = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory(prefix="hone-differential") as folder:
        for seed in range(options.seed, options.seed + options.models):
            count, findings, refusals = check_model(seed, options, Path(folder))
            compared, failed = compared + count, failed + findings
            for message in refusals if options.verbose else []:
                print(f"seed {seed}: refused: {message}", flush=True)
    print(f"{compared} subgraphs of {options.models} models from seed {options.seed} compared, {failed} differ, {time.monotonic() - start:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_library(*sys.argv[2:5])
    else:
        main()
