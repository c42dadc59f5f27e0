"""Seconds of a run on a device: of Hone's artifacts and of functions of PyTorch."""
import ctypes
import statistics
import time

import numpy as np

import background
import engines

WARM_RUNS, BURSTS, BURST_SECONDS = 3, 7, 0.02
LIMIT_MS = 50_000  # for a run of a model


def to_torch(torch, array, device="cuda"):
    """A copy on the device. NumPy has no bfloat16: its arrays of 16-bit numbers are the bits of one."""
    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(device)
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


class Options(ctypes.Structure):
    """hone_model_options."""

    _fields_ = [("size", ctypes.c_size_t), ("num_threads", ctypes.c_int), ("spin_ns", ctypes.c_int64), ("parallel_for", ctypes.c_void_p),
                ("pool", ctypes.c_void_p), ("device", ctypes.c_int), ("time_limit_ms", ctypes.c_int)]


class OnDevice(engines.Hone):
    """An artifact whose arrays lie in the memory of PyTorch's GPU; without PyTorch on the host, so that a run includes the copies."""

    def __init__(self, path, inputs, torch):
        super().__init__(path, inputs, 0)
        self.torch = torch
        if torch is None:
            return
        self.stream = torch.cuda.Stream()
        self.arrays = [to_torch(torch, array) for array in self.inputs], [to_torch(torch, array) for array in self.outputs]
        self.pointers = [(ctypes.c_void_p * len(arrays))(*[array.data_ptr() for array in arrays]) for arrays in self.arrays]
        self.library.hone_model_run_device.argtypes = [ctypes.c_void_p] * 4
        torch.cuda.synchronize()

    def _create(self, threads):
        options = Options(size=ctypes.sizeof(Options), num_threads=threads, time_limit_ms=LIMIT_MS)
        return self.library.hone_model_create_with(ctypes.byref(self.model), ctypes.byref(options))

    def launch(self):
        if self.torch is None:
            self.run()
        elif self.library.hone_model_run_device(self.model, *self.pointers, self.stream.cuda_stream) != 0:
            raise RuntimeError(self.library.hone_model_last_error(self.model).decode())

    def found(self):
        """The outputs of the last launch, as float64."""
        if self.torch is None:
            return [array.astype(np.float64) for array in self.outputs]
        self.torch.cuda.synchronize()
        return [array.double().cpu().numpy() for array in self.arrays[1]]

    def device_bytes(self):
        self.library.hone_model_device_bytes.restype = ctypes.c_int64
        self.library.hone_model_device_bytes.argtypes = [ctypes.c_void_p]
        return self.library.hone_model_device_bytes(self.model)


def host_seconds(launch, count):
    begin = time.perf_counter()
    for _ in range(count):
        launch()
    return (time.perf_counter() - begin) / count


def event_seconds(torch, stream, launch, count):
    """By the device's clock, from the first launch to the end of the last."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        begin.record()
        for _ in range(count):
            launch()
        end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / count


def seconds(launch, torch=None, stream=None):
    """The median over bursts of the mean of a burst, after some runs to warm up, while nothing is compiled in the background."""
    def burst(count):
        return host_seconds(launch, count) if torch is None else event_seconds(torch, stream, launch, count)

    burst(WARM_RUNS)
    with background.stopped():
        each = burst(WARM_RUNS)
        count = max(1, min(200, int(BURST_SECONDS / each)))
        return statistics.median(burst(count) for _ in range(BURSTS if each < 1 else 1))


def of_hone(engine):
    return seconds(engine.launch, engine.torch, getattr(engine, "stream", None))


def of_torch(torch, function, device="cuda"):
    with torch.inference_mode():
        return seconds(function, torch, torch.cuda.current_stream()) if device == "cuda" else seconds(function)


def error(found, expected):
    """The distance over the length of what is expected, over all arrays; infinite where something is no number."""
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        if a.shape != b.shape or not np.isfinite(a).all():
            return float("inf")
        worst = max(worst, float(np.linalg.norm((a - b).ravel()) / max(np.linalg.norm(b.ravel()), 1e-30)))
    return worst
