#!/usr/bin/env python3
"""Whole models by Hone's execution provider for ONNX Runtime, in turns with Hone's own library and ONNX Runtime's CPU provider.

    benchmarks/ort_provider.py --library build/release/tools/lib/libhone_onnxruntime_ep.so [--models resnet50 mobilenet_v2] [--threads 1]

Each model is compiled once, into an EPContext model. Its library, which the provider runs, is also run by itself, through its C interface: what
the provider takes longer is the cost of a run through ONNX Runtime. Inputs and outputs are arrays of ONNX Runtime, which are bound. The time of
loading is that of a session on the EPContext model, from its start to its end, in a process that has ONNX Runtime and the provider loaded.
With --cpu-time a run's time is that of the processor for the calling thread, which a machine that others use, too, disturbs less.
"""
import argparse
import statistics
import tempfile
import time
from pathlib import Path

import onnx
import onnxruntime

import engines
import interleaved
import model_files

NAME = "HoneExecutionProvider"


def session_of(path, devices, threads, entries=()):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    for key, text in dict(entries).items():
        options.add_session_config_entry(key, text)
    if devices:
        options.add_provider_for_devices(devices, {"threads": str(threads), "db": "none"})
    return onnxruntime.InferenceSession(str(path), options, **({} if devices else {"providers": ["CPUExecutionProvider"]}))


class Bound:
    """A session on arrays of ONNX Runtime."""

    def __init__(self, session, inputs):
        self.session = session
        self.binding = session.io_binding()
        for name, array in inputs.items():
            self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        session.run_with_iobinding(self._with_outputs())
        for output, found in zip(session.get_outputs(), self.binding.get_outputs(), strict=True):
            self.binding.bind_ortvalue_output(output.name, found)

    def _with_outputs(self):
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)
        return self.binding

    def run(self):
        self.session.run_with_iobinding(self.binding)


def load_seconds(path, devices, threads, repeat=7):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        session = session_of(path, devices, threads)
        times.append(time.perf_counter() - start)
        del session
    return statistics.median(times)


def row(name, devices, options, folder):
    _, path, inputs = model_files.load(name)
    made = folder / f"{name}.onnx"
    start = time.perf_counter()
    session_of(path, devices, options.threads, {"ep.context_enable": "1", "ep.context_file_path": str(made)})
    compiling = time.perf_counter() - start
    types = [node.op_type for node in onnx.load(made).graph.node]
    compared = {"provider": Bound(session_of(made, devices, options.threads), inputs), "cpu": Bound(session_of(path, [], options.threads), inputs)}
    if types == ["EPContext"]:  # the whole model is one library
        compared["library"] = engines.Hone(folder / f"{name}_hone_0.so", inputs, options.threads)
    clock = time.thread_time if options.cpu_time else time.perf_counter
    seconds = interleaved.measure(compared, options.rounds, lambda run: statistics.median(interleaved.samples(run, clock=clock)), options.threads)
    milliseconds = {engine: interleaved.median(times) * 1e3 for engine, times in seconds.items()}
    own = f"{interleaved.ratio(seconds['provider'], seconds['library']):.3f}" if "library" in seconds else f"- ({types.count('EPContext')} parts)"
    return (f"| {name} | {milliseconds['provider']:.3f} | {own} | {interleaved.ratio(seconds['cpu'], seconds['provider']):.2f} | {compiling:.1f} "
            f"| {load_seconds(made, devices, options.threads) * 1e3:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, type=Path, help="libhone_onnxruntime_ep.so")
    parser.add_argument("--models", nargs="+", default=["squeezenet1_1", "mobilenet_v2", "resnet50"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu-time", action="store_true", help="measure the processor's time; needs --threads 1")
    options = parser.parse_args()
    if options.cpu_time and options.threads != 1:
        parser.error("--cpu-time needs --threads 1: the time of other threads is not measured")
    onnxruntime.register_execution_provider_library("hone", str(options.library.resolve()))
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
    print("| model | provider ms | over the library's own | ONNX Runtime's CPU provider takes | compiled in s | loaded in ms |\n" + "| --- " * 6 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            print(row(name, devices, options, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
