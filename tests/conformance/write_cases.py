"""Writes the node tests of the onnx package as files: FOLDER/NAME/model.onnx, test_data_set_0/input_0.pb, ...

A case whose data are no plain tensors (sequences, optionals, strings) gets a file `skip` that says so; a case with a
tolerance of its own a file `tolerance` (relative, absolute).
"""
import argparse
import pathlib
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests


def write_tensors(folder, kind, values, names):
    for i, value in enumerate(values):
        if isinstance(value, onnx.TensorProto):
            tensor = value
        else:
            plain = value is not None and not isinstance(value, (list, dict))
            array = np.asarray(value) if plain else None
            if not plain or array.dtype == object or array.dtype.kind in "US":
                return f"{kind} {i} is no tensor of numbers"
            tensor = numpy_helper.from_array(array, names[i] if i < len(names) else "")
        (folder / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())
    return ""


def write_case(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model = case.model or onnx.load(pathlib.Path(case.model_dir) / "model.onnx")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tolerance").write_text(f"{case.rtol} {case.atol}\n")
    inputs = [value.name for value in model.graph.input]
    outputs = [value.name for value in model.graph.output]
    for number, (given, expected) in enumerate(case.data_sets or []):
        data = folder / f"test_data_set_{number}"
        data.mkdir(exist_ok=True)
        problem = write_tensors(data, "input", given, inputs) or write_tensors(data, "output", expected, outputs)
        if problem:
            (folder / "skip").write_text(problem + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    stamp = options.folder / "written"
    version = f"{onnx.__version__}\n{pathlib.Path(__file__).read_text()}"
    if stamp.exists() and stamp.read_text() == version:
        return
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    cases = load_model_tests(kind="node")
    for case in cases:
        write_case(case, options.folder / case.name)
    stamp.write_text(version)
    print(f"{len(cases)} cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
