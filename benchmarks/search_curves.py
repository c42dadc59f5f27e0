#!/usr/bin/env python3
"""How fast each search strategy finds fast code: trials and seconds until 0.95 of the best known, and curves of latency against both.

    build/venv/bin/python benchmarks/search_curves.py --hone build/release/tools/hone/hone --output curves.svg [--budget 30] [--runs 1]

What is run and counted: tuning_curves.py.
"""
import argparse

import tuning_curves


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tuning_curves.add_options(parser)
    parser.add_argument("--search", nargs="+", default=["mixed", "evolutionary", "random"])
    parser.add_argument("--overlap", nargs="+", default=["auto"], choices=["auto", "yes", "no"],
                        help="compile while measuring; each strategy runs with each of these")
    parser.add_argument("--cost", default="analytic", help="the cost model that guides them")
    options = parser.parse_args()
    contenders = [tuning_curves.Contender(f"{search} overlap={overlap}" if len(options.overlap) > 1 else search,
                                          ["--search", search, "--cost", options.cost, "--overlap", overlap], told=search != "random")
                  for search in options.search for overlap in options.overlap]
    tuning_curves.compare("search", contenders, options)


if __name__ == "__main__":
    main()
