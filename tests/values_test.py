"""Values of models of a few nodes, many at a time: padding that repeats the data, NaN among what is ordered, signs of zeros, loops
without turns, dropout that drops nothing. Oracles: NumPy, and ONNX Runtime without optimisation."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import support
from support import Case, make_model, value

NAN = np.float32(np.nan)


def unoptimised(path, inputs):
    """ONNX Runtime's outputs by name, without its graph optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs), strict=True))


class Values(Case):
    def assert_values(self, found, expected, tolerance=0.0):
        self.assertEqual(found.keys(), expected.keys())
        for name, wanted in expected.items():
            with self.subTest(name):
                self.assertEqual((found[name].dtype, found[name].shape), (wanted.dtype, wanted.shape))
                if wanted.dtype.kind != "f" or tolerance == 0:
                    np.testing.assert_array_equal(found[name], wanted)
                else:
                    np.testing.assert_allclose(found[name], wanted, rtol=tolerance, atol=tolerance * np.nanmax(np.abs(wanted)))


class Pads(Values):
    def padded(self, rank, mode, opset):
        """A pad of each spatial dimension before everything that has padding of its own."""
        rng = np.random.default_rng(rank)
        shape = (1, 3, 6, 5, 7)[:rank + 2]
        low, high = [1, 2, 1][:rank], [2, 1, 3][:rank]
        pads = [0, 0, *low, 0, 0, *high]
        constants = {name: rng.standard_normal(3).astype(np.float32) for name in ("scale", "shift", "mean")}
        constants |= {"var": np.float32([0.5, 1, 2]), "w": rng.standard_normal((4, 3, *[3, 2, 3][:rank])).astype(np.float32)}
        if opset < 11:
            nodes = [helper.make_node("Pad", ["x"], ["p"], mode=mode, pads=pads)]
        elif opset < 18:
            constants["pads"] = np.int64(pads)
            nodes = [helper.make_node("Pad", ["x", "pads"], ["p"], mode=mode)]
        else:
            constants |= {"pads": np.int64(low + high), "axes": np.int64(np.arange(rank) - rank)}
            nodes = [helper.make_node("Pad", ["x", "pads", "", "axes"], ["p"], mode=mode)]
        own = [1] * rank + [0] * rank
        window = {"kernel_shape": [3, 2, 2][:rank], "pads": own}
        nodes += [
            helper.make_node("Conv", ["p", "w"], ["conv"]), helper.make_node("Conv", ["p", "w"], ["padded_conv"], pads=own),
            helper.make_node("MaxPool", ["p"], ["most"], **window),
            helper.make_node("AveragePool", ["p"], ["mean_of_data"], **window),
            helper.make_node("AveragePool", ["p"], ["mean_of_all"], count_include_pad=1, **window),
            helper.make_node("BatchNormalization", ["p", "scale", "shift", "mean", "var"], ["normal"]),
            helper.make_node("Conv", ["normal", "w"], ["conv_of_normal"], pads=own)]
        names = ["p", "conv", "padded_conv", "most", "mean_of_data", "mean_of_all", "conv_of_normal"]
        # Read by one node alone, as merging asks for.
        for name in ("Conv", "AveragePool"):
            nodes += [helper.make_node("Relu", ["x"], [f"r_{name}"]), onnx.NodeProto()]
            nodes[-1].CopyFrom(nodes[0])
            nodes[-1].input[0], nodes[-1].output[0] = f"r_{name}", f"p_{name}"
            attributes = {} if name == "Conv" else {"kernel_shape": window["kernel_shape"]}
            nodes.append(helper.make_node(name, [f"p_{name}", "w"][:2 if name == "Conv" else 1], [f"alone_{name}"], **attributes))
            names.append(f"alone_{name}")
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
        return make_model(nodes, [value("x", shape)], outputs, constants, opset), rng.standard_normal(shape).astype(np.float32)

    def test_modes(self):
        for rank, mode, opset in ((1, "reflect", 10), (2, "reflect", 18), (3, "reflect", 11), (1, "edge", 23), (2, "edge", 13), (3, "edge", 7),
                                  (1, "wrap", 21), (2, "wrap", 19), (2, "constant", 18)):
            with self.subTest(rank=rank, mode=mode, opset=opset):
                model, x = self.padded(rank, mode, opset)
                path = self.save(model)
                self.assert_values(self.outputs(path, {"x": x}), unoptimised(path, {"x": x}), 1e-5)

    def test_longer_than_the_data(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
        nodes, constants, expected = [], {}, {}
        for mode in ("reflect", "edge", "wrap"):
            for i, (low, high) in enumerate(((2, 2), (5, 7), (0, 9))):
                name = f"{mode}{i}"
                constants[f"pads_{name}"] = np.int64([0, low, 1, high])
                nodes.append(helper.make_node("Pad", ["x", f"pads_{name}"], [name], mode=mode))
                expected[name] = np.pad(x, ((0, 1), (low, high)), mode)
        outputs = [value(name, array.shape) for name, array in expected.items()]
        path = self.save(make_model(nodes, [value("x", x.shape)], outputs, constants, 19))
        self.assert_values(self.outputs(path, {"x": x}), expected)


def top(row, k, largest):
    """The places of the first k elements; what is not a number is greater than all numbers."""
    def key(place):
        none = bool(np.isnan(row[place])) if row.dtype.kind == "f" else False
        number = 0 if none else row[place].item()
        return (not none, -number, place) if largest else (none, number, place)

    return sorted(range(len(row)), key=key)[:k]


class Nan(Values):
    TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "i64": np.int64}

    def test_top_k(self):
        rng = np.random.default_rng(21)
        nodes, inputs, constants, feeds, outputs, expected = [], [], {}, {}, [], {}
        for name, dtype in self.TYPES.items():
            x = (rng.standard_normal((2, 300)) * 40).astype(dtype) if np.dtype(dtype).kind != "u" else rng.integers(0, 90, (2, 300)).astype(dtype)
            if x.dtype.kind == "f":
                x[0, rng.integers(0, 300, 9)], x[1, rng.integers(0, 300, 200)] = np.nan, np.nan
                x[:, 5], x[:, 6] = np.inf, -np.inf
            code = helper.np_dtype_to_tensor_dtype(x.dtype)
            feeds[name] = x
            inputs.append(value(name, x.shape, code))
            for k, largest in ((1, 1), (7, 1), (7, 0), (90, 1), (90, 0), (300, 1)):
                both = f"{name}_{k}_{largest}"
                constants[f"k_{k}"] = np.int64([k])
                nodes.append(helper.make_node("TopK", [name, f"k_{k}"], [f"v_{both}", f"i_{both}"], largest=largest))
                places = np.array([top(row, k, largest) for row in x])
                outputs += [value(f"v_{both}", places.shape, code), value(f"i_{both}", places.shape, TensorProto.INT64)]
                expected |= {f"v_{both}": np.take_along_axis(x, places, 1), f"i_{both}": places}
        path = self.save(make_model(nodes, inputs, outputs, constants))
        self.assert_values(self.outputs(path, feeds), expected)

    def test_top_k_of_long_rows_and_along_the_first_axis(self):
        rng = np.random.default_rng(22)
        x = rng.standard_normal((1, 1 << 16)).astype(np.float32)
        x[0, rng.integers(0, x.size, 30)] = np.nan
        z = rng.standard_normal((50, 3)).astype(np.float32)
        z[rng.integers(0, 50, 9), rng.integers(0, 3, 9)] = np.nan
        nodes = [helper.make_node("TopK", ["x", "k"], ["v", "i"]), helper.make_node("TopK", ["z", "n"], ["w", "j"], axis=0)]
        places, columns = np.array([top(x[0], 40, True)]), np.array([top(z[:, c], 12, True) for c in range(3)]).T
        expected = {"v": np.take_along_axis(x, places, 1), "i": places, "w": np.take_along_axis(z, columns, 0), "j": columns}
        outputs = [value(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in expected.items()]
        path = self.save(make_model(nodes, [value("x", x.shape), value("z", z.shape)], outputs, {"k": np.int64([40]), "n": np.int64([12])}))
        self.assert_values(self.outputs(path, {"x": x, "z": z}), expected)

    def test_what_chooses(self):
        x = np.float32([[1, NAN, 3, NAN], [-2, 5, 5, 0], [NAN, -1, -3, 2]])
        nodes = [
            helper.make_node("ArgMax", ["x"], ["arg_max"], axis=1, keepdims=0),
            helper.make_node("ArgMin", ["x"], ["arg_min_last"], axis=1, keepdims=0, select_last_index=1),
            helper.make_node("ArgMax", ["x"], ["arg_max_down"], axis=0, keepdims=0),
            helper.make_node("Max", ["x", "two"], ["max"]), helper.make_node("Min", ["none", "x"], ["min"]),
            helper.make_node("Max", ["x", "bound"], ["max_run"]), helper.make_node("Clip", ["x", "bound", "two"], ["clip_run"]),
            helper.make_node("Clip", ["x", "", "none"], ["clip"]), helper.make_node("Hardmax", ["x"], ["hardmax"], axis=1),
            helper.make_node("Unique", ["x"], ["unique", "first"])]
        with np.errstate(invalid="ignore"):
            expected = {
                "arg_max": np.argmax(x, 1), "arg_min_last": np.int64([3, 0, 0]), "arg_max_down": np.argmax(x, 0),
                "max": np.maximum(x, 2), "min": np.full_like(x, NAN), "max_run": np.full_like(x, NAN),
                "clip_run": np.full_like(x, NAN), "clip": np.full_like(x, NAN), "hardmax": np.eye(4, dtype=np.float32)[np.argmax(x, 1)],
                "unique": np.unique(x), "first": np.unique(x, return_index=True)[1]}
        outputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None) for name, array in expected.items()]
        path = self.save(make_model(nodes, [value("x", x.shape), value("bound", ())], outputs, {"two": np.float32(2), "none": NAN}))
        self.assert_values(self.outputs(path, {"x": x, "bound": NAN}), expected)


    def test_types_and_lengths(self):
        """In vectors and what is left of them, as data and as constants, of each float."""
        rng = np.random.default_rng(23)
        for dtype in (np.float32, np.float64, np.float16):
            nodes, feeds, constants, outputs, expected = [], {}, {"low": dtype(-0.5), "high": dtype(0.5)}, [], {}
            for length in (1, 3, 17, 70):
                for kind, folded in (("run", False), ("folded", True)):
                    x, y = rng.standard_normal((2, 5, length)).astype(dtype)
                    for array in (x, y):
                        array[rng.random(x.shape) < 0.3], array[rng.random(x.shape) < 0.1] = np.nan, np.inf
                    x[0], x[1] = np.nan, -1
                    end = f"{kind}{length}"
                    (constants if folded else feeds).update({f"x_{end}": x, f"y_{end}": y})
                    with np.errstate(invalid="ignore"):
                        cases = {
                            "Max": (("x", "y"), {}, np.maximum(x, y)), "Min": (("x", "y"), {}, np.minimum(x, y)),
                            "ArgMax": (("x",), {"axis": 1}, x.argmax(1)[:, None]), "ArgMin": (("x",), {"axis": 0}, x.argmin(0)[None]),
                            "Greater": (("x", "y"), {}, x > y), "LessOrEqual": (("x", "y"), {}, x <= y), "Equal": (("x", "y"), {}, x == y),
                            "Sign": (("x",), {}, np.sign(x)), "IsNaN": (("x",), {}, np.isnan(x)),
                            "Cast": (("x",), {"to": TensorProto.BOOL}, x.astype(bool)),
                            "Hardmax": (("x",), {"axis": 1}, np.eye(length, dtype=dtype)[x.argmax(1)]),
                            "ReduceMax": (("x",), {"axes": [1]}, x.max(1, keepdims=True)),
                            "ReduceMin": (("x",), {"axes": [0]}, x.min(0, keepdims=True))}
                    nodes.append(helper.make_node("Clip", [f"x_{end}", "low", "high"], [f"Clip_{end}"]))
                    expected[f"Clip_{end}"] = np.clip(x, dtype(-0.5), dtype(0.5))
                    for operator, (operands, attributes, wanted) in cases.items():
                        nodes.append(helper.make_node(operator, [f"{operand}_{end}" for operand in operands], [f"{operator}_{end}"], **attributes))
                        expected[f"{operator}_{end}"] = wanted
            inputs = [value(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in feeds.items()]
            outputs = [value(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in expected.items()]
            self.assert_values(self.outputs(self.save(make_model(nodes, inputs, outputs, constants)), feeds), expected)


    def test_pooling_passes_over_it(self):
        """As ONNX Runtime does: in vectors and what is left of them, beside padding, of each float."""
        rng = np.random.default_rng(24)
        for dtype in (np.float32, np.float64, np.float16):
            nodes, feeds, outputs, expected = [], {}, [], {}
            for i, shape in enumerate(((1, 1, 3), (1, 5, 17), (2, 3, 9, 11), (1, 16, 8, 8))):
                x = rng.standard_normal(shape).astype(dtype)
                x[rng.random(shape) < 0.4] = np.nan
                x.flat[:2] = 1.5, np.nan
                feeds[f"x{i}"] = x
                spatial = len(shape) - 2
                around = [(0, 0), (0, 0)] + [(1, 1)] * spatial
                lowest = np.pad(np.where(np.isnan(x), -np.inf, x), around, constant_values=-np.inf)
                windows = np.lib.stride_tricks.sliding_window_view(lowest, (3,) * spatial, axis=tuple(range(2, 2 + spatial)))
                window = {"kernel_shape": [3] * spatial, "pads": [1] * 2 * spatial}
                nodes.append(helper.make_node("MaxPool", [f"x{i}"], [f"pool{i}"], **window))
                nodes.append(helper.make_node("GlobalMaxPool", [f"x{i}"], [f"all{i}"]))
                expected[f"pool{i}"] = windows.max(tuple(range(-spatial, 0)))
                expected[f"all{i}"] = np.fmax.reduce(x, tuple(range(2, 2 + spatial)), keepdims=True)
            inputs = [value(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in feeds.items()]
            outputs = [value(name, array.shape, helper.np_dtype_to_tensor_dtype(np.dtype(dtype))) for name, array in expected.items()]
            self.assert_values(self.outputs(self.save(make_model(nodes, inputs, outputs)), feeds), expected)


class Zeros(Values):
    def test_functions(self):
        """What is odd, or begins with its argument, keeps a zero's sign: in vectors and alone, folded too, of each float."""
        functions = ("Sin", "Tan", "Asin", "Atan", "Sinh", "Asinh", "Tanh", "Atanh", "Erf", "Sqrt", "Round", "Floor", "Ceil", "Elu", "Selu",
                     "Celu", "Gelu", "Softsign", "Mish", "HardSwish", "Swish", "LeakyRelu")
        for dtype in (np.float32, np.float64, np.float16):
            code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            for length in (1, 9, 40):
                x = np.zeros(length, dtype)
                x[::2] = -0.0
                nodes = [helper.make_node(name, [given], [f"{name}_{given}"]) for name in functions for given in ("x", "c")]
                nodes += [helper.make_node("Gelu", [given], [f"gelu_{given}"], approximate="tanh") for given in ("x", "c")]
                outputs = [value(node.output[0], x.shape, code) for node in nodes]
                found = self.outputs(self.save(make_model(nodes, [value("x", x.shape, code)], outputs, {"c": x}, 24)), {"x": x})
                for name, array in found.items():
                    with self.subTest(name, dtype=dtype.__name__, length=length):
                        np.testing.assert_array_equal(array, x)
                        np.testing.assert_array_equal(np.signbit(array), np.signbit(x))

    def test_signs(self):
        """The sign of a zero decides that of its reciprocal."""
        x, y = np.float32([-0.0, 0.0, 1.5, -1.5]), np.float32([0.0, -0.0, 1.5, -1.5])
        plus, minus = np.float32(0.0), np.float32(-0.0)
        cases = {}
        for name, zero in (("plus", plus), ("minus", minus)):
            many = np.full(4, zero)
            cases |= {
                f"x_add_{name}": (("Add", "x", zero), x + zero), f"{name}_add_x": (("Add", zero, "x"), zero + x),
                f"x_sub_{name}": (("Sub", "x", zero), x - zero), f"{name}_sub_x": (("Sub", zero, "x"), zero - x),
                f"x_add_{name}s": (("Add", "x", many), x + many), f"sum_{name}": (("Sum", "x", zero), x + zero),
                f"mean_{name}": (("Mean", "x", zero), (x + zero) / 2), f"x_mul_{name}": (("Mul", "x", zero), x * zero)}
        one, negative = np.float32(1), np.float32(-1)
        cases |= {
            "mul_1": (("Mul", "x", one), x), "div_1": (("Div", "x", one), x), "pow_1": (("Pow", "x", one), x),
            "mul_-1": (("Mul", "x", negative), -x), "div_-1": (("Div", "x", negative), -x), "neg": (("Neg", "x"), -x),
            "sum_1": (("Sum", "x"), x), "mean_1": (("Mean", "x"), x), "abs": (("Abs", "x"), abs(x)),
            "x_sub_x": (("Sub", "x", "x"), x - x), "x_add_y": (("Add", "x", "y"), x + y), "x_sub_y": (("Sub", "x", "y"), x - y)}
        nodes, constants, expected = [], {"one": one}, {}

        def constant(array):
            constants[f"c{len(constants)}"] = array
            return f"c{len(constants) - 1}"

        def finish(name, made, wanted):
            nodes.append(helper.make_node("Div", ["one", made], [f"1/{name}"]))
            with np.errstate(divide="ignore", invalid="ignore"):
                expected[f"1/{name}"] = 1 / wanted

        for name, ((operator, *operands), wanted) in cases.items():
            inputs = [operand if isinstance(operand, str) else constant(operand) for operand in operands]
            nodes.append(helper.make_node(operator, inputs, [name]))
            finish(name, name, wanted)
        # Chains of which each part alone would be neutral, and what negates a difference.
        plus_name, minus_name = constant(plus), constant(minus)
        nodes += [
            helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Neg", ["n"], ["nn"]),
            helper.make_node("Add", ["x", plus_name], ["a"]), helper.make_node("Add", ["a", minus_name], ["b"]),
            helper.make_node("Sub", ["x", "y"], ["d"]), helper.make_node("Neg", ["d"], ["nd"]),
            helper.make_node("Mul", ["d", constant(negative)], ["md"]),
            helper.make_node("Equal", ["x", plus_name], ["is_zero"]), helper.make_node("Where", ["is_zero", plus_name, "x"], ["clean"])]
        finish("nn", "nn", x)
        finish("b", "b", x + plus + minus)
        finish("nd", "nd", -(x - y))
        finish("md", "md", -(x - y))
        finish("clean", "clean", np.where(x == 0, plus, x))
        outputs = [value(name, (4,)) for name in expected]
        path = self.save(make_model(nodes, [value("x", (4,)), value("y", (4,))], outputs, constants))
        found = self.outputs(path, {"x": x, "y": y})
        self.assertEqual(found.keys(), expected.keys())
        for name, wanted in expected.items():
            with self.subTest(name):
                np.testing.assert_array_equal(found[name], wanted)

    def test_of_constants(self):
        zero = np.float32([-0.0, 0.0])
        nodes = [helper.make_node("Add", ["z", "p"], ["a"]), helper.make_node("Sub", ["p", "z"], ["b"]), helper.make_node("Neg", ["z"], ["n"])]
        nodes += [helper.make_node("Add", ["x", made], [f"x_{made}"]) for made in ("a", "b", "n")]
        nodes += [helper.make_node("Div", ["x", made], [f"q_{made}"]) for made in ("a", "b", "n")]
        x = np.float32([1, 1])
        with np.errstate(divide="ignore"):
            expected = {"q_a": x / (zero + np.float32(0)), "q_b": x / (np.float32(0) - zero), "q_n": x / -zero}
        outputs = [value(name, (2,)) for name in expected]
        path = self.save(make_model(nodes, [value("x", (2,))], outputs, {"z": zero, "p": np.float32(0)}))
        self.assert_values(self.outputs(path, {"x": x}), expected)

    def test_constants_that_round_do_not_meet(self):
        """Adding 1.5 * 2^23 and taking it away rounds to whole numbers; a product may leave the range and not come back."""
        x = np.float32([0.4, 1.6, -2.7, 0])
        magic = np.float32(1.5 * 2**23)
        nodes = [helper.make_node("Add", ["x", "m"], ["a"]), helper.make_node("Add", ["a", "n"], ["rounded"]),
                 helper.make_node("Mul", ["x", "h"], ["b"]), helper.make_node("Mul", ["b", "h"], ["large"])]
        path = self.save(make_model(nodes, [value("x", (4,))], [value("rounded", (4,)), value("large", (4,))],
                                    {"m": magic, "n": -magic, "h": np.float32(1e30)}))
        expected = {"rounded": np.rint(x), "large": np.float32([np.inf, np.inf, -np.inf, 0])}
        found = self.outputs(path, {"x": x})
        for name, wanted in expected.items():
            np.testing.assert_array_equal(found[name], wanted)


def body(inputs, outputs, nodes, constants=()):
    initializers = [numpy_helper.from_array(array, name) for name, array in dict(constants).items()]
    return helper.make_graph(nodes, "body", inputs, outputs, initializers)


class Loops(Values):
    def loop(self, turns, condition):
        """Carries s, stacks 3 s and whether s is positive; `turns` and `condition`: constants, or None for an input."""
        inner = body(
            [value("i", (), TensorProto.INT64), value("go", (), TensorProto.BOOL), value("s", None)],
            [value("on", (), TensorProto.BOOL), value("next", None), value("row", None), value("sign", None, TensorProto.BOOL)],
            [helper.make_node("Cast", ["i"], ["f"], to=1), helper.make_node("Add", ["s", "f"], ["next"]),
             helper.make_node("Mul", ["next", "three"], ["row"]), helper.make_node("Greater", ["next", "zero"], ["sign"]),
             helper.make_node("Identity", ["go"], ["on"])], {"three": np.float32(3), "zero": np.float32(0)})
        constants = {"turns": np.int64(turns)}
        inputs = [value("x", (2, 3))]
        if condition is None:
            inputs.append(value("condition", (), TensorProto.BOOL))
        else:
            constants["condition"] = np.bool_(condition)
        nodes = [helper.make_node("Loop", ["turns", "condition", "x"], ["last", "rows", "signs"], body=inner),
                 helper.make_node("Add", ["last", "last"], ["twice"])]
        outputs = [value("twice", (2, 3)), value("rows", (None, 2, 3)), value("signs", (None, 2, 3), TensorProto.BOOL)]
        return make_model(nodes, inputs, outputs, constants)

    def test_without_turns(self):
        x = np.float32([[1, -1, 2], [0, 3, -4]])
        expected = {"twice": 2 * x, "rows": np.zeros((0, 2, 3), np.float32), "signs": np.zeros((0, 2, 3), np.bool_)}
        for turns, condition, given in ((0, True, {}), (5, False, {}), (0, False, {}), (-2, True, {}), (3, None, {"condition": np.bool_(False)}),
                                        (0, None, {"condition": np.bool_(True)})):
            with self.subTest(turns=turns, condition=condition):
                path = self.save(self.loop(turns, condition))
                self.assert_values(self.outputs(path, {"x": x, **given}), expected)
        path = self.save(self.loop(2, None))
        found = self.outputs(path, {"x": x, "condition": np.bool_(True)})
        np.testing.assert_array_equal(found["rows"], np.stack([3 * x, 3 * (x + 1)]))

    def test_over_rows(self):
        """The body reads the data around it, and neither a condition nor a state is given."""
        inner = body([value("i", (), TensorProto.INT64), value("go", (), TensorProto.BOOL)],
                     [value("on", (), TensorProto.BOOL), value("square", (4,))],
                     [helper.make_node("Gather", ["x", "i"], ["row"]), helper.make_node("Mul", ["row", "row"], ["square"]),
                      helper.make_node("Identity", ["go"], ["on"])])
        for inputs, turns in ((["turns"], 2), (["turns", ""], 2), (["turns", ""], 0)):
            with self.subTest(inputs=inputs, turns=turns):
                nodes = [helper.make_node("Loop", inputs, ["rows"], body=inner)]
                path = self.save(make_model(nodes, [value("x", (2, 4))], [value("rows", (turns, 4))], {"turns": np.int64(turns)}))
                x = np.arange(8, dtype=np.float32).reshape(2, 4)
                self.assert_values(self.outputs(path, {"x": x}), {"rows": (x * x)[:turns]})

    def test_scan_of_nothing(self):
        inner = body([value("s", (3,)), value("row", (3,))], [value("next", (3,)), value("twice", (3,)), value("whole", (3,), TensorProto.INT64)],
                     [helper.make_node("Add", ["s", "row"], ["next"]), helper.make_node("Add", ["row", "row"], ["twice"]),
                      helper.make_node("Cast", ["row"], ["whole"], to=7)])
        nodes = [helper.make_node("Scan", ["s0", "none"], ["last", "rows", "columns"], body=inner, num_scan_inputs=1, scan_output_axes=[0, 1])]
        outputs = [value("last", (3,)), value("rows", (0, 3)), value("columns", (3, 0), TensorProto.INT64)]
        x = np.float32([1, 2, 3])
        path = self.save(make_model(nodes, [value("s0", (3,))], outputs, {"none": np.zeros((0, 3), np.float32)}))
        self.assert_values(self.outputs(path, {"s0": x}),
                           {"last": x, "rows": np.zeros((0, 3), np.float32), "columns": np.zeros((3, 0), np.int64)})

    def test_loop_in_a_loop(self):
        inner = body([value("j", (), TensorProto.INT64), value("g", (), TensorProto.BOOL), value("t", (2,))],
                     [value("h", (), TensorProto.BOOL), value("u", (2,)), value("piece", (2,))],
                     [helper.make_node("Identity", ["g"], ["h"]), helper.make_node("Add", ["t", "one"], ["u"]),
                      helper.make_node("Mul", ["u", "one"], ["piece"])], {"one": np.float32(1)})
        outer = body([value("i", (), TensorProto.INT64), value("go", (), TensorProto.BOOL), value("s", (2,))],
                     [value("on", (), TensorProto.BOOL), value("after", (2,)), value("stack", (None, 2))],
                     [helper.make_node("Identity", ["go"], ["on"]),
                      helper.make_node("Loop", ["no_turns", "go", "s"], ["same", "stack"], body=inner),
                      helper.make_node("Mul", ["same", "two"], ["after"])], {"two": np.float32(2), "no_turns": np.int64(0)})
        nodes = [helper.make_node("Loop", ["turns", "", "x"], ["last", "stacks"], body=outer)]
        path = self.save(make_model(nodes, [value("x", (2,))], [value("last", (2,)), value("stacks", (3, 0, 2))], {"turns": np.int64(3)}))
        x = np.float32([1, -1])
        self.assert_values(self.outputs(path, {"x": x}), {"last": 8 * x, "stacks": np.zeros((3, 0, 2), np.float32)})

    def test_branches_of_nothing(self):
        for shape in ((0, 3), (0, 0), (4, 3)):
            branches = {}
            for name, extent in (("then_branch", (0, 3)), ("else_branch", shape)):
                constants = {f"{name}_value": np.ones(extent, np.float32)}
                branches[name] = body([], [value(f"{name}_out", extent)],
                                      [helper.make_node("Identity", [f"{name}_value"], [f"{name}_out"])], constants)
            nodes = [helper.make_node("If", ["c"], ["y"], **branches), helper.make_node("ReduceSum", ["y"], ["sum"], keepdims=0)]
            path = self.save(make_model(nodes, [value("c", (), TensorProto.BOOL)], [value("sum", ())]))
            for condition in (True, False):
                with self.subTest(shape=shape, condition=condition):
                    expected = np.float32(0 if condition else np.prod(shape))
                    self.assert_values(self.outputs(path, {"c": np.bool_(condition)}), {"sum": expected})


class Dropout(Values):
    def model(self, opset=17, ratio=0.0, training=True, dtype=np.float32, as_nodes=False):
        constants = {} if as_nodes else {"ratio": dtype(ratio), "training": np.bool_(training)}
        nodes = []
        if as_nodes:
            for name, array in (("ratio", dtype(ratio)), ("training", np.bool_(training))):
                nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(array))))
        code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        nodes.append(helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"], seed=3))
        return make_model(nodes, [value("x", (2, 3), code)], [value("y", (2, 3), code), value("mask", (2, 3), TensorProto.BOOL)], constants, opset)

    def test_that_drops_nothing(self):
        for options in ({}, {"opset": 12}, {"opset": 22}, {"opset": 13, "dtype": np.float16}, {"dtype": np.float64}, {"as_nodes": True},
                        {"ratio": 0.5, "training": False}):
            with self.subTest(**options):
                x = np.arange(6).reshape(2, 3).astype(options.get("dtype", np.float32))
                path = self.save(self.model(**options))
                self.assert_values(self.outputs(path, {"x": x}), {"y": x, "mask": np.ones((2, 3), np.bool_)})

    def test_ratio_that_is_an_input(self):
        model = self.model()
        del model.graph.initializer[0]
        model.graph.input.append(value("ratio", ()))
        path, ratio = self.save(model), self.folder / "ratio.npy"
        np.save(ratio, np.float32(0))
        self.refuse("the ratio is computed at run time ('ratio'), expected a constant; it comes from the input 'ratio': bind it", "run", path)
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.assert_values(self.outputs(path, {"x": x}, "--bind", f"ratio={ratio}"), {"y": x, "mask": np.ones((2, 3), np.bool_)})
        np.save(ratio, np.float32(0.5))
        self.refuse("training mode, which drops elements at random", "run", path, "--bind", f"ratio={ratio}")

    def test_before_training_was_an_operand(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for opset, mask in ((7, np.float32), (10, np.bool_)):
            code = helper.np_dtype_to_tensor_dtype(np.dtype(mask))
            nodes = [helper.make_node("Dropout", ["x"], ["y", "mask"], ratio=0.7)]
            path = self.save(make_model(nodes, [value("x", (2, 3))], [value("y", (2, 3)), value("mask", (2, 3), code)], opset=opset))
            self.assert_values(self.outputs(path, {"x": x}), {"y": x, "mask": np.ones((2, 3), mask)})

    def test_that_drops_is_refused(self):
        path = self.save(self.model(ratio=0.25))
        self.refuse("(Dropout): training mode, which drops elements at random", "run", path)
        nodes = [helper.make_node("Dropout", ["x", "", "training"], ["y"])]
        path = self.save(make_model(nodes, [value("x", (2, 3))], [value("y", (2, 3))], {"training": np.bool_(True)}))
        self.refuse("(Dropout): training mode, which drops elements at random", "run", path)


class Names(Values):
    def test_outputs_that_would_share_a_file(self):
        names = ["p/q", "p_q", "p\\q", "p//q", "..", "/abs", "a/../b", "y.npy", "y", "Y", "n" * 300, "n" * 300 + "m", "é" * 140]
        nodes = [helper.make_node("Mul", ["x", f"c{i}"], [name]) for i, name in enumerate(names)]
        constants = {f"c{i}": np.float32(i) for i in range(len(names))}
        path = self.save(make_model(nodes, [value("x", (2,))], [value(name, (2,)) for name in names], constants))
        x = np.float32([1, 2])
        found = self.outputs(path, {"x": x})
        self.assertEqual({name: array.tolist() for name, array in found.items()}, {name: [i, 2 * i] for i, name in enumerate(names)})
        written = {file.relative_to(self.folder / "out").as_posix() for file in (self.folder / "out").rglob("*.npy")}
        self.assertEqual(len(written), len(names))
        self.assertLessEqual({"p/q.npy", "p_q.npy", "p\\q.npy", "p__q.npy", "...npy", "_abs.npy", "a_.._b.npy", "y.npy.npy", "y.npy", "Y.npy"}, written)
        self.assertIn("output p/q is in p/q.npy", self.succeed("run", path, "--output-dir", self.folder / "again"))

    def test_of_inputs_with_an_equals_sign(self):
        path = self.save(make_model([helper.make_node("Neg", ["a=b"], ["y"])], [value("a=b", (2,))], [value("y", (2,))]))
        np.testing.assert_array_equal(self.outputs(path, {"a=b": np.float32([1, 2])})["y"], np.float32([-1, -2]))

    def test_in_a_header(self):
        names = ["*/ int broken;", "/* open", "tail\\", "what??/", "é*/é"]
        nodes = [helper.make_node("Neg", ["in */ /*"], [name]) for name in names]
        model = make_model(nodes, [value("in */ /*", (2,))], [value(name, (2,)) for name in names])
        model.graph.name = "a model */ of /* names \\"
        path = self.save(model, "evil.onnx")
        self.succeed("compile", path, "-o", self.folder / "evil.so", "--header")
        import subprocess

        for compiler in (("cc", "-std=c99"), ("cc", "-std=c99", "-trigraphs"), ("c++", "-x", "c++")):
            done = subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", self.folder / "evil.h"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    support.main()
