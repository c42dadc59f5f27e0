"""Whole models: compiled with default schedules, run through the tool and the C interface, compared with ONNX Runtime."""

import numpy as np

import support  # first: it says where the others are
from support import Case

import engines
import model_files

TOLERANCE = 1e-4  # of the largest output


def variants(inputs, count):
    """`count` batches of one: the inputs, then rotated ones."""
    return [{key: np.roll(array, i, axis=-1) for key, array in inputs.items()} for i in range(count)]


def joined(parts):
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


class Models(Case):
    def check(self, name, batch=1):
        parts = variants(model_files.inputs(name), batch)
        inputs = joined(parts)
        model = model_files.filled(name)
        library = self.folder / "model.so"
        shapes = [f"--shape={key}={'x'.join(map(str, array.shape))}" for key, array in inputs.items()] if batch > 1 else []
        report = self.succeed_json("compile", model, "-o", library, "--no-db", "--threads", 2, *shapes, timeout=200)
        self.assertGreater(len(report["kernels"]), 5)
        arguments = []
        for key, array in inputs.items():
            np.save(self.folder / f"{key}.npy", array)
            arguments += ["--input", f"{key}={self.folder / key}.npy"]
        self.succeed("run", library, *arguments, "--output-dir", self.folder, "--threads", 2)
        for key, expected in joined([support.reference(model, part) for part in parts]).items():
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
    setattr(Models, f"test_{model_entry['name']}_batch4", lambda self, name=model_entry["name"]: self.check(name, 4))


if __name__ == "__main__":
    support.main()
