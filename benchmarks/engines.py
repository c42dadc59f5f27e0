"""The engines that are compared, behind one interface: e.run() -> outputs of the inputs it was made with."""
import ctypes

import numpy as np

DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 16: np.uint16}  # NumPy has no bfloat16: its bits


def aligned(array):
    """A copy that starts on a 64-byte boundary: Hone uses it in place."""
    raw = np.empty(array.nbytes + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Hone:
    """An artifact through its C interface."""

    def __init__(self, path, inputs, threads):
        self.name = "hone"
        self.library = library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
        library.hone_model_last_error.restype = ctypes.c_char_p
        library.hone_model_last_error.argtypes = [ctypes.c_void_p]
        self.model = ctypes.c_void_p()
        if self._create(threads) != 0:
            raise RuntimeError(f"{path}: {library.hone_model_last_error(None).decode()}")
        self.inputs = [aligned(inputs[name]) for name, _, _ in self._tensors("input")]
        self.outputs = [aligned(np.zeros(shape, dtype)) for _, dtype, shape in self._tensors("output")]
        self.input_pointers = (ctypes.c_void_p * len(self.inputs))(*[x.ctypes.data for x in self.inputs])
        self.output_pointers = (ctypes.c_void_p * len(self.outputs))(*[x.ctypes.data for x in self.outputs])
        self.call = library.hone_model_run
        self.call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

    def _create(self, threads):
        return self.library.hone_model_create(ctypes.byref(self.model), threads)

    def _tensors(self, kind):
        library, found = self.library, []
        name_of = getattr(library, f"hone_model_{kind}_name")
        name_of.restype = ctypes.c_char_p
        name_of.argtypes = [ctypes.c_void_p, ctypes.c_int]
        for i in range(getattr(library, f"hone_model_num_{kind}s")(self.model)):
            dtype, rank, shape = ctypes.c_int(), ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
            getattr(library, f"hone_model_{kind}_info")(self.model, i, ctypes.byref(dtype), ctypes.byref(rank),
                                                        ctypes.byref(shape))
            found.append((name_of(self.model, i).decode(), DTYPES[dtype.value], tuple(shape[:rank.value])))
        return found

    def run(self):
        if self.call(self.model, self.input_pointers, self.output_pointers) != 0:
            raise RuntimeError(self.library.hone_model_last_error(self.model).decode())
        return self.outputs

    def close(self):
        self.library.hone_model_destroy(self.model)
        self.model = None


class OnnxRuntime:
    """ONNX Runtime as it comes, but for the number of threads."""

    def __init__(self, path, inputs, threads):
        import onnxruntime

        self.name = "onnxruntime"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = inputs

    def run(self):
        return self.session.run(None, self.inputs)

    def close(self):
        self.session = None


class OpenVino:
    """OpenVINO for latency, in float32."""

    def __init__(self, path, inputs, threads):
        import openvino

        self.name = "openvino"
        core = openvino.Core()
        compiled = core.compile_model(str(path), "CPU", {
            "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
        self.request = compiled.create_infer_request()
        self.inputs = inputs
        self.output_ports = compiled.outputs

    def run(self):
        self.request.infer(self.inputs)
        return [self.request.get_tensor(port).data for port in self.output_ports]

    def close(self):
        self.request = None


def openvino_installed():
    try:
        import openvino  # noqa: F401
    except ImportError:
        return False
    return True


def relative_error(found, expected):
    """Largest difference over the largest magnitude expected, over all outputs."""
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        if a.shape != b.shape:
            raise RuntimeError(f"output shape {a.shape}, expected {b.shape}")
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        worst = max(worst, float(difference / max(np.abs(b.astype(np.float64)).max(), 1e-30)))
        if not np.isfinite(a).all():
            worst = float("inf")
    return worst
