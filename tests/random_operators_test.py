"""Operators with random numbers: what their numbers look like, and that each run and each compilation has the same ones."""
import numpy as np
import onnx
from onnx import TensorProto, helper

from support import Case, main

COUNT = 100_000


class RandomOperators(Case):
    def run_node(self, op, inputs=(), feeds=None, **attributes):
        """The value of result y of a model of one node."""
        declared = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                    for name, array in (feeds or {}).items()]
        node = helper.make_node(op, list(inputs), ["y"], name=f"{op}_node", **attributes)
        model = helper.make_model(helper.make_graph([node], "random", declared, [helper.make_empty_tensor_value_info("y")]),
                                  opset_imports=[helper.make_opsetid("", 22)])
        model.ir_version = 10
        path = self.folder / "random.onnx"
        onnx.save(model, path)
        return self.outputs(path, feeds or {})["y"]

    def test_uniform_numbers(self):
        y = self.run_node("RandomUniform", shape=[COUNT], low=-2.0, high=4.0, seed=7.0)
        self.assertEqual((y.dtype, y.shape), (np.float32, (COUNT,)))
        self.assertGreaterEqual(y.min(), -2)
        self.assertLessEqual(y.max(), 4)
        counts, _ = np.histogram(y, bins=20, range=(-2, 4))
        self.assertLess(((counts - COUNT / 20) ** 2 / (COUNT / 20)).sum(), 44)  # chi-squared of 19 degrees of freedom, 1 in 1,000

    def test_normal_numbers(self):
        y = self.run_node("RandomNormal", shape=[50, COUNT // 50], mean=3.0, scale=0.5, seed=2.0, dtype=TensorProto.DOUBLE)
        self.assertEqual((y.dtype, y.shape), (np.float64, (50, COUNT // 50)))
        z = (y.ravel() - 3) / 0.5
        self.assertAlmostEqual(z.mean(), 0, delta=0.015)
        self.assertAlmostEqual(z.std(), 1, delta=0.01)
        self.assertAlmostEqual((np.abs(z) < 1).mean(), 0.6827, delta=0.006)
        self.assertAlmostEqual((z[1:] * z[:-1]).mean(), 0, delta=0.015)

    def test_forms_like_have_the_operand_s_shape_and_type(self):
        x = np.zeros((3, 5), np.float64)
        y = self.run_node("RandomUniformLike", ["x"], {"x": x}, seed=1.0)
        self.assertEqual((y.dtype, y.shape), (np.float64, (3, 5)))
        y = self.run_node("RandomNormalLike", ["x"], {"x": x}, dtype=TensorProto.FLOAT16)
        self.assertEqual((y.dtype, y.shape), (np.float16, (3, 5)))

    def test_the_seed_decides(self):
        first = self.run_node("RandomNormal", shape=[9], seed=1.0)
        np.testing.assert_array_equal(first, self.run_node("RandomNormal", shape=[9], seed=1.0))
        self.assertFalse((first == self.run_node("RandomNormal", shape=[9], seed=1.5)).any())
        unseeded = self.run_node("RandomNormal", shape=[9])
        np.testing.assert_array_equal(unseeded, self.run_node("RandomNormal", shape=[9]))
        self.assertFalse((first == unseeded).any())

    def test_bernoulli(self):
        p = np.repeat(np.float32([0, 0.2, 0.7, 1]), COUNT).reshape(4, COUNT)
        y = self.run_node("Bernoulli", ["p"], {"p": p}, seed=5.0, dtype=TensorProto.INT32)
        self.assertEqual((y.dtype, y.shape), (np.int32, p.shape))
        np.testing.assert_allclose(y.mean(axis=1), p[:, 0], atol=0.006)
        self.assertEqual((y[0].max(), y[3].min()), (0, 1))

    def test_multinomial(self):
        p = np.float32([[0.1, 0.2, 0.7], [0, 1, 0], [0.5, 0, 0.5]])
        with np.errstate(divide="ignore"):
            logarithms = np.log(p) + np.float32([[0], [3], [-2]])  # they need not be of a sum of 1
        y = self.run_node("Multinomial", ["p"], {"p": logarithms}, sample_size=COUNT // 4, seed=3.0, dtype=TensorProto.INT64)
        self.assertEqual((y.dtype, y.shape), (np.int64, (3, COUNT // 4)))
        for row, chances in zip(y, p, strict=True):
            np.testing.assert_allclose(np.bincount(row, minlength=3) / row.size, chances, atol=0.012)

    def test_what_is_wrong_is_refused(self):
        node = helper.make_node("RandomUniform", [], ["y"], name="numbers", shape=[2], dtype=TensorProto.INT32)
        model = helper.make_model(helper.make_graph([node], "g", [], [helper.make_empty_tensor_value_info("y")]), opset_imports=[helper.make_opsetid("", 22)])
        path = self.folder / "wrong.onnx"
        onnx.save(model, path)
        self.refuse("node 'numbers' (RandomUniform): random numbers of type i32", "show", path)


if __name__ == "__main__":
    main()
