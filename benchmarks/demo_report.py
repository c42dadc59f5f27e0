#!/usr/bin/env python3
"""What tuning gained: time of each kernel before and after, and the whole model against ONNX Runtime.

    benchmarks/demo_report.py --hone HONE --model resnet18 --before default.so --after tuned.so [--threads 2]

`before` is the artifact of `hone compile` with an empty database, `after` that of `hone tune`.
"""
import argparse
import json
import subprocess
from pathlib import Path

import cores
import engines
import interleaved
import model_files


def kernels(options, path):
    """[(name, seconds)] in the order of execution."""
    done = subprocess.run([str(options.hone.resolve()), "bench", str(path), "--threads", str(options.threads), "--json"],
                          check=True, capture_output=True, text=True)
    return [(kernel["name"], kernel["seconds"], kernel["flops"]) for kernel in json.loads(done.stdout)["kernels"]]


def print_kernels(before, after):
    print(f"{'kernel':<52} {'before':>10} {'after':>10} {'gain':>6} {'GFLOP/s':>8}")
    print("-" * 90)
    old = {}
    for name, seconds, _ in before:
        old.setdefault(name, []).append(seconds)
    for name, seconds, flops in after:
        was = old[name].pop(0) if old.get(name) else None
        shown = name if len(name) <= 52 else name[:24] + ".." + name[-26:]
        first = f"{1e6 * was:.0f} us" if was is not None else "-"
        gain = f"{was / seconds:.2f}x" if was is not None and seconds > 0 else "-"
        rate = f"{flops / seconds * 1e-9:.1f}" if seconds > 0 else "-"
        print(f"{shown:<52} {first:>10} {1e6 * seconds:>7.0f} us {gain:>6} {rate:>8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--before", required=True, type=Path)
    parser.add_argument("--after", required=True, type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    cores.patience.hone = options.hone.resolve()

    print_kernels(kernels(options, options.before), kernels(options, options.after))
    inputs = model_files.inputs(options.model)
    compared = {"before": engines.Hone(options.before.resolve(), inputs, options.threads),
                "after": engines.Hone(options.after.resolve(), inputs, options.threads),
                "onnxruntime": engines.OnnxRuntime(model_files.filled(options.model), inputs, options.threads)}
    error = engines.relative_error(compared["after"].run(), compared["onnxruntime"].run())
    seconds = interleaved.measure(compared, options.rounds, threads=options.threads)
    for engine in compared.values():
        engine.close()
    print("-" * 90)
    titles = {"before": "whole model before tuning (hone compile)", "after": "whole model after tuning (hone tune)",
              "onnxruntime": "whole model, ONNX Runtime"}
    for key, title in titles.items():
        relative = "" if key == "onnxruntime" else f"  {interleaved.ratio(seconds[key], seconds['onnxruntime']):.2f} of ONNX Runtime"
        print(f"{title:<52} {1e3 * interleaved.median(seconds[key]):>7.2f} ms{relative}")
    print(f"{'largest difference of outputs / largest output':<52} {error:>10.1e}")


if __name__ == "__main__":
    main()
