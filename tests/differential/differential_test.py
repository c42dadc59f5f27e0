"""Random small graphs of supported operators: compiled, run and compared with ONNX Runtime.

    HONE=build/tools/hone/hone differential_test.py [--seed N] [--models N] [--subgraphs N] [--keep FOLDER] [--attributes]
    HONE=build/tools/hone/hone differential_test.py --passes [--families NAME ...] [--fired] ...
    HONE=build/tools/hone/hone differential_test.py --kinds [NAME ...] [--models N] ...

A model is many independent subgraphs, so that one compilation tests them all; each seed makes the same model everywhere. On a difference it
prints the seed and the smallest part that still differs, and exits with 1. --attributes: each attribute of each operator that the program
supports must have been set. --passes: graphs that match what a pass over the graph looks
for, or almost do (pass_edges/); --fired: each rule of those passes must have changed some graph. --kinds: models with functions, sequences,
loops, small types, operators of other domains, ranges of sizes (kinds/), --models of each; a file has --subgraphs of them.
"""
import argparse
import collections
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

try:
    import attribute_coverage
    import pass_edges
    from kinds import KINDS, oracles
    from kinds.runner import KindRunner
    from maker import random_subgraph
    from runner import Runner, hone
except ImportError as missing:
    sys.exit(f"the differential test needs numpy, onnx and onnxruntime ({missing}): run scripts/setup.sh")

OPSETS = tuple(range(7, 29))
MOST_EXTRA_MODELS = 200  # of which those subgraphs are kept that set what the others have not


def random_model(seed, options, folder):
    """(runner, seed, subgraphs) of any operators."""
    rng = np.random.default_rng(seed)
    opset = OPSETS[seed % len(OPSETS)]
    return Runner(opset, folder), seed, [random_subgraph(f"s{i}_", opset, rng) for i in range(options.subgraphs)]


def rare_model(seed, options, folder, operators):
    """The same of which only those are kept that set what none before them did."""
    rng = np.random.default_rng([seed, 1])
    opset, kept = OPSETS[seed % len(OPSETS)], []
    for i in range(options.subgraphs):
        before = len(attribute_coverage.missing(operators))
        subgraph = random_subgraph(f"s{i}_", opset, rng)
        if len(attribute_coverage.missing(operators)) < before:
            kept.append(subgraph)
    return Runner(opset, folder), f"{seed} of rare attributes", kept


class Total:
    """What all models came to."""

    def __init__(self, options):
        self.options, self.compared, self.refused, self.failed = options, 0, 0, 0

    def check(self, runner, seed, subgraphs):
        """Those of the subgraphs that the program takes."""
        taken, findings, refusals = runner.check(subgraphs)
        runner.report(seed, findings, self.options.keep)
        for message in refusals if self.options.verbose else []:
            print(f"seed {seed}: refused: {message}", flush=True)
        self.compared, self.refused, self.failed = self.compared + len(taken), self.refused + len(refusals), self.failed + len(findings)
        return taken


def check_operators(options, folder, total):
    """Attributes that no generator set, if they are asked for."""
    for seed in range(options.seed, options.seed + options.models):
        total.check(*random_model(seed, options, folder))
    if not options.attributes:
        return []
    operators = [operator["name"] for operator in json.loads(hone("ops", "--json")) if operator["opsets"]]  # of ONNX
    for seed in range(options.seed, options.seed + MOST_EXTRA_MODELS):
        if attribute_coverage.missing(operators):
            total.check(*rare_model(seed, options, folder, operators))
    return [f"{operator}: no generator {f'sets {attribute}' if attribute else 'makes it'}" for operator, attribute in attribute_coverage.missing(operators)]


