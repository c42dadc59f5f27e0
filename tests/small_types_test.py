"""Element types of 8 bits and fewer: casts of all their codes and of what lies between them, quantizing, moving, files. Oracle:
ml_dtypes, which ONNX's reference evaluator uses."""
import ml_dtypes
import numpy as np
from onnx import TensorProto, external_data_helper, helper, numpy_helper, save

import support
from support import Case, make_model, value

FLOATS = {"FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "FLOAT8E5M2": ml_dtypes.float8_e5m2,
          "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "FLOAT4E2M1": ml_dtypes.float4_e2m1fn}
INTEGERS = {"UINT4": ml_dtypes.uint4, "INT4": ml_dtypes.int4, "UINT2": ml_dtypes.uint2, "INT2": ml_dtypes.int2}
ALL = FLOATS | INTEGERS | {"FLOAT8E8M0": ml_dtypes.float8_e8m0fnu}
NUMBERS = {"FLOAT": np.float32, "FLOAT16": np.float16, "DOUBLE": np.float64, "INT32": np.int32}


def code(name):
    return getattr(TensorProto, name)


def bits(array):
    """An array as Hone's files have it: bytes, of integers their own bits alone."""
    return array.view(np.uint8)


def every_code(dtype):
    wide = 4 if dtype is ml_dtypes.float4_e2m1fn else 8
    count = 1 << (ml_dtypes.iinfo(dtype).bits if dtype in INTEGERS.values() else wide)
    return np.arange(count, dtype=np.uint8).view(dtype)


def saturated(x, dtype):
    info = ml_dtypes.finfo(dtype)
    return np.clip(x, np.array(info.min, x.dtype), np.array(info.max, x.dtype)).astype(dtype)


def between(dtype):
    """All numbers of a float, the middles between neighbours, and what is near those, far outside, infinite or not a number."""
    numbers = np.unique(every_code(dtype).astype(np.float64))
    numbers = numbers[np.isfinite(numbers)]
    middles = (numbers[1:] + numbers[:-1]) / 2
    beyond = np.float64([numbers[-1] * 1.01, numbers[-1] * 1.07, numbers[-1] * 1.2, numbers[-1] * 9, 1e30])
    near = np.concatenate([middles * (1 - 1e-6), middles * (1 + 1e-6)])
    return np.concatenate([numbers, middles, near, beyond, -beyond, np.float64([-0.0, 1e-30, -1e-30, np.inf, -np.inf, np.nan])])


class SmallTypes(Case):
    def assert_same(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        for name, wanted in expected.items():
            with self.subTest(name):
                self.assertEqual(found[name].shape, wanted.shape)
                if found[name].dtype.kind == "V":
                    found_values = found[name].view(wanted.dtype)
                    np.testing.assert_array_equal(np.isnan(found_values.astype(np.float32)), np.isnan(wanted.astype(np.float32)))
                    number = ~np.isnan(wanted.astype(np.float32))
                    np.testing.assert_array_equal(bits(found_values)[number], bits(wanted)[number])
                else:
                    self.assertEqual(found[name].dtype, wanted.dtype)
                    np.testing.assert_array_equal(found[name], wanted)
                    number = ~np.isnan(wanted)
                    np.testing.assert_array_equal(np.signbit(found[name])[number], np.signbit(wanted)[number])

    def casts(self, feeds, constants, wanted):
        """wanted: by the name of the output, the operand, the type, whether it saturates, and the result."""
        nodes, outputs, expected = [], [], {}
        for name, (operand, to, saturate, result) in wanted.items():
            nodes.append(helper.make_node("Cast", [operand], [name], to=code(to), saturate=saturate))
            outputs.append(value(name, result.shape, code(to)))
            expected[name] = result
        inputs = [value(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in feeds.items()]
        path = self.save(make_model(nodes, inputs, outputs, constants, 25))
        self.assert_same(self.outputs(path, feeds), expected)

    def test_to_small_floats(self):
        feeds, constants, wanted = {}, {}, {}
        with np.errstate(all="ignore"):
            for name, dtype in FLOATS.items():
                x = between(dtype)
                if name == "FLOAT4E2M1":
                    x = x[~np.isnan(x)]  # it has no NaN: some zero
                for source, source_type in {"f": np.float32, "d": np.float64, "h": np.float16}.items():
                    operand = f"{source}_{name}"
                    feeds[operand] = x.astype(source_type)
                    wanted[f"{operand}_0"] = (operand, name, 0, feeds[operand].astype(dtype))
                    wanted[f"{operand}_1"] = (operand, name, 1, saturated(feeds[operand], dtype))
                constants[f"c_{name}"] = feeds[f"f_{name}"]
                wanted[f"folded_{name}"] = (f"c_{name}", name, 1, saturated(feeds[f"f_{name}"], dtype))
        self.casts(feeds, constants, wanted)

    def test_to_small_integers(self):
        x = np.concatenate([np.arange(-9, 17), [-3.9, -0.5, 0.5, 6.7, 100, 300, np.nan]])
        feeds = {"f": x.astype(np.float32), "d": x, "h": x.astype(np.float16), "i": np.arange(-300, 300, dtype=np.int32)}
        wanted = {}
        with np.errstate(all="ignore"):
            for name, dtype in INTEGERS.items():
                for operand, array in feeds.items():
                    wanted[f"{operand}_{name}"] = (operand, name, 1, array.astype(dtype))
                wanted[f"folded_{name}"] = ("c", name, 1, feeds["f"].astype(dtype))
        self.casts(feeds, {"c": feeds["f"]}, wanted)

    def test_from_all_codes(self):
        feeds, constants, wanted = {}, {}, {}
        with np.errstate(all="ignore"):
            for name, dtype in ALL.items():
                codes = every_code(dtype)
                feeds[name] = codes
                constants[f"c_{name}"] = codes
                for to, number in NUMBERS.items():
                    if (to == "INT32" and name not in INTEGERS) or (name == "FLOAT8E8M0" and to == "FLOAT16"):
                        continue
                    result = codes.astype(np.float32).astype(number)
                    wanted[f"{name}_{to}"] = (name, to, 1, result)
                    wanted[f"folded_{name}_{to}"] = (f"c_{name}", to, 1, result)
        self.casts(feeds, constants, wanted)

    def test_powers_of_two(self):
        x = np.float32([0, 0.124, 0.25, 0.3, 0.75, 1, 1.1, 1.5, 3, -2, 1e38, 3.4e38, np.inf, np.nan])
        nodes, outputs, expected = [], [], {}
        for mode in ("up", "down", "nearest"):
            for saturate in (0, 1):
                name = f"{mode}{saturate}"
                nodes.append(helper.make_node("Cast", ["x"], [name], to=TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=mode))
                outputs.append(value(name, x.shape, TensorProto.FLOAT8E8M0))
                expected[name] = numpy_helper.to_float8e8m0(x, bool(saturate), mode)
        path = self.save(make_model(nodes, [value("x", x.shape)], outputs, opset=25))
        self.assert_same(self.outputs(path, {"x": x}), expected)

    def test_quantize(self):
        rng = np.random.default_rng(3)
        x = (rng.standard_normal((6, 8)) * 5).astype(np.float32)
        nodes, constants, outputs, expected = [], {}, [], {}

        def add(operator, inputs, name, result, to, **attributes):
            nodes.append(helper.make_node(operator, inputs, [name], **attributes))
            outputs.append(value(name, result.shape, to))
            expected[name] = result

        scale, blocks = (rng.random(8) + 0.5).astype(np.float32), (rng.random((6, 2)) + 0.5).astype(np.float32)
        constants |= {"scale": scale, "blocks": blocks}
        wide = np.repeat(blocks, 4, axis=1)
        for name, dtype in INTEGERS.items():
            info = ml_dtypes.iinfo(dtype)
            zero = rng.integers(info.min, info.max + 1, 8).astype(dtype)
            zeros = rng.integers(info.min, info.max + 1, (6, 2)).astype(dtype)
            constants |= {f"z_{name}": zero, f"zs_{name}": zeros}
            q = np.clip(np.rint(x / scale) + zero.astype(np.float32), info.min, info.max).astype(dtype)
            add("QuantizeLinear", ["x", "scale", f"z_{name}"], f"q_{name}", q, code(name), axis=1)
            b = np.clip(np.rint(x / wide) + np.repeat(zeros.astype(np.float32), 4, 1), info.min, info.max).astype(dtype)
            add("QuantizeLinear", ["x", "blocks", f"zs_{name}"], f"b_{name}", b, code(name), axis=1, block_size=4)
            d = ((q.astype(np.float32) - zero.astype(np.float32)) * scale).astype(np.float32)
            add("DequantizeLinear", [f"q_{name}", "scale", f"z_{name}"], f"d_{name}", d, TensorProto.FLOAT, axis=1)
            constants[f"k_{name}"] = b
            e = ((b.astype(np.float32) - np.repeat(zeros.astype(np.float32), 4, 1)) * wide).astype(np.float32)
            add("DequantizeLinear", [f"k_{name}", "blocks", f"zs_{name}"], f"e_{name}", e, TensorProto.FLOAT, axis=1, block_size=4)
        for name, dtype in FLOATS.items():
            constants[f"z_{name}"] = np.zeros(8, dtype)
            q = saturated(x / scale, dtype)
            add("QuantizeLinear", ["x", "scale", f"z_{name}"], f"q_{name}", q, code(name), axis=1)
            add("QuantizeLinear", ["x", "scale"], f"o_{name}", q, code(name), axis=1, output_dtype=code(name))
            add("DequantizeLinear", [f"q_{name}", "scale"], f"d_{name}", q.astype(np.float32) * scale, TensorProto.FLOAT, axis=1)
        path = self.save(make_model(nodes, [value("x", x.shape)], outputs, constants, 25))
        self.assert_same(self.outputs(path, {"x": x}), expected)

    def test_what_moves(self):
        rng = np.random.default_rng(5)
        for name in ("INT4", "FLOAT8E4M3FN", "UINT2"):
            x = rng.choice(every_code(ALL[name])[1:4], (3, 4))
            plain = x.view(np.uint8)
            nodes = [
                helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Reshape", ["x", "to"], ["r"]),
                helper.make_node("Concat", ["x", "t2"], ["c"], axis=0), helper.make_node("Reshape", ["t", "as_x"], ["t2"]),
                helper.make_node("Slice", ["x", "one", "three", "one"], ["s"]), helper.make_node("Gather", ["x", "one"], ["g"], axis=1),
                helper.make_node("Pad", ["x", "pads"], ["p"]), helper.make_node("Pad", ["x", "pads"], ["e"], mode="edge"),
                helper.make_node("Expand", ["s", "wide"], ["w"]), helper.make_node("Where", ["flag", "x", "t2"], ["chosen"]),
                helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Split", ["x"], ["h0", "h1"], axis=1, num_outputs=2),
                helper.make_node("Pad", ["x", "pads", "fill"], ["f"]), helper.make_node("Shape", ["x"], ["shape"])]
            fill = np.asarray(every_code(ALL[name])[2])
            constants = {"to": np.int64([2, 6]), "as_x": np.int64([3, 4]), "one": np.int64([1]), "three": np.int64([3]),
                         "pads": np.int64([1, 0, 0, 2]), "wide": np.int64([5, 3, 2]), "fill": fill}
            t2 = plain.T.reshape(3, 4)
            flag = rng.random((3, 4)) < 0.5
            expected = {"t": plain.T, "r": plain.reshape(2, 6), "c": np.concatenate([plain, t2]), "s": plain[:, 1:3], "g": plain[:, 1:2],
                        "p": np.pad(plain, ((1, 0), (0, 2))), "e": np.pad(plain, ((1, 0), (0, 2)), "edge"),
                        "w": np.broadcast_to(plain[:, 1:3], (5, 3, 2)), "chosen": np.where(flag, plain, t2), "same": plain,
                        "h0": plain[:, :2], "h1": plain[:, 2:],
                        "f": np.pad(plain, ((1, 0), (0, 2)), constant_values=fill.view(np.uint8)), "shape": np.int64([3, 4])}
            outputs = [value(key, array.shape, TensorProto.INT64 if key == "shape" else code(name)) for key, array in expected.items()]
            model = make_model(nodes, [value("x", x.shape, code(name)), value("flag", flag.shape, TensorProto.BOOL)], outputs, constants, 25)
            found = self.outputs(self.save(model), {"x": x, "flag": flag})
            for key, wanted in expected.items():
                with self.subTest(type=name, output=key):
                    array = found[key] if key == "shape" else found[key].view(np.uint8)
                    np.testing.assert_array_equal(array, wanted)

    def test_files(self):
        """Packed in external data and in int32_data; an odd number of elements."""
        k = np.array([-8, 7, 3, -1, 0], ml_dtypes.int4)
        node = [helper.make_node("DequantizeLinear", ["k", "s"], ["y"]), helper.make_node("DequantizeLinear", ["l", "s"], ["z"])]
        model = make_model(node, [value("x", (1,))], [value("y", (5,)), value("z", (5,)), value("x2", (1,))], {"k": k, "s": np.float32(0.5)}, 21)
        model.graph.node.append(helper.make_node("Identity", ["x"], ["x2"]))
        model.graph.initializer.append(helper.make_tensor("l", TensorProto.INT4, [5], k.astype(np.int8).tolist()))
        self.assertFalse(model.graph.initializer[-1].HasField("raw_data"))
        external_data_helper.set_external_data(model.graph.initializer[0], "weights.bin")
        path = self.folder / "external.onnx"
        save(model, path)
        self.assertEqual((self.folder / "weights.bin").stat().st_size, 3)
        found = self.outputs(path, {"x": np.float32([1])})
        for name in ("y", "z"):
            np.testing.assert_array_equal(found[name], k.astype(np.float32) * np.float32(0.5))

    def test_bad(self):
        for operator, operands in (("Add", ["x", "x"]), ("Relu", ["x"]), ("MatMul", ["x", "x"]), ("ReduceSum", ["x"]), ("ArgMax", ["x"])):
            with self.subTest(operator):
                node = helper.make_node(operator, operands, ["y"], name="it")
                path = self.save(make_model([node], [value("x", (2, 2), TensorProto.FLOAT8E5M2)], [value("y", (2, 2), TensorProto.FLOAT8E5M2)], opset=21))
                self.refuse(f"node 'it' ({operator}): operand 0 of type f8e5m2", "run", path)
        wrong = make_model([helper.make_node("Cast", ["x"], ["y"], to=8, name="it")], [value("x", (2,))], [value("y", (2,))], opset=21)
        self.refuse("node 'it' (Cast): a cast to element type string (8), expected one of numbers or booleans: leave the node out", "run", self.save(wrong))
        mode = make_model([helper.make_node("Cast", ["x"], ["y"], to=24, round_mode="odd", name="it")], [value("x", (2,))],
                          [value("y", (2,), 24)], opset=25)
        self.refuse("node 'it' (Cast): round_mode 'odd', expected up, down or nearest", "run", self.save(mode))
        string = make_model([helper.make_node("Identity", ["x"], ["y"])], [value("x", (2,), TensorProto.STRING)],
                            [value("y", (2,), TensorProto.STRING)])
        self.refuse("input 'x' has element type string (8), expected numbers or booleans: texts have to become numbers before the model", "run", self.save(string))
        cast = make_model([helper.make_node("Cast", ["x"], ["y"], to=1)], [value("x", (2,), TensorProto.INT4)], [value("y", (2,))], opset=21)
        np.save(self.folder / "x.npy", np.float32([1, 2]))
        self.refuse("input 'x': found f32 [2], expected i4 [2]", "run", self.save(cast), "--input", f"x={self.folder / 'x.npy'}")


if __name__ == "__main__":
    support.main()
