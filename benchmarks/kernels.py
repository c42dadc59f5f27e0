#!/usr/bin/env python3
"""The kernels table: Hone's operators one by one against oneDNN, OpenBLAS, ONNX Runtime and OpenVINO, in one process, interleaved.

    benchmarks/kernels.py --hone build/release/tools/hone/hone --library build/release/benchmarks/libhone_rivals.so
        [--classes dense depthwise attention memory convolutions operators] [--models resnet18 ...] [--only REGEX] [--threads 1 2] [--seconds 20 --db FILE]

A row is an operator with its shapes (kernel_rows.py). Each engine gets the same model of several copies of it (kernel_models.py); what a
call costs an engine for an empty model, and reorders at the ends of the model, are left out. oneDNN has its fastest format, and its
Winograd algorithm in a column of its own. Without --seconds Hone is compiled without measuring. Rows with all raw samples go to --output,
a line of JSON each; those that are there already are not measured again, and --report prints the tables of such files, --csv writes them.
docs/contributor/benchmarks.md says more.
"""
import argparse
import functools
import gc
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cores
import kernel_csv
import kernel_limit
import kernel_report
import kernel_rows

RIVALS = ("onednn", "openblas", "onnxruntime", "openvino")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", type=Path, help="the hone program")
    parser.add_argument("--library", type=Path, help="libhone_rivals.so; without it oneDNN and OpenBLAS are no rivals")
    parser.add_argument("--classes", nargs="+", choices=kernel_rows.CLASSES, default=list(kernel_rows.CLASSES))
    parser.add_argument("--models", nargs="+", help="only operators of these")
    parser.add_argument("--only", metavar="REGEX", help="only rows whose name has it; --list prints the names")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=0, help="of `hone tune` for each row; 0: `hone compile`")
    parser.add_argument("--hard", metavar="REGEX", nargs="?", const="|".join(f"^{re.escape(name)}$" for name in kernel_rows.HARD),
                        help=f"rows that get --hard-seconds instead; without a value the {len(kernel_rows.HARD)} of kernel_rows.HARD")
    parser.add_argument("--hard-seconds", type=float, default=300)
    parser.add_argument("--db", type=Path, help="Hone's database, kept; default: none")
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=list(RIVALS))
    parser.add_argument("--isa", choices=("host", "avx2"), default="host", help="avx2: Hone and oneDNN both, the only rivals are the library's")
    parser.add_argument("--accuracy", help="of hone")
    parser.add_argument("--rounds", type=int, default=7)
    cores.add_option(parser)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: of the process, so that other work on the machine counts less; with one thread only")
    parser.add_argument("--copies", type=int, help="of the operator in a model; default: as its length needs")
    parser.add_argument("--output", type=Path, help="results, a line of JSON for each row")
    parser.add_argument("--report", type=Path, nargs="+", metavar="FILE",
                        help="print the tables of --output's files, measure nothing; what is in several counts as in the last")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the results there, too, a line for each row and number of threads")
    parser.add_argument("--worst", type=int, default=15, help="how many rows to list as the furthest behind")
    parser.add_argument("--list", action="store_true", help="print the rows' names only")
    options = parser.parse_args()
    if not (options.list or options.report or options.hone):
        parser.error("--hone is needed")
    if options.clock == "cpu" and options.threads != [1]:
        parser.error("--clock cpu needs --threads 1: the threads' times would be added up")
    options.device = None
    if options.isa == "avx2":
        options.device = "host-avx2"
        options.rivals = [name for name in options.rivals if name in ("onednn", "openblas")]
        os.environ.update(ONEDNN_MAX_CPU_ISA="AVX2", DNNL_MAX_CPU_ISA="AVX2", OPENBLAS_CORETYPE="Haswell")
    return options


