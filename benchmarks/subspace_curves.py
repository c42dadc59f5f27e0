#!/usr/bin/env python3
"""What a search loses and saves that moves few decisions (Fasor, figure 8): n_p = 5 to 8 of the roles that matter most, all, learned by task, by the
cost model, by what limits the kernel, and random ones; trials and seconds until 0.95 of the best known, and the speed in the end.

    build/venv/bin/python benchmarks/subspace_curves.py --hone build/release/tools/hone/hone --output subspace.html [--budget 30] [--runs 3]

How much roles matter is measured first (`hone sensitivity`), on models that are none of the tasks. What is run and counted: tuning_curves.py; with --table
FILE.jsonl all contenders at equal trials and at equal seconds, with the spread over the seeds: tuning_table.py. What was measured of the roles is kept beside
that file.
"""
import argparse
import sys
import tempfile
from pathlib import Path

import model_files
import tuning_curves
import tuning_table

MOVABLE = ["all", "5", "6", "7", "8", "learned:7", "predicted:7", "scores:7", "random:7"]


def measure(options, db):
    """How much roles matter, into the database."""
    models = [model_files.load(name)[1] for name in options.sensitivity_models]
    if set(options.sensitivity_models) & set(options.tasks):
        sys.exit("--sensitivity-models: expected none of --tasks")
    print(tuning_curves.run_hone(options.hone.resolve(), "sensitivity", *models, "--db", db, "--no-shipped", "--threads", options.threads,
                                 "--tasks", options.sensitivity_tasks, "--budget", f"{options.sensitivity_budget:g}s"), file=sys.stderr)


def contenders(options, db):
    shared = ["--search", options.search, "--cost", options.cost]
    found = [tuning_curves.Contender(choice.replace(":", "_"), [*shared, "--movable", choice], told=options.search != "random", store=db) for choice in options.movable]
    if options.powers_of_two:
        found.append(tuning_curves.Contender("powers of two", [*found[0].arguments, "--tiles", "powers-of-two"], told=found[0].told, store=db))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tuning_curves.add_options(parser)
    tuning_table.add_options(parser)
    parser.add_argument("--movable", nargs="+", default=MOVABLE, help="choices of tune --movable; the first is what the others are compared with")
    parser.add_argument("--powers-of-two", action="store_true", help="also the first one with tiles of such lengths only")
    parser.add_argument("--search", default="mixed", help="the strategy")
    parser.add_argument("--cost", default="analytic", help="the cost model that guides it")
    parser.add_argument("--sensitivity-models", nargs="+", default=["resnet50", "mobilenet_v2", "bert_base"], help="models of models/ or ONNX files")
    parser.add_argument("--sensitivity-tasks", type=int, default=10, help="kernels of these that are measured")
    parser.add_argument("--sensitivity-budget", type=float, default=300, help="seconds for that")
    options = parser.parse_args()
    if options.table:
        db = options.table.with_suffix(".sensitivity.db")
        if not db.exists():
            measure(options, db)
        tuning_table.compare(contenders(options, db), options)
        return
    with tempfile.TemporaryDirectory(prefix="hone-subspace") as folder:
        db = Path(folder) / "sensitivity.db"
        measure(options, db)
        tuning_curves.compare("movable", contenders(options, db), options)


if __name__ == "__main__":
    main()
