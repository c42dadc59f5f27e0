"""Libraries of ranges: at all sizes their results are those of ONNX Runtime."""
import itertools
import shutil

import numpy as np

import support
import varying_models
from support import helper, make_model, value
from varying_library import Library
from varying_models import RangeCase


class VaryingShapes(RangeCase):
    def check(self, path, inputs):
        self.expect_near(self.outputs(self.folder / "model.so", inputs, "--threads", 2), path, inputs)

    def test_encoder(self):
        path = self.compile(varying_models.encoder(), "batch=1..3", "seq=1..17")
        rng = np.random.default_rng(1)
        for batch, seq in itertools.product((1, 2, 3), (1, 2, 8, 16, 17)):
            mask = np.arange(seq)[None, :] < rng.integers(1, seq + 1, (batch, 1))
            self.check(path, {"ids": rng.integers(0, varying_models.WORDS, (batch, seq)), "mask": mask.astype(np.int64)})

    def test_decoder(self):
        path = self.compile(varying_models.decoder(), "batch=1..2", "seq=1..12")
        rng = np.random.default_rng(2)
        for batch, seq in itertools.product((1, 2), range(1, 13)):
            self.check(path, {"ids": rng.integers(0, varying_models.WORDS, (batch, seq))})

    def test_decoder_with_past(self):
        for window in (None, 6):  # with one, the cache keeps the last six tokens only
            path = self.compile(varying_models.decoder_with_past(window), "batch=1..2", "seq=1..6", "past_len=1..9")
            rng = np.random.default_rng(3)
            for batch, seq, past in itertools.product((1, 2), (1, 5, 6), (1, 4, 9)):
                cache = (batch, varying_models.HEADS, past, varying_models.WIDTH // varying_models.HEADS)
                self.check(path, {"ids": rng.integers(0, varying_models.WORDS, (batch, seq)),
                                  "past_k": rng.standard_normal(cache).astype(np.float32), "past_v": rng.standard_normal(cache).astype(np.float32)})

    def test_batch_of_images(self):
        path = self.compile(varying_models.network(), "x=1..4x3x24x24")
        for batch in range(1, 5):
            self.check(path, {"x": np.random.default_rng(batch).standard_normal((batch, 3, 24, 24)).astype(np.float32)})

    def test_sides_of_images(self):
        path = self.compile(varying_models.network(), "x=1..2x3x16..40x17..33")
        for batch, height, width in itertools.product((1, 2), (16, 23, 40), (17, 30, 33)):
            self.check(path, {"x": np.random.default_rng(width).standard_normal((batch, 3, height, width)).astype(np.float32)})

    def test_recurrent(self):
        path = self.compile(varying_models.recurrent(), "batch=1..4")
        for batch in range(1, 5):
            self.check(path, {"x": np.random.default_rng(batch).standard_normal((5, batch, 4)).astype(np.float32)})

    def test_recurrent_sequence(self):
        path = self.compile(varying_models.speech(), "batch=1..3", "seq=1..11")
        for seq, batch in itertools.product((1, 2, 7, 11), (1, 3)):
            self.check(path, {"x": np.random.default_rng(seq).standard_normal((seq, batch, 4)).astype(np.float32)})

    def test_recurrent_rows_of_lengths(self):
        path = self.compile(varying_models.speech_of_lengths(), "batch=1..3", "seq=1..9")
        for seq, batch in itertools.product((1, 2, 6, 9), (1, 3)):
            self.check(path, varying_models.speech_inputs(np.random.default_rng(seq), seq, batch))

    def test_detector(self):
        # Without a step: the model says which sides it takes.
        path = self.compile(varying_models.detector(), "N=1..2", "height=160..256", "width=64..160")
        for batch, height, width in ((1, 160, 64), (2, 256, 160), (2, 192, 96), (1, 224, 160), (1, 256, 64)):
            self.check(path, {"x": np.random.default_rng(height).standard_normal((batch, 3, height, width)).astype(np.float32)})
        np.save(self.folder / "x.npy", np.zeros((1, 3, 170, 64), np.float32))
        self.refuse(f"--input: {self.folder / 'model.so'}: input 'x': dimension 2 (height) is 170, expected a multiple of 32", "run", self.folder / "model.so",
                    "--input", f"x={self.folder / 'x.npy'}")

    def test_multiples_of_other_extents_than_sides(self):
        """Samples in frames, the time of a U-Net and pairs of numbers, with the range of the rule and with one that is given."""
        rng = np.random.default_rng(0)
        weights = lambda *shape: rng.standard_normal(shape).astype(np.float32)
        frames = make_model([helper.make_node("Reshape", ["x", "s"], ["y"]), helper.make_node("MatMul", ["y", "w"], ["z"])],
                            [value("x", ("batch", "samples"))], [value("z", None)], {"s": np.array([0, -1, 16]), "w": weights(16, 3)})
        net = make_model([helper.make_node("Conv", ["x", "w"], ["a"], strides=[2], kernel_shape=[2]), helper.make_node("ConvTranspose", ["a", "v"], ["b"], strides=[2]),
                          helper.make_node("Concat", ["x", "b"], ["y"], axis=1)], [value("x", ("batch", 4, "time"))], [value("y", None)],
                         {"w": weights(6, 4, 2), "v": weights(6, 4, 2)})
        pairs = make_model([helper.make_node("Reshape", ["x", "s"], ["y"])], [value("x", ("n",))], [value("y", None)], {"s": np.array([-1, 2])})
        for model, ranges, said, sizes in (
                (frames, (), "samples is 16..512 in multiples of 16, as the model is not valid at others", ((8, 512), (1, 16), (3, 80))),
                (frames, ("samples=48..480", "batch=1..2"), "samples is 48..480 in multiples of 16", ((2, 480), (1, 48), (2, 96))),
                (frames, ("x=2x32..160",), "samples is 32..160 in multiples of 16", ((2, 160), (2, 32), (2, 64))),
                (net, (), "time is 2..512 in multiples of 2", ((8, 4, 512), (1, 4, 2), (2, 4, 30))),
                (pairs, (), "n is 2..8 in multiples of 2", ((8,), (2,), (6,)))):
            with self.subTest(said):
                path = self.save(model)
                done = support.hone("compile", path, "-o", self.folder / "model.so", "--no-db", "--threads", 2, *(f"--shape={shape}" for shape in ranges))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(said, done.stderr)
                for size in sizes:
                    self.check(path, {"x": np.random.default_rng(size[-1]).standard_normal(size).astype(np.float32)})
        path = self.save(frames)
        self.refuse("give ranges that begin with a multiple, as samples is 16..512 in multiples of 16: --shape samples=16..512", "compile", path, "-o",
                    self.folder / "model.so", "--no-db", "--shape=samples=1..512")

    def test_random_numbers_of_a_run_are_those_of_the_largest(self):
        """Also where an extent varies behind which numbers follow."""
        model = make_model([helper.make_node("RandomNormalLike", ["x"], ["z"], seed=3.0), helper.make_node("Mul", ["z", "f"], ["n"]),
                            helper.make_node("Add", ["x", "n"], ["y"])], [value("x", ("b", "s", 4))], [value("y", None)], {"f": np.float32(0.5)})
        path = self.compile(model, "b=1..3", "s=1..20")
        whole = self.outputs(self.folder / "model.so", {"x": np.zeros((3, 20, 4), np.float32)})["y"]
        alone = self.folder / "one.so"
        self.succeed("compile", path, "-o", alone, "--no-db", "--shape=b=3", "--shape=s=20")
        self.assertTrue(np.array_equal(whole, self.outputs(alone, {"x": np.zeros((3, 20, 4), np.float32)})["y"]))
        self.assertGreater(whole.std(), 0.3)
        for b, s in (1, 1), (2, 7), (3, 19):
            x = np.random.default_rng(s).standard_normal((b, s, 4)).astype(np.float32)
            np.testing.assert_allclose(self.outputs(self.folder / "model.so", {"x": x})["y"], x + whole[:b, :s], rtol=1e-6, atol=1e-6)

    def test_nothing_is_left_of_a_larger_run(self):
        """A run of the largest size with NaN everywhere leaves NaN in whatever a smaller run does not compute anew."""
        for model, ranges, sizes in (
                (varying_models.detector(), ("N=1", "height=160..256", "width=64..160"), ((1, 3, 160, 64), (1, 3, 192, 160), (1, 3, 256, 96))),
                (varying_models.network(), ("x=1..2x3x16..40x17..33",), ((1, 3, 16, 17), (2, 3, 23, 33), (1, 3, 40, 30)))):
            path = self.compile(model, *ranges)
            # A program loads one library of a name.
            library = Library(shutil.copy(self.folder / "model.so", self.folder / f"{ranges[0]}.so"))
            self.addCleanup(library.close)
            largest = library.shape("input_shape", 0)
            outputs = support.reference(path, {"x": np.zeros(largest, np.float32)}).values()
            whole = [np.empty(library.largest(i), output.dtype) for i, output in enumerate(outputs)]
            for size in sizes:
                inputs = {"x": np.random.default_rng(size[2]).standard_normal(size).astype(np.float32)}
                self.assertEqual(library.set(0, largest), 0, library.error())
                expected = support.reference(path, inputs)
                self.assertEqual(library.run([np.full(largest, np.nan, np.float32)], whole), 0, library.error())
                self.assertEqual(library.set(0, size), 0, library.error())
                self.assertEqual(library.run([inputs["x"]], whole), 0, library.error())
                found = {}
                for i, (name, array) in enumerate(zip(expected, whole, strict=True)):
                    shape = library.shape("output_shape", i)
                    found[name] = array.reshape(-1)[:np.prod(shape, dtype=int)].reshape(shape)
                self.expect_near(found, path, inputs)

    def test_boxes_of_maps(self):
        path = self.compile(varying_models.boxes_of_maps(), "N=1..2", "height=17..40", "width=16..33")
        for batch, height, width in ((2, 40, 33), (1, 17, 16), (2, 30, 25), (1, 33, 31)):
            self.check(path, {"x": np.random.default_rng(width).standard_normal((batch, 3, height, width)).astype(np.float32)})

    def test_rows_at_places_of_data(self):
        """Rows of odd lengths and all widths of elements; places may count from the end. Beyond the ends the nearest row is taken."""
        rng, inputs, places = np.random.default_rng(7), ["ids", "pairs", "lengths"], np.int64([-5, 4, 0, -1, 3, 2, -4, 1])
        for columns in (1, 3, 7, 8, 17, 33):
            nodes, constants, kinds = [], {}, (np.float32, np.int8, np.int64, np.float16)
            for kind in kinds:
                name = np.dtype(kind).name
                constants |= {f"{name}.2": (rng.standard_normal((5, columns)) * 50).astype(kind),
                              f"{name}.3": (rng.standard_normal((5, 2, columns)) * 50).astype(kind)}
                nodes += [helper.make_node("Gather", [f"{name}.2", "ids"], [f"{name}.rows"]),
                          helper.make_node("Gather", [f"{name}.3", "ids"], [f"{name}.blocks"]),
                          helper.make_node("GatherND", [f"{name}.3", "pairs"], [f"{name}.pairs"])]
            nodes += [helper.make_node("Unsqueeze", ["float32.rows", "one"], ["steps"]), helper.make_node("Concat", ["steps", "steps", "steps"], ["x"], axis=1),
                      helper.make_node("ReverseSequence", ["x", "lengths"], ["turned"], batch_axis=0, time_axis=1)]
            outputs = [output for node in nodes if node.op_type not in ("Unsqueeze", "Concat") for output in node.output]
            infos = [value("ids", ("n",), support.TensorProto.INT64), value("pairs", ("n", 2), support.TensorProto.INT64),
                     value("lengths", ("n",), support.TensorProto.INT64)]
            model = make_model(nodes, infos, [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(name.split(".")[0]))
                                                                            if "." in name else support.TensorProto.FLOAT, None) for name in outputs],
                               constants | {"one": np.int64([1])})
            path = self.compile(model, "n=1..8")
            for n in (1, 5, 8):
                feeds = dict(zip(inputs, (places[:n], np.stack([places[:n], places[:n] % 2], axis=1), places[:n] % 3 + 1), strict=True))
                found = self.outputs(self.folder / "model.so", feeds, "--threads", 2)
                for name, expected in support.reference(path, feeds).items():
                    np.testing.assert_array_equal(found[name], expected, err_msg=f"{name} {columns} {n}")
            beyond = np.int64([-6, 5, 1 << 40, -(1 << 62)])
            feeds = dict(zip(inputs, (beyond, np.zeros((4, 2), np.int64), np.ones(4, np.int64)), strict=True))
            found = self.outputs(self.folder / "model.so", feeds, "--threads", 2)
            np.testing.assert_array_equal(found["int8.rows"], constants["int8.2"][[0, 4, 4, 0]])

    def test_transforms_of_an_axis_that_varies(self):
        for inverse, onesided, numbers in (0, 0, 1), (0, 0, 2), (0, 1, 1), (1, 0, 2):
            node = helper.make_node("DFT", ["x", "", "axis"], ["y"], inverse=inverse, onesided=onesided)
            path = self.compile(make_model([node], [value("x", ("batch", "n", numbers))], [value("y", None)], {"axis": np.int64(1)}, opset=20),
                                "batch=1..2", "n=1..100")
            for batch, n in ((2, 100), (1, 1), (2, 2), (1, 31), (2, 64), (2, 97)):
                self.check(path, {"x": np.random.default_rng(n).standard_normal((batch, n, numbers)).astype(np.float32)})

    def test_parts_of_which_the_last_is_shorter(self):
        nodes = [helper.make_node("Split", ["x"], ["a", "b", "c"], axis=1, num_outputs=3), helper.make_node("Neg", ["c"], ["d"])]
        path = self.compile(make_model(nodes, [value("x", (2, "n"))], [value(name, None) for name in "abd"], opset=18), "n=5..24")
        for n in (24, 5, 6, 7, 10, 11, 23):
            self.check(path, {"x": np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)})

    def test_extents_that_are_not_equal(self):
        """Symbols of the file that an operator wants to be equal."""
        path = self.save(make_model([helper.make_node("Add", ["x", "y"], ["z"], name="sum")], [value("x", ("a", 4)), value("y", ("b", 4))], [value("z", None)]))
        for shapes, message in ((("a=2..4", "b=5..6"), "operands of shapes [4, 4] and [6, 4]; this is at the largest sizes, a=4, b=6: 'a' and 'b' have to be "
                                 "equal, and their ranges 2..4 and 5..6 have no common size"),
                                (("a=2..4", "b=1..6"), "operands of shapes [4, 4] and [6, 4]; this is at the largest sizes, a=4, b=6: 'a' and 'b' have to be "
                                 "equal: give them one symbol and one range (--shape b=a)"),
                                (("a=1..4", "b=1..4"), "operands of shapes [3, 4] and [4, 4]; this is so at a=3, b=4, but not at the largest sizes: give "
                                 "ranges within which the model is valid, and extents that are always equal one symbol (--shape b=a)")):
            self.refuse(f"node 'sum' (Add): {message}", "compile", path, "-o", self.folder / "out.so", "--no-db", *(f"--shape={shape}" for shape in shapes))
        library = self.folder / "model.so"
        tied = "'b' is equal to 'a', as the model is not valid otherwise"
        for options, said in ((), tied), (("--shape=b=a", "--shape=a=1..8"), ""), (("--shape=a=1..9",), tied):
            done = support.hone("compile", path, "-o", library, "--no-db", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stderr)
            for rows in 1, 3, 8:
                x, y = np.random.default_rng(rows).standard_normal((2, rows, 4)).astype(np.float32)
                self.expect_near(self.outputs(library, {"x": x, "y": y}), path, {"x": x, "y": y})
            np.save(self.folder / "x.npy", np.zeros((3, 4), np.float32))
            np.save(self.folder / "y.npy", np.zeros((1, 4), np.float32))
            self.refuse(f"{library}: input 'y': dimension 0 (a) is 1, expected 3: a is 3 by input 'x'", "run", library, "--input",
                        f"x={self.folder / 'x.npy'}", "--input", f"y={self.folder / 'y.npy'}")

    def test_relations_that_do_not_hold_in_a_run(self):
        nodes = [helper.make_node("Concat", ["x", "p"], ["k"], axis=0), helper.make_node("Add", ["k", "m"], ["z"])]
        self.compile(make_model(nodes, [value("x", ("n", 4)), value("p", ("past", 4)), value("m", ("past + n", 4))], [value("z", None)]),
                     "n=1..4", "past=0..4")
        for extents, message in (((2, 3, 6), "input 'm': dimension 0 (past + n) is 6, expected 5: n is 2 by input 'x': past is 3 by input 'p'"),
                                 ((5, 3, 8), "input 'x': dimension 0 (n) is 5, expected 1 to 4"), ((0, 3, 3), "input 'x': dimension 0 (n) is 0, expected 1 to 4")):
            arguments = []
            for name, extent in zip("xpm", extents, strict=True):
                np.save(self.folder / f"{name}.npy", np.zeros((extent, 4), np.float32))
                arguments += ["--input", f"{name}={self.folder / name}.npy"]
            self.refuse(f"{self.folder / 'model.so'}: {message}", "run", self.folder / "model.so", *arguments)

    def test_bad_ranges(self):
        path = self.save(varying_models.encoder())
        for shapes, message in {
                ("seq=9..1",): "--shape seq: the range 9..1 has no number: its ends are reversed, expected 1..9",
                ("sqe=1..9",): "a shape is given for 'sqe', which is no input: the inputs are 'ids', 'mask', the symbols 'batch', 'seq'; did you mean 'seq'?",
                ("ids=1..2",): "1 extents are given for input 'ids', which has 2 dimensions",
                ("ids=1..2x1..9", "mask=1..2x1..8"): "'seq' is 1..8 in input 'mask' and 1..9 elsewhere",
                ("batch=8", "seq=1..99999999999"): "the shape [8, 99999999999] that is given for input 'ids' is too large, expected 100000000000 elements at most",
                ("seq=1..100",): "this is at the largest sizes, batch=8, seq=100: give smaller ranges if the model is not valid there"}.items():
            self.refuse(message, "compile", path, "-o", self.folder / "out.so", "--no-db", *(f"--shape={shape}" for shape in shapes))


if __name__ == "__main__":
    support.main()
