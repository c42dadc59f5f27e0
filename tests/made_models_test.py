"""Graphs that scripts of models/ make: the files are what make_graphs.py writes, networks of few layers compute what ONNX Runtime does, and
the convolutions of MetaTune's table become a data set."""
import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import support  # first: it says where the others are
from support import Case

import convolution_kernels
import efficientnet
import fill_weights
import make_graphs
import model_files
import open_dimensions
import ssd_inception
import transformers_of_papers as transformers
import weightless

TOLERANCE = 1e-4
# As published; a folded normalisation has a bias only, where the published number of EfficientNet-B4 (19.34 M) has a scale, too.
PARAMETERS = {"bert_large_s128": 335_143_938, "gpt2_large_s128": 774_030_080, "gpt3_350m_s128": 355_871_744, "efficientnet_b4": 19_278_960}
FEW = {  # the same code as the whole ones
    "bert": lambda: transformers.bert("bert", 2, width=64, heads=4, tokens=16, vocabulary=300, positions=20),
    "gpt2": lambda: transformers.gpt2("gpt2", 2, width=60, heads=5, tokens=16, positions=20, vocabulary=300),
    "efficientnet": lambda: efficientnet.efficientnet_b4("efficientnet", side=24, most_blocks=1),
    "ssd": lambda: ssd_inception.ssd_inception_v2("ssd", side=20, blocks=("4a",)),
}


