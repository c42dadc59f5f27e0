#!/usr/bin/env python3
"""LSTM and GRU against ONNX Runtime, ten shapes: latencies and the largest difference of the results.

    benchmarks/recurrent.py --hone build/release/tools/hone/hone [--threads 2] [--only lstm_1] [--tune 30s]

Each model is compiled without a database (or tuned with an empty one) and timed in turns with ONNX Runtime (interleaved.py). The ratio is
ONNX Runtime's latency over Hone's: above 1 Hone is faster.
"""
import argparse
import tempfile
from pathlib import Path

import engines
import interleaved
import tuning_curves

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# name: operator, layers, directions, batch, steps, inputs, hidden
SHAPES = {
    "lstm_small": ("LSTM", 1, 1, 1, 32, 64, 64),
    "lstm_speech": ("LSTM", 2, 1, 1, 100, 80, 256),
    "lstm_both_ways": ("LSTM", 1, 2, 1, 64, 128, 128),
    "lstm_text": ("LSTM", 2, 2, 1, 32, 256, 256),
    "lstm_step": ("LSTM", 3, 1, 1, 1, 512, 512),
    "lstm_batch": ("LSTM", 1, 1, 32, 32, 128, 256),
    "gru_small": ("GRU", 1, 1, 1, 32, 64, 64),
    "gru_speech": ("GRU", 2, 1, 1, 100, 80, 256),
    "gru_both_ways": ("GRU", 2, 2, 1, 48, 128, 128),
    "gru_batch": ("GRU", 1, 1, 32, 32, 128, 256)}


def make(operator, layers, directions, batch, steps, inputs, hidden):
    rng, gates = np.random.default_rng(0), {"LSTM": 4, "GRU": 3}[operator]
    nodes, constants, x, width = [], [], "x", inputs
    for i in range(layers):
        for name, shape in (("w", (directions, gates * hidden, width)), ("r", (directions, gates * hidden, hidden)), ("b", (directions, 2 * gates * hidden))):
            constants.append(numpy_helper.from_array((rng.standard_normal(shape) * hidden**-0.5).astype(np.float32), f"{name}{i}"))
        more = {"linear_before_reset": 1} if operator == "GRU" else {}
        nodes.append(helper.make_node(operator, [x, f"w{i}", f"r{i}", f"b{i}"], [f"y{i}"], name=f"layer{i}", hidden_size=hidden,
                                      direction="bidirectional" if directions == 2 else "forward", **more))
        nodes.append(helper.make_node("Transpose", [f"y{i}"], [f"t{i}"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [f"t{i}", "joined"], [f"z{i}"]))
        x, width = f"z{i}", directions * hidden
    constants.append(numpy_helper.from_array(np.array([steps, batch, width], np.int64), "joined"))
    graph = helper.make_graph(nodes, operator.lower(), [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, inputs])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, [steps, batch, width])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, {"x": rng.standard_normal((steps, batch, inputs)).astype(np.float32)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path, help="the hone program")
    parser.add_argument("--only", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tune", metavar="TIME", help="tune each for so long")
    options = parser.parse_args()
    print("| model | shape | Hone us | ONNX Runtime us | ratio | difference |\n| --- | --- | --- | --- | --- | --- |")
    for name in options.only:
        model, inputs = make(*SHAPES[name])
        with tempfile.TemporaryDirectory() as folder:
            path, library = Path(folder) / f"{name}.onnx", Path(folder) / f"{name}.so"
            onnx.save(model, path)
            tuning_curves.build_alone(options, path, library)
            running = {"hone": engines.Hone(library, inputs, options.threads), "ort": engines.OnnxRuntime(path, inputs, options.threads)}
            error = engines.relative_error(running["hone"].run(), running["ort"].run())
            seconds = interleaved.measure(running, options.rounds, threads=options.threads)
            shape = "{} layers {} directions {} batch {} steps {} inputs {} hidden {}".format(*SHAPES[name])
            print(f"| {name} | {shape} | {interleaved.median(seconds['hone']) * 1e6:.1f} | {interleaved.median(seconds['ort']) * 1e6:.1f} | "
                  f"{interleaved.ratio(seconds['ort'], seconds['hone']):.2f} | {error:.1e} |", flush=True)
            for engine in running.values():
                engine.close()


if __name__ == "__main__":
    main()
