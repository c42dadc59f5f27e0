"""run_library.py LIBRARY INPUTS.npz OUTPUTS.npz: runs a library once. It imports no more than that needs, as each model has such a process."""
import ctypes
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))
import engines


def run_library(library, inputs, outputs):
    with np.load(inputs) as given:
        engine = engines.Hone(library, dict(given), 2)
    names = [name for name, _, _ in engine._tensors("output")]
    engine.run()
    np.savez(outputs, **{name: actual(engine, i) for i, name in enumerate(names)})


def actual(engine, i):
    """An output with the shape that the data gave it."""
    rank, shape = ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
    if engine.library.hone_model_output_shape(engine.model, i, ctypes.byref(rank), ctypes.byref(shape)) != 0:
        raise RuntimeError(f"no shape of output {i}")
    extents = shape[:rank.value]
    return engine.outputs[i].reshape(-1)[:int(np.prod(extents, dtype=np.int64))].reshape(extents)


if __name__ == "__main__":
    run_library(*sys.argv[1:4])