class Bench:
    """What is the same for all rows."""

    def __init__(self, options, folder):
        import engines
        import kernel_engines
        import kernel_models

        self.options, self.folder = options, Path(folder)
        self.kernel_engines, self.kernel_models = kernel_engines, kernel_models
        options.hone = options.hone.resolve()
        cores.patience.hone = options.hone
        self.library = kernel_engines.RivalLibrary(options.library.resolve()).library if options.library else None
        self.rivals = [name for name in options.rivals if self.library or name not in ("onednn", "openblas")]
        if "openvino" in self.rivals and not engines.openvino_installed():
            self.rivals.remove("openvino")

    @functools.cache
    def peak_flops(self, threads):
        import ctypes

        if not self.library:
            return 0.0
        flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
        bits = 512 if self.options.isa == "host" and "avx512f" in flags else 256
        best = 0.0
        for _ in range(10):  # threads may start on one core
            best = max(best, self.library.rival_peak_flops(ctypes.c_int(threads), ctypes.c_int(bits)))
            time.sleep(0.05)
        return best

    @functools.cached_property
    def roofline(self):
        """This machine's limits, as `hone devices` has them in --db; without any they are measured, which takes 5 s."""
        database = self.options.db or self.folder / "limits.db"
        for more in ([], ["--measure"]) if database.exists() else (["--measure"],):
            command = [str(part) for part in (self.options.hone, "devices", "--json", "--db", database, *more)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise self.kernel_engines.describe_failure(command, done)
            found = next((device["roofline"] for device in json.loads(done.stdout) if "roofline" in device), None)
            if found:
                return found
        raise RuntimeError("hone devices --measure stored no limits")

    @functools.cache
    def empty_call(self, name, threads):
        """Seconds of an engine's call for a model that does next to nothing."""
        import interleaved

        row = kernel_rows.Row("softmax", {"shape": [1, 4]})
        engine = self.engine(name, self.kernel_models.Model(row, 1), self.folder / "empty.onnx", threads, 0)
        try:
            return min(min(interleaved.samples(engine.run, 0.02, 0.03)) for _ in range(3))
        finally:
            engine.close()

    def engine(self, name, model, path, threads, seconds):
        """The engine ready to run, or None if it has nothing for the row."""
        import onnx

        if not path.exists() or name in ("hone", "onnxruntime", "openvino") and path.name == "empty.onnx":
            onnx.save_model(model.onnx(), path)
        if name == "hone":
            return self.hone(model, path, threads, seconds)
        if name == "onnxruntime":
            return self.kernel_engines.OnnxRuntime(path, model.inputs, model.outputs, threads)
        if name == "openvino":
            return self.kernel_engines.OpenVino(path, model.inputs, model.outputs, threads)
        make = functools.partial(self.kernel_engines.Rival, self.library, name, model, threads)
        if name == "openblas":
            return make({"product": "sgemm"}) if model.row.kind in ("gemm", "bmm") else None
        variants = model.variants
        if self.options.isa == "avx2":
            variants = [{**v, "format": "blocked8"} if v.get("format") == "blocked" else v for v in variants]
        if name == "onednn winograd":
            variants = [{**v, "algorithm": "winograd"} for v in variants] if model.row.winograd else []
        return self.kernel_engines.fastest(make, variants)

    def hone(self, model, path, threads, seconds):
        """The library, of a pool the better of two: of the model as it is, without its reorders, or with the channels last as neighbours in a network
        hand on their data, which needs none. Each has half of the seconds then."""
        import interleaved
        import onnx

        row, build = model.row, functools.partial(self.kernel_engines.Hone.build, self.options, threads=threads)
        timed = row.kind in kernel_rows.WITH_REORDERS and has_own_times(row, threads) and self.options.clock == "wall"
        both = row.kind == "pool" and timed
        plain = build(path, model.inputs, seconds=seconds / 2 if both else seconds, one_by_one=threads > 1 and has_own_times(row, threads))
        if timed:
            plain.times_own_steps()
        if not both:
            return plain
        other, inputs = model.channels_last()
        path = path.with_suffix(".last.onnx")
        onnx.save_model(other, path)
        last = build(path, inputs, seconds=seconds / 2)
        path.unlink()
        taken = [statistics.median(interleaved.samples(engine.run)) for engine in (plain, last)]
        chosen, refused = (last, plain) if taken[1] - self.empty_call("hone", threads) < taken[0] else (plain, last)
        refused.close()
        return chosen

    def measure(self, row, threads):
        """The row's result: what goes into --output."""
        import engines
        import interleaved

        roofline = self.roofline  # first: before other engines' threads are there
        copies = self.options.copies or self.kernel_models.copies_of(row)
        model = self.kernel_models.Model(row, copies)
        path = self.folder / "kernel.onnx"
        path.unlink(missing_ok=True)
        hard = self.options.hard and re.search(self.options.hard, row.name)
        seconds = self.options.hard_seconds if hard else self.options.seconds
        names = ["hone", *self.rivals]
        if "onednn" in names:
            names.insert(names.index("onednn") + 1, "onednn winograd")
        opened, failures = {}, {}
        cores.patience.wait(threads)
        for name in names:
            try:
                engine = self.engine(name, model, path, threads, seconds)
                if engine:
                    engine.run()
                    opened[name] = engine
            except Exception as failure:  # noqa: BLE001: an engine that can't do a row is a result
                failures[name] = str(failure)
        result = {"key": row.key, "kind": row.kind, "name": row.name, "class": row.class_name, "winograd": row.winograd, "models": row.models,
                  "threads": threads, "isa": self.options.isa, "clock": self.options.clock, "copies": copies, "chain": model.chained, "flops": row.flops,
                  "weight_bytes": row.weight_bytes, "bytes": row.weight_bytes + row.activation_bytes, "failures": failures,
                  "weights": "warm" if copies * row.weight_bytes <= l2_bytes() else "cold", "seconds_to_tune": seconds,
                  "load": os.getloadavg(), "peak_flops": self.peak_flops(threads), "engines": {}}
        clock = time.process_time if self.options.clock == "cpu" else time.perf_counter
        rounds = interleaved.measure(opened, self.options.rounds, functools.partial(interleaved.samples, clock=clock), threads)
        last = list(model.outputs)[-1]
        trusted = next((opened[name] for name in ("onnxruntime", "openvino", "onednn", "openblas") if name in opened), None)
        expected = trusted.output(last).copy() if trusted else None
        for name, engine in opened.items():
            found = {"rounds": rounds[name], "share": self.own_share(row, engine, rounds[name]), "empty_call": 0.0}
            if name in ("hone", "onnxruntime", "openvino") and not getattr(engine, "timed", ()):
                found["empty_call"] = self.empty_call(name, threads)
            if expected is not None:
                found["error"] = engines.relative_error([engine.output(last).reshape(expected.shape)], [expected])
            if hasattr(engine, "variant"):
                found |= {"variant": engine.variant, "implementation": engine.description}
            if name == "hone":
                found["steps"] = [kernel["steps"] for kernel in engine.report.get("kernels", []) if "steps" in kernel][:4]
            result["engines"][name] = found
        report = opened["hone"].report if "hone" in opened else {}
        result |= kernel_limit.limit(result, kernel_limit.least_flops(report, copies), roofline)
        for engine in opened.values():
            engine.close()
        path.unlink(missing_ok=True)
        return result

    def own_share(self, row, engine, rounds):
        """Of an engine's time, what is no reorder at the model's ends."""
        if row.kind not in kernel_rows.WITH_REORDERS:
            return 1.0
        return engine.own_share(min(min(samples) for samples in rounds) if self.options.clock == "cpu" else None)


def has_own_times(row, threads):
    """Whether no two of Hone's kernels run at the same time, so that each step of a run has a time of its own."""
    return threads == 1 or row.kind == "pool"


@functools.cache
def l2_bytes():
    """Of one core; 1 MiB where the system does not say."""
    found = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
    text = found.read_text().strip() if found.exists() else "1024K"
    return int(text.rstrip("KM")) << (20 if text.endswith("M") else 10)


def stored(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []


def key_of(result):
    """What one result of a file is for."""
    return result["key"], result["threads"], result["isa"]


def report(results, options):
    """Prints the tables, and writes the one that the options ask for."""
    print(kernel_report.tables(results, options.worst))
    if options.csv:
        kernel_csv.write(results, options.csv)


def rounded(result):
    """With raw samples of as many digits as the clock gives."""
    for found in result["engines"].values():
        found["rounds"] = [[float(f"{seconds:.5g}") for seconds in samples] for samples in found["rounds"]]
    return result


def main():
    options = parse_arguments()
    if options.report:
        results = {key_of(result): result for path in options.report for result in stored(path)}
        report(list(results.values()), options)
        return 0
    rows = [row for row in kernel_rows.rows(options.classes, options.models) if not options.only or re.search(options.only, row.name)]
    if options.list or not rows:
        print("\n".join(row.name for row in rows) or "no row has that name", file=sys.stdout if rows else sys.stderr)
        return 0 if rows else 2
    results = stored(options.output)
    done = {key_of(result) for result in results}
    with tempfile.TemporaryDirectory(prefix="hone-kernels") as folder:
        bench = Bench(options, folder)
        for number, row in enumerate(rows):
            for threads in options.threads:
                if (row.key, threads, options.isa) in done:
                    continue
                start = time.perf_counter()
                result = rounded(bench.measure(row, threads))
                results.append(result)
                if options.output:
                    with open(options.output, "a") as file:
                        file.write(json.dumps({**result, "machine": platform.node() and platform.processor()}) + "\n")
                print(f"{number + 1}/{len(rows)} {kernel_report.line(result)} ({time.perf_counter() - start:.0f} s)", file=sys.stderr, flush=True)
                gc.collect()
    chosen = {row.key for row in rows}
    report([result for result in results if result["key"] in chosen], options)
    failed = [result["name"] for result in results if "hone" in result["failures"]]
    print("".join(f"Hone failed: {name}\n" for name in failed), end="", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
