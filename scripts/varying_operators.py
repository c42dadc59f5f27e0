#!/usr/bin/env python3
"""Lists the operators of ONNX through which no range of sizes passes: HONE=... scripts/varying_operators.py [NAME ...]

Each model of one node of the onnx package's conformance tests is imported once for each dimension of its first operand, with that dimension open
in all operands that have the same extent there, from the test's extent less one to the test's. An operator is listed where none of them works, with
the first refusal; -v lists every dimension that is refused.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import tempfile
import warnings

warnings.filterwarnings("ignore")
import onnx  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402

MOST_MODELS = 5  # of an operator


def bound(model, folder):
    """The model with operands that are parameters, vectors and numbers of integers behind the first, as constants."""
    for i, info in reversed(list(enumerate(model.graph.input))):
        if i > 0 and info.type.tensor_type.elem_type == onnx.TensorProto.INT64 and len(extents(info)) < 2:
            tensor = onnx.TensorProto.FromString((folder / "test_data_set_0" / f"input_{i}.pb").read_bytes())
            tensor.name = info.name
            model.graph.initializer.append(tensor)
            del model.graph.input[i]
    return model


def extents(info):
    return [dim.dim_value for dim in info.type.tensor_type.shape.dim]


def opened(model, dim):
    """The model with the dimension open, and its extent; None if it is not there or has one element only."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    first = extents(copy.graph.input[0])
    if dim >= len(first) or first[dim] < 2:
        return None, 0
    for info in copy.graph.input:
        own = extents(info)
        if dim < len(own) and own[dim] == first[dim]:
            info.type.tensor_type.shape.dim[dim].dim_param = "n"
    for info in copy.graph.output:
        info.type.tensor_type.ClearField("shape")
    return copy, first[dim]


def refusal(hone, model, most, folder):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    done = subprocess.run([hone, "show", path, "--shape", f"n={most - 1}..{most}"], capture_output=True, text=True, timeout=60, check=False)
    return "" if done.returncode == 0 else done.stderr.strip().split("\n")[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="operators; default: all")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every dimension that is refused")
    given = parser.parse_args()
    hone, seen, passed, refused = os.environ["HONE"], collections.Counter(), set(), {}
    with tempfile.TemporaryDirectory() as name:
        for case in load_model_tests(kind="node"):
            model = onnx.load(pathlib.Path(case.model_dir) / "model.onnx")
            kind = model.graph.node[0].op_type
            if len(model.graph.node) > 1 or not model.graph.input or (given.names and kind not in given.names) or seen[kind] >= MOST_MODELS:
                continue
            seen[kind] += 1
            model = bound(model, pathlib.Path(case.model_dir))
            for dim in range(len(extents(model.graph.input[0]))):
                variant, most = opened(model, dim)
                if variant is None:
                    continue
                line = refusal(hone, variant, most, pathlib.Path(name))
                if not line:
                    passed.add(kind)
                else:
                    refused.setdefault(kind, []).append(f"{case.name}, dimension {dim}: {line}")
    for kind in sorted(refused):
        if given.verbose or kind not in passed:
            for line in refused[kind][: None if given.verbose else 1]:
                print(f"{kind}: {line}")
    print(f"{len(passed)} of {len(passed | set(refused))} operators take a dimension that varies")


if __name__ == "__main__":
    main()
