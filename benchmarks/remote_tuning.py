"""Trials a second through hone serve over the loopback interface beside those of local tuning, in turns.

    benchmarks/remote_tuning.py --hone build/release/tools/hone/hone MODEL.onnx...

Both measure on this machine, with the same budget, seed and threads and without a database. The figure asked for is 0.9.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from remote_machine import Server


def rate(command):
    """Trials a second of the search of one run."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    report = json.loads(done.stdout)
    return report["trials"] / report["search_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", default="hone")
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = folder
        with Server(arguments.hone, Path(folder) / "hone" / "token") as server:
            for model in arguments.models:
                command = [arguments.hone, "tune", model, "-o", f"{folder}/model.so", "--no-db", "--json", "--no-check",
                           "--budget", arguments.budget, "--threads", arguments.threads]
                rates = {"local": [], "remote": []}
                for turn in range(arguments.rounds):
                    for name in sorted(rates, reverse=turn % 2 == 1):
                        machine = ["--machine", f"grpc://127.0.0.1:{server.port}"] if name == "remote" else []
                        rates[name].append(rate([*command, *machine]))
                        print(f"{Path(model).stem} {name}: {rates[name][-1]:.1f} trials a second", flush=True)
                medians = {name: statistics.median(values) for name, values in rates.items()}
                print(f"{Path(model).stem}: remote / local = {medians['remote'] / medians['local']:.3f} (medians of {arguments.rounds})")


if __name__ == "__main__":
    main()