def check_passes(options, folder, total):
    """Rules that never changed a graph, if they are asked for. The models take turns among the families."""
    families = [family for family in pass_edges.FAMILIES if not options.families or family.name in options.families]
    fired = collections.Counter()  # "pass" and "pass.rule", on graphs of the families that own the pass
    for seed in range(options.seed, options.seed + options.models):
        family = families[seed % len(families)]
        opset, arguments, subgraphs = family.model(seed, options.subgraphs)
        runner = Runner(opset, folder, arguments)
        taken = total.check(runner, seed, subgraphs)
        if options.fired and taken:
            count_rules(fired, runner, taken, family)
    if not options.fired:
        return []
    if options.verbose:
        print("\n".join(f"{name}: {count}" for name, count in sorted(fired.items())))
    wanted = set(fired).union(*[{*family.passes, *family.rules} for family in families])
    return [f"{name} never changed a graph of its own generator" for name in sorted(wanted) if fired[name] == 0]


def count_rules(fired, runner, subgraphs, family):
    for name, rules in runner.passes(subgraphs).items():
        if name in family.passes:
            fired[name] += 1
            for rule, times in rules.items():
                fired[f"{name}.{rule}"] += times


def check_kinds(options, folder, total):
    """Prints, by kind, how many models both oracles or one of them could judge. The name of a kind and the seed of a file make it again.

    Returns the kinds of which not even half of the models were compared.
    """
    gaps = []
    for kind in [kind for kind in KINDS if not options.kinds or kind.name in options.kinds]:
        start, before, support = time.monotonic(), (total.compared, total.failed, total.refused), collections.Counter()
        for first in range(0, options.models, options.subgraphs):
            seed = options.seed + first // options.subgraphs
            opset, subgraphs = kind.models(seed, min(options.subgraphs, options.models - first))
            taken = total.check(KindRunner(opset, folder, kind.arguments), f"{seed} of {kind.name}", subgraphs)
            support.update(" and ".join(sorted(subgraph.supported_by())) or "either, node by node" for subgraph in taken)
        compared, failed, refused = (now - then for now, then in zip((total.compared, total.failed, total.refused), before, strict=True))
        oracle_counts = ", ".join(f"{count} by {names}" for names, count in sorted(support.items()))
        print(f"{kind.name}: {compared} models compared ({oracle_counts}), {failed} differ, {refused} refused, {time.monotonic() - start:.0f} s", flush=True)
        if 2 * compared < options.models:
            gaps.append(f"{kind.name}: {compared} of {options.models} models compared, expected half of them at least")
    if oracles.disagreements:
        listed = ", ".join(f"{name} {count}" for name, count in oracles.disagreements.most_common())
        print(f"left out, as the oracles disagree about them: nodes of {listed}")
    return gaps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the first model")
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--subgraphs", type=int, default=25)
    parser.add_argument("--attributes", action="store_true", help="fail if an attribute of an operator is never set")
    parser.add_argument("--passes", action="store_true", help="graphs at the edges of what passes look for")
    parser.add_argument("--kinds", nargs="*", choices=[kind.name for kind in KINDS], help="models of these kinds, of all if none is named")
    parser.add_argument("--families", nargs="+", choices=[family.name for family in pass_edges.FAMILIES], help="of passes")
    parser.add_argument("--fired", action="store_true", help="fail if a rule never changed a graph of its own generator")
    parser.add_argument("--keep", type=Path, help="folder for the models that differ and the values expected of them")
    parser.add_argument("--verbose", action="store_true", help="print what hone refused, and how often each rule changed a graph")
    options = parser.parse_args()
    start, total = time.monotonic(), Total(options)
    with tempfile.TemporaryDirectory(prefix="hone-differential") as folder:
        gaps = (check_kinds if options.kinds is not None else check_passes if options.passes else check_operators)(options, Path(folder), total)
    for gap in gaps:
        print(gap)
    print(f"{total.compared} subgraphs of {options.models} models from seed {options.seed} compared, {total.failed} differ, {total.refused} refused, "
          f"{time.monotonic() - start:.0f} s")
    sys.exit(1 if total.failed or gaps else 0)


if __name__ == "__main__":
    main()
