#!/usr/bin/env python3
"""Which operators take dimensions that vary: the node tests of the onnx package, with one dimension after the other opened.

    benchmarks/varying_operators.py --hone build/release/tools/hone/hone [--cases 3] [--every] [OPERATOR ...]

Of each operator as many of its tests as --cases says are taken, those with the most attributes first. Each dimension of an operand that is no
parameter becomes `s`, with LARGEST elements at most; if the operator is not valid then, all dimensions of the same extent do, those of other
operands too. What a library of this range computes at three sizes is compared with ONNX Runtime, or with ONNX's reference evaluator where that
has no such operator; before, the library runs at its largest size on data of NaN. Printed is a table of what is refused or wrong, as
docs/user/shapes.md has it; with --every, a line for each operator. A dimension is not counted where the test is valid at its own size only, as
one that is given the extents of its result is.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import itertools
import re
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator

import engines
import varying_right
import varying_shapes

LARGEST = 12
TYPES = set(engines.DTYPES) - {onnx.TensorProto.BFLOAT16}  # those of NumPy
numbers = itertools.count()
TOLERANCE = 1e-3
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}
# Operands that networks have as constants. -1: all but the first one.
WEIGHTS = {"Conv": {1, 2}, "ConvInteger": {1, 2, 3}, "ConvTranspose": {1, 2}, "DeformConv": {1, 3}, "QLinearConv": {1, 2, 3, 4, 5, 6, 7, 8},
           "LSTM": {1, 2, 3, 4, 5, 6, 7}, "GRU": {1, 2, 3, 4, 5}, "RNN": {1, 2, 3, 4, 5}, "BatchNormalization": {-1}, "InstanceNormalization": {-1},
           "GroupNormalization": {-1}, "PRelu": {1}, "QuantizeLinear": {-1}, "DequantizeLinear": {-1}, "QLinearMatMul": {1, 2, 4, 5, 6, 7},
           "MatMulInteger": {2, 3}, "Resize": {-1}, "Upsample": {-1}, "Pad": {-1}, "Slice": {-1}, "Tile": {-1}, "Expand": {-1}, "Reshape": {-1},
           "Squeeze": {-1}, "Unsqueeze": {-1}, "TopK": {-1}, "OneHot": {-1}, "CumSum": {-1}, "CumProd": {-1}, "Split": {-1}, "Clip": {-1},
           "NonMaxSuppression": {2, 3, 4}, "CenterCropPad": {-1}, "DFT": {-1}, "STFT": {-1}, "Trilu": {-1}, "LayerNormalization": {-1},
           "RMSNormalization": {-1}, "MaxUnpool": {2}, "Col2Im": {1, 2}, "MelWeightMatrix": set(), "AffineGrid": {1}, "ImageDecoder": {-1}}


@dataclasses.dataclass
class Case:
    """A node test: its model, and its operands by name."""
    name: str
    model: onnx.ModelProto
    arrays: dict

    @property
    def operator(self):
        return self.model.graph.node[0].op_type


def plain_arrays(case):
    """The operands by name, or None if they are no tensors of numbers."""
    arrays = {}
    if not case.data_sets:
        return None
    for info, given in zip(case.model.graph.input, case.data_sets[0][0], strict=False):
        if given is None or isinstance(given, (list, dict)):
            return None
        array = numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else np.asarray(given)
        if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
            return None
        arrays[info.name] = array
    return arrays


def make_parameters(case, every_integer):
    """Makes weights constants, or all operands of integers."""
    graph, node = case.model.graph, case.model.graph.node[0]
    own = WEIGHTS.get(case.operator, set())
    for place, name in enumerate(node.input):
        is_weight = place in own or (-1 in own and place > 0) or (every_integer and place > 0 and name in case.arrays and case.arrays[name].dtype.kind in "iu")
        if name in case.arrays and is_weight:
            graph.initializer.append(numpy_helper.from_array(case.arrays.pop(name), name))
            graph.input.remove(next(info for info in graph.input if info.name == name))


def cases_of(most):
    """{operator: cases}, those with the most attributes first."""
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # of what the tests' data overflow
    found = collections.defaultdict(list)
    for case in load_model_tests(kind="node"):
        model = case.model
        if model is None or len(model.graph.node) != 1 or "_expanded" in case.name or "training" in case.name or model.graph.node[0].op_type in RANDOM:
            continue
        if any(info.type.tensor_type.elem_type not in TYPES for info in [*model.graph.input, *model.graph.output]):
            continue
        arrays = plain_arrays(case)
        if arrays:
            copy = onnx.ModelProto()
            copy.CopyFrom(model)
            found[model.graph.node[0].op_type].append(Case(case.name, copy, arrays))
    for cases in found.values():
        cases.sort(key=lambda case: (-len(case.model.graph.node[0].attribute), case.name))
        del cases[most:]
    return dict(sorted(found.items()))


def opened(case, dims):
    """The case with these dimensions, [(operand, dimension)], as `s`: (model, arrays of the largest size)."""
    model, arrays = onnx.ModelProto(), dict(case.arrays)
    model.CopyFrom(case.model)
    for name, d in dims:
        repeats = [1] * arrays[name].ndim
        repeats[d] = -(-LARGEST // arrays[name].shape[d])
        arrays[name] = np.take(np.tile(arrays[name], repeats), range(LARGEST), axis=d)
    for info in model.graph.input:
        if info.name in arrays:
            info.type.tensor_type.ClearField("shape")
            for d, extent in enumerate(arrays[info.name].shape):
                dim = info.type.tensor_type.shape.dim.add()
                if (info.name, d) in dims:
                    dim.dim_param = "s"
                else:
                    dim.dim_value = extent
    for info in model.graph.output:
        for dim in info.type.tensor_type.shape.dim:
            dim.Clear()
    return model, arrays


def compile_case(hone, model, folder, least):
    """(library, ""), or None and the message."""
    path, library = folder / "m.onnx", folder / f"{next(numbers)}.so"  # a process loads a file of one name once
    onnx.save(model, path)
    done = subprocess.run([hone, "compile", path, "-o", library, "--no-db", "--threads", "1", f"--shape=s={least}..{LARGEST}"],
                          capture_output=True, text=True, check=False, timeout=120)
    lines = done.stderr.strip().splitlines()
    return (library, "") if done.returncode == 0 else (None, lines[-1] if lines else f"ends with {done.returncode}")


def expected_of(model, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, inputs)
    except Exception:  # pylint: disable=broad-except  # ONNX Runtime lacks the operator, or a type of it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ReferenceEvaluator(model).run(None, inputs)


def cut(arrays, dims, size):
    inputs = dict(arrays)
    for name, d in dims:
        inputs[name] = np.take(inputs[name], range(size), axis=d)
    return inputs


def compare(model, library, arrays, dims, least):
    """What is wrong, or "" """
    nan = {name: np.full_like(x, np.nan) if x.dtype.kind == "f" else x for name, x in arrays.items()}
    engine = varying_shapes.HoneAt(library, nan, 1)
    try:
        engine.run()
        for size in (LARGEST, least, (least + LARGEST) // 2):
            inputs = cut(arrays, dims, size)
            try:
                expected = expected_of(model, inputs)
            except Exception:  # pylint: disable=broad-except  # such as an index that this size does not have
                continue
            engine.set(inputs)
            for place, (found, right) in enumerate(zip(engine.run(), expected, strict=False)):
                right = np.asarray(right)
                if found.shape != right.shape:
                    return f"result {place} has the shape {found.shape} at s={size}, expected {right.shape}"
                same = np.isclose(found.astype(np.float64), right.astype(np.float64), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
                if not same.all() and varying_right.difference(found, right) > TOLERANCE:
                    return f"result {place} differs at s={size}"
    except RuntimeError as error:
        return str(error)
    finally:
        engine.close()
    return ""


def shortened(message):
    """A message without the file and the node, and without numbers of this case."""
    message = re.sub(r"^hone: |^\S*m\.onnx: |node '[^']*' ", "", message.replace("error: ", ""))
    message = re.sub(r"^\S*m\.onnx: ", "", re.sub(r"^node '[^']*' ", "", message))
    return re.sub(r"\((\w|\.)+\): ", "", re.sub(r"s=\d+", "s=N", message), count=1)


def check_dims(hone, case, dims, folder):
    """("right" | "refused" | "wrong" | "not valid", message)"""
    model, arrays = opened(case, dims)
    for least in (1, 2, LARGEST // 2, LARGEST - 2):
        library, message = compile_case(hone, model, folder, least)
        if library is not None:
            wrong = compare(model, library, arrays, dims, least)
            return ("wrong", wrong) if wrong else ("right", "")
        if "this is at the largest sizes" in message:
            return "not valid", message
        if "this is so at" not in message and "begins higher" not in message:
            return "refused", message
    return "not valid", message


def check_case(hone, case):
    """[(dimension in words, outcome, message)]"""
    done, seen = [], set()
    with tempfile.TemporaryDirectory() as temporary:
        for place, (name, array) in enumerate(case.arrays.items()):
            for d, extent in enumerate(array.shape):
                if extent < 2:
                    continue
                alone = [(name, d)]
                alike = alone + [(other, k) for other, x in case.arrays.items() for k, e in enumerate(x.shape) if e == extent and (other, k) not in alone]
                outcome, message = "not valid", ""
                for dims in (alone, alike) if len(alike) > 1 else (alone,):
                    if tuple(sorted(dims)) in seen:
                        continue
                    seen.add(tuple(sorted(dims)))
                    outcome, message = check_dims(hone, case, dims, Path(temporary))
                    if outcome != "not valid":
                        break
                done.append((f"operand {place}, dimension {d} of {array.ndim}", outcome, message))
    return done


def is_valid(hone, case):
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "m.onnx"
        onnx.save(case.model, path)
        return subprocess.run([hone, "show", path], capture_output=True, check=False).returncode == 0


def check_operator(hone, cases):
    """[(case, dimension in words, outcome, message)]"""
    found = []
    for case in cases:
        make_parameters(case, every_integer=False)
        if not is_valid(hone, case):
            make_parameters(case, every_integer=True)
            if not is_valid(hone, case):
                continue
        found += [(case.name, *line) for line in check_case(hone, case)]
    return found


def run_apart(hone, operators):
    """Yields (operator, lines); a library that ends the process costs its operator only."""
    for operator, cases in operators.items():
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            try:
                yield operator, pool.submit(check_operator, hone, cases).result()
            except concurrent.futures.process.BrokenProcessPool:
                yield operator, [("", "", "wrong", "a library ends the process")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True)
    parser.add_argument("--cases", type=int, default=3, help="of each operator, at most")
    parser.add_argument("--every", action="store_true", help="print a line for each operator and each refusal as it is found")
    parser.add_argument("operators", nargs="*")
    arguments = parser.parse_args()
    operators = {name: cases for name, cases in cases_of(arguments.cases).items() if not arguments.operators or name in arguments.operators}
    counts, rows = collections.Counter(), {}
    for operator, lines in run_apart(arguments.hone, operators):
        counts.update(outcome for _, _, outcome, _ in lines)
        if arguments.every:
            print(operator, dict(collections.Counter(outcome for _, _, outcome, _ in lines)), flush=True)
        for case, where, outcome, message in lines:
            if outcome in ("refused", "wrong"):
                rows.setdefault((operator, outcome, shortened(message)), []).append(where)
                if arguments.every:
                    print(f"    {case}: {where}: {outcome}: {message}", flush=True)
    print(f"{len(operators)} operators, {counts['right']} dimensions right, {counts['refused']} refused, {counts['wrong']} wrong\n")
    print("| operator | what varies | message |\n|---|---|---|")
    for (operator, outcome, message), where in rows.items():
        print(f"| {operator} | {'; '.join(sorted(set(where)))} | {'WRONG: ' if outcome == 'wrong' else ''}{message} |")


if __name__ == "__main__":
    main()
