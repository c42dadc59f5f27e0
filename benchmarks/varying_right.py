#!/usr/bin/env python3
"""Models with open dimensions, compiled as they are, at five sizes each beside ONNX Runtime: a table of the largest differences, or of why a model is refused.

    benchmarks/varying_right.py --hone build/release/tools/hone/hone [--threads 2] [--limit 600] [--shape samples=64..4096 ...]
        [--values sr=16000 ...] [--time] [MODEL ...]

A MODEL is one of models/, whose dimensions are opened (models/open_dimensions.py), or an ONNX file that has open ones, as open_models.py writes. Only
sides of images get an option, 160..224. Networks of more than 1 GB of weights have two layers. The sizes are the largest, the smallest, each extent
the largest beside the smallest of the others, and others drawn at random. A difference is that of the worst element, divided by the largest of its
output. What takes longer than the limit, in seconds, is said to. --shape gives a range that the file needs, as `hone compile` takes it.
--values says which numbers an input takes: one (sr=16000), or integers from one to another (edge_index=0..num_nodes-1), of which each may be an
expression of the sizes. With --time there is one thread, and the table has the time of a run divided by that of ONNX Runtime, both as processor time,
at the largest sizes and at the smallest.
"""
import argparse
import ctypes
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import engines
import interleaved
import model_files
import varying_shapes

import fill_weights  # of models/, as the next two
import make_graphs
import open_dimensions

SIZES = 5
ALONE = {"ssdlite320_full"}  # it takes one image of its own size, as its exporter says: tests/models_test.py compares it
FIXED_SIDES = {"alexnet", "vgg16", "inception_v3", "ssd_inception_v2"}  # a layer or a table needs its sides
SIDES = (160, 224)
FEW_LAYERS = 2
MOST_NUMBER = 100  # of integers whose meaning is not known: less than any vocabulary
MOST_LABEL = 10  # the labels of a class
ROUNDS = 3  # in which both engines are timed


class Ranges(varying_shapes.Types):
    """The shapes that a library takes: for each input its extents, a number or (text, least, most)."""

    def __init__(self, path):
        super().__init__(path)
        library, self.extents = self.library, {}
        library.hone_model_input_dim.restype = ctypes.c_char_p
        for i, (name, _, shape) in enumerate(self.inputs):
            rank, least = ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
            library.hone_model_input_least_shape(self.model, i, ctypes.byref(rank), ctypes.byref(least))
            texts = [library.hone_model_input_dim(self.model, i, d) for d in range(len(shape))]
            self.extents[name] = [(text.decode(), least[d], most) if text else most for d, (text, most) in enumerate(zip(texts, shape, strict=True))]
        self.close()

    def symbols(self):
        """{symbol: (least, most)}"""
        named = [extent for extents in self.extents.values() for extent in extents if isinstance(extent, tuple)]
        return {text: (least, most) for text, least, most in named if text.isidentifier()}

    def shapes(self, values):
        """{input: shape} where the symbols have these values."""
        def extent_at(extent):
            return int(eval(extent[0].replace("/", "//"), {}, values)) if isinstance(extent, tuple) else extent  # pylint: disable=eval-used
        return {name: [extent_at(extent) for extent in extents] for name, extents in self.extents.items()}


