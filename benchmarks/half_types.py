#!/usr/bin/env python3
"""Models in float16 and bfloat16 against the same model in float32: time, bytes of the library, difference of the results.

    benchmarks/half_types.py --hone build/release/tools/hone/hone [--models bert_base_s128 mobilenet_v2 decoder decoder_step] [--threads 2]

Each version is compiled without a database (`--tune 60s`: tuned, each with an empty one) and timed in turns (interleaved.py). A ratio is the
time in the half type over that in float32. `decoder` and `decoder_step` are two layers of models/decoder.py, 128 tokens at once and one
after 127. The difference is that of the results from float32's, over their largest one.
"""
import argparse
import tempfile
from pathlib import Path

import engines
import interleaved
import model_files
import tuning_curves

import decoder
import in_half

import onnx

DECODERS = {"decoder": {"tokens": 128, "past": 0}, "decoder_step": {"tokens": 1, "past": 127}}
TYPES = ("float32", "float16", "bfloat16")


def load(name):
    """The model in float32, afresh, and its inputs."""
    if name in DECODERS:
        model = decoder.decoder(**DECODERS[name])
        return model, decoder.inputs(model)
    _, path, inputs = model_files.load(name)
    return onnx.load(path), inputs


def in_type(array, kind):
    """An input as the version takes it; bfloat16 as its bits."""
    if kind == "float32" or array.dtype.kind != "f":
        return array
    bits = in_half.bits_of(array, kind)
    return bits.view("float16") if kind == "float16" else bits


def as_float32(array, kind):
    return (array.astype("uint32") << 16).view("float32") if kind == "bfloat16" and array.dtype == "uint16" else array


def build(options, name, folder):
    """{type: (path of the library, inputs)}"""
    built = {}
    for kind in TYPES:
        model, inputs = load(name)
        path, library = folder / f"{name}.{kind}.onnx", folder / f"{name}.{kind}.so"
        onnx.save(model if kind == "float32" else in_half.in_half(model, kind), path)
        tuning_curves.build_alone(options, path, library)
        built[kind] = (library, {key: in_type(array, kind) for key, array in inputs.items()})
    return built


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path, help="the hone program")
    parser.add_argument("--models", nargs="+", default=["bert_base_s128", "mobilenet_v2", *DECODERS])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tune", metavar="TIME", help="tune each version for so long")
    options = parser.parse_args()
    print("| model | type | ms | / float32 | MB | / float32 | difference |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            built = build(options, name, Path(folder))
            running = {kind: engines.Hone(path, inputs, options.threads) for kind, (path, inputs) in built.items()}
            results = {kind: [as_float32(x, kind) for x in engine.run()] for kind, engine in running.items()}
            seconds = interleaved.measure(running, options.rounds, threads=options.threads)
            for kind in TYPES:
                size, whole = built[kind][0].stat().st_size, built["float32"][0].stat().st_size
                error = engines.relative_error(results[kind], results["float32"])
                print(f"| {name} | {kind} | {interleaved.median(seconds[kind]) * 1e3:.3f} | "
                      f"{interleaved.ratio(seconds[kind], seconds['float32']):.3f} | {size / 1e6:.1f} | {size / whole:.2f} | {error:.1e} |",
                      flush=True)
            for engine in running.values():
                engine.close()


if __name__ == "__main__":
    main()
