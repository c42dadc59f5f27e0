#!/usr/bin/env python3
"""Ensembles of trees (TreeEnsembleRegressor) against ONNX Runtime: random ones, in one process, interleaved.

    benchmarks/trees.py --hone build/release/tools/hone/hone [--trees 500] [--depth 8] [--leaves 31] [--features 32] [--targets 1]
        [--rows 1 1000] [--threads 2] [--rounds 7]

A tree is complete with --depth, or grown with --leaves: the leaf that is split next is any, so depths differ, as in trees of LightGBM. Splits
and data are uniform, so each way is as likely as the other. A ratio is ONNX Runtime's time over Hone's, and above 1 Hone is faster.
"""
import argparse
import tempfile
from pathlib import Path

import cores
import engines
import interleaved
import numpy as np
import onnx
import tuning_curves
from onnx import helper


class Ensemble:
    """The lists of random trees."""

    def __init__(self, options, seed=1):
        self.rng = np.random.default_rng(seed)
        self.features, self.targets = options.features, options.targets
        self.nodes = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
        self.leaves = []  # (tree, node)
        for tree in range(options.trees):
            self.add(tree, options.leaves if options.leaves else 2**options.depth, bool(options.leaves))

    def add(self, tree, leaves, uneven):
        """A tree: its leaves are split one after the other, the first one or any."""
        children, ends = {}, [0]
        while len(ends) < leaves:
            node = ends.pop(int(self.rng.integers(len(ends))) if uneven else 0)
            children[node] = (2 * len(children) + 1, 2 * len(children) + 2)
            ends += children[node]
        for node in range(2 * leaves - 1):
            inner = node in children
            on_true, on_false = children.get(node, (0, 0))
            row = (tree, node, int(self.rng.integers(self.features)) if inner else 0, float(self.rng.uniform(0.2, 0.8)) if inner else 0.0,
                   "BRANCH_LEQ" if inner else "LEAF", on_true, on_false)
            for values, value in zip(self.nodes.values(), row, strict=True):
                values.append(value)
        self.leaves += [(tree, node) for node in ends]

    def model(self, rows):
        weights = [float(x) for x in self.rng.normal(size=len(self.leaves))]
        node = helper.make_node(
            "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=self.targets, target_treeids=[tree for tree, _ in self.leaves],
            target_nodeids=[node for _, node in self.leaves], target_ids=[tree % self.targets for tree, _ in self.leaves], target_weights=weights,
            **{f"nodes_{name}": values for name, values in self.nodes.items()})
        x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, self.features])
        y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [rows, self.targets])
        model = helper.make_model(helper.make_graph([node], "trees", [x], [y]),
                                  opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])
        model.ir_version = 8
        return model


def compare(options, ensemble, rows, folder):
    """Median seconds of both, the ratio, and the largest relative difference."""
    onnx_file, library = folder / f"trees{rows}.onnx", folder / f"trees{rows}.so"
    onnx.save(ensemble.model(rows), onnx_file)
    tuning_curves.run_hone(options.hone, "compile", onnx_file, "-o", library, "--no-db", "--threads", options.threads)
    inputs = {"x": ensemble.rng.random((rows, options.features)).astype(np.float32)}
    made = {"hone": engines.Hone(library, inputs, options.threads), "onnxruntime": engines.OnnxRuntime(onnx_file, inputs, options.threads)}
    error = engines.relative_error(made["hone"].run(), made["onnxruntime"].run())
    seconds = interleaved.measure(made, options.rounds, threads=options.threads)
    for engine in made.values():
        engine.close()
    return [interleaved.median(seconds[name]) for name in ("hone", "onnxruntime")] + [
        interleaved.ratio(seconds["onnxruntime"], seconds["hone"]), error]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path, help="the hone program")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--depth", type=int, default=8, help="of complete trees")
    parser.add_argument("--leaves", type=int, default=0, help="of uneven trees, instead of --depth")
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--targets", type=int, default=1, help="trees add to them in turn")
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 1000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    cores.add_option(parser)
    options = parser.parse_args()
    cores.patience.hone = options.hone
    ensemble = Ensemble(options)
    print("| rows | Hone us | ONNX Runtime us | ratio | largest relative difference |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for rows in options.rows:
            hone, runtime, ratio, error = compare(options, ensemble, rows, Path(folder))
            print(f"| {rows} | {hone * 1e6:.1f} | {runtime * 1e6:.1f} | {ratio:.2f} | {error:.1e} |", flush=True)


if __name__ == "__main__":
    main()
