#!/usr/bin/env python3
"""What each part of Fasor is worth: its figure 8, and the seconds of tuning by what they went to (its tables 2 and 6).

    build/venv/bin/python benchmarks/fasor_ablations.py --hone build/release/tools/hone/hone --table fasor.jsonl --net fasor_few_shot.onnx
        --store others.db --tasks resnet18 --seconds 120 --trials 300 --seeds 3

Fasor (Shi et al., ICS 2024) tunes with a pre-trained net that few measurements adapted to the device (--net), with seven of its decisions movable, by a
DQN that starts from the schedules of a store (--store, which must not have the networks that are tuned). Each ablation leaves one part out:

    ansor          evolution guided by trees that learn on line, no store, all decisions: what the paper's figures are relative to
    fasor          --search dqn --guide NET --movable 7, and the store
    without TL     the net begins with random weights (--adapt scratch)
    without S      without the store (--transfer off)
    without RL     annealing instead of the DQN
    without R      a reward without the ratio of arithmetic to memory (dqn:phi2=0)
    n_p = N        --movable N, for each of --counts
    random n_p     --movable random:N, of --random

What is run, kept, timed and printed: tuning_table.py. Then a row per contender of what its seconds went to, as `hone tune --json` says ("spent").
"""
import argparse
import statistics
from pathlib import Path

import tuning_curves
import tuning_table
from kernel_report import markdown
from tuning_curves import Contender

PARTS = ("measuring", "compiling", "choosing", "packing", "checking", "waiting", "other")
NAMES = ("ansor", "fasor", "without TL", "without S", "without RL", "without R", "n_p", "random n_p")


def dqn(**more):
    return ":".join(["dqn", *([",".join(f"{key}={value}" for key, value in more.items())] if more else [])])


def fasor(options, search=None, movable=None, adapt=None, transfer="pool"):
    """Arguments of `hone tune`."""
    movable = options.movable if movable is None else movable
    return ["--cost", options.cost, "--search", search or options.search, "--guide", options.net, "--adapt", adapt or options.adapt, "--transfer", transfer,
            *(["--movable", movable] if movable else [])]


def contenders(options):
    """In the order of NAMES, those of --only."""
    found = [("ansor", Contender("ansor", ["--cost", options.cost, "--search", "evolutionary", "--guide", "gbdt", "--transfer", "off"], store=options.store)),
             ("fasor", Contender("fasor", fasor(options), store=options.store)),
             ("without TL", Contender("fasor without TL", fasor(options, adapt="scratch"), store=options.store)),
             ("without S", Contender("fasor without S", fasor(options, transfer="off"), store=options.store)),
             ("without RL", Contender("fasor without RL", fasor(options, search="annealing"), store=options.store)),
             ("without R", Contender("fasor without R", fasor(options, search=dqn(phi2=0)), store=options.store))]
    found += [("n_p", Contender(f"fasor, n_p = {count}", fasor(options, movable=count), store=options.store)) for count in options.counts if str(count) != options.movable]
    if options.random:
        found.append(("random n_p", Contender(f"fasor, random n_p = {options.random}", fasor(options, movable=f"random:{options.random}"), store=options.store)))
    return [contender for name, contender in found if name in options.only]


def parts(lines, names):
    """Mean seconds of a run by what they went to, its share of measuring, and the part of the first contender's measuring and of the rest that is saved."""
    rows = [["", *(f"{part} s" for part in PARTS), "measuring of all", "measuring saved", "the rest saved"]]
    first = None
    for name in names:
        found = [line["report"]["spent"] for line in lines if line["contender"] == name and "spent" in line["report"]]
        if not found:
            continue
        mean = {part: statistics.fmean(spent.get(part, 0) for spent in found) for part in PARTS}
        all_of_it = sum(mean.values())
        rest = all_of_it - mean["measuring"]
        first = first or (mean["measuring"], rest)
        saved = [f"{100 * (1 - value / before):.1f} %" if before > 0 else "-" for value, before in zip((mean["measuring"], rest), first, strict=True)]
        rows.append([name, *(f"{mean[part]:.2f}" for part in PARTS), f"{100 * mean['measuring'] / max(all_of_it, 1e-9):.1f} %", *saved])
    return markdown(rows) if len(rows) > 1 else "this hone tune does not say what its seconds went to"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tuning_curves.add_options(parser)
    tuning_table.add_options(parser)
    parser.add_argument("--net", type=Path, required=True, help="FILE.onnx of hone train, of another device and adapted to this one (docs/user/training_cost_models.md)")
    parser.add_argument("--store", type=Path, help="a database file of other networks' schedules, with the sensitivities that --movable reads; each run begins with a copy")
    parser.add_argument("--movable", default="7", help="n_p of Fasor; empty: all decisions")
    parser.add_argument("--counts", nargs="*", type=int, default=[5, 6, 7, 8], help="values of n_p")
    parser.add_argument("--random", type=int, default=7, help="so many decisions, drawn; 0: none")
    parser.add_argument("--search", default="dqn", help="the strategy of Fasor, with its options")
    parser.add_argument("--adapt", default="head", help="how the net learns on line, as hone tune takes it")
    parser.add_argument("--cost", default="analytic", help="the cost model that decides which kernels there are, for all")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME", help=f"of {', '.join(NAMES)}")
    options = parser.parse_args()
    if not options.table:
        parser.error("--table: the file of the runs is required")
    for path in (options.net, options.store):
        if path and not path.is_file():
            parser.error(f"no file {path}")
    return options


def main():
    options = parse()
    found = contenders(options)
    tuning_table.compare(found, options)
    lines = tuning_table.Runs(options.table, {key: getattr(options, key) for key in tuning_table.SETTINGS}).found.values()
    print()
    print(parts(lines, [contender.name for contender in found]))


if __name__ == "__main__":
    main()
