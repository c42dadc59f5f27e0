"""What users may say of a model's inputs, by --shape, --bind and --input, and what commands answer where it does not fit."""
import json
import unittest

import numpy as np
from onnx import TensorProto, helper

from support import Case, hone, make_model, value


class Defaults(Case):
    """Inputs with an initializer of their name, which need not be given."""

    def setUp(self):
        super().setUp()
        self.x = np.float32([[1, 2, 3], [4, 5, 6]])
        self.default, self.other = np.float32([1, 2, 3]), np.float32([30, 10, 20])
        self.path = self.model(8)
        self.arrays = {}
        for name, array in {"x": self.x, "b": self.other, "long": np.float32([1, 2, 3, 4]), "whole": np.int64([1, 2, 3])}.items():
            self.arrays[name] = self.folder / f"{name}.npy"
            np.save(self.arrays[name], array)

    def model(self, version, extent=3):
        model = make_model([helper.make_node("Add", ["x", "b"], ["y"], name="add")], [value("x", (2, 3)), value("b", (extent,))],
                           [value("y", (2, 3))], {"b": self.default})
        model.ir_version = version
        return self.save(model, f"model{version}.onnx")

    def check(self, bias, path, *options):
        out = self.folder / "out"
        self.succeed("run", path, "--input", f"x={self.arrays['x']}", *options, "--output-dir", out)
        np.testing.assert_array_equal(np.load(out / "y.npy"), self.x + bias)

    def test_a_default_stays_or_is_replaced(self):
        for version in 3, 8:
            with self.subTest(version=version):
                path = self.model(version)
                self.check(self.default, path)
                self.check(self.other, path, "--bind", f"b={self.arrays['b']}")
                self.check(self.other, path, "--input", f"b={self.arrays['b']}")
                self.check(self.other, path, "--shape", "b=3", "--input", f"b={self.arrays['b']}")

    def test_a_library_has_a_default_or_the_input(self):
        library = self.folder / "model.so"
        self.succeed("compile", self.path, "-o", library, "--no-db")
        self.check(self.default, library)
        refused = self.refuse("the model has no input 'b', expected one of: x", "run", library, "--input", f"b={self.arrays['b']}")
        self.assertIn("(--shape b=...)", refused)
        self.succeed("compile", self.path, "-o", library, "--no-db", "--bind", f"b={self.arrays['b']}")
        self.check(self.other, library)
        self.succeed("compile", self.path, "-o", library, "--no-db", "--shape", "b=3")
        self.check(self.other, library, "--input", f"b={self.arrays['b']}")

    def test_verify_takes_them(self):
        self.succeed("verify", self.path, "--no-db", "--input", f"b={self.arrays['b']}")
        self.succeed("verify", self.path, "--no-db", "--bind", f"b={self.arrays['b']}")
        self.succeed("verify", self.path, "--no-db", "--shape", "b=3")

    def test_verify_takes_them_from_a_reference(self):
        reference = self.folder / "all.npz"
        for version, options in (3, ()), (8, ()), (8, ("--shape", "b=3")):
            arguments = ("verify", self.model(version), "--no-db", "--reference", reference, *options)
            for bias in self.default, self.other:
                np.savez(reference, x=self.x, b=bias, y=self.x + bias)
                self.assertEqual(self.succeed_json(*arguments)["divergences"], [])
            np.savez(reference, x=self.x, b=self.default, y=self.x + self.other)
            done = hone(*arguments, "--json")
            self.assertEqual([found["value"] for found in json.loads(done.stdout)["divergences"]], ["y"])

    def test_a_default_that_decides_a_shape_is_bound(self):
        model = make_model([helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape")],
                           [value("x", (2, 3)), value("shape", (2,), TensorProto.INT64)], [value("y", None)], {"shape": np.int64([3, 2])})
        path = self.save(model, "reshape.onnx")
        shape = self.folder / "shape.npy"
        np.save(shape, np.int64([6, 1]))
        self.succeed("run", path, "--input", f"shape={shape}", "--output-dir", self.folder)
        self.assertEqual(np.load(self.folder / "y.npy").shape, (6, 1))
        self.succeed("verify", path, "--no-db", "--input", f"shape={shape}")

    def test_what_does_not_fit(self):
        for file, found in {"long": "f32 [4]", "whole": "i64 [3]"}.items():
            self.refuse(f"input 'b' is bound to a value of {found}, expected f32 [3]", "compile", self.path, "-o", self.folder / "m.so", "--no-db",
                        "--bind", f"b={self.arrays[file]}")


class Sizes(Case):
    """Of a library with a range, and of options that say no size."""

    def setUp(self):
        super().setUp()
        self.path = self.save(make_model([helper.make_node("Relu", ["x"], ["y"], name="relu")], [value("x", ("batch", "past", 4))],
                                         [value("y", None)]))

    def test_sizes_of_a_run(self):
        library = self.folder / "model.so"
        self.succeed("compile", self.path, "-o", library, "--no-db", "--shape", "batch=1..8", "--shape", "past=0..16")
        self.assertEqual(self.succeed_json("run", library, "--shape", "past=0", "--shape", "batch=2")["outputs"][0]["shape"], [2, 0, 4])
        self.refuse("--shape past: found the range '3..9', expected one size of each dimension, as a run of a library has", "run", library, "--shape", "past=3..9")
        # No table is printed before the size that the library does not have.
        self.refuse("99", "bench", library, "--shape", "batch=1,99")

    def test_ranges_of_a_model_that_is_run(self):
        """It is compiled for them, and runs at their largest sizes, or at those of its inputs."""
        ranges = "--shape", "batch=1..2", "--shape", "past=3..9"
        self.assertEqual(self.succeed_json("run", self.path, *ranges)["outputs"][0]["shape"], [2, 9, 4])
        x = np.full((1, 5, 4), -2, np.float32)
        self.assertTrue(np.array_equal(self.outputs(self.path, {"x": x}, *ranges)["y"], np.zeros_like(x)))
        np.save(self.folder / "x.npy", np.zeros((1, 2, 4), np.float32))
        self.refuse("input 'x': dimension 1 (past) is 2, expected 3 to 9", "run", self.path, *ranges, "--input", f"x={self.folder / 'x.npy'}")
        done = hone("bench", self.path, *ranges, "--repeat", 2)
        self.assertEqual((done.returncode, done.stderr), (0, "measured at the largest sizes: x [2, 9, 4]\n"))

    def test_names_of_dimensions(self):
        out = ["-o", self.folder / "m.so", "--no-db"]
        self.refuse("'batch', which is no input: the inputs are 'x'; it is a dimension, whose size or range --shape batch=... gives", "compile",
                    self.path, *out, "--bind", "batch=3")
        self.refuse("a range is given for 'past', which no open dimension has: the symbols are 'batch', 'psat'", "compile", self.path, *out,
                    "--shape", "x=batch,psat,4", "--shape", "past=1..4")
        done = hone("compile", self.path, *out, "--shape", "x=batch,psat,4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the file does not have 'psat', its symbols are 'batch', 'past'", done.stderr)


if __name__ == "__main__":
    unittest.main()
