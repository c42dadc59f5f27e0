#!/usr/bin/env python3
"""A library of a range of shapes at some sizes, against libraries that were compiled for each of them alone.

    benchmarks/varying_shapes.py --hone build/release/tools/hone/hone --model resnet50.onnx --range data=1..8x3x224x224 \\
        --at data=1x3x224x224 --at data=5x3x224x224 [--threads 2] [--rounds 5] [--own-time]

Each --at has the shapes of all inputs that vary, with commas between them. Both libraries are compiled without measuring and run in one process in
turns, on the same random inputs, and their outputs are compared; so are the files, the memory that a run takes and the seconds that compiling takes. The goal is 1.05
at most for nine of ten sizes, 1.15 for all. With two sizes or more, the time of a change between them is printed: the shapes of all inputs are given, that of an
output is asked for.
With --tune S, libraries of one size are tuned for S seconds each, and that of the range for --range-budget times S, each with a database of its own:
the same quality for twice the seconds is the goal.
With --own-time there is one thread, whose processor time counts: other programs disturb it less than they do the clock.
"""
import argparse
import ctypes
import json
import math
import tempfile
import time
from pathlib import Path

import numpy as np

import engines
import interleaved
import tuning_curves


class HoneAt(engines.Hone):
    """An artifact of a range of shapes, at those of the inputs."""

    def __init__(self, path, inputs, threads):
        super().__init__(path, inputs, threads)
        self.set(inputs)

    def set(self, inputs):
        """Takes other inputs, whose shapes may be others."""
        library = self.library
        self.inputs = [engines.aligned(inputs[name]) for name, _, _ in self._tensors("input")]
        for i, x in enumerate(self.inputs):
            self.input_pointers[i] = x.ctypes.data
            shape = (ctypes.c_int64 * x.ndim)(*x.shape)
            if library.hone_model_set_input_shape(self.model, i, x.ndim, shape) != 0:
                raise RuntimeError(library.hone_model_last_error(self.model).decode())

    def run(self):
        """The outputs, which begin the arrays of the largest shapes."""
        return [x.reshape(-1)[:math.prod(shape)].reshape(shape) for x, shape in zip(super().run(), self.output_shapes(), strict=True)]

    def output_shapes(self):
        """Of the last run: data may decide them."""
        shapes = []
        for i in range(len(self.outputs)):
            rank, shape = ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
            if self.library.hone_model_output_shape(self.model, i, ctypes.byref(rank), ctypes.byref(shape)) != 0:
                raise RuntimeError(self.library.hone_model_last_error(self.model).decode())
            shapes.append(tuple(shape[:rank.value]))
        return shapes


class Call:
    """An engine whose runs are only the library's: to look for the shapes of outputs takes microseconds."""

    def __init__(self, engine):
        self.engine = engine

    def run(self):
        engines.Hone.run(self.engine)


class Types(engines.Hone):
    """Only asks for the inputs of an artifact."""

    def __init__(self, path):  # pylint: disable=super-init-not-called
        self.library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
        self.model = ctypes.c_void_p()
        if self._create(1) != 0:
            raise RuntimeError(f"{path}: cannot be loaded")
        self.inputs = self._tensors("input")


def random_inputs(path, generator):
    types = Types(path)
    inputs = {}
    for name, dtype, shape in types.inputs:
        whole = np.issubdtype(dtype, np.integer) or dtype == np.bool_
        inputs[name] = generator.integers(0, 2, shape).astype(dtype) if whole else generator.normal(size=shape).astype(dtype)
    types.close()
    return inputs


def make_library(options, shapes, path, budget=0):
    """Compiles, or tunes for so many seconds. Returns the seconds that it takes, and the bytes that a run of the largest sizes takes."""
    begin = time.monotonic()
    how = ["tune", "--budget", f"{budget}s", "--db", f"{path}.db"] if budget else ["compile", "--no-db"]
    made = tuning_curves.run_hone(options.hone.resolve(), *how, options.model, "-o", path, "--threads", options.threads, "--json",
                                  *(f"--shape={shape}" for shape in shapes.split(",")))
    return time.monotonic() - begin, json.loads(made)["memory_bytes"]