def sizes_of(symbols, step, rng):
    """Values of all symbols, SIZES times; sides are multiples of the step."""
    def drawn(name, least, most):
        by = step if is_side(name) else 1
        return int(rng.integers(-(-least // by), most // by + 1)) * by
    least, most = ({name: ends[i] for name, ends in symbols.items()} for i in (0, 1))
    found = [most, least, *({**least, name: most[name]} for name in (symbols if len(symbols) > 1 else []))][:SIZES - 1]
    return found + [{name: drawn(name, *ends) for name, ends in symbols.items()} for _ in range(SIZES - len(found))]


def is_side(name):
    return name in ("height", "width")


def array(name, dtype, shape, generate, rng):
    """An input; `generate` is what the manifest or an option says of it, if one does."""
    if "value" in generate:
        return np.full(shape, generate["value"], dtype)
    if "low" not in generate and np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    if "mask" in name and "low" not in generate:  # at least one token is seen
        made = rng.integers(0, 2, shape)
        made[..., 0] = 1
        return made.astype(dtype)
    most = 2 if dtype == np.bool_ or "type" in name else MOST_LABEL if "label" in name else MOST_NUMBER
    return rng.integers(generate.get("low", 0), generate.get("high", most), shape).astype(dtype)


def given_values(options, inputs, sizes):
    """{input: what `array` makes of it} of --values for these inputs, where the symbols have these sizes."""
    def number_at(text):
        return eval(text, {}, sizes)  # pylint: disable=eval-used
    given = {}
    for option in options:
        name, text = option.split("=", 1)
        if name not in inputs:
            continue
        ends = [number_at(end) for end in text.split("..")]
        given[name] = {"low": ends[0], "high": ends[1] + 1} if len(ends) > 1 else {"value": ends[0]}
    return given


def difference(found, expected):
    if found.shape != expected.shape:
        return np.inf
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    differ = ~((found == expected) | (np.isnan(found) & np.isnan(expected)))
    worst = np.abs(found[differ] - expected[differ]).max(initial=0)
    return np.inf if np.isnan(worst) else float(worst / max(np.abs(expected[np.isfinite(expected)]).max(initial=0), 1e-30))


def model_of(name, folder):
    """(path, {input: how the manifest makes it}) of a model with open dimensions; and whether its sides are open."""
    if name.endswith(".onnx"):
        dims = [dim.dim_param for value in onnx.load(name, load_external_data=False).graph.input for dim in value.type.tensor_type.shape.dim]
        return Path(name), {}, "height" in dims
    entry = model_files.entry(name)
    large = name in make_graphs.LARGE
    model = fill_weights.fill(make_graphs.make(name, layers=FEW_LAYERS)) if large else onnx.load(model_files.filled(name))
    sides = name not in FIXED_SIDES and len(entry["inputs"][0]["shape"]) == 4
    path = folder / f"{name}.onnx"
    onnx.save_model(open_dimensions.open_dimensions(model, sides), path)
    return path, {given["name"]: given["generate"] for given in entry["inputs"]}, sides


def compile_model(arguments, path, sides, library):
    """What is said on stderr, or an error."""
    options = [f"--shape={side}={SIDES[0]}..{SIDES[1]}" for side in ("height", "width")] if sides else []
    done = subprocess.run([arguments.hone, "compile", path, "-o", library, "--no-db", "--threads", str(arguments.threads), *options,
                           *(f"--shape={shape}" for shape in arguments.shape)],
                          capture_output=True, text=True, check=False, timeout=arguments.limit)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stderr


def time_ratio(engine, session, inputs):
    """The processor time of a run, divided by that of a run of ONNX Runtime."""
    both = {"hone": varying_shapes.Call(engine), "rival": Session(session, inputs)}
    seconds = varying_shapes.measure_own_time(both, ROUNDS)
    return interleaved.ratio(seconds["hone"], seconds["rival"])


class Session:
    """ONNX Runtime at some inputs."""

    def __init__(self, session, inputs):
        self.session, self.inputs = session, inputs

    def run(self):
        self.session.run(None, self.inputs)


def compare(arguments, path, generated, library, said):
    """(ranges as text, largest difference[, time ratios])"""
    ranges = Ranges(library)
    symbols = ranges.symbols()
    step = int(said.split("multiples of ")[1].split(",")[0]) if "multiples of " in said else 1
    text = ", ".join(f"{name} {least}..{most}" + (f" by {step}" if step > 1 and is_side(name) else "") for name, (least, most) in symbols.items())
    session = engines.OnnxRuntime(path, {}, arguments.threads).session
    rng, worst, engine, ratios = np.random.default_rng(1), 0.0, None, []
    for at, values in enumerate(sizes_of(symbols, step, rng)):
        shapes = ranges.shapes(values)
        if "edges" in shapes:  # they join nodes that there are
            generated["edges"] = {"high": shapes["nodes"][0]}
        how = generated | given_values(arguments.values, shapes, values)
        inputs = {name: array(name, dtype, shapes[name], how.get(name, {}), rng) for name, dtype, _ in ranges.inputs}
        if engine is None:
            engine = varying_shapes.HoneAt(library, inputs, arguments.threads)
        engine.set(inputs)
        expected = session.run(None, inputs)
        for output, (found, right) in enumerate(zip(engine.run(), expected, strict=True)):
            if difference(found, right) > 1e-3:
                print(f"  {path.stem}: output {output} at {values}: {found.shape} and {right.shape}, difference {difference(found, right):.1e}", flush=True)
            worst = max(worst, difference(found, right))
        if arguments.time and at < (2 if symbols else 1):
            ratios.append(f"{time_ratio(engine, session, inputs):.2f}")
    engine.close()
    return [text or "one size", f"{worst:.1e}", *([", ".join(ratios)] if arguments.time else [])]


def check(arguments, name, folder):
    try:
        path, generated, sides = model_of(name, folder)
        library = folder / "model.so"
        return compare(arguments, path, generated, library, compile_model(arguments, path, sides, library))
    except subprocess.TimeoutExpired:
        return ["", f"takes longer than {arguments.limit} s to compile"]
    except (RuntimeError, ValueError, onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException,
            onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, onnxruntime.capi.onnxruntime_pybind11_state.Fail) as error:
        return ["", re.sub(r"\s+", " ", str(error))[:400]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--values", action="append", default=[])
    parser.add_argument("--time", action="store_true")
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    if arguments.time:
        arguments.threads = 1
    names = arguments.models or [entry["name"] for entry in model_files.entries(large=True) if entry["name"] not in ALONE]
    titles = ["model", "ranges", "largest difference", *(["time / ONNX Runtime's"] if arguments.time else [])]
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}", flush=True)
    for name in names:
        with tempfile.TemporaryDirectory() as temporary:
            print(f"| {Path(name).stem} | {' | '.join(check(arguments, name, Path(temporary)))} |", flush=True)


if __name__ == "__main__":
    main()
