#!/usr/bin/env python3
"""A 512x512x512 float32 matrix product with constant weights on one thread: tuned, then compared with oneDNN.

    benchmarks/gemm.py --hone build/release/tools/hone/hone --rival build/release/benchmarks/hone_gemm_vs_onednn [--budget 60s]
"""
import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path)
    parser.add_argument("--rival", required=True, type=Path)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--size", nargs=3, type=int, default=[512, 512, 512], metavar=("M", "N", "K"))
    options = parser.parse_args()
    m, n, k = options.size
    weights = np.random.default_rng(0).standard_normal((k, n)).astype(np.float32)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="matmul")], "gemm",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, (m, k))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, (m, n))], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    with tempfile.TemporaryDirectory(prefix="hone-gemm") as folder:
        onnx.save_model(model, f"{folder}/gemm.onnx")
        subprocess.run([options.hone.resolve(), "tune", f"{folder}/gemm.onnx", "-o", f"{folder}/gemm.so", "--db", f"{folder}/gemm.db",
                        "--no-shipped", "--threads", "1", "--budget", options.budget], check=True)
        subprocess.run([options.rival.resolve(), f"{folder}/gemm.so"], check=True)


if __name__ == "__main__":
    main()
