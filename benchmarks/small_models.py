#!/usr/bin/env python3
"""Models that run in a few to some hundreds of microseconds (small_zoo.py) against ONNX Runtime, and what of a run is not its kernels' time.

    benchmarks/small_models.py --hone build/release/tools/hone/hone [--threads 1 2] [--only classifier lenet] [--rounds 9] [--pause 1ms]
        [--before OTHER/hone]

Each model is compiled without a database, and both engines run in turns (interleaved.py) with their inputs bound beforehand, ONNX Runtime by
its IOBinding. A ratio is ONNX Runtime's time over Hone's: above 1 Hone is faster. Both are called from Python, which takes about a
microsecond; `nothing`, one sum of 16 numbers, shows what a call costs.

"Steps" are the calls of kernels in a run. "Kernels" is the sum of their times in a profile, in which each step also has the cost of a look
at the clock, and "outside" is what a run takes more than that and than a call of a model of one empty step; 0 if it takes less. With --pause
each run comes after the engine slept so long, as in a program that is called now and then: its threads sleep, too. With --before the
libraries of another version of Hone take their turns, too, and "gain" is their time over Hone's.
"""
import argparse
import ctypes
import statistics
import tempfile
import time
from pathlib import Path

import cores
import engines
import interleaved
import onnx
import small_zoo
import tuning_curves

PROFILED_RUNS, PAUSED_RUNS = 200, 100


class Hone(engines.Hone):
    def steps(self):
        return self.library.hone_model_num_steps(self.model)

    def kernel_seconds(self):
        """The sum over the steps of their median times in a profile."""
        library = self.library
        library.hone_model_step_seconds.restype = ctypes.c_double
        library.hone_model_step_seconds.argtypes = [ctypes.c_void_p, ctypes.c_int]
        library.hone_model_profile(self.model, 1)
        runs = []
        for _ in range(PROFILED_RUNS):
            self.run()
            runs.append([library.hone_model_step_seconds(self.model, i) for i in range(self.steps())])
        library.hone_model_profile(self.model, 0)
        return sum(statistics.median(times) for times in zip(*runs, strict=True))


class OnnxRuntime(engines.OnnxRuntime):
    """With its inputs and outputs bound."""

    def __init__(self, path, inputs, threads):
        import onnxruntime

        super().__init__(path, inputs, threads)
        self.binding = self.session.io_binding()
        for name, array in inputs.items():
            self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name, "cpu")

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def results(self):
        self.run()
        return self.binding.copy_outputs_to_cpu()

    def close(self):
        super().close()
        self.binding = None


def paced(pause):
    """A turn whose runs come after a pause each."""

    def turn(run):
        times = []
        for _ in range(PAUSED_RUNS):
            time.sleep(pause)
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    return turn


def seconds_of(text):
    """Of a time such as 500us, 1ms or 2s."""
    for unit, factor in (("us", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        number = text.removesuffix(unit)
        if number != text and number.replace(".", "", 1).isdigit():
            return float(number) * factor
    raise argparse.ArgumentTypeError(f"'{text}' is no time such as 500us or 1ms")


def measure(options, name, threads, folder):
    """({engine: seconds in each round}, steps, seconds of the kernels, difference of the results)."""
    model = small_zoo.MODELS[name]()
    inputs, path = small_zoo.inputs(model), folder / f"{name}.onnx"
    onnx.save(model, path)
    running = {}
    for engine, program in (("hone", options.hone), ("before", options.before)):
        if program:
            library = folder / f"{name}_{threads}_{engine}.so"
            tuning_curves.run_hone(program, "compile", path, "-o", library, "--threads", threads, "--no-db")
            running[engine] = Hone(library, inputs, threads)
    running["ort"] = OnnxRuntime(path, inputs, threads)
    error = engines.relative_error(running["hone"].run(), running["ort"].results())
    turn = paced(options.pause) if options.pause else interleaved.burst
    seconds = interleaved.measure(running, options.rounds, turn, threads)
    found = seconds, running["hone"].steps(), running["hone"].kernel_seconds(), error
    for engine in running.values():
        engine.close()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True, type=Path, help="the hone program")
    parser.add_argument("--before", type=Path, metavar="HONE", help="the hone program of another version")
    parser.add_argument("--only", nargs="+", choices=list(small_zoo.MODELS), default=list(small_zoo.MODELS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pause", type=seconds_of, metavar="TIME", help="before each run, such as 1ms")
    cores.add_option(parser)
    options = parser.parse_args()
    cores.patience.hone = options.hone
    options.only = ["nothing", *(name for name in options.only if name != "nothing")]
    print("| model | threads | steps | Hone us | ONNX Runtime us | ratio | gain | kernels us | outside us | difference |\n" + "| --- " * 10 + "|")
    for threads in options.threads:
        call = None  # what a model of one empty step takes
        for name in options.only:
            with tempfile.TemporaryDirectory() as folder:
                seconds, steps, kernels, error = measure(options, name, threads, Path(folder))
            median = {engine: interleaved.median(times) * 1e6 for engine, times in seconds.items()}
            call = median["hone"] if call is None else call
            gain = f"{interleaved.ratio(seconds['before'], seconds['hone']):.2f}" if options.before else ""
            outside = 0 if name == "nothing" else max(0, median["hone"] - call - kernels * 1e6)
            print(f"| {name} | {threads} | {steps} | {median['hone']:.2f} | {median['ort']:.2f} | "
                  f"{interleaved.ratio(seconds['ort'], seconds['hone']):.2f} | {gain} | {kernels * 1e6:.2f} | {outside:.2f} | {error:.1e} |", flush=True)


if __name__ == "__main__":
    main()
