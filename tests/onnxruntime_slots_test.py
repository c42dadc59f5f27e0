"""The places of plugins/onnxruntime/ort_api.h against the library of the installed onnxruntime: a provider (onnxruntime_slots.cc) calls
each function through its place, on a model that is known here, and says what it answers. A place that is wrong answers otherwise, or
crashes."""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from support import Case, make_model, value

HEADER = Path(__file__).resolve().parent.parent / "plugins" / "onnxruntime" / "ort_api.h"
LIBRARY = str(Path(os.environ["HONE_ONNXRUNTIME_SLOTS"]).resolve())

# What each function answers. Those that fill what another one counted are checked with it.
ANSWERS = {
    "create_status": "made", "status_message": "a message of the test", "device_type": "a CPU", "ep_table": "there", "create_device": "made",
    "session_options": "green", "key_value_pairs": "ep.slotsexecutionprovider.color", "graph_parent": "none", "graph_num_opsets": "some",
    "graph_opsets": "17", "graph_inputs": "x s c n", "graph_outputs": "y z f g", "node_implicit_inputs": "sum",
    "node_num_subgraphs": "2", "node_name": "the sum", "node_type": "Add", "node_provider": "''", "node_outputs": "sum", "node_inputs": "x",
    "node_domain": "com.microsoft", "value_name": "x one", "value_is_constant": "0 1", "value_initializer": "1", "has_shape": "1 0",
    "value_type": "1 1 2 -1 3 'batch' ''", "node_num_attributes": "1", "attribute_name": "value", "attribute_type": "8", "attribute_tensor": "7",
    "read_attribute": "24 6", "create_attribute": "axes", "fuse_nodes": "claimed", "model_editor_table": "there", "num_kernel_inputs": "1",
    "num_kernel_outputs": "1", "tensor_info": "2 3", "tensor_bytes": "24",
    # of structs
    "get_version": onnxruntime.__version__, "get_api": "there", "create_state": "the same", "release_state": "the same",
    "release_compute_infos": "1", "release_ep": "called", "nested graph": "given",
}
RELEASED = ("release_status", "release_device", "release_key_value_pairs", "release_value", "release_attribute", "release_tensor_info")
# Functions that have no answer of their own: by what they give others, or by what the test sees.
SEEN = {
    "log_message": "the message is on standard error", "as_tensor_info": "value_type", "onnx_type": "value_type", "element_type": "value_type",
    "rank": "value_type", "dims": "value_type", "symbols": "value_type", "tensor_data": "the output", "mutable_data": "the output",
    "kernel_input": "the output", "kernel_output": "the output", "graph_num_inputs": "graph_inputs", "graph_num_outputs": "graph_outputs",
    "node_num_inputs": "node_inputs", "node_num_outputs": "node_outputs", "node_num_implicit_inputs": "node_implicit_inputs",
    "node_attributes": "attribute_name", "create_node": "the node of the model that was written",
}

PROGRAM = """
import sys
import numpy as np
import onnxruntime as ort
library, model, written = sys.argv[1:]
ort.register_execution_provider_library("slots", library)
device, = (each for each in ort.get_ep_devices() if each.ep_name == "SlotsExecutionProvider")
print("vendor:", device.ep_vendor)
print("version:", device.ep_metadata["version"])
options = ort.SessionOptions()
options.add_provider_for_devices([device], {"color": "green"})
options.add_session_config_entry("ep.context_enable", "1")
options.add_session_config_entry("ep.context_file_path", written)
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession(model, options)
inputs = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "s": np.array([3, 2]), "c": np.array(True), "n": np.array([2])}
print("y:", session.run(["y"], inputs)[0].tolist())
del session
"""


def model():
    """A sum, which the provider claims, and one node for each thing that it asks about."""
    branch = {name: helper.make_graph([helper.make_node(op, ["sum"], [f"{name}_out"])], name, [], [value(f"{name}_out", ("batch", 3))])
              for name, op in (("then", "Relu"), ("else", "Neg"))}
    nodes = [
        helper.make_node("Add", ["x", "one"], ["sum"], name="the sum"),
        helper.make_node("Reshape", ["sum", "s"], ["y"]),
        helper.make_node("If", ["c"], ["z"], then_branch=branch["then"], else_branch=branch["else"]),
        helper.make_node("ConstantOfShape", ["n"], ["f"], value=numpy_helper.from_array(np.array([7], np.float32))),
        helper.make_node("Gelu", ["sum"], ["g"], domain="com.microsoft")]
    made = make_model(
        nodes,
        [value("x", ("batch", 3)), value("s", ("rank",), TensorProto.INT64), value("c", (), TensorProto.BOOL), value("n", (1,), TensorProto.INT64)],
        [value("y", None), value("z", ("batch", 3)), value("f", (None,)), value("g", ("batch", 3))], {"one": np.array([1], np.float32)})
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


class Slots(Case):
    def setUp(self):
        super().setUp()
        self.path = self.save(model())
        output = self.folder / "answers"
        self.done = subprocess.run([sys.executable, "-c", PROGRAM, LIBRARY, self.path, self.folder / "written.onnx"], capture_output=True, text=True,
                                   timeout=300, env={**os.environ, "HONE_SLOTS_OUTPUT": str(output)})
        self.answers = dict(line.split(": ", 1) for line in output.read_text().splitlines())

    def test_each_place_has_its_function(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertNotIn("error", self.answers)
        expected = ANSWERS | dict.fromkeys(RELEASED, "released") | {"graph_model_path": str(self.path)}
        self.assertEqual({name: self.answers.get(name) for name in expected}, expected)
        # ONNX Runtime may add nodes of its own.
        self.assertEqual(int(self.answers["graph_num_nodes"]), len(self.answers["graph_nodes"].split()))
        self.assertLessEqual({"Add", "Reshape", "If", "ConstantOfShape", "Gelu"}, set(self.answers["graph_nodes"].split()))
        self.assertIn("a warning of the test", self.done.stderr)
        self.assertIn("vendor: a vendor of the test\nversion: 7.8.9\ny: [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]", self.done.stdout)
        node, = (node for node in onnx.load(self.folder / "written.onnx").graph.node if node.op_type == "EPContext")
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        self.assertEqual((node.domain, list(node.input), list(node.output)), ("com.microsoft", ["x"], ["sum"]))
        self.assertEqual((attributes["source"], attributes["ep_cache_context"]), (b"SlotsExecutionProvider", b"a\0b"))

        # Nothing is declared that is not called here.
        declared = re.findall(r"\}\s*(\w+)\{(?:table|since_24)\};", re.sub(r"Slot<\d+,[^;]*?>\s+(\w+)\{", r"} \1{", HEADER.read_text()))
        known = set(ANSWERS) | set(RELEASED) | set(SEEN) | {"graph_model_path", "graph_num_nodes", "graph_nodes"}
        self.assertGreater(len(declared), 50)
        self.assertEqual(set(declared) - known, set())


if __name__ == "__main__":
    unittest.main()
