#!/usr/bin/env python3
"""Nets of graphs, as they are and in a template: hone train fits them, hone eval judges them, hone tune asks them."""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import dataset_test
from dataset_test import hone
from few_shot_test import notes_of
from training_test import with_torch


def check_form(folder, db, super_graph):
    path = folder / f"super{super_graph}.onnx"
    said = hone("train", "--db", db, "-o", path, "--cost", "metatune", "--options", f"super={super_graph},width=32", "--epochs", "12",
                "--threads", "1", "--validation", "0")
    losses = [float(loss) for loss in re.findall(r"epoch \d+/12: loss ([0-9.]+)", said)]
    assert len(losses) == 12 and losses[-1] < 0.8 * losses[0], said
    notes = notes_of(path)
    assert notes["hone.family"] == "metatune" and notes["loss"] == "rmse" and notes["rate"] == "0.002" and "meta" not in notes, notes
    inputs = {value.name for value in onnx.load(path).graph.input}
    assert inputs == ({"template_nodes", "template_mask"} if super_graph else {"graph_nodes", "graph_edges", "graph_mask"}), inputs
    judged = json.loads(hone("eval", "--db", db, "--cost", path, "--json"))
    assert judged["card"]["options"] == f"super={super_graph},width=32", judged["card"]
    assert judged["all"]["trials"] > 50, judged["all"]
    return path


def deep_network(path):
    """A sum over five dimensions, which are one loop more than a reduction has in the template."""
    axes = numpy_helper.from_array(np.arange(0, 10, 2), "axes")
    graph = helper.make_graph([helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], "deep",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3] * 5)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [axes])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def warnings_of(*arguments):
    """What a command writes to standard error."""
    done = subprocess.run([os.environ["HONE"], *map(str, arguments)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stderr


def check_larger_than_template(folder, db, plain, template):
    """A kernel that has more loops than the template is guided by another model, and no net of templates learns of it."""
    network, deep = folder / "deep.onnx", "reduce_sum: the program's graph is larger than the template of graphs: "
    bound = "5 loops over terms or of a body, expected at most 4"
    deep_network(network)
    tune = ["tune", network, "-o", folder / "deep.so", "--db", folder / "tuned.db", "--budget", "2s", "--threads", "1"]
    warnings = warnings_of(*tune, "--cost", template)
    assert len(re.findall("the kernel reduce_sum is guided by '.*' instead", warnings)) == 1 and bound in warnings, warnings
    assert "guided by" not in warnings_of(*tune, "--cost", plain)
    train = ["train", "--cost", "metatune", "--options", "super=1,width=8", "--epochs", "1", "--threads", "1", "--validation", "0"]
    alone = folder / "alone.db"
    hone("dataset", "make", network, "--db", alone, "--threads", "1", "--seed", "3", "--schedules", "12")
    message = hone(*train, "--db", alone, "-o", folder / "none.onnx", code=2)
    assert "no task is left to train on, 1 that the net cannot read are left out: " + deep in message and bound in message, message
    message = hone("eval", "--db", alone, "--cost", template, code=2)
    assert deep in message, message
    hone("dataset", "make", network, "--db", db, "--threads", "1", "--seed", "3", "--schedules", "12")
    warnings = warnings_of(*train, "--db", db, "-o", folder / "some.onnx")
    assert re.search(r"1 tasks with \d+ schedules that the net cannot read are left out: " + deep, warnings), warnings
    judged = json.loads(hone("eval", "--db", db, "--cost", template, "--json"))
    assert judged["refused"] == 1 and judged["all"]["tasks"] > 0, judged
    # A net that learns is judged alone, too.
    adapted = json.loads(hone("eval", "--db", db, "--cost", template, "--adapt", "full", "--adapt-samples", "0,4", "--json"))["adapted"]
    assert [score["refused"] for score in adapted] == [1, 1] and all(score["tasks"] == judged["all"]["tasks"] for score in adapted), adapted
    assert json.loads(hone("eval", "--db", db, "--cost", plain, "--json"))["refused"] == 0


def check_embedding(folder, network, plain):
    """Bayesian optimisation over what the net makes of schedules; without a net there is nothing of the kind."""
    tune = ["tune", network, "-o", folder / "embedded.so", "--db", folder / "tuned.db", "--threads", "1", "--budget", "5s", "--search", "bayes:inputs=embedding,first=2"]
    hone(*tune, "--guide", plain)  # compiles the net once more, of which the next run has the library
    assert json.loads(hone(*tune, "--guide", plain, "--json"))["trials"] > 0
    (folder / "embedded.so").unlink()
    message = hone(*tune, "--guide", "analytic", code=2)
    assert "search strategy 'bayes': inputs=embedding: cost model 'analytic' has no embedding" in message, message
    assert not (folder / "embedded.so").exists()


def main():
    if not with_torch():
        print("this build is without libtorch")
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        network, db = folder / "first.onnx", folder / "hone.db"
        dataset_test.model(network, "first", 16)
        hone("dataset", "make", network, "--db", db, "--threads", "1", "--seed", "3", "--schedules", "24")
        plain, template = (check_form(folder, db, super_graph) for super_graph in (0, 1))
        for path in (plain, template):
            hone("tune", network, "-o", folder / "out.so", "--db", folder / "tuned.db", "--cost", path, "--budget", "2s", "--threads", "1")
        check_embedding(folder, network, plain)
        check_larger_than_template(folder, db, plain, template)
        other = folder / "other.onnx"
        message = hone("train", "--db", db, "-o", other, "--from", plain, "--options", "super=1", code=2)
        assert "super" in message and not other.exists(), message
    return 0


if __name__ == "__main__":
    sys.exit(main())
