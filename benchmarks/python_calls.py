"""What a call from Python costs beside the C interface: a model of three small inputs, in turns.

    PYTHONPATH=SITE benchmarks/python_calls.py

SITE is the folder of an installed package (pip install --target SITE ./python). The C interface is called by a compiled
loop, and so is ONNX Runtime's session by its Python package.
"""
import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import hone

LOOP = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char** argv) {
  long calls = argc == 2 ? atol(argv[1]) : 0;
  static float a[16] __attribute__((aligned(64))), b[16] __attribute__((aligned(64))), c[16] __attribute__((aligned(64)));
  static float y[16] __attribute__((aligned(64)));
  const void* in[] = {a, b, c};
  void* out[] = {y};
  hone_model* model;
  if (calls <= 0 || hone_model_create(&model, 1) != 0) return 1;
  struct timespec begin, end;
  for (long i = 0; i < calls; ++i) {
    if (i == calls / 10) clock_gettime(CLOCK_MONOTONIC, &begin);
    if (hone_model_run(model, in, out) != 0) return 1;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.3f\\n", ((end.tv_sec - begin.tv_sec) * 1e6 + (end.tv_nsec - begin.tv_nsec) * 1e-3) / (calls - calls / 10));
  hone_model_destroy(model);
}
"""


def make_model(path):
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16]) for name in "abcy"]
    nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Mul", ["s", "c"], ["y"])]
    graph = helper.make_graph(nodes, "three", tensors[:3], tensors[3:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def python_loop(function, calls):
    """Microseconds a call, without the first tenth."""
    for _ in range(calls // 10):
        function()
    begin = time.perf_counter()
    for _ in range(calls - calls // 10):
        function()
    return (time.perf_counter() - begin) * 1e6 / (calls - calls // 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000, help="of each turn")
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder / "model.onnx")
        model = hone.compile(folder / "model.onnx", folder / "model.so", header=True, threads=1, use_db=False)
        (folder / "loop.c").write_text(LOOP)
        subprocess.run(["cc", "-O2", "loop.c", "./model.so", "-o", "loop", "-Wl,-rpath,$ORIGIN"], cwd=folder, check=True)
        arrays = [np.ones(16, np.float32) for _ in "abc"]
        out = model.run(arrays)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), settings, providers=["CPUExecutionProvider"])
        feeds = dict(zip("abc", arrays))
        ways = {
            "C interface": lambda calls: float(subprocess.run(["./loop", str(calls)], cwd=folder, capture_output=True, text=True, check=True).stdout),
            "model(a, b, c)": lambda calls: python_loop(lambda: model(*arrays), calls),
            "model.run([a, b, c], out)": lambda calls: python_loop(lambda: model.run(arrays, out), calls),
            "ONNX Runtime": lambda calls: python_loop(lambda: session.run(None, feeds), calls),
        }
        times = {way: [] for way in ways}
        for _ in range(options.turns):
            for way, measure in ways.items():
                times[way].append(measure(options.calls))
        base = statistics.median(times["C interface"])
        print("| way | us a call | us over the C interface |\n|---|---|---|")
        for way, seconds in times.items():
            print(f"| {way} | {statistics.median(seconds):.2f} | {statistics.median(seconds) - base:.2f} |")


if __name__ == "__main__":
    main()
