#!/usr/bin/env python3
"""What an operator costs in a small run of a large range: does the time follow the size of the run?

    benchmarks/varying_costs.py --hone build/release/tools/hone/hone [--only TopK CumSum] [--rounds 5] [--json FILE]

Each model is one operator that works along what varies. It is compiled for the range, and for each of some sizes alone, and both libraries run
in turns, each on one thread, by its processor time. The time of a library of the largest size is beside them: an operator that works on
the whole bound whatever the run has takes that time at every size.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

import interleaved
import numpy as np
import onnx
import tuning_curves
import varying_shapes
from onnx import TensorProto, helper

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
CHANNELS = 32


def model(nodes, inputs, outputs, constants=()):
    """`inputs`: name -> (type, shape); `outputs`: name -> (type, rank)."""
    value = helper.make_tensor_value_info
    initializers = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in dict(constants).items()]
    graph = helper.make_graph(nodes, "operator", [value(name, kind, shape) for name, (kind, shape) in inputs.items()],
                              [value(name, kind, [None] * rank) for name, (kind, rank) in outputs.items()], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def rows(operator, attributes, kind=FLOAT, constants=(), operands=(), outputs=None):
    """A model of one operator of x [batch, n]."""
    outputs = outputs or {"y": (kind, 2)}
    node = helper.make_node(operator, ["x", *operands], list(outputs), **attributes)
    return model([node], {"x": (kind, ["batch", "n"])}, outputs, constants)


def of_rows(most, least=1):
    """The range of x [batch, n], and sizes from small to large."""
    return f"x=1..4x{least}..{most}", [f"x=1x{max(most // 64, 1)}", f"x=1x{most // 8}", f"x=4x{most // 2}", f"x=4x{most}"]


def sides(nodes, constants=()):
    return model(nodes, {"x": (FLOAT, [1, CHANNELS, "h", "w"])}, {"y": (FLOAT, 4)}, constants)


def of_sides():
    """The range of x [1, C, h, w], and sizes from small to large."""
    return f"x=1x{CHANNELS}x16..128x16..128", [f"x=1x{CHANNELS}x{side}x{side}" for side in (16, 32, 64, 128)]


def reduction(operator):
    node = helper.make_node(operator, ["x"], ["y"], axis=1, keepdims=0)
    return model([node], {"x": (FLOAT, ["batch", "n", CHANNELS])}, {"y": (INT, 2)})


def scatter_nd(reduction_of):
    """Rows of x are written, or added, where `at` says."""
    node = helper.make_node("ScatterND", ["table", "at", "x"], ["y"], reduction=reduction_of)
    return model([node], {"at": (INT, ["n", 1]), "x": (FLOAT, ["n", CHANNELS])}, {"y": (FLOAT, 2)}, {"table": np.zeros((64, CHANNELS), np.float32)})


def of_updates():
    return "at=1..512x1,x=1..512x32", [f"at={n}x1,x={n}x32" for n in (8, 64, 256, 512)]


def elements(operator, operands, **attributes):
    """Elements of x are read or written where `at` says."""
    node = helper.make_node(operator, operands, ["y"], **attributes)
    return model([node], {"x": (FLOAT, ["batch", "n"]), "at": (INT, ["batch", "n"])}, {"y": (FLOAT, 2)})


def of_elements():
    return "x=1..4x1..4000,at=1..4x1..4000", [f"x={b}x{n},at={b}x{n}" for b, n in ((1, 62), (1, 500), (4, 2000), (4, 4000))]


def compress():
    nodes = [helper.make_node("Cast", ["at"], ["taken"], to=TensorProto.BOOL), helper.make_node("Compress", ["x", "taken"], ["y"], axis=0)]
    return model(nodes, {"x": (FLOAT, ["n", 4]), "at": (INT, ["n"])}, {"y": (FLOAT, 2)})


def boxes():
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["y"])
    return model([node], {"boxes": (FLOAT, ["batch", "n", 4]), "scores": (FLOAT, ["batch", 1, "n"])}, {"y": (INT, 2)},
                 {"most": np.int64([20]), "overlap": np.float32([0.5])})


def resize(mode, factor, coordinates="half_pixel"):
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode, coordinate_transformation_mode=coordinates)
    return sides([node], {"scales": np.float32([1, 1, factor, factor])})


def resize_to(side):
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")
    return sides([node], {"sizes": np.int64([1, CHANNELS, side, side])})


def cases():
    """name -> (model, (range, sizes))"""
    axis = {"axis": np.int64(1)}
    shape_of = helper.make_node("Shape", ["x"], ["s"])
    return {
        "TopK, k 10": (rows("TopK", {}, constants={"k": np.int64([10])}, operands=["k"], outputs={"y": (FLOAT, 2), "i": (INT, 2)}), of_rows(4000, 10)),
        "ArgMax along rows": (rows("ArgMax", {"axis": 1, "keepdims": 1}, outputs={"y": (INT, 2)}), of_rows(4000)),
        "ArgMax along columns": (reduction("ArgMax"), (f"x=1..4x1..512x{CHANNELS}", [f"x={b}x{n}x{CHANNELS}" for b, n in ((1, 8), (1, 64), (4, 256), (4, 512))])),
        "CumSum": (rows("CumSum", {}, INT, axis, ["axis"]), of_rows(4000)),
        "CumSum, from the end": (rows("CumSum", {"reverse": 1}, INT, axis, ["axis"]), of_rows(4000)),
        "Softmax": (rows("Softmax", {"axis": 1}), of_rows(4000)),
        "NonZero": (rows("NonZero", {}, outputs={"y": (INT, 2)}), of_rows(4000)),
        "Compress": (compress(), ("x=1..4000x4,at=1..4000", [f"x={n}x4,at={n}" for n in (62, 500, 2000, 4000)])),
        "Unique": (model([helper.make_node("Unique", ["x"], ["y"])], {"x": (INT, ["n"])}, {"y": (INT, 1)}), ("x=1..4000", [f"x={n}" for n in (62, 500, 2000, 4000)])),
        "NonMaxSuppression": (boxes(), ("boxes=1..4x20..4000x4,scores=1..4x1x20..4000", [f"boxes={b}x{n}x4,scores={b}x1x{n}" for b, n in ((1, 62), (1, 500), (4, 2000), (4, 4000))])),
        "ScatterND": (scatter_nd("none"), of_updates()),
        "ScatterND, sums": (scatter_nd("add"), of_updates()),
        "ScatterElements": (elements("ScatterElements", ["x", "at", "x"], axis=1), of_elements()),
        "ScatterElements, sums": (elements("ScatterElements", ["x", "at", "x"], axis=1, reduction="add"), of_elements()),
        "GatherElements": (elements("GatherElements", ["x", "at"], axis=1), of_elements()),
        "Resize, linear, by 2": (resize("linear", 2.0), of_sides()),
        "Resize, linear, by 1.5": (resize("linear", 1.5), of_sides()),
        "Resize, cubic, by 2": (resize("cubic", 2.0), of_sides()),
        "Resize, nearest, by 2": (resize("nearest", 2.0, "asymmetric"), of_sides()),
        "Resize, linear, by 0.5": (resize("linear", 0.5), of_sides()),
        "Resize, linear, to 64 x 64": (resize_to(64), of_sides()),
        "Pad, reflect": (sides([helper.make_node("Pad", ["x", "pads"], ["y"], mode="reflect")], {"pads": np.int64([0, 0, 1, 1, 0, 0, 1, 1])}), of_sides()),
        "GlobalAveragePool": (sides([helper.make_node("GlobalAveragePool", ["x"], ["y"])]), of_sides()),
        "InstanceNormalization": (sides([helper.make_node("InstanceNormalization", ["x", "scale", "bias"], ["y"])],
                                        {"scale": np.ones(CHANNELS, np.float32), "bias": np.zeros(CHANNELS, np.float32)}), of_sides()),
        "Transpose": (sides([helper.make_node("Transpose", ["x"], ["y"], perm=[0, 2, 3, 1])]), of_sides()),
        "Expand": (model([shape_of, helper.make_node("Expand", ["row", "s"], ["y"])], {"x": (FLOAT, ["batch", "n"])}, {"y": (FLOAT, 2)}, {"row": np.float32([[1]])}), of_rows(4000)),
        "Range": (model([shape_of, helper.make_node("Gather", ["s", "one"], ["n"]), helper.make_node("Range", ["zero", "n", "one"], ["y"])],
                        {"x": (FLOAT, ["batch", "n"])}, {"y": (INT, 1)}, {"zero": np.int64(0), "one": np.int64(1)}), of_rows(4000)),
    }


def places(name, extents):
    """Integers are below this number: data and conditions are 0 or 1, and places are inside of a row as long as theirs, or of a table of 64."""
    if name == "x" or len(extents) == 1:
        return 2
    return min(extents[-1], 64) if extents[-1] > 1 else 64


def inputs_at(shapes, generator, kinds):
    made = {}
    for text in shapes.split(","):
        name, shape = text.split("=")
        extents = [int(extent) for extent in shape.split("x")]
        if kinds[name] == INT:
            made[name] = generator.integers(0, places(name, extents), extents)
        else:
            made[name] = generator.normal(size=extents).astype(np.float32)
    return made


def libraries_time(libraries, rounds):
    """Processor seconds and outputs of libraries that run in turns. `libraries`: name -> (path, inputs)"""
    engines = {name: varying_shapes.HoneAt(path, inputs, 1) for name, (path, inputs) in libraries.items()}
    seconds = varying_shapes.measure_own_time({name: varying_shapes.Call(engine) for name, engine in engines.items()}, rounds)
    outputs = {name: engine.run() for name, engine in engines.items()}
    for engine in engines.values():
        engine.close()
    return {name: interleaved.median(times) for name, times in seconds.items()}, outputs


def compile_library(hone, path, out, shapes=None):
    given = [f"--shape={shape}" for shape in shapes.split(",")] if shapes else []
    tuning_curves.run_hone(hone.resolve(), "compile", "--no-db", path, "-o", out, "--threads", 1, *given)


def options_and_cases(description, what, all_cases):
    """The options of the command line, and those of the cases, by name, that they choose."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path, help="the hone program")
    parser.add_argument("--only", nargs="*", default=[], help=f"parts of {what}' names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    return options, {name: case for name, case in all_cases.items() if not options.only or any(part in name for part in options.only)}


def main():
    options, chosen = options_and_cases(__doc__, "operators", cases())
    found = []
    print("| operator | at | us | alone | ratio | alone at the largest size |\n|---|---|---|---|---|---|")
    for name, (proto, sizes) in chosen.items():
        kinds = {value.name: value.type.tensor_type.elem_type for value in proto.graph.input}
        whole, at = sizes
        with tempfile.TemporaryDirectory(prefix="hone-costs") as folder:
            path, ranged = Path(folder) / "model.onnx", Path(folder) / "range.so"
            onnx.save(proto, path)
            compile_library(options.hone, path, ranged, whole)
            largest = None
            for i, shapes in reversed(list(enumerate(at))):
                alone = Path(folder) / f"{i}.so"
                compile_library(options.hone, path, alone, shapes)
                inputs = inputs_at(shapes, np.random.default_rng(1), kinds)
                seconds, outputs = libraries_time({name: (library, inputs) for name, library in (("range", ranged), ("alone", alone))}, options.rounds)
                for a, b in zip(outputs["range"], outputs["alone"], strict=True):
                    if a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=1e-5):
                        sys.exit(f"{name} at {shapes}: the library of the range computes something else")
                largest = largest or seconds["alone"]
                found.append({"operator": name, "at": shapes, "range_us": seconds["range"] * 1e6, "alone_us": seconds["alone"] * 1e6, "largest_us": largest * 1e6})
                row = found[-1]
                print(f"| {name} | {shapes} | {row['range_us']:.2f} | {row['alone_us']:.2f} | {row['range_us'] / row['alone_us']:.2f} | {row['largest_us']:.2f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