def seconds_of_change(ranged, given, times=2000):
    """The median seconds of a change between the sizes of these inputs, in turns."""
    engine = HoneAt(ranged, given[0], 1)
    library, shapes = engine.library, []
    for inputs in given:
        arrays = [inputs[name] for name, _, _ in engine._tensors("input")]
        shapes.append([(i, x.ndim, (ctypes.c_int64 * x.ndim)(*x.shape)) for i, x in enumerate(arrays)])
    rank, shape, seconds = ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)(), []
    for k in range(times):
        begin = time.perf_counter()
        for one in shapes[k % len(shapes)]:
            library.hone_model_set_input_shape(engine.model, *one)
        library.hone_model_output_shape(engine.model, 0, ctypes.byref(rank), ctypes.byref(shape))
        seconds.append(time.perf_counter() - begin)
    engine.close()
    return interleaved.median(seconds)


def measure_own_time(both, rounds):
    """{name: [the median seconds of processor time of a run, in each round]}"""
    seconds = {name: [] for name in both}
    for _ in range(rounds):
        for name, engine in both.items():
            seconds[name].append(interleaved.median(interleaved.samples(engine.run, clock=time.thread_time)))
    return seconds


def compare(options, ranged, shapes, folder):
    alone = Path(folder) / f"{abs(hash(shapes))}.so"
    seconds_alone, memory_alone = make_library(options, shapes, alone, options.tune)
    inputs = random_inputs(alone, np.random.default_rng(1))
    both = {"range": HoneAt(ranged, inputs, options.threads), "alone": HoneAt(alone, inputs, options.threads)}
    difference = engines.relative_error(both["range"].run(), both["alone"].run())
    calls = {name: Call(engine) for name, engine in both.items()}
    seconds = measure_own_time(calls, options.rounds) if options.own_time else interleaved.measure(calls, options.rounds, threads=options.threads)
    result = {"at": shapes, "range_ms": interleaved.median(seconds["range"]) * 1e3, "alone_ms": interleaved.median(seconds["alone"]) * 1e3,
              "ratio": interleaved.ratio(seconds["range"], seconds["alone"]), "difference": difference, "alone_bytes": alone.stat().st_size, "alone_compile_s": seconds_alone,
              "alone_memory_bytes": memory_alone, "inputs": inputs}
    for engine in both.values():
        engine.close()
    alone.unlink()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path, help="the hone program")
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--range", required=True, help="shapes of the inputs that vary, as --shape takes them, with commas between them")
    parser.add_argument("--at", required=True, action="append", help="the same with numbers, once for each size")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--own-time", action="store_true", help="one thread, and its processor time")
    parser.add_argument("--tune", type=float, default=0, help="seconds for which a library of one size is tuned; 0: all are compiled")
    parser.add_argument("--range-budget", type=float, default=2, help="seconds for which that of the range is tuned, divided by these")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    if options.own_time:
        options.threads = 1
    results = []
    print("| at | range ms | alone ms | range / alone | largest relative difference |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="hone-varying") as folder:
        ranged = Path(folder) / "range.so"
        seconds_ranged, memory_ranged = make_library(options, options.range, ranged, options.range_budget * options.tune)
        for shapes in options.at:
            r = compare(options, ranged, shapes, folder)
            results.append(r)
            print(f"| {shapes} | {r['range_ms']:.3f} | {r['alone_ms']:.3f} | {r['ratio']:.2f} | {r['difference']:.1e} |", flush=True)
        largest = max(results, key=lambda r: r["alone_ms"])
        print(f"file: {ranged.stat().st_size / largest['alone_bytes']:.2f} of that for {largest['at']} alone (goal 1.5); "
              f"{'tuned' if options.tune else 'compiled'} in {seconds_ranged:.1f} s, {seconds_ranged / largest['alone_compile_s']:.2f} of its time (goal 2); "
              f"memory: {memory_ranged / largest['alone_memory_bytes']:.2f}")
        if len(results) > 1:
            print(f"change of size: {seconds_of_change(ranged, [r['inputs'] for r in results]) * 1e6:.1f} us (goal 20)")
    ratios = sorted(r["ratio"] for r in results)
    most = ratios[-1 - len(ratios) // 10]
    reached = most <= 1.05 and ratios[-1] <= 1.15
    print(f"{'reached' if reached else 'MISSED '}  a size of a range: {most:.2f} of the time of a library for it alone in nine of ten, "
          f"worst {ratios[-1]:.2f} (goals 1.05, 1.15)")
    if options.json:
        options.json.write_text(json.dumps([{key: value for key, value in r.items() if key != "inputs"} for r in results], indent=1) + "\n")


if __name__ == "__main__":
    main()
