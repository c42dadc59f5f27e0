"""Operators of ONNX that stand alone: DeformConv and FlexAttention, compared with ONNX's reference evaluator, TfIdfVectorizer with ONNX Runtime;
random nodes with all their attributes."""
import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import support
from random_nodes import Nodes, RandomNodes


def add_by_definition(n, op, arrays, domain="", **attributes):
    """A node whose values are those of ONNX's reference evaluator."""
    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    declared = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in zip(names, arrays, strict=True) if name]
    node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    model = helper.make_model(helper.make_graph([node], "node", declared, [helper.make_empty_tensor_value_info("y")]),
                              opset_imports=[helper.make_opsetid("", 22), helper.make_opsetid("ai.onnx.preview", 1)])
    feeds = {name: array for name, array in zip(names, arrays, strict=True) if name}
    n.add(op, arrays, expected=ReferenceEvaluator(model).run(None, feeds), domain=domain, **attributes)


def deform_conv(n):
    groups, offset_groups = n.pick(1, 1, 2), n.pick(1, 2)
    channels, outputs = 4, groups * n.below(1, 3)
    kernel, stride, dilation = [n.below(1, 4) for _ in range(2)], [n.below(1, 3) for _ in range(2)], [n.below(1, 3) for _ in range(2)]
    pads = [n.below(0, 3) for _ in range(4)]
    high, wide = n.below(6, 9), n.below(6, 9)
    sides = [(extent + pads[d] + pads[d + 2] - (kernel[d] - 1) * dilation[d] - 1) // stride[d] + 1 for d, extent in enumerate((high, wide))]
    batch, taps = n.below(1, 3), kernel[0] * kernel[1]
    offsets = n.pick(1, 4) * n.array(batch, offset_groups * taps * 2, *sides)
    mask = n.array(batch, offset_groups * taps, *sides) if n.chance() else None
    bias = n.array(outputs) if mask is None or n.chance() else np.zeros(outputs, np.float32)
    add_by_definition(n, "DeformConv", [n.array(batch, channels, high, wide), n.array(outputs, channels // groups, *kernel), offsets, bias]
                      + ([] if mask is None else [mask]),
                      group=groups, offset_group=offset_groups, kernel_shape=kernel, strides=stride, dilations=dilation, pads=pads)


def tf_idf(n):
    shortest = n.below(1, 3)
    longest = n.below(shortest, 4)
    pool, begins = [], []
    for length in range(1, longest + 1):
        begins.append(len(pool))
        grams = {tuple(int(x) for x in n.rng.integers(0, 4, length)) for _ in range(n.below(1, 6))}
        pool += [x for gram in sorted(grams) for x in gram]
    counts = [(end - begin) // length for length, (begin, end) in enumerate(zip(begins, [*begins[1:], len(pool)], strict=True), 1)]
    places = [int(x) for x in n.rng.permutation(sum(counts) + n.pick(0, 2))[:sum(counts)]]
    weights = {"weights": [float(x) for x in n.array(len(places))]} if n.chance() else {}
    x = n.rng.integers(0, 4, n.pick((9,), (3, 7), (1, 2)))
    n.add("TfIdfVectorizer", [x.astype(n.pick(np.int32, np.int64))], domain="", mode=n.pick("TF", "IDF", "TFIDF"), pool_int64s=pool,
          ngram_counts=begins, ngram_indexes=places, min_gram_length=shortest, max_gram_length=longest, max_skip_count=n.below(0, 4), **weights)


def of_any_type(n, *shape):
    dtype = n.pick(np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_)
    return (n.array(*shape) * 50).astype(np.int8).astype(dtype)


def gather(n):
    """Rows of any length, of a middle dimension, too; indices may be negative, and one alone has no dimension."""
    shape = [n.below(1, 5) for _ in range(n.below(0, 2))] + [n.below(1, 9)] + [n.pick(1, 3, 8, 17, 40) for _ in range(n.below(0, 3))]
    axis = n.below(0, len(shape))
    indices = n.rng.integers(-shape[axis], shape[axis], n.pick((), (1,), (7,), (2, 3)))
    n.add("Gather", [of_any_type(n, *shape), indices.astype(n.pick(np.int32, np.int64))], domain="", constant=n.chance(0.2), axis=axis)


def gather_nd(n):
    batch, shape = n.below(0, 2), [n.below(1, 6) for _ in range(n.below(2, 4))] + [n.pick(1, 5, 16, 33)]
    count = n.below(1, len(shape) - batch + 1)
    limits = np.array(shape[batch:batch + count])
    indices = n.rng.integers(-limits, limits, (*shape[:batch], *n.pick((), (4,), (2, 3)), count))
    n.add("GatherND", [of_any_type(n, *shape), indices], domain="", constant=False, batch_dims=batch)


def modifier(name, op, factor, kind):
    """The graph x -> op(x, factor)."""
    constant = helper.make_node("Constant", [], [f"{name}_factor"], value=helper.make_tensor("factor", kind, [], [factor]))
    node = helper.make_node(op, [f"{name}_x", f"{name}_factor"], [f"{name}_y"])
    declared = [helper.make_tensor_value_info(f"{name}_{end}", kind, ["a", "b", "c", "d"]) for end in "xy"]
    return helper.make_graph([constant, node], name, declared[:1], declared[1:])


def flex_attention(n):
    heads, shared, depth = n.pick((2, 2), (4, 2), (3, 1)), n.below(1, 3), n.below(1, 6)
    dtype = n.pick(np.float32, np.float64)
    queries, keys = n.below(1, 5), n.below(1, 6)
    arrays = [n.array(shared, heads[0], queries, depth), n.array(shared, heads[1], keys, depth), n.array(shared, heads[1], keys, n.below(1, 4))]
    attributes = {"scale": 0.25} if n.chance() else {}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    if n.chance():
        attributes["score_mod"] = modifier("score", n.pick("Mul", "Add"), 1.5, kind)
    if n.chance():
        attributes["prob_mod"] = modifier("prob", "Mul", 0.5, kind)
    add_by_definition(n, "FlexAttention", [x.astype(dtype) for x in arrays], "ai.onnx.preview", **attributes)


class OnnxOperators(RandomNodes):
    def test_deform_conv(self):
        self.compare(deform_conv, count=10, opset=22, rtol=1e-3, atol=1e-4)

    def test_gather(self):
        self.compare(gather, count=40, rtol=0, atol=0)
        self.compare(gather_nd, count=25, rtol=0, atol=0)

    def test_tf_idf(self):
        self.compare(tf_idf, count=25)

    def test_flex_attention(self):
        nodes = Nodes(3, opset=22)
        nodes.opsets.append(helper.make_opsetid("ai.onnx.preview", 1))
        for _ in range(12):
            flex_attention(nodes)
        outputs = self.outputs(self.save(nodes.model()), nodes.feeds)
        for name, expected in nodes.expected.items():
            with self.subTest(name):
                self.assertEqual(outputs[name].dtype, expected.dtype)
                np.testing.assert_allclose(outputs[name], expected, rtol=1e-4, atol=1e-5)

    def test_what_is_wrong_is_refused(self):
        nodes = Nodes(1)
        nodes.add("TfIdfVectorizer", [nodes.rng.integers(0, 3, (1, 2))], domain="", mode="TF", pool_strings=["a", "b"], ngram_counts=[0], ngram_indexes=[0, 1],
                  min_gram_length=1, max_gram_length=1, max_skip_count=0)
        self.refuse("node 'TfIdfVectorizer_0' (TfIdfVectorizer): a pool of texts, expected numbers", "show", self.save(nodes.model()))
        nodes = Nodes(1, opset=22)
        nodes.add("DeformConv", [nodes.array(1, 1, 4, 4), nodes.array(1, 1, 2, 2), nodes.array(1, 8, 4, 4)], domain="")
        self.refuse("offsets of shape [1, 8, 4, 4], expected [1, 8, 3, 3]", "show", self.save(nodes.model()))
        nodes = Nodes(1, opset=22)
        nodes.opsets.append(helper.make_opsetid("ai.onnx.preview", 1))
        wrong = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT32)], "wrong", [helper.make_empty_tensor_value_info("x")],
                                  [helper.make_empty_tensor_value_info("y")])
        nodes.add("FlexAttention", [nodes.array(1, 1, 2, 2)] * 3, domain="ai.onnx.preview", score_mod=wrong)
        self.refuse("score_mod makes i32 [1, 1, 2, 2] of f32 [1, 1, 2, 2], expected the same", "show", self.save(nodes.model()))


class Branches(support.Case):
    """A model for two rates of sampling, one branch for each; data have the length of one of them."""

    def setUp(self):
        super().setUp()
        weights = {"w16": np.arange(4, dtype=np.float32).reshape(4, 1), "w8": np.ones((2, 1), np.float32)}
        constants = [helper.make_tensor("rate", TensorProto.INT64, [], [16000]),
                     *(helper.make_tensor(name, TensorProto.FLOAT, array.shape, array) for name, array in weights.items())]
        branches = {f"{name}_branch": helper.make_graph([helper.make_node("MatMul", ["x", weight], [name], name=f"product_{weight}")], name, [],
                                                        [helper.make_empty_tensor_value_info(name)])
                    for name, weight in (("then", "w16"), ("else", "w8"))}
        nodes = [helper.make_node("Equal", ["sr", "rate"], ["is_16"]), helper.make_node("If", ["is_16"], ["y"], name="choice", **branches)]
        inputs = [support.value("x", (3, 4)), support.value("sr", (), TensorProto.INT64)]
        graph = helper.make_graph(nodes, "rates", inputs, [helper.make_empty_tensor_value_info("y")], constants)
        self.model = self.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
        self.x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def test_a_branch_that_is_never_taken_need_not_fit(self):
        outputs = self.outputs(self.model, {"x": self.x, "sr": np.int64(16000)})
        np.testing.assert_array_equal(outputs["y"], self.x @ np.arange(4, dtype=np.float32).reshape(4, 1))
        outputs = self.outputs(self.model, {"x": self.x}, "--bind", "sr=16000")
        np.testing.assert_array_equal(outputs["y"], self.x @ np.arange(4, dtype=np.float32).reshape(4, 1))
        self.refuse("product_w8", "show", self.model, "--bind", "sr=8000")

    def test_numbers_that_an_input_cannot_have_are_refused(self):
        self.refuse("input 'sr' is bound to a value of f64 [] (1.5), expected i64 []", "show", self.model, "--bind", "sr=1.5")
        self.refuse("input 'x' is bound to a value of f64 [] (2), expected f32 [3, 4]", "show", self.model, "--bind", "x=2")
        self.refuse("--bind: 'sr' is given twice", "show", self.model, "--bind", "sr=1", "--bind", "sr=2")
        self.refuse("sr.npy", "show", self.model, "--bind", "sr=sr.npy")


if __name__ == "__main__":
    support.main()
