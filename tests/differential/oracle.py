"""What a node's results are: by ONNX Runtime without optimisation or, where that cannot say or is known to be wrong, by the reference
implementation in the onnx package."""
import dataclasses
import typing
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)


@dataclasses.dataclass
class Fault:
    """What ONNX Runtime gets wrong: for which nodes, and what the specification says."""

    reason: str
    applies: typing.Callable  # of the node, its attributes and its operands' arrays
    reference: bool = True  # ONNX's reference is right; else no oracle is, and the node is not made


def _is_reduction(node, _, arrays):
    return node.op_type.startswith("Reduce") and arrays[0].size == 0


def _multiplies_nothing(node, _, arrays):
    return node.op_type in ("MatMul", "Gemm", "Einsum") and any(0 in array.shape for array in arrays[:2])


def _is_batchwise(node, attributes, _):
    return node.op_type in ("LSTM", "GRU", "RNN") and attributes.get("layout", 0) == 1


def _chooses_negative_zero(node, _, arrays):
    return node.op_type == "Where" and arrays[1].dtype.kind == "f"


def _crops(node, attributes, _):
    return node.op_type == "Resize" and attributes.get("coordinate_transformation_mode") == b"tf_crop_and_resize"


def _keeps_ratio_along_last(node, attributes, _):
    return node.op_type == "Resize" and attributes.get("keep_aspect_ratio_policy", b"stretch") != b"stretch" and min(attributes.get("axes", [0])) < 0


def _is_causal_behind_past(node, attributes, arrays):
    return node.op_type == "Attention" and attributes.get("is_causal", 0) == 1 and len(arrays) > 4


def _is_image_of_one_dimension(node, _, arrays):
    return node.op_type == "Col2Im" and arrays[1].size == 1


def _clips_a_layer(node, attributes, _):
    return node.op_type == "LSTM" and "clip" in attributes


def _shares_a_bias(node, attributes, arrays):
    return node.op_type == "ConvTranspose" and attributes.get("group", 1) > 1 and len(arrays) > 2 and arrays[0].dtype == np.float64


def _repeats_a_row_of_the_mask(node, attributes, arrays):
    return _is_causal_behind_past(node, attributes, arrays) and arrays[3] is not None and arrays[3].shape[-2] == 1


def _is_window_of_odd_doubles(node, _, arrays):
    return node.op_type in ("Conv", "ConvTranspose", "AveragePool", "LpPool") and arrays[0].dtype == np.float64 and not np.isfinite(arrays[0]).all()


def _is_maximum_of_minus_infinity(node, _, arrays):
    return node.op_type in ("MaxPool", "GlobalMaxPool") and arrays[0].dtype.kind == "f" and np.isneginf(arrays[0]).any()


def _has_the_mean_of_infinity(node, _, arrays):
    return node.op_type == "LayerNormalization" and len(node.output) > 1 and np.isinf(arrays[0]).any()


FAULTS = [
    Fault("Reductions of no elements forget axes that count from the end, and give their own mean; the result is the neutral element.", _is_reduction),
    Fault("Products over no elements leave the result as it was, Gemm forgets beta, and Einsum ends the process; a sum of nothing is 0.", _multiplies_nothing),
    Fault("Recurrent layers with layout 1, batch first, are refused.", _is_batchwise),
    Fault("Where adds what it chooses to 0, so that -0 becomes 0; it is a choice.", _chooses_negative_zero),
    Fault("Resize by tf_crop_and_resize, where it is cubic or has sizes, samples other places than the formula says.", _crops),
    Fault("Resize that keeps the aspect ratio ignores axes that count from the end.", _keeps_ratio_along_last),
    Fault("Both take the bias of the first group for all groups of a ConvTranspose of doubles.", _shares_a_bias, reference=False),
    Fault("The state of an LSTM is not clipped before the activation h, of which it is the input; the reference knows no clip.", _clips_a_layer, reference=False),
    Fault("Col2Im of one dimension forgets dilations and pads.", _is_image_of_one_dimension),
    Fault("The reference does not broadcast a mask of one row before it hides what a causal Attention with a past may not see.", _repeats_a_row_of_the_mask,
          reference=False),
    Fault("LayerNormalization gives NaN as the mean of infinity.", _has_the_mean_of_infinity),
    Fault("MaxPool begins with the lowest finite number, so that a window of minus infinity alone gives that.", _is_maximum_of_minus_infinity),
    Fault("The reference, to which windows over doubles are left, spreads NaN and infinity to windows without them.", _is_window_of_odd_doubles, reference=False),
    Fault("Causal Attention forgets how many keys are past: query i sees the past and keys up to i.", _is_causal_behind_past),
]


def _model(node, operands, opset):
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    # Constants, so that operands which decide shapes are known.
    initializers = [numpy_helper.from_array(value.array, value.name) for value in operands if value.kind != "input"]
    inputs = [helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.array.dtype), v.array.shape) for v in operands if v.kind == "input"]
    graph = helper.make_graph([node], "alone", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


def _by_reference(model, feeds):
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            return [np.asarray(x) for x in ReferenceEvaluator(model).run(None, feeds)]
    except Exception:  # whatever the implementation of some operator raises
        return None


def run_alone(node, operands, opset):
    """The node's results, or None if nobody takes it. `operands`: its distinct ones, with name, array and kind."""
    if not onnx.defs.has(node.op_type, opset):  # ONNX Runtime takes some operators of later opsets
        return None
    model = _model(node, operands, opset)
    feeds = {value.name: value.array for value in operands if value.kind == "input"}
    arrays = {value.name: value.array for value in operands}
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    fault = next((f for f in FAULTS if f.applies(node, attributes, [arrays.get(name) for name in node.input])), None)
    if fault:
        return _by_reference(model, feeds) if fault.reference else None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception as refused:  # its exceptions have no common base but this
        return _by_reference(model, feeds) if "NOT_IMPLEMENTED" in str(refused) else None


def by_reference(model, feeds):
    """Outputs of a whole model by the reference implementation; None if it cannot run it."""
    return _by_reference(model, feeds)
