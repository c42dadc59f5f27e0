#!/usr/bin/env python3
"""How fast one search finds fast code with each cost model as its guide.

    build/venv/bin/python benchmarks/guide_curves.py --hone build/release/tools/hone/hone --costs analytic combined small.onnx small.onnx+head
        --output curves.html [--tasks conv3x3_28x28x128 resnet18 my.onnx] [--budget 30] [--runs 3]

prints trials and seconds until 0.95 of the best known, and draws curves. A model is what `hone tune --cost` takes, or two with a comma between: the second guides
the search (`--guide`), the first decides the rest. NET.onnx+HOW is also given `--adapt HOW`. What is run and counted: tuning_curves.py.

    build/venv/bin/python benchmarks/guide_curves.py --hone build/release/tools/hone/hone --table guides.jsonl --families gbdt atformer atformer:layers=1 mha lstm tabnet
        --train-db data.db --train-split split.json --nets nets --sizes 50 300 --tasks resnet18 bert_base_s128 --seconds 120 --trials 300 --seeds 3

trains each family with so many tasks, unless --nets has the file, and prints all of them as guides, from scratch, as trained and learning on line (guide_families.py),
at equal trials and seconds, and the seconds to equal quality; it goes on from the runs that the file has (tuning_table.py).
"""
import argparse
import collections
import sys
from pathlib import Path

import guide_families
import tuning_curves
import tuning_table

ADAPTATIONS = ("none", "head", "full", "momentum", "scratch")


def contenders(costs, search):
    """Named as short as they differ: a file by its stem."""
    split = []
    for cost in costs:
        models, plus, adapt = cost.rpartition("+")
        models, adapt = (models, adapt) if plus and adapt in ADAPTATIONS else (cost, "")
        split.append((models.split(","), adapt))
        if len(split[-1][0]) > 2:
            sys.exit(f"--costs {cost}: expected MODEL or MODEL,GUIDE")
    stems = collections.Counter(Path(model).stem for model in {model for models, _ in split for model in models})
    found = []
    for models, adapt in split:
        name = ",".join(Path(model).stem if stems[Path(model).stem] == 1 else model for model in models)
        options = ["--cost", models[0], *(["--guide", models[1]] if models[1:] else []), *(["--adapt", adapt] if adapt else [])]
        found.append(tuning_curves.Contender(f"{name}+{adapt}" if adapt else name, ["--search", search, *options]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tuning_curves.add_options(parser)
    tuning_table.add_options(parser)
    guide_families.add_options(parser)
    parser.add_argument("--costs", nargs="+", help="names, FILE.model, FILE.onnx, FILE.onnx+HOW, MODEL,GUIDE; default: analytic combined, with --families none")
    parser.add_argument("--search", default="mixed", help="the search that they guide")
    options = parser.parse_args()
    if options.families and not (options.train_db and options.nets):
        parser.error("--families: --train-db and --nets are required to train them")
    costs = (options.costs or ([] if options.families else ["analytic", "combined"])) + guide_families.costs(options)
    if len(set(costs)) < len(costs):
        sys.exit("--costs: one is given twice")
    found = contenders(costs, options.search)
    if options.table:
        tuning_table.compare(found, options)
    else:
        tuning_curves.compare("cost model", found, options)


if __name__ == "__main__":
    main()