class MadeModels(Case):
    def test_graphs(self):
        """The files are those of the script, and have what the manifest says. Their weights are not made: they have gigabytes."""
        entries = {entry["name"]: entry for entry in model_files.entries(large=True)}
        self.assertLessEqual(set(make_graphs.SOURCES), set(entries))
        self.assertTrue(set(make_graphs.LARGE).isdisjoint(entry["name"] for entry in model_files.entries()))
        for name in make_graphs.SOURCES:
            with self.subTest(name):
                path = model_files.GRAPHS / entries[name]["file"]
                self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), entries[name]["sha256"])
                model = onnx.load(path)
                onnx.checker.check_model(model)
                self.assertEqual(model, make_graphs.make(name))
                if name in PARAMETERS:
                    self.assertAlmostEqual(weightless.parameters(model), PARAMETERS[name], delta=100)
        with self.assertRaisesRegex(ValueError, "600 tokens, it knows 512 positions"):
            make_graphs.make("bert_large_s128", tokens=600)

    def check(self, name, batch=1):
        model, path, library = FEW[name](), self.folder / f"{name}.onnx", self.folder / f"{name}.so"
        entry = {"inputs": [make_graphs.described(value) | {"generate": make_graphs.generated(value)} for value in model.graph.input
                            if value.name not in weightless.weights_of(model)]}
        for each in entry["inputs"]:
            each["generate"] |= {"high": 300} if each["generate"]["kind"] == "integers" else {}
        one = fill_weights.make_inputs(entry)
        parts = [{key: np.roll(array, i, axis=-1) for key, array in one.items()} for i in range(batch)]
        fill_weights.save(fill_weights.fill(model), path)
        shapes = [f"--shape={key}={'x'.join(map(str, (batch, *array.shape[1:])))}" for key, array in one.items()] if batch > 1 else []
        self.assertGreater(len(self.succeed_json("show", path, "--no-db", *shapes)["kernels"]), 5)
        self.succeed("compile", path, "-o", library, "--no-db", "--no-check", "--threads", 1, "--cost", "analytic", *shapes)
        arguments = []
        for key in one:
            np.save(self.folder / f"{key}.npy", np.concatenate([part[key] for part in parts]))
            arguments += ["--input", f"{key}={self.folder / key}.npy"]
        self.succeed("run", library, *arguments, "--output-dir", self.folder)
        expected = [support.reference(path, part) for part in parts]
        for key in expected[0]:
            whole = np.concatenate([part[key] for part in expected])
            self.assertLessEqual(support.relative_error(np.load(self.folder / f"{key}.npy"), whole), TOLERANCE, f"{name}: output {key}")

    def test_few_layers(self):
        for name in FEW:
            with self.subTest(name):
                self.check(name)

    def test_batches(self):
        self.check("gpt2", batch=2)

    def test_open_dimensions(self):
        """As with dynamic axes: ONNX Runtime computes of the opened model what it does of the fixed one, and Hone compiles it as it is."""
        for name, sides, shape in (("bert", [], (3, 7)), ("gpt2", [], (2, 16)), ("efficientnet", ["height=24..27", "width=24..27"], (2, 3, 24, 26))):
            with self.subTest(name):
                fixed, path, library = fill_weights.fill(FEW[name]()), self.folder / f"{name}_open.onnx", self.folder / f"{name}_open.so"
                at_its_size = {given.name: self.random(given, [dim.dim_value for dim in given.type.tensor_type.shape.dim]) for given in fixed.graph.input}
                expected = support.reference(self.save(fixed, "fixed.onnx"), at_its_size)
                opened = open_dimensions.open_dimensions(fixed, bool(sides))
                onnx.checker.check_model(onnx.shape_inference.infer_shapes(opened, strict_mode=True))
                for key, array in support.reference(self.save(opened, path.name), at_its_size).items():
                    np.testing.assert_allclose(array, expected[key], rtol=1e-4, atol=1e-4)
                self.succeed("compile", path, "-o", library, "--no-db", "--no-check", "--threads", 1, "--cost", "analytic", *(f"--shape={side}" for side in sides))
                inputs = {given.name: self.random(given, shape) for given in opened.graph.input}
                found = self.outputs(library, inputs)
                for key, array in support.reference(path, inputs).items():
                    self.assertEqual(found[key].shape, array.shape)
                    self.assertLessEqual(support.relative_error(found[key], array), TOLERANCE, f"{name}: output {key}")

    @staticmethod
    def random(given, shape):
        rng = np.random.default_rng(len(given.name))
        whole = given.type.tensor_type.elem_type == onnx.TensorProto.INT64
        return np.maximum(rng.integers(0, 2, shape), np.arange(shape[-1]) == 0) if whole else rng.standard_normal(shape).astype(np.float32)

    def test_convolutions_of_the_table(self):
        rows = convolution_kernels.rows(Path(convolution_kernels.__file__).with_suffix(".csv"))
        self.assertEqual(len(rows), 47)
        self.assertEqual({row[0] for row in rows}, set(convolution_kernels.CLASSES))
        self.assertEqual(len(set(rows)), 47)
        for kind, size, inner, outer in rows:
            sizes, inputs, outputs = ((150, 600), (32, 128), (32, 512)) if kind.endswith("1d") else ((7, 224), (3, 128), (16, 128))
            for number, (least, most) in ((size, sizes), (inner, inputs), (outer, outputs)):
                self.assertTrue(least <= number <= most, (kind, size, inner, outer))

    def test_a_data_set_of_them(self):
        table, folder, db = self.folder / "few.csv", self.folder / "kernels", self.folder / "data.db"
        table.write_text("class,size,input_channels,output_channels\ntranspose1d,150,32,32\nwinograd,10,16,16\nconv2d,9,8,16\n")
        command = [sys.executable, convolution_kernels.__file__, folder, "--table", table]
        subprocess.run([*command, "--classes", "transpose1d", "winograd"], check=True)
        models = sorted(folder.iterdir())
        self.assertEqual([path.name for path in models], ["transpose1d_150_32_32.onnx", "winograd_10_16_16.onnx"])
        for path in models:
            onnx.checker.check_model(onnx.load(path), full_check=True)
        found = self.succeed_json("dataset", "make", *models, "--db", db, "--schedules", 6, "--round", 3, "--threads", 1, "--budget", "60s")
        self.assertGreaterEqual(found["tasks"], 2)  # with those that reorder data at the ends
        self.assertEqual((found["records"], found["failed"], found["complete"]), (6 * found["tasks"], 0, True))
        table.write_text("class,size,input_channels,output_channels\nconv4d,150,32,32\n")
        refused = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("line 2: conv4d,150,32,32, expected a class of conv1d", refused.stderr)


if __name__ == "__main__":
    support.main()
