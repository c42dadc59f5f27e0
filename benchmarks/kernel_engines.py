"""The engines of kernels.py, behind run(), with their buffers bound beforehand and reorders at the ends left out.

seconds_per_copy(measured) takes from a measured run the engine's cost of an empty call and the share of reorders at the model's ends,
which a profile tells.
"""
import _ctypes
import ctypes
import itertools
import json
import os
import statistics
import subprocess
import time

import engines
import kernel_models
import numpy as np

PROFILED_RUNS, MOST_PROFILED_RUNS, PROFILED_SECONDS = 12, 200, 0.2
SHORT_SECONDS = 2e-3


def describe_failure(command, done):
    text = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return RuntimeError(f"{' '.join(str(part) for part in command[1:3])}: exit code {done.returncode}: {text}")


def share(times, busy_total):
    """{(step, whether it counts): its seconds in several runs} -> the part that counts of a run, the median over the runs.

    On a busy machine a step is only timed right if it is shorter than the time that a process runs at a stretch; busy_total is then
    the CPU time of a run, of which the short steps, each in its fastest run, are taken to be part.
    """
    own = [min(seconds) for (_, counts), seconds in times.items() if counts]
    rest = [min(seconds) for (_, counts), seconds in times.items() if not counts]
    if busy_total and own and max(own) < SHORT_SECONDS:
        return min(sum(own) / busy_total, 1.0)
    if busy_total and max(rest, default=0) < SHORT_SECONDS:
        return max(1 - sum(rest) / busy_total, 0.1)
    everything = sum(own) + sum(rest)
    if busy_total or not everything:
        return sum(own) / everything if everything else 1.0
    runs = zip(*times.values(), strict=False)
    counted = [counts for _, counts in times]
    parts = [sum(itertools.compress(run, counted)) / sum(run) for run in runs if sum(run) > 0]
    return statistics.median(parts) if parts else 1.0


def profiled(run):
    """Runs as often as a profile needs; yields after each run."""
    start = time.process_time()
    for i in range(MOST_PROFILED_RUNS):
        if i >= PROFILED_RUNS and time.process_time() - start > PROFILED_SECONDS:
            return
        run()
        yield


class Hone(engines.Hone):
    """An artifact, built by `hone compile`, or by `hone tune` if there are seconds for it."""

    numbers = itertools.count()
    timed = ()  # steps that a run's seconds are the sum of; none: all of the run

    @classmethod
    def build(cls, options, model_path, inputs, threads, seconds, one_by_one=False):
        """`one_by_one`: no two kernels run side by side, so that each has its own time."""
        # The loader takes a path that it has seen for the library that it has.
        output = model_path.with_suffix(f".{next(cls.numbers)}.so")
        command = [options.hone, "tune" if seconds else "compile", model_path, "-o", output, "--threads", str(threads), "--json"]
        command += ["--budget", f"{seconds:g}s"] if seconds else []
        command += ["--db", options.db, "--no-shipped"] if options.db else ["--no-db"]
        command += ["--device", options.device] if options.device else []
        command += ["--accuracy", options.accuracy] if options.accuracy else []
        command += ["--skip-pass", "run_together"] if one_by_one else []
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode != 0:
            raise describe_failure(command, done)
        engine = cls(output, inputs, threads)
        engine.report = json.loads(done.stdout or "{}")
        output.unlink()
        return engine

    def __init__(self, path, inputs, threads):
        super().__init__(path, inputs, threads)
        for array, name in zip(self.inputs, self.names("input"), strict=True):
            array[...] = inputs[name]

    def close(self):
        super().close()
        _ctypes.dlclose(self.library._handle)

    def run(self):
        """Returns its seconds without the reorders at the ends after times_own_steps(); else nothing."""
        super().run()
        return sum(self.library.hone_model_step_seconds(self.model, i) for i in self.timed) if self.timed else None

    def names(self, kind):
        return [name for name, _, _ in self._tensors(kind)]

    def output(self, name):
        names = self.names("output")
        if name in names:
            return self.outputs[names.index(name)]
        return np.moveaxis(self.outputs[names.index(name + kernel_models.LAST)], -1, 1)

    def times_own_steps(self):
        """From now on a run is as long as its own steps: reorders may take most of it, and their share varies."""
        self.library.hone_model_profile(self.model, 1)
        self.timed = [i for i, (name, _) in enumerate(self.steps()) if name not in self.ends()]

    def ends(self):
        """Steps that reorder an input or output."""
        return {f"{name}.reordered" for name in self.names("input")} | {f"{name}.output" for name in self.names("output")}

    def steps(self):
        """[(name, seconds)] of the last run."""
        library, found = self.library, []
        library.hone_model_step_name.restype = library.hone_model_step_class.restype = ctypes.c_char_p
        library.hone_model_step_seconds.restype = ctypes.c_double
        for function in (library.hone_model_step_name, library.hone_model_step_seconds):
            function.argtypes = [ctypes.c_void_p, ctypes.c_int]
        for i in range(library.hone_model_num_steps(self.model)):
            found.append((library.hone_model_step_name(self.model, i).decode(), library.hone_model_step_seconds(self.model, i)))
        return found

    def own_share(self, busy_total):
        """Of the time, what is no reorder of an input or output."""
        ends = self.ends()
        if self.timed or not any(name in ends for name, _ in self.steps()):
            return 1.0
        self.library.hone_model_profile(self.model, 1)
        times = {}
        for _ in profiled(self.run):
            for i, (name, seconds) in enumerate(self.steps()):
                times.setdefault((i, name not in ends), []).append(seconds)
        self.library.hone_model_profile(self.model, 0)
        return share(times, busy_total)


