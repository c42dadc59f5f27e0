"""Whole models: compiled with default schedules, run through the tool and the C interface, compared with ONNX Runtime."""

import numpy as np

import support  # first: it says where the others are
from support import Case

import engines
import model_files

TOLERANCE = 1e-4  # of the largest output; all algorithms are direct


class Models(Case):
    def check(self, name):
        inputs = model_files.inputs(name)
        model = model_files.filled(name)
        library = self.folder / "model.so"
        report = self.succeed_json("compile", model, "-o", library, "--no-db", "--threads", 2, timeout=200)
        self.assertGreater(len(report["kernels"]), 5)
        arguments = []
        for key, array in inputs.items():
            np.save(self.folder / f"{key}.npy", array)
            arguments += ["--input", f"{key}={self.folder / key}.npy"]
        self.succeed("run", library, *arguments, "--output-dir", self.folder, "--threads", 2)
        for key, expected in support.reference(model, inputs).items():
            error = support.relative_error(np.load(self.folder / f"{key}.npy"), expected)
            self.assertLessEqual(error, TOLERANCE, f"output {key}")
        # The number of threads changes who computes a tile, not what is computed.
        outputs = {}
        for threads in (1, 2):
            engine = engines.Hone(library, inputs, threads)
            outputs[threads] = [array.copy() for array in engine.run()]
            for again, first in zip(engine.run(), outputs[threads], strict=True):
                np.testing.assert_array_equal(again, first)
            engine.close()
        for one, two in zip(outputs[1], outputs[2], strict=True):
            np.testing.assert_array_equal(one, two)


for model_entry in model_files.entries():
    setattr(Models, f"test_{model_entry['name']}", lambda self, name=model_entry["name"]: self.check(name))


if __name__ == "__main__":
    support.main()
