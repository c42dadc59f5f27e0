#!/usr/bin/env python3
"""What a run costs in which data choose few of many rows: does the time follow the number that they choose?

    benchmarks/decided_costs.py --hone build/release/tools/hone/hone [--only "RoI head"] [--rounds 5] [--json FILE]

Each model takes rows by a mask (Compress) and computes with them. It is compiled once for the most rows, and once for each number of rows
alone, of which the mask takes all. Both libraries run in turns, each on one thread, by its processor time, and their results are compared.
"""
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from varying_costs import compile_library, libraries_time, options_and_cases

WIDTH, HIDDEN, SIDE = 64, 256, 32


class Model:
    """Nodes with weights of their own."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.generator = [], {}, {}, np.random.default_rng(0)

    def add(self, kind, *operands, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], **attributes))
        return name

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        self.weights[name] = (self.generator.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        return name

    def integers(self, *values):
        name = f"w{len(self.weights)}"
        self.weights[name] = np.int64(values)
        return name

    def rows(self, name, count, *shape):
        """The rows of an input that the mask takes."""
        self.inputs |= {name: (TensorProto.FLOAT, (count, *shape)), "mask": (TensorProto.BOOL, (count,))}
        return self.add("Compress", name, "mask", axis=0)

    def write(self, path, result, rank):
        value = helper.make_tensor_value_info
        graph = helper.make_graph([*self.nodes, helper.make_node("Identity", [result], ["y"])], "decided",
                                  [value(name, kind, shape) for name, (kind, shape) in self.inputs.items()],
                                  [value("y", TensorProto.FLOAT, [None] * rank)],
                                  [onnx.numpy_helper.from_array(array, name) for name, array in self.weights.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def perceptron(path, count):
    model = Model()
    hidden = model.add("Relu", model.add("MatMul", model.rows("x", count, WIDTH), model.weight(WIDTH, HIDDEN)))
    model.write(path, model.add("MatMul", hidden, model.weight(HIDDEN, WIDTH)), 2)


def attention(path, count):
    """Self-attention among the rows that are taken, with a normalization before it."""
    model = Model()
    x = model.add("LayerNormalization", model.rows("x", count, WIDTH), model.weight(WIDTH), axis=-1)
    query, key, value = (model.add("MatMul", x, model.weight(WIDTH, WIDTH)) for _ in range(3))
    scores = model.add("Softmax", model.add("MatMul", query, model.add("Transpose", key, perm=[1, 0])), axis=-1)
    model.write(path, model.add("MatMul", scores, value), 2)


def roi_head(path, count):
    """A detector's second stage: regions of a picture's features, a convolution, and two products."""
    model = Model()
    boxes = model.rows("boxes", count, 4)
    model.inputs["features"] = (TensorProto.FLOAT, (1, SIDE, SIDE, SIDE))
    of = model.add("Expand", model.integers(0), model.add("Gather", model.add("Shape", boxes), model.integers(0)))
    regions = model.add("RoiAlign", "features", boxes, of, output_height=7, output_width=7, sampling_ratio=2, spatial_scale=1.0)
    made = model.add("Relu", model.add("Conv", regions, model.weight(SIDE, SIDE, 3, 3), pads=[1, 1, 1, 1]))
    hidden = model.add("Relu", model.add("Gemm", model.add("Flatten", made), model.weight(SIDE * 49, HIDDEN)))
    model.write(path, model.add("Gemm", hidden, model.weight(HIDDEN, WIDTH)), 2)


def totals(path, count):
    """A vector: the sum of all rows that are taken, after a product."""
    model = Model()
    product = model.add("MatMul", model.rows("x", count, WIDTH), model.weight(WIDTH, WIDTH))
    model.write(path, model.add("ReduceSum", model.add("Tanh", product), model.integers(0), keepdims=0), 1)


CASES = {"perceptron": (perceptron, 1000), "attention": (attention, 512), "RoI head": (roi_head, 256), "sum of rows": (totals, 1000)}


def inputs_of(path, taken):
    """Random values, and a mask that takes so many rows, somewhere; the rows that it takes are the first ones of what an own library gets."""
    generator = np.random.default_rng(1)
    made, own = {}, {}
    for value in onnx.load(path).graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name == "mask":
            made["mask"] = np.zeros(shape, bool)
            made["mask"][np.sort(generator.permutation(shape[0])[:taken])] = True
        elif value.name == "boxes":
            corner = generator.uniform(0, SIDE / 2, (shape[0], 2))
            made["boxes"] = np.concatenate([corner, corner + generator.uniform(4, SIDE / 2, (shape[0], 2))], 1).astype(np.float32)
        else:
            made[value.name] = generator.standard_normal(shape).astype(np.float32)
    for name, array in made.items():
        own[name] = array[made["mask"]] if len(array) == len(made["mask"]) else array
    return made, own


def main():
    options, chosen = options_and_cases(__doc__, "models", CASES)
    found = []
    print("| model | rows | us | alone | ratio |\n|---|---|---|---|---|")
    for name, (write, most) in chosen.items():
        with tempfile.TemporaryDirectory(prefix="hone-decided") as folder:
            whole = compiled(options.hone, write, most, Path(folder))
            for taken in (1, most // 64, most // 8, most):
                alone = compiled(options.hone, write, taken, Path(folder))
                inputs, own = inputs_of(whole.with_suffix(".onnx"), taken)
                seconds, outputs = libraries_time({"most": (whole, inputs), "alone": (alone, own)}, options.rounds)
                if not np.allclose(outputs["most"][0], outputs["alone"][0], rtol=1e-3, atol=1e-4):
                    sys.exit(f"{name} with {taken} of {most} rows: the library of the most rows computes something else")
                found.append({"model": name, "rows": taken, "of": most, "us": seconds["most"] * 1e6, "alone_us": seconds["alone"] * 1e6})
                row = found[-1]
                print(f"| {name} | {taken} of {most} | {row['us']:.1f} | {row['alone_us']:.1f} | {row['us'] / row['alone_us']:.2f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


def compiled(hone, write, count, folder):
    path = folder / f"{count}.onnx"
    write(path, count)
    compile_library(hone, path, path.with_suffix(".so"))
    return path.with_suffix(".so")


if __name__ == "__main__":
    main()
