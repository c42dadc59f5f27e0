"""Whole models on a device of OpenCL, which here is PoCL on the CPU: compiled, run through the tool and the C interface, compared with ONNX
Runtime. Programs for CUDA are compiled as far as that goes without a GPU."""

import unittest

import numpy as np
import support  # first: it says where the others are
from support import Case

import engines
import model_files

TOLERANCE = 1e-4  # of the largest output


class Devices(Case):
    def check(self, name):
        inputs, model = model_files.inputs(name), model_files.filled(name)
        library = self.folder / "model.so"
        report = self.succeed_json("compile", model, "-o", library, "--no-db", "--device", "opencl-pocl", "--no-check", timeout=400)
        self.assertGreater(len(report["kernels"]), 5)
        for kernel in report["kernels"]:
            self.assertRegex(kernel["steps"], r"bind\(.*thread\)", kernel["name"])
        expected = support.reference(model, inputs)
        engine = engines.Hone(library, inputs, 1)
        found = [array.copy() for array in engine.run()]
        for again, first in zip(engine.run(), found, strict=True):
            np.testing.assert_array_equal(again, first)
        engine.close()
        for array, (key, right) in zip(found, expected.items(), strict=True):
            self.assertLessEqual(support.relative_error(array, right), TOLERANCE, f"output {key}")

    def test_resnet18(self):
        self.check("resnet18")

    def test_squeezenet1_1(self):
        self.check("squeezenet1_1")

    def test_mobilenet_v2(self):
        self.check("mobilenet_v2")

    def test_bert_base_s128(self):
        self.check("bert_base_s128")


if __name__ == "__main__":
    unittest.main()
