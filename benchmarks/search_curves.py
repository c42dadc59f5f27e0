#!/usr/bin/env python3
"""How fast each search strategy finds fast code.

    build/venv/bin/python benchmarks/search_curves.py --hone build/release/tools/hone/hone --output curves.svg [--budget 30] [--runs 1]

prints trials and seconds until 0.95 of the best known, and draws curves of latency against both. What is run and counted: tuning_curves.py.

    build/venv/bin/python benchmarks/search_curves.py --hone build/release/tools/hone/hone --table strategies.jsonl --tasks held-out --seconds 60 --trials 200
        --seeds 3 --cost without_them.model

prints all strategies at equal trials and at equal seconds, with the spread over the seeds, and goes on from the runs that the file has: tuning_table.py.
"""
import argparse
from pathlib import Path

import tuning_curves
import tuning_table

DEFAULT = "default"  # what `hone tune` does without --search
STRATEGIES = [DEFAULT, "bayes", "dqn", "ppo", "es", "evolutionary", "annealing", "coordinate", "beam", "random"]


def trained(state, options):
    """DQN that begins with what it has learned (hone policy train)."""
    return tuning_curves.Contender(f"dqn from {state.stem}", ["--search", "dqn", "--cost", options.cost], state=state)


def contender(search, overlap, options):
    name = f"{search} overlap={overlap}" if len(options.overlap) > 1 else search
    chosen = [] if search == DEFAULT else ["--search", search]
    return tuning_curves.Contender(name, [*chosen, "--cost", options.cost, "--overlap", overlap], told=search.partition(":")[0] != "random")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tuning_curves.add_options(parser)
    tuning_table.add_options(parser)
    parser.add_argument("--search", "--strategies", nargs="+",
                        help=f"as hone tune takes them, or {DEFAULT}; default: mixed evolutionary random, with --table {' '.join(STRATEGIES)}")
    parser.add_argument("--overlap", nargs="+", default=["auto"], choices=["auto", "yes", "no"],
                        help="compile while measuring; each strategy runs with each of these")
    parser.add_argument("--cost", default="analytic", help="the cost model that guides them")
    parser.add_argument("--policy-state", nargs="+", type=Path, default=[], metavar="FILE",
                        help="also a dqn that begins with each of these files of hone policy train")
    options = parser.parse_args()
    searches = options.search or (STRATEGIES if options.table else ["mixed", "evolutionary", "random"])
    contenders = [contender(search, overlap, options) for search in searches for overlap in options.overlap]
    contenders += [trained(state, options) for state in options.policy_state]
    if len({found.name for found in contenders}) < len(contenders):
        parser.error("--search, --policy-state: one is given twice")
    if missing := [str(state) for state in options.policy_state if not state.is_file()]:
        parser.error(f"--policy-state: no file {missing[0]}")
    if options.table:
        tuning_table.compare(contenders, options)
    else:
        tuning_curves.compare("search", contenders, options)


if __name__ == "__main__":
    main()
