"""Models in float16 and bfloat16: as near to their float32 version as the type's rounding allows, with half the bytes of weights.

The oracle is ONNX Runtime in float32 with the weights and inputs that the half type holds; for float16 also ONNX Runtime in that type.
"""
import numpy as np
import onnx
from onnx import helper, numpy_helper

from support import Case, make_model, main, reference, relative_error, small_network, value
import decoder
import in_half

# What results may differ by, of the largest: they are rounded once, to 11 or 8 bits, and so are the weights that passes changed.
TOLERANCE = {"float16": 3e-3, "bfloat16": 2e-2}


def rounded_model(model, kind):
    """The model in float32 with the numbers that its version in the half type has."""
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(in_half.rounded(numpy_helper.to_array(tensor), kind), tensor.name))
    return model


def in_type(array, kind):
    if array.dtype != np.float32:
        return array
    bits = in_half.bits_of(array, kind)
    return bits.view(np.float16) if kind == "float16" else bits.view("V2")


def as_float32(array):
    if array.dtype == np.dtype("V2"):
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def large_products(rows=24):
    """Three products with weights that are worth halving, one behind a normalisation of channels that goes into them."""
    rng = np.random.default_rng(3)
    weights = {"w1": rng.standard_normal((256, 512)) / 16, "w2": rng.standard_normal((512, 256)) / 22, "w3": rng.standard_normal((256, 256)) / 16,
               "scale": rng.random(512) + 0.5, "shift": rng.standard_normal(512)}
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]), helper.make_node("Mul", ["a", "scale"], ["b"]),
        helper.make_node("Add", ["b", "shift"], ["c"]), helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "w2"], ["e"]), helper.make_node("Softmax", ["e"], ["f"], axis=-1),
        helper.make_node("MatMul", ["f", "w3"], ["y"])]
    return make_model(nodes, [value("x", (rows, 256))], [value("y", (rows, 256))], {name: array.astype(np.float32) for name, array in weights.items()})


class HalfTypes(Case):
    def compare(self, make, inputs, *options):
        """make() gives the model in float32; inputs: {name: array} of it; the bytes of each version's library, by type."""
        sizes = {}
        for kind in (None, "float16", "bfloat16"):
            path = self.save(in_half.in_half(make(), kind) if kind else make(), f"{kind}.onnx")
            library = self.folder / f"{kind}.so"
            self.succeed("compile", path, "-o", library, "--no-db", "--threads", 1, *options)
            sizes[kind] = library.stat().st_size
            if kind is None:
                continue
            given = {name: in_type(array, kind) for name, array in inputs.items()}
            found = self.outputs(library, given)
            oracle = self.save(rounded_model(make(), kind), "oracle.onnx")
            expected = reference(oracle, {name: as_float32(array) for name, array in given.items()})
            for name, array in expected.items():
                with self.subTest(kind=kind, output=name):
                    self.assertEqual(found[name].dtype, np.dtype(np.float16 if kind == "float16" else "V2"))
                    self.assertLess(relative_error(as_float32(found[name]), array), TOLERANCE[kind])
            if kind == "float16":
                for name, array in reference(path, given).items():
                    self.assertLess(relative_error(as_float32(found[name]), array), 4 * TOLERANCE[kind])
        return sizes

    def test_convolutions(self):
        x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
        self.compare(small_network, {"x": x})

    def test_products_have_half_the_bytes(self):
        for rows in (1, 64):
            with self.subTest(rows=rows):
                x = np.random.default_rng(rows).standard_normal((rows, 256)).astype(np.float32)
                sizes = self.compare(lambda rows=rows: large_products(rows), {"x": x})
                for kind in ("float16", "bfloat16"):
                    self.assertLess(sizes[kind], 0.7 * sizes[None])

    def test_decoder_with_a_past(self):
        def make():
            return decoder.decoder(layers=1, width=64, heads=4, shared=2, tokens=4, past=12, vocabulary=300)

        self.compare(make, decoder.inputs(make()))
        for kind in TOLERANCE:  # what is computed between, too
            self.succeed("verify", self.folder / f"{kind}.onnx", "--no-db")

    def test_narrower_vectors(self):
        x = np.random.default_rng(2).standard_normal((24, 256)).astype(np.float32)
        self.compare(large_products, {"x": x}, "--device", "x86-64-avx2")


if __name__ == "__main__":
    main()
