#!/usr/bin/env python3
"""Start-up of the hone program: `hone version`, in turns with a program that does nothing.

    benchmarks/startup.py --hone build/release/tools/hone/hone [--rounds 50]

The target is below 50 ms: nothing is loaded that a command does not use.
"""
import argparse
import subprocess
import time
from pathlib import Path


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path, help="the hone program")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    commands = {"hone version": [options.hone.resolve(), "version"], "true": ["true"]}
    times = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            times[name].append(seconds(command))
    print("| program | least ms | median ms |\n| --- | --- | --- |")
    for name, of in times.items():
        of.sort()
        print(f"| {name} | {of[0] * 1e3:.1f} | {of[len(of) // 2] * 1e3:.1f} |")


if __name__ == "__main__":
    main()
