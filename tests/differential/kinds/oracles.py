"""What a node gives at each of several feeds: by ONNX Runtime without optimisation and by ONNX's reference evaluator, of which each has its
say where it can. A node about which they disagree is not made, unless Hone's documented reason names the one that is right."""
import collections
import concurrent.futures
import dataclasses
import multiprocessing
import typing
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from differences import difference
from oracle import FAULTS

SECONDS = 20  # that a node may take
PLAIN = {np.dtype(kind) for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")}  # what ONNX Runtime takes and gives


@dataclasses.dataclass
class Reason:
    """Why one oracle is not asked about a node: what it gets wrong."""

    reason: str
    wrong: str  # "onnxruntime" or "reference"
    applies: typing.Callable  # of a node: the one that is added or one inside of it
    reads: typing.Callable = lambda arrays: True  # of the operands' arrays, if the node is not inside of another


def _is_loop_of_rows(node):
    return node.op_type == "Loop" and len(node.attribute[0].g.output) > len(node.attribute[0].g.input) - 1


def _is_loop_without_condition(node):
    return node.op_type == "Loop" and (len(node.input) < 2 or node.input[1] == "")


def _inserts_at_a_place(node):
    return node.op_type == "SequenceInsert" and len(node.input) > 2 and node.input[2] != ""


def _scans_to_the_last_axis(node):
    return node.op_type == "Scan" and any(a.name == "scan_output_axes" and min(a.ints, default=0) < 0 for a in node.attribute)


def _has(node, name):
    return any(a.name == name for a in node.attribute)


def _scores_one_of_two_classes(node):
    lists = {a.name: list(a.ints) or list(a.floats) for a in node.attribute}
    if node.op_type == "TreeEnsembleClassifier":
        return len(lists["classlabels_int64s"]) == 2 and len(set(lists["class_ids"])) == 1
    return node.op_type == "LinearClassifier" and len(lists["classlabels_ints"]) == 2 and len(lists["intercepts"]) == 1


REASONS = [
    Reason("Scaler of integers gives integers.", "reference", lambda node: node.op_type == "Scaler", lambda arrays: arrays[0].dtype.kind == "i"),
    Reason("Quotients of integers are rounded down, not towards 0.", "reference", lambda node: node.op_type == "Div",
           lambda arrays: any(x.dtype.kind == "i" and (x < 0).any() for x in arrays)),
    Reason("Normalizer divides by the largest magnitude, not by the largest element.", "reference",
           lambda node: node.op_type == "Normalizer" and any(a.s == b"MAX" for a in node.attribute)),
    Reason("LinearRegressor without intercepts gives NaN.", "reference", lambda node: node.op_type == "LinearRegressor" and not _has(node, "intercepts")),
    Reason("LabelEncoder does not find the key NaN.", "reference",
           lambda node: node.op_type == "LabelEncoder" and any(np.isnan(a.floats).any() for a in node.attribute)),
    Reason("SequenceInsert behind the last element inserts before the first one.", "reference", _inserts_at_a_place),
    Reason("An optional value is a list of what is in it, also where that is taken out.", "reference", lambda node: node.op_type == "Optional"),
    Reason("Of functions with one name, all calls take the same overload.", "reference", lambda node: node.overload != ""),
    Reason("Rows of a Loop are joined along their first axis, not stacked.", "reference", _is_loop_of_rows),
    Reason("Scan counts output axes from the end as from the front.", "reference", _scans_to_the_last_axis),
    Reason("Unique sorts its one result also if that is to be as it was found, and takes slices along the first axis then.", "reference",
           lambda node: node.op_type == "Unique" and any(a.name == "sorted" and a.i == 0 for a in node.attribute)),
    Reason("A Cast of floats to int4 or uint4 rounds to the nearest.", "onnxruntime",
           lambda node: node.op_type == "Cast" and any(a.name == "to" and a.i in (21, 22) for a in node.attribute)),
    Reason("Of two classes of which one has a score, the other one's is not what ONNX Runtime gives, which converters of learners follow.",
           "reference", _scores_one_of_two_classes),
    Reason("A Loop without a condition has no turns.", "reference", _is_loop_without_condition),
]

disagreements = collections.Counter()  # operator -> nodes that were not made, as the oracles disagree


def is_plain(array):
    return isinstance(array, np.ndarray) and array.dtype in PLAIN


def type_of(arrays):
    """The type of a value by what it is at each feed: extents that vary are open."""
    shapes = {array.shape for array in arrays}
    rank = len(arrays[0].shape)
    shape = None if len({len(shape) for shape in shapes}) > 1 else [
        next(iter({shape[d] for shape in shapes})) if len({shape[d] for shape in shapes}) == 1 else None for d in range(rank)]
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(arrays[0].dtype), shape)


