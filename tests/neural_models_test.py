"""Neural cost models as files: valid ONNX that ONNX Runtime and Hone's own compiler compute as the plain evaluator does."""
import os
import subprocess
import unittest

import numpy as np
import onnx
import onnxruntime

import support

TOLERANCE = 1e-4


class NeuralModels(support.Case):
    def setUp(self):
        super().setUp()
        subprocess.run([os.environ["HONE_NET_FILES"], self.folder], check=True)

    def check(self, found, expected, what):
        self.assertEqual(found.shape, expected.shape, what)
        self.assertLess(np.abs(found - expected).max() / max(1e-6, np.abs(expected).max()), TOLERANCE, what)

    def test_every_family(self):
        models = sorted(self.folder.glob("*.onnx"))
        self.assertGreaterEqual(len(models), 8)
        for path in models:
            with self.subTest(path.stem):
                model = onnx.load(path)
                onnx.checker.check_model(model, full_check=True)
                notes = {entry.key: entry.value for entry in model.metadata_props}
                self.assertEqual(notes["hone.family"], path.stem.split("-")[0])
                self.assertEqual(notes["hone.card.loss"], "none")
                arrays = dict(np.load(path.with_suffix(".npz")))
                inputs = {name.removeprefix("input."): value for name, value in arrays.items() if name.startswith("input.")}
                expected = {name.removeprefix("output."): value for name, value in arrays.items() if name.startswith("output.")}
                self.assertIn("score", expected)
                session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
                for name, value in zip(expected, session.run(list(expected), inputs)):
                    self.check(value, expected[name], f"ONNX Runtime: {name}")
                arguments = []
                for name, value in inputs.items():
                    np.save(self.folder / f"{name}.npy", value)
                    arguments += ["--input", f"{name}={self.folder / name}.npy", "--shape", f"{name}={'x'.join(map(str, value.shape))}"]
                self.succeed("run", path, *arguments, "--output-dir", self.folder / path.stem)
                for name, value in expected.items():
                    self.check(np.load(self.folder / path.stem / f"{name}.npy"), value, f"Hone: {name}")


if __name__ == "__main__":
    unittest.main()
