"""A library of ranges, through its C interface."""
import ctypes


class Library:
    """The functions of a library; shapes as tuples."""

    def __init__(self, path):
        self.api = ctypes.CDLL(str(path))
        self.api.hone_model_last_error.restype = self.api.hone_model_input_dim.restype = ctypes.c_char_p
        self.api.hone_model_last_error.argtypes = [ctypes.c_void_p]
        self.model = ctypes.c_void_p()
        if self.api.hone_model_create(ctypes.byref(self.model), 2) != 0:
            raise RuntimeError(self.api.hone_model_last_error(None))

    def close(self):
        self.api.hone_model_destroy(self.model)

    def error(self):
        return self.api.hone_model_last_error(self.model).decode()

    def set(self, i, shape):
        return self.api.hone_model_set_input_shape(self.model, i, len(shape), (ctypes.c_int64 * len(shape))(*shape))

    def shape(self, function, i):
        rank, dims = ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
        if getattr(self.api, f"hone_model_{function}")(self.model, i, ctypes.byref(rank), ctypes.byref(dims)) != 0:
            return self.error()
        return tuple(dims[:rank.value])

    def largest(self, i):
        """The largest shape of an output."""
        dtype, rank, dims = ctypes.c_int(), ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
        if self.api.hone_model_output_info(self.model, i, ctypes.byref(dtype), ctypes.byref(rank), ctypes.byref(dims)) != 0:
            return self.error()
        return tuple(dims[:rank.value])

    def run(self, inputs, outputs):
        pointers = [(ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)) for arrays in (inputs, outputs)]
        return self.api.hone_model_run(self.model, *pointers)
