#!/usr/bin/env python3
"""Nets of graphs, as they are and in a template: hone train fits them, hone eval judges them, hone tune asks them."""
import json
import re
import sys
import tempfile
from pathlib import Path

import onnx

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
    assert notes["hone.family"] == "metatune" and notes["loss"] == "rmse", notes
    inputs = {value.name for value in onnx.load(path).graph.input}
    assert inputs == ({"template_nodes", "template_mask"} if super_graph else {"graph_nodes", "graph_edges", "graph_mask"}), inputs
    judged = json.loads(hone("eval", "--db", db, "--cost", path, "--json"))
    assert judged["card"]["options"] == f"super={super_graph},width=32", judged["card"]
    assert judged["all"]["trials"] > 50, judged["all"]
    return path


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
        other = folder / "other.onnx"
        message = hone("train", "--db", db, "-o", other, "--from", plain, "--options", "super=1", code=2)
        assert "super" in message and not other.exists(), message
    return 0


if __name__ == "__main__":
    sys.exit(main())
