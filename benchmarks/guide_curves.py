#!/usr/bin/env python3
"""How fast one search finds fast code with each cost model as its guide: trials and seconds until 0.95 of the best known, and curves.

    build/venv/bin/python benchmarks/guide_curves.py --hone build/release/tools/hone/hone --costs analytic combined small.onnx small.onnx+head
        --output curves.html [--tasks conv3x3_28x28x128 resnet18 my.onnx] [--budget 30] [--runs 3]

A model is what `hone tune --cost` takes; NET.onnx+HOW is also given `--adapt HOW`. What is run and counted: tuning_curves.py.
"""
import argparse
import collections
import sys
from pathlib import Path

import tuning_curves

ADAPTATIONS = ("none", "head", "full", "momentum")


def contenders(costs, search):
    """Named as short as they differ: a file by its stem."""
    split = {}
    for cost in costs:
        model, plus, adapt = cost.rpartition("+")
        split[cost] = (model, adapt) if plus and adapt in ADAPTATIONS else (cost, "")
    stems = collections.Counter(Path(model).stem for model in {model for model, _ in split.values()})
    found = []
    for model, adapt in split.values():
        name = Path(model).stem if stems[Path(model).stem] == 1 else model
        found.append(tuning_curves.Contender(f"{name}+{adapt}" if adapt else name,
                                             ["--search", search, "--cost", model, *(["--adapt", adapt] if adapt else [])]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tuning_curves.add_options(parser)
    parser.add_argument("--costs", nargs="+", default=["analytic", "combined"], help="names, FILE.model, FILE.onnx, FILE.onnx+HOW")
    parser.add_argument("--search", default="mixed", help="the search that they guide")
    options = parser.parse_args()
    if len(set(options.costs)) < len(options.costs):
        sys.exit("--costs: one is given twice")
    tuning_curves.compare("cost model", contenders(options.costs, options.search), options)


if __name__ == "__main__":
    main()
