#!/usr/bin/env python3
"""Write the convolutions of a table as ONNX models of one kernel each, for data sets of cost models.

    convolution_kernels.py FOLDER [--table convolution_kernels.csv] [--classes conv1d winograd]

Needs only numpy and onnx. The table beside this script has 47 kernels of five classes, as many and in the ranges as table 2 of
the MetaTune paper: size 150 to 600, 32 to 128 channels in and 32 to 512 out in one dimension (conv1d, transpose1d), size 7 to 224,
3 to 128 channels in and 16 to 128 out in two (conv2d, transpose2d, winograd). They were drawn once, logarithms uniformly, at most
0.8 GFLOP each, so that 200 schedules of each can be measured. The paper fixes "stride and padding at 3 and 1"; as Winograd's algorithm
has no stride of 3, it is read as a kernel of 3 and a padding of 1, and the stride is 1, of the transposed ones 2. Hone's space of a 3x3 convolution has
both algorithms, so `winograd` and `conv2d` differ in their shapes only; records say which algorithm each schedule has.
"""
import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Class: (operator, spatial dimensions).
CLASSES = {"conv1d": ("Conv", 1), "transpose1d": ("ConvTranspose", 1), "conv2d": ("Conv", 2), "transpose2d": ("ConvTranspose", 2), "winograd": ("Conv", 2)}
COLUMNS = ("class", "size", "input_channels", "output_channels")
KERNEL = 3


def rows(path):
    """[(class, size, input channels, output channels)]; raises ValueError where the table has something else."""
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"columns {reader.fieldnames}, expected {', '.join(COLUMNS)}")
        found = []
        for row in reader:
            numbers = [row[column] or "" for column in COLUMNS[1:]]
            if row["class"] not in CLASSES or not all(number.isdigit() and int(number) > 0 for number in numbers):
                raise ValueError(f"line {reader.line_num}: {','.join(map(str, row.values()))}, expected a class of {', '.join(CLASSES)} and three numbers")
            found.append((row["class"], *map(int, numbers)))
    return found


def model(kind, size, inner, outer):
    """The kernel alone; its weights are seeded by its shape."""
    op, dimensions = CLASSES[kind]
    stride = 2 if op == "ConvTranspose" else 1
    out = (size - 1) * stride - 2 + KERNEL if op == "ConvTranspose" else size
    shape = [inner, outer] if op == "ConvTranspose" else [outer, inner]
    rng = np.random.default_rng([size, inner, outer])
    weight = (rng.standard_normal(shape + [KERNEL] * dimensions) / (inner * KERNEL**dimensions) ** 0.5).astype(np.float32)
    node = helper.make_node(op, ["x", "w"], ["y"], kernel_shape=[KERNEL] * dimensions, pads=[1] * (2 * dimensions), strides=[stride] * dimensions)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, *[side] * dimensions])
            for name, channels, side in (("x", inner, size), ("y", outer, out))]
    graph = helper.make_graph([node], f"{kind}_{size}_{inner}_{outer}", ends[:1], ends[1:], [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the models are written there, named CLASS_SIZE_INPUTS_OUTPUTS.onnx")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_suffix(".csv"), help=f"a CSV file with the columns {', '.join(COLUMNS)}")
    parser.add_argument("--classes", nargs="+", choices=list(CLASSES), default=list(CLASSES), metavar="CLASS", help=f"only kernels of these: {', '.join(CLASSES)}")
    options = parser.parse_args()
    try:
        kernels = rows(options.table)
    except (OSError, ValueError) as error:
        sys.exit(f"convolution_kernels.py: {options.table}: {error}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for kernel in kernels:
        if kernel[0] in options.classes:
            onnx.save(model(*kernel), options.folder / f"{'_'.join(map(str, kernel))}.onnx")


if __name__ == "__main__":
    main()
