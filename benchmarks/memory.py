#!/usr/bin/env python3
"""Peak memory of running a model: Hone's artifact against ONNX Runtime.

    benchmarks/memory.py --hone build/release/tools/hone/hone [--models resnet18 ... | all] [--threads 2]

Each engine runs in a process of its own. Counted is how far the process's peak resident memory (VmHWM) rises from the moment
its libraries are loaded until the model has run three times: weights, arena and whatever loading needs. The artifact is
compiled with --accuracy strict: Winograd's transformed weights are larger than the model's.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import engines
import model_files


def status(key):
    return int(re.search(rf"^{key}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)[1]) / 1024


def child(engine, path, name, threads):
    """Prints the rise in MiB."""
    inputs = model_files.inputs(name)
    if engine == "onnxruntime":
        import onnxruntime  # noqa: F401  its own size is no model's
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = status("VmRSS")
    runner = (engines.OnnxRuntime if engine == "onnxruntime" else engines.Hone)(path, inputs, threads)
    for _ in range(3):
        runner.run()
    print(status("VmHWM") - before)


def measure(engine, path, name, threads):
    command = [sys.executable, __file__, "--child", engine, "--hone", str(path), "--models", name, "--threads", str(threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path, help="the hone program")
    parser.add_argument("--models", nargs="+", default=["all"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.hone, options.models[0], options.threads)
    names = [entry["name"] for entry in model_files.entries()] if options.models == ["all"] else options.models
    results = []
    print("| model | hone MiB | onnxruntime MiB | hone/onnxruntime |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="hone-memory") as folder:
        for name in names:
            model, library = model_files.filled(name), Path(folder) / f"{name}.so"
            subprocess.run([options.hone.resolve(), "compile", model, "-o", library, "--no-db", "--accuracy", "strict",
                            "--threads", str(options.threads)], check=True, stdout=subprocess.DEVNULL)
            ours = measure("hone", library, name, options.threads)
            theirs = measure("onnxruntime", model, name, options.threads)
            library.unlink()
            results.append({"model": name, "hone_mib": ours, "onnxruntime_mib": theirs})
            print(f"| {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |", flush=True)
    worst = max(results, key=lambda r: r["hone_mib"] / r["onnxruntime_mib"])
    ratio = worst["hone_mib"] / worst["onnxruntime_mib"]
    print(f"{'reached' if ratio <= 1 else 'MISSED '}  peak memory: worst {ratio:.2f} of ONNX Runtime, {worst['model']} (goal 1.0)")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
