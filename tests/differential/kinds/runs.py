"""runs.py LIBRARY FEEDS.npz OUTPUTS.npz: runs a library at several feeds, whose arrays are named NUMBER:NAME. It imports no more than that
needs, as each model has such a process."""
import ctypes
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[3] / "benchmarks")]
import engines
from run_library import actual

SMALL = dict.fromkeys(range(17, 27), np.uint8)  # of a byte or fewer bits: bytes


class Library(engines.Hone):
    def feed(self, arrays):
        """Takes these inputs, of these shapes, in the next run."""
        self.inputs = [engines.aligned(array) for array in arrays]
        for i, array in enumerate(self.inputs):
            dims = (ctypes.c_int64 * array.ndim)(*array.shape)
            if self.library.hone_model_set_input_shape(self.model, i, array.ndim, dims) != 0:
                raise RuntimeError(self.library.hone_model_last_error(self.model).decode())
        self.input_pointers = (ctypes.c_void_p * len(self.inputs))(*[x.ctypes.data for x in self.inputs])


def run_library(library, feeds, outputs):
    engines.DTYPES |= SMALL
    with np.load(feeds) as given:
        arrays = dict(given)
    count = int(arrays.pop("count"))
    engine = Library(library, {name[2:]: array for name, array in arrays.items() if name.startswith("0:")}, 2)
    inputs, names = ([name for name, _, _ in engine._tensors(kind)] for kind in ("input", "output"))
    found = {}
    for run in range(count):
        engine.feed([arrays[f"{run}:{name}"] for name in inputs])
        engine.run()
        found |= {f"{run}:{name}": actual(engine, i).copy() for i, name in enumerate(names)}
    np.savez(outputs, **found)


if __name__ == "__main__":
    run_library(*sys.argv[1:4])
