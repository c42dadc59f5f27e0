"""Whole models on a device of OpenCL, which here is PoCL on the CPU: compiled, run through the tool and the C interface, compared with ONNX
Runtime. Programs for CUDA are compiled as far as that goes without a GPU."""

import unittest

import numpy as np
import support  # first: it says where the others are
from onnx import TensorProto, helper, numpy_helper
from support import Case, make_model, value

import engines
import in_half
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

    def test_a_run_that_takes_too_long_is_given_up(self):
        extent = 1536
        inputs = [value("x", (extent, extent)), value("z", (extent, extent))]
        model = self.save(make_model([helper.make_node("MatMul", ["x", "z"], ["y"], name="long")], inputs, [value("y", (extent, extent))], {}))
        library = self.folder / "model.so"
        self.succeed("compile", model, "-o", library, "--no-db", "--device", "opencl-pocl", "--no-check")
        for command in ("run", "bench"):
            line = self.refuse("did not end", command, library, "--time-limit", "0.005")
            self.assertEqual(line.count(str(library)), 1, line)
            self.assertRegex(line, r"model\.so: step 'long' \(kernel \S+\) did not end: .* is lost to this process: what ran there did not end within 0\.005 s")
        self.succeed("run", library, "--time-limit", "0")
        self.refuse("--time-limit", "run", library, "--time-limit", "-1")

    def test_what_a_device_cannot_run_runs_on_the_host(self):
        """A thread that keeps so many boxes would need more memory than one has; what surrounds the task stays on the device."""
        boxes = most = 20_000
        nodes = [
            helper.make_node("Relu", ["raw"], ["scores"]),
            helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["found"], name="suppress"),
            helper.make_node("Cast", ["found"], ["y"], to=TensorProto.FLOAT),
        ]
        inputs = [value("boxes", (1, boxes, 4)), value("raw", (1, 1, boxes))]
        constants = {"most": np.array([most]), "iou": np.array([0.5], np.float32)}
        model = self.save(make_model(nodes, inputs, [value("y", ("n", 3))], constants))
        library = self.folder / "model.so"
        report = self.succeed_json("compile", model, "-o", library, "--no-db", "--device", "opencl-pocl", "--no-check")
        sources = {kernel["name"]: kernel["source"] for kernel in report["kernels"]}
        self.assertEqual(sources["suppress#1"], "host", sources)
        self.assertGreater(sum(source != "host" for source in sources.values()), 0, sources)
        generator = np.random.default_rng(1)
        corners = np.sort(generator.random((1, boxes, 2, 2), np.float32), axis=2).reshape(1, boxes, 4)
        data = {"boxes": corners, "raw": generator.standard_normal((1, 1, boxes)).astype(np.float32)}
        engine = engines.Hone(library, data, 1)
        found = [array.copy() for array in engine.run()]
        engine.close()
        for array, right in zip(found, support.reference(model, data).values(), strict=True):
            np.testing.assert_array_equal(array[: len(right)], right)


def attention_block(tokens=24, width=32):
    """A normalization, attention with one head, and the sum with what came in."""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((width, width)) / 6 for name in ("wq", "wk", "wv")} | {"scale": rng.uniform(0.5, 2, width), "bias": np.zeros(width)}
    nodes = [helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["n"], name="norm", axis=-1)]
    for name in "qkv":
        nodes.append(helper.make_node("MatMul", ["n", f"w{name}"], [name], name=name))
    nodes += [
        helper.make_node("Transpose", ["k"], ["kt"], name="turn", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"], name="scores"),
        helper.make_node("Softmax", ["scores"], ["shares"], name="softmax", axis=-1),
        helper.make_node("MatMul", ["shares", "v"], ["mixed"], name="mix"),
        helper.make_node("Add", ["mixed", "x"], ["y"], name="add")]
    shape = (2, tokens, width)
    return make_model(nodes, [value("x", shape)], [value("y", shape)], {name: array.astype(np.float32) for name, array in weights.items()})


class HalfPrecision(Case):
    """Models of 16-bit floats, in inputs, weights and results, against the same numbers in float32."""

    TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2}  # of the largest output: a few roundings

    def check(self, make, shape):
        for name, tolerance in self.TOLERANCE.items():
            library = self.folder / f"{name}.so"
            report = self.succeed_json("compile", self.save(in_half.in_half(make(), name), name + ".onnx"), "-o", library, "--no-db", "--device",
                                       "opencl-pocl", "--no-check", timeout=400)
            for kernel in report["kernels"]:
                self.assertRegex(kernel["steps"], r"bind\(.*thread\)", kernel["name"])
            model = make()
            for tensor in model.graph.initializer:
                tensor.CopyFrom(numpy_helper.from_array(in_half.rounded(numpy_helper.to_array(tensor), name), tensor.name))
            x = in_half.rounded(np.random.default_rng(1).standard_normal(shape).astype(np.float32), name)
            expected = support.reference(self.save(model, "wide.onnx"), {"x": x})["y"]
            bits = in_half.bits_of(x, name)
            engine = engines.Hone(library, {"x": bits.view(np.float16) if name == "float16" else bits}, 1)
            found = engine.run()[0].copy()
            engine.close()
            if name == "bfloat16":
                found = (found.astype(np.uint32) << 16).view(np.float32)
            self.assertLessEqual(support.relative_error(found, expected), tolerance, name)

    def test_convolutions(self):
        self.check(support.small_network, (1, 3, 24, 24))

    def test_attention(self):
        self.check(attention_block, (2, 24, 32))

    def test_cuda_code_is_compiled(self):
        for device in ("cuda-sm_80", "cuda-sm_90a"):
            for name in self.TOLERANCE:
                report = self.succeed_json("compile", self.save(in_half.in_half(attention_block(), name)), "-o", self.folder / "model.so", "--no-db",
                                           "--device", device, timeout=400)
                self.assertGreater(len(report["kernels"]), 2)

    def test_code_of_cuda_is_explained_with_its_figures(self):
        model = self.save(in_half.in_half(attention_block(256, 512), "float16"))
        shown = self.succeed_json("show", model, "--device", "cuda-sm_90a", "--no-db")
        product = max(shown["kernels"], key=lambda task: task["flops"])
        self.assertIn(product["limit"], ("matrix", "launch", "memory", "L2"))
        for device in ("cuda-sm_80", "cuda-sm_90a"):
            report = self.succeed_json("explain", model, "--task", product["key"], "--device", device, "--no-db", timeout=400)
            code = report["code"]
            self.assertGreater(code["registers"], 16)
            self.assertGreater(code["matrix_instructions"], 0)
            self.assertEqual(code["spill_bytes"], 0)
            text = "\n".join(line for loop in report["loops"] for line in loop["text"])
            self.assertIn(f"// {max(loop['vector_registers'] for loop in report['loops'])} registers a thread", text)
            self.assertIn("__launch_bounds__(", text)
            for launch in report["launches"]:
                self.assertIn(launch["limit"], ("arithmetic", "matrix products", "load units", "L2", "waiting", "memory", "launch"))
            self.assertIsNone(report["measured"])


if __name__ == "__main__":
    unittest.main()