class OnnxRuntime:
    """ONNX Runtime as it comes, with its inputs and outputs bound to arrays."""

    name = "onnxruntime"
    REORDERS = ("ReorderInput", "ReorderOutput")

    def __init__(self, path, inputs, outputs, threads):
        self.path, self.threads = path, threads
        self.session = self.open()
        self.inputs = {name: engines.aligned(array) for name, array in inputs.items()}
        self.outputs = {name: engines.aligned(np.zeros(shape, np.float32)) for name, shape in outputs.items()}
        self.binding = self.bound(self.session)

    def open(self, profile=None):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        if profile:
            options.enable_profiling = True
            options.profile_file_prefix = profile
        return onnxruntime.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])

    def bound(self, session):
        binding = session.io_binding()
        for bind, arrays in ((binding.bind_input, self.inputs), (binding.bind_output, self.outputs)):
            for name, array in arrays.items():
                bind(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
        return binding

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def output(self, name):
        return self.outputs[name]

    def own_share(self, busy_total):
        session = self.open(str(self.path.with_suffix("")))
        binding = self.bound(session)
        for _ in profiled(lambda: session.run_with_iobinding(binding)):
            pass
        log = session.end_profiling()
        with open(log) as file:
            events = json.load(file)
        os.unlink(log)
        times = {}
        for event in events:
            if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
                own = event["args"]["op_name"] not in self.REORDERS
                times.setdefault((event["name"], own), []).append(event["dur"])
        return share(times, busy_total)

    def close(self):
        self.session = self.binding = None


class OpenVino:
    """OpenVINO for latency, in float32, with its inputs and outputs bound to arrays."""

    name = "openvino"
    NOT_OWN = ("Reorder", "Parameter", "Result", "Input", "Output", "Constant")

    def __init__(self, path, inputs, outputs, threads):
        self.path, self.threads = path, threads
        self.arrays = {name: engines.aligned(array) for name, array in inputs.items()}
        self.outputs = {name: engines.aligned(np.zeros(shape, np.float32)) for name, shape in outputs.items()}
        self.request = self.open()

    def open(self, **more):
        import openvino

        compiled = openvino.Core().compile_model(str(self.path), "CPU", {
            "INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", **more})
        request = compiled.create_infer_request()
        for port in compiled.inputs:
            request.set_tensor(port, openvino.Tensor(self.arrays[port.any_name], shared_memory=True))
        for port in compiled.outputs:
            names = [name for name in port.names if name in self.outputs]
            request.set_tensor(port, openvino.Tensor(self.outputs[names[0]], shared_memory=True))
        return request

    def run(self):
        self.request.infer()

    def output(self, name):
        return self.outputs[name]

    def own_share(self, busy_total):
        request = self.open(PERF_COUNT=True)
        times = {}
        for _ in profiled(request.infer):
            for node in request.get_profiling_info():
                own = node.node_type not in self.NOT_OWN
                times.setdefault((node.node_name, own), []).append(node.real_time.total_seconds())
        return share(times, busy_total)

    def close(self):
        self.request = None


class RivalLibrary:
    """benchmarks/rivals: oneDNN and OpenBLAS."""

    def __init__(self, path):
        self.library = library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
        library.rival_create.restype = ctypes.c_void_p
        library.rival_run.argtypes = [ctypes.c_void_p, ctypes.c_int]
        library.rival_run.restype = None
        library.rival_check.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        library.rival_describe.argtypes = library.rival_destroy.argtypes = [ctypes.c_void_p]
        library.rival_describe.restype = ctypes.c_char_p
        library.rival_destroy.restype = None
        library.rival_peak_flops.restype = ctypes.c_double


class Rival:
    """A program of oneDNN or OpenBLAS."""

    def __init__(self, library, name, model, threads, variant):
        self.library, self.name, self.variant = library, name, variant
        self.output_shape = list(model.outputs.items())[-1]
        spec = program(model, threads, variant)
        pointers = (ctypes.c_void_p * len(model.arrays))(*[a.ctypes.data for a in model.arrays])
        message = ctypes.create_string_buffer(400)
        self.program = library.rival_create(json.dumps(spec).encode(), pointers, message, len(message))
        if not self.program:
            raise RuntimeError(f"{name} {variant}: {message.value.decode()}")
        self.description = library.rival_describe(self.program).decode()

    def run(self):
        self.library.rival_run(self.program, 1)

    def output(self, name):
        found = np.zeros(self.output_shape[1], np.float32)
        if self.library.rival_check(self.program, 0, found.ctypes.data):
            raise RuntimeError(f"{self.name}: no output")
        return found

    def own_share(self, _):
        return 1.0

    def close(self):
        self.library.rival_destroy(self.program)
        self.program = None


def program(model, threads, variant):
    """The JSON of a variant: its format, its algorithm, how products, masks and transposed convolutions' activations are done."""
    ops = []
    for op in model.ops:
        op = dict(op)
        if op["op"] == "conv":
            op["algorithm"] = variant.get("algorithm", "direct")
        if op["op"] == "gemm":
            op = product(op, variant["product"])
        apart = op.get("mask") if variant.get("mask") == "apart" else None
        if apart:
            del op["mask"]
        after = op.pop("activation", None) if variant.get("activation") == "apart" else None
        ops.append(op)
        if after:
            ops.append({"op": "eltwise", "in": op["out"], "out": op["out"], "activation": after})
        if apart:
            name = op["c"]["name"]
            ops.append({"op": "binary", "kind": "add", "in": name, "b": apart, "out": name})
    return {"format": variant.get("format", "plain"), "threads": threads, "ops": ops, "tensors": model.tensors,
            "outputs": [list(model.outputs)[-1]]}


def product(op, kind):
    if kind != "matmul":
        return {**op, "op": kind}
    batch = [op["batch"]] if "batch" in op else []
    m, n, k = op["m"], op["n"], op["k"]
    found = {"op": "matmul", "a": {"name": op["in"], "dims": [*batch, m, k]}, "b": {"name": op["w"], "dims": [*batch, k, n]},
             "c": {"name": op["out"], "dims": [*batch, m, n], "whole": [*batch, m, n]}}
    return found | {name: op[name] for name in ("bias", "activation") if name in op}


def fastest(make, variants, seconds=0.02):
    """Of the variants that can be made, the one with the shortest run; None if there is none."""
    best, best_time = None, float("inf")
    for variant in variants:
        try:
            engine = make(variant)
        except RuntimeError:
            continue
        if best and engine.description.startswith("ref"):  # plain loops, which may take seconds
            engine.close()
            continue
        engine.output(None)
        times, start = [], time.perf_counter()
        while time.perf_counter() - start < seconds or len(times) < 3:
            begin = time.perf_counter()
            engine.run()
            times.append(time.perf_counter() - begin)
        if min(times) < best_time:
            if best:
                best.close()
            best, best_time = engine, min(times)
        else:
            engine.close()
    return best