def model_of(nodes, outputs, given, imports, functions):
    """`given`: values with name, kind and arrays that no node makes; those of kind constant become initializers."""
    inputs = [helper.make_value_info(value.name, type_of(value.arrays)) for value in given if value.kind != "constant"]
    constants = [numpy_helper.from_array(value.array, value.name) for value in given if value.kind == "constant"]
    graph = helper.make_graph(nodes, "alone", inputs, [helper.make_empty_tensor_value_info(name) for name in outputs], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*pair) for pair in imports.items()], functions=functions)
    model.ir_version = ir_version(imports)
    return model


def ir_version(imports):
    return 13 if imports[""] >= 25 else 11 if imports[""] >= 23 else 10


def _feeds(given, i):
    return {value.name: value.arrays[i] for value in given if value.kind != "constant"}


class Apart:
    """A process that calls functions for this one: where ONNX Runtime crashes, the answer is None, and the next call has a new process."""

    def __init__(self):
        self.pool = None

    def call(self, function, *arguments):
        self.pool = self.pool or concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
        try:
            return self.pool.submit(function, *arguments).result(SECONDS)
        except (concurrent.futures.process.BrokenProcessPool, TimeoutError):
            for process in (self.pool._processes or {}).values():
                process.kill()
            self.pool = None
            return None


apart = Apart()


def by_onnxruntime(model, given, count):
    return apart.call(_run_onnxruntime, model.SerializeToString(), [_feeds(given, i) for i in range(count)])


def _run_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return [session.run(None, arrays) for arrays in feeds]
    except Exception:  # its exceptions have no common base but this
        return None


def by_reference(model, given, count):
    try:
        if all(node.domain == "" or model.functions for node in model.graph.node):
            onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            evaluator = ReferenceEvaluator(model)
            found = [evaluator.run(None, _feeds(given, i)) for i in range(count)]
        return [[x if isinstance(x, list) or x is None else np.asarray(x) for x in results] for results in found]
    except Exception:  # whatever the implementation of some operator raises
        return None


def _same(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return difference(a, b) is None
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return a is None and b is None


def _all_nodes(nodes, functions):
    """These, those inside of them, and those of functions."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from _all_nodes(attribute.g.node, functions)
        for function in functions:
            if (function.domain, function.name, function.overload) == (node.domain, node.op_type, node.overload):
                yield from _all_nodes(function.node, functions)


def _wrong_oracle(node, nodes, arrays, functions):
    """The name of the oracle that is known to be wrong about a node or what it is made of; "both"."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.domain == "":
        fault = next((f for f in FAULTS if f.applies(node, attributes, arrays)), None)
        if fault:
            return "onnxruntime" if fault.reference else "both"
    wrong = {reason.wrong for inner in _all_nodes(nodes, functions) for reason in REASONS
             if reason.applies(inner) and (inner is not node or reason.reads(arrays))}
    return "both" if len(wrong) > 1 else next(iter(wrong), None)


def results_of(node, nodes, given, arrays, imports, functions, count):
    """(what the node's results are at each feed, names of the oracles that say so); `nodes` end with it and make the operands that are not
    `given`. None if no oracle can say, or they disagree."""
    wrong = _wrong_oracle(node, nodes, arrays, functions)
    if wrong == "both" or node.domain == "" and not onnx.defs.has(node.op_type, imports[""]):
        return None
    model = model_of(nodes, [name for name in node.output if name], given, imports, functions)
    found = {"onnxruntime": by_onnxruntime, "reference": by_reference}
    found = {name: results for name, oracle in found.items() if name != wrong and (results := oracle(model, given, count)) is not None}
    if "onnxruntime" in found and "reference" in found and not all(map(_same, found["onnxruntime"], found["reference"])):
        small = any(isinstance(x, np.ndarray) and x.dtype not in PLAIN for x in found["reference"][0])
        if not small:
            disagreements[node.op_type] += 1
            return None
        del found["onnxruntime"]  # it gives bytes for elements of fewer bits
    if not found:
        return None
    return next(iter(found.values())), tuple(found)
