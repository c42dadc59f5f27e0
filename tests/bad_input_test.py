"""Every kind of bad input ends in exit code 2 and one clear line; nothing is written."""
import os
import resource
import sqlite3
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import support
from support import Case, make_model, relu_model, small_network, value


class Models(Case):
    def refuse_model(self, message, model, *options):
        path = model if isinstance(model, (str, os.PathLike)) else self.save(model)
        for command in ("compile", "tune"):
            with self.subTest(command):
                line = self.refuse(message, command, path, "-o", self.folder / "out.so", "--no-db", *options)
        return line

    def test_missing_file(self):
        self.refuse_model("absent.onnx", self.folder / "absent.onnx")

    def test_not_onnx(self):
        path = self.folder / "text.onnx"
        path.write_text("this is no model at all, but a text of some length\n" * 20)
        self.refuse_model("not an ONNX file", path)

    def test_empty_file(self):
        path = self.folder / "empty.onnx"
        path.write_bytes(b"")
        self.refuse_model("empty", path)

    def test_truncated(self):
        whole = small_network().SerializeToString()
        path = self.folder / "cut.onnx"
        for share in (0.25, 0.5, 0.9, 0.999):
            path.write_bytes(whole[:int(share * len(whole))])
            with self.subTest(share):
                self.refuse_model("cut.onnx", path)

    def test_missing_external_data(self):
        path = self.folder / "model.onnx"
        support.onnx.save_model(small_network(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        (self.folder / "weights.bin").unlink()
        self.refuse_model("weights.bin", path)

    def test_truncated_external_data(self):
        path = self.folder / "model.onnx"
        support.onnx.save_model(small_network(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        os.truncate(self.folder / "weights.bin", 100)
        self.refuse_model("weights.bin", path)

    def test_unknown_opset(self):
        for opset in (5, 99):
            model = relu_model()
            model.opset_import[0].version = opset
            with self.subTest(opset):
                self.refuse_model(str(opset), model)

    def test_unknown_operators_are_all_listed(self):
        nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="first"),
                 helper.make_node("Relu", ["a"], ["b"], name="known"),
                 helper.make_node("Wobble", ["b"], ["c"], name="second", domain="com.example"),
                 helper.make_node("Frobnicate", ["c"], ["y"], name="third")]
        line = self.refuse_model("Frobnicate", make_model(nodes, [value("x", (1, 4))], [value("y", (1, 4))]))
        for name in ("Wobble", "first", "second", "third"):
            self.assertIn(name, line)
        self.assertNotIn("known", line.replace("unknown", ""))

    def test_symbolic_shape(self):
        line = self.refuse_model("--shape", relu_model(("batch", 3, "height", "width")))
        self.assertIn("x", line)
        path = self.folder / "model.onnx"
        self.succeed("compile", path, "-o", self.folder / "out.so", "--no-db", "--shape", "x=2x3x4x4")
        done = support.hone("compile", self.save(relu_model(("batch", 4))), "-o", self.folder / "out.so", "--no-db")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("open dimensions are batch 1..8; another range: --shape batch=1..16", done.stderr)

    def test_shape_of_no_input(self):
        self.refuse_model("'z'", relu_model(("batch", 4)), "--shape", "x=2x4", "--shape", "z=2x4")
        # The name is what is wrong, not that the input's shape is missing.
        self.refuse_model("a shape is given for 'X', which is no input: the inputs are 'x', the symbols 'batch'; did you mean 'x'?", relu_model(("batch", 4)), "--shape", "X=2x4")
        self.refuse_model("a shape is given for 'X', which is no input: the inputs are 'x'; did you mean 'x'?", relu_model(), "--shape", "X=1x4")

    def test_shape_of_a_library(self):
        library = self.folder / "out.so"
        self.succeed("compile", self.save(relu_model()), "-o", library, "--no-db")
        self.succeed("run", library, "--shape", "x=1x4")
        for command in ("run", "bench"):
            self.refuse(f"--shape: {library} has no input 'X'; did you mean 'x'?", command, library, "--shape", "X=1x4")
            self.refuse(f"--shape: input 'x' of {library} is [1, 4], found [2, 4]; give shapes when compiling", command, library, "--shape", "x=2x4")

    def test_many_open_inputs_are_named_at_once(self):
        names = [f"x{i}" for i in range(19)]
        model = make_model([helper.make_node("Sum", names, ["y"])], [value(name, ("N", 3, "H", "W")) for name in names], [value("y", None)])
        line = self.refuse_model("19 inputs have open shapes: 'x0' [N, 3, H, W], 'x1' [N, 3, H, W], ", model)
        for name in names:
            self.assertIn(f"--shape {name}=", line)
        line = self.refuse_model("the inputs are 'x0', 'x1', 'x2' and 16 more", model, "--shape", "x=2x4")

    def test_no_example_is_shown_for_an_input_of_any_rank(self):
        model = make_model([helper.make_node("Relu", ["x"], ["y"])], [value("x", None)], [value("y", None)])
        self.refuse_model("input 'x' has the open shape [...]: give its shape (ModelOptions::shapes, --shape)", model)
        inputs = [value("x", None), value("z", (8, 3, "H", "W"))]
        model = make_model([helper.make_node("Add", ["x", "z"], ["y"])], inputs, [value("y", None)])
        self.refuse_model("give their shapes (ModelOptions::shapes, such as --shape z=8x3x224x224)", model)

    def test_an_extent_of_minus_one_is_open(self):
        model = relu_model((-1, 3, -1, -1))
        self.refuse_model("input 'x' has the open shape [?, 3, ?, ?]", model)
        path = self.save(model)
        self.succeed("compile", path, "-o", self.folder / "out.so", "--no-db", "--shape", "x=2x3x4x4")
        self.refuse_model("input 'x' has an extent of -2", relu_model((-2, 4)))

    def test_of_many_nodes_three_are_named(self):
        nodes = [helper.make_node("Frobnicate", ["x"], [f"y{i}"], name=f"n{i}") for i in range(300)]
        line = self.refuse_model("Frobnicate (300 nodes, such as 'n0', 'n1', 'n2')", make_model(nodes, [value("x", (1, 4))], [value("y0", None)]))
        self.assertLess(len(line), 300)
        nodes = [helper.make_node("Pad", ["x"], [f"y{i}"], name=f"n{i}", mode="odd", pads=[1, 1]) for i in range(300)]
        model = make_model(nodes, [value("x", (4,))], [value(f"y{i}", None) for i in range(300)], opset=10)
        self.refuse_model("300 nodes, such as 'n0', 'n1', 'n2' (Pad): mode 'odd'", model)

    def test_cycle(self):
        nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="one"), helper.make_node("Relu", ["a"], ["b"], name="two")]
        self.refuse_model("cycle", make_model(nodes, [value("x", (1, 4))], [value("b", (1, 4))]))

    def test_disconnected(self):
        undefined = make_model([helper.make_node("Relu", ["nowhere"], ["y"], name="relu")], [value("x", (1, 4))], [value("y", (1, 4))])
        self.refuse_model("nowhere", undefined)
        no_output = make_model([helper.make_node("Relu", ["x"], ["y"], name="relu")], [value("x", (1, 4))], [value("z", (1, 4))])
        self.refuse_model("'z'", no_output)

    def test_wrong_ranks(self):
        node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv")
        model = make_model([node], [value("x", (1, 4, 8))], [value("y", None)], {"w": np.zeros((4, 3, 3, 3), np.float32)})
        self.refuse_model("conv", model)

    def refuse_node(self, message, node, shapes=((2, 3),), dtype=TensorProto.FLOAT, **constants):
        """A model of one node on inputs a, b, ... of these shapes, and constants."""
        inputs = [value("abcd"[i], shape, dtype) for i, shape in enumerate(shapes)]
        line = self.refuse_model(message, make_model([node], inputs, [value("y", None)], constants))
        self.assertIn("'bad'", line)

    def test_all_unsupported_is_listed(self):
        nodes = [helper.make_node("Reshape", ["x", "s"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"], name="after"),
                 helper.make_node("Expand", ["x", "s"], ["c"], name="second"), helper.make_node("Neg", ["x"], ["d"], name="fine")]
        model = make_model(nodes, [value("x", (2, 3)), value("s", (2,), TensorProto.INT64)], [value(name, None) for name in "bcd"])
        line = self.refuse_model("--bind s=", model)
        for name in ("'first' (Reshape)", "'second' (Expand)"):
            self.assertIn(name, line)
        for name in ("'after'", "'fine'"):
            self.assertNotIn(name, line)
        strings = [value("x", (2,), TensorProto.STRING), value("z", (2,), TensorProto.COMPLEX64)]
        nodes = [helper.make_node("Frobnicate", ["x"], ["y"], name="odd"), helper.make_node("Identity", ["z"], ["w"], name="fine")]
        line = self.refuse_model("'x'", make_model(nodes, strings, [value("y", None), value("w", None)]))
        for name in ("'z'", "'odd'"):
            self.assertIn(name, line)

    def test_inconsistent_shapes(self):
        two = ["a", "b"]
        self.refuse_node("[2, 3]", helper.make_node("Add", two, ["y"], name="bad"), [(2, 3), (4, 3)])
        self.refuse_node("[2, 3]", helper.make_node("MatMul", two, ["y"], name="bad"), [(2, 3), (2, 3)])
        self.refuse_node("[2, 3]", helper.make_node("Concat", two, ["y"], name="bad", axis=0), [(2, 3), (2, 4)])
        self.refuse_node("[4, 2]", helper.make_node("Reshape", ["a", "s"], ["y"], name="bad"), s=np.array([4, 2]))
        self.refuse_node("i64", helper.make_node("Add", ["a", "s"], ["y"], name="bad"), s=np.array([4, 2, 1]))

    def test_wrong_attributes(self):
        for message, op, attributes in (("axis 7", "Softmax", {"axis": 7}), ("perm", "Transpose", {"perm": [0, 0]}),
                                        ("unknown attribute 'colour'", "Relu", {"colour": 1}), ("'axis' has type", "Softmax", {"axis": "last"}),
                                        ("99", "Cast", {"to": 99}), ("mode", "DepthToSpace", {"mode": "best", "blocksize": 1})):
            shape = (1, 4, 2, 2) if op == "DepthToSpace" else (2, 3)
            with self.subTest(op):
                self.refuse_node(message, helper.make_node(op, ["a"], ["y"], name="bad", **attributes), [shape])
        node = helper.make_node("Conv", ["a", "w"], ["y"], name="bad", group=3)
        self.refuse_node("3 groups", node, [(1, 4, 8, 8)], w=np.zeros((4, 2, 3, 3), np.float32))
        twice = helper.make_node("Softmax", ["a"], ["y"], name="bad", axis=1)
        twice.attribute.append(twice.attribute[0])
        self.refuse_node("twice", twice)

    def test_missing_and_surplus_operands(self):
        self.refuse_node("1 operands", helper.make_node("Conv", ["a"], ["y"], name="bad"), [(1, 3, 8, 8)])
        self.refuse_node("operand 0 is missing", helper.make_node("Add", ["", "a"], ["y"], name="bad"))
        self.refuse_node("2 operands", helper.make_node("Relu", ["a", "a"], ["y"], name="bad"))
        self.refuse_node("no result", helper.make_node("Relu", ["a"], [""], name="bad"))

    def test_duplicate_names(self):
        relu = [helper.make_node("Relu", ["x"], ["y"], name="one"), helper.make_node("Relu", ["x"], ["y"], name="two")]
        self.refuse_model("'y'", make_model(relu, [value("x", (2,))], [value("y", (2,))]))
        self.refuse_model("'x'", make_model(relu[:1], [value("x", (2,)), value("x", (2,))], [value("y", (2,))]))
        self.refuse_model("twice", make_model(relu[:1], [value("x", (2,))], [value("y", (2,)), value("y", (2,))]))
        model = make_model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", (2,))], [value("y", None)], {"w": np.zeros(2, np.float32)})
        model.graph.initializer.append(model.graph.initializer[0])
        self.refuse_model("'w'", model)

    def weighted(self, dims, raw):
        model = make_model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", (2,))], [value("y", None)])
        model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=raw)
        return model

    def test_initializers_of_the_wrong_size(self):
        self.refuse_model("expected 8", self.weighted([2], b"1234"))
        self.refuse_model("expected 8", self.weighted([2], b"123456789"))
        model = self.weighted([3], b"")
        model.graph.initializer[0].ClearField("raw_data")
        model.graph.initializer[0].float_data.extend([1, 2])
        self.refuse_model("2 elements, expected 3", model)

    def test_negative_and_absurd_extents(self):
        if support.SANITIZED:
            self.skipTest("a sanitizer's allocator ends the program where there is no memory")
        limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))}
        relu = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
        grow = [helper.make_node("Expand", ["x", "s"], ["y"], name="grow")]
        fill = [helper.make_node("ConstantOfShape", ["s"], ["f"], name="fill"), helper.make_node("Add", ["f", "x"], ["y"])]
        huge = 1 << 62
        models = [("-3", make_model(relu, [value("x", (2, -3))], [value("y", None)])), ("-2", self.weighted([-2], b"")),
                  (str(huge), self.weighted([huge, huge], b"")), (str(huge), self.weighted([huge, huge, 0], b"")),
                  (str(huge), make_model(relu, [value("x", (huge, 4))], [value("y", None)])),
                  ("too large", make_model(grow, [value("x", (1,))], [value("y", None)], {"s": np.array([1 << 40, 3])})),
                  ("fill", make_model(fill, [value("x", (1,))], [value("y", None)], {"s": np.array([1 << 36])}))]
        for message, model in models:
            with self.subTest(message):
                self.refuse(message, "compile", self.save(model), "-o", self.folder / "out.so", "--no-db", **limited)

    def test_nested_deep(self):
        def field(number, content):
            length, size = b"", len(content)
            while size >= 128:
                length, size = length + bytes([size & 127 | 128]), size >> 7
            return bytes([number << 3 | 2]) + length + bytes([size]) + content

        graph = b""
        for _ in range(10_000):  # a graph with a node with an attribute with a graph
            graph = field(1, field(2, b"y") + field(4, b"If") + field(5, field(1, b"then_branch") + field(6, graph)))
        path = self.folder / "nested.onnx"
        path.write_bytes(b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11"))
        self.refuse_model("nested deeper than", path)


class Options(Case):
    def setUp(self):
        super().setUp()
        self.model = self.save(relu_model())
        self.output = self.folder / "out.so"

    def test_budget(self):
        for budget in ("0", "0s", "-5s", "soon", "10", "", "1e3s", "nan"):
            with self.subTest(budget):
                self.refuse("budget", "tune", self.model, "-o", self.output, f"--budget={budget}", "--no-db")

    def test_unknown_names(self):
        for option in ("--device", "--cost", "--search", "--overlap"):
            with self.subTest(option):
                self.refuse("nonesuch", "tune", self.model, "-o", self.output, "--no-db", option, "nonesuch")

    def test_gpus(self):
        """What is not here is not measured, and a cost model knows one kind of devices."""
        other = "opencl-generic"  # no device has this name
        self.refuse(f"device {other} cannot be measured here", "tune", self.model, "-o", self.output, "--device", other)
        make = ("dataset", "make", self.model, "--db", self.folder / "new.db", "--device")
        self.refuse(f"device {other} cannot be measured here", *make, other)
        self.refuse("expected a GPU alone", *make, "host,opencl-pocl")
        for device in (other, "opencl-pocl"):
            for command in (("eval", "--db", self.folder / "new.db"), ("train", "--db", self.folder / "new.db", "-o", self.folder / "new.model")):
                with self.subTest(device, command=command[:1]):
                    self.refuse("new.db", *command, "--device", device)
        for cost, device, message in (("combined", other, "cost model 'combined' knows CPUs only, expected gpu or analytic for device"),
                                      ("gpu", "host", "cost model 'gpu' knows GPUs only, expected one of CPUs for device host")):
            with self.subTest(cost, device=device):
                self.refuse(message, "compile", self.model, "-o", self.output, "--no-db", "--cost", cost, "--device", device)

    def test_compilers_of_gpus(self):
        none = str(self.folder / "none.so")
        self.refuse(f"HONE_NVRTC names no library that can be loaded: {none}", "compile", self.model, "-o", self.output, "--no-db", "--device",
                    "cuda-sm_80", env=os.environ | {"HONE_NVRTC": none})

    def test_adaptation(self):
        for adapt, cost, message in (("nonesuch", "analytic", "expected one of none, head, full, momentum"),
                                     ("head", "analytic", "--adapt head: the cost model 'analytic' is no net, expected a FILE.onnx"),
                                     ("head", self.model, "not a cost model"), ("head", "absent.onnx", "absent.onnx")):
            with self.subTest(adapt, cost=cost):
                self.refuse(message, "tune", self.model, "-o", self.output, "--no-db", "--cost", cost, "--adapt", adapt)

    def test_cost_model_files(self):
        header = "hone cost model 2\nkind gbdt\n"
        for name, text, message in (("absent", None, "absent.model"), ("empty", "", "no cost model"), ("other", "trees\n" * 9, "no cost model"),
                                    ("before", "hone cost model\nkind gbdt\n", "expected 'hone cost model 2': train it anew"),
                                    ("old", header + "features 12 of version 0\ntrees 0\n", "of version 0"), ("cut", header, "cut.model")):
            path = self.folder / f"{name}.model"
            if text is not None:
                path.write_text(text)
            for command in ("compile", "tune"):
                with self.subTest(name, command=command):
                    self.refuse(message, command, self.model, "-o", self.folder / "out.so", "--no-db", "--cost", path)

    def test_numbers(self):
        self.refuse("--threads", "compile", self.model, "-o", self.output, "--no-db", "--threads", "many")
        self.refuse("--seed", "compile", self.model, "-o", self.output, "--no-db", "--seed=-1")
        self.refuse("--shape", "compile", self.model, "-o", self.output, "--no-db", "--shape", "x")
        self.refuse("--repeat", "run", self.model, "--repeat", "0")

    def test_command_line(self):
        self.refuse("nonesuch", "nonesuch")
        self.refuse("--nonesuch", "compile", self.model, "-o", self.output, "--nonesuch")
        self.refuse("output", "compile", self.model)
        self.refuse("nonesuch", "db", "nonesuch")
        self.refuse("command")
        self.refuse("command", "db")

    def test_prefix(self):
        self.refuse("9lives", "compile", self.model, "-o", self.output, "--no-db", "--prefix", "9lives")

    def test_unwritable_output(self):
        for path in (self.folder / "absent" / "out.so", self.folder, "/proc/out.so"):
            for command in ("compile", "tune"):
                with self.subTest(f"{command} {path}"):
                    self.refuse(str(path), command, self.model, "-o", path, "--no-db")


class Run(Case):
    def setUp(self):
        super().setUp()
        self.model = self.save(relu_model())
        self.library = self.folder / "out.so"
        self.succeed("compile", self.model, "-o", self.library, "--no-db")

    def refuse_input(self, message, array, name="x"):
        path = self.folder / "x.npy"
        np.save(path, array)
        for model in (self.library, self.model):
            with self.subTest(str(model)):
                self.refuse(message, "run", model, "--input", f"{name}={path}", "--output-dir", self.folder / "outputs")

    def test_wrong_shape(self):
        self.refuse_input("[1, 4]", np.zeros((2, 4, 1), np.float32))

    def test_wrong_dtype(self):
        self.refuse_input("f32", np.zeros((1, 4), np.float64))

    def test_unknown_input(self):
        self.refuse_input("'z'", np.zeros((1, 4), np.float32), "z")

    def test_bad_input_file(self):
        path = self.folder / "bad.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00")
        self.refuse("bad.npy", "run", self.library, "--input", f"x={path}")
        self.refuse("absent.npy", "run", self.library, "--input", f"x={self.folder / 'absent.npy'}")

    def test_unwritable_output(self):
        self.refuse("/proc/nowhere", "run", self.library, "--output-dir", "/proc/nowhere")

    def test_foreign_library(self):
        path = self.folder / "foreign.so"
        path.write_bytes(Path(os.path.realpath(sys.executable)).read_bytes()[:4096])
        self.refuse("foreign.so", "run", path)
        self.refuse("foreign.so", "bench", path)

    def test_truncated_library(self):
        path = self.folder / "cut.so"
        path.write_bytes(self.library.read_bytes()[:self.library.stat().st_size // 2])
        self.refuse("cut.so", "run", path)


class Database(Case):
    def setUp(self):
        super().setUp()
        self.model = self.save(relu_model())
        self.db = self.folder / "trials.db"

    def make_db(self):
        self.succeed("tune", self.model, "-o", self.folder / "first.so", "--db", self.db, "--budget", "2s")

    def refuse_db(self, message, commands=("tune", "compile", "show")):
        for command in commands:
            arguments = ["db", "show"] if command == "show" else [command, self.model, "-o", self.folder / "out.so"]
            with self.subTest(command):
                self.refuse(message, *arguments, "--db", self.db)

    def test_corrupt(self):
        self.make_db()
        with open(self.db, "r+b") as file:
            file.seek(20)
            file.write(os.urandom(2000))
        self.refuse_db("trials.db")

    def test_foreign_file(self):
        self.db.write_text("no database, but someone's notes\n" * 100)
        self.refuse_db("trials.db")
        self.assertTrue(self.db.read_text().startswith("no database"))

    def test_newer_version(self):
        self.make_db()
        connection = sqlite3.connect(self.db)
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
        connection.close()
        self.refuse_db("99")

    def test_locked(self):
        self.make_db()
        connection = sqlite3.connect(self.db, isolation_level=None)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        self.refuse_db("locked")
        connection.close()

    def test_absent_folder_and_show_of_nothing(self):
        self.db = self.folder / "absent" / "trials.db"
        self.refuse_db("absent")

    def test_database_server_that_does_not_answer(self):
        self.refuse("cannot connect to database", "tune", self.model, "-o", self.folder / "out.so", "--db", "postgres://127.0.0.1:1/db")

    def test_bad_task_key(self):
        self.refuse("--task", "db", "best", "--task", "xyz")


class FilesOfTheWrongKind(Case):
    """Each command that reads a model, a library or a report's source gets every other kind of file."""

    def setUp(self):
        super().setUp()
        self.model, self.library = self.save(relu_model()), self.folder / "model.so"
        self.succeed("compile", self.model, "-o", self.library, "--no-db")
        self.whole = self.library.read_bytes()

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def test_commands_that_take_a_library_or_a_model(self):
        cases = [(self.folder / "absent.so", "no such file or directory"), (self.folder, "it is a directory, expected a file"),
                 (self.write("empty.so", b""), "it is empty; expected a library that Hone compiled, or a model"),
                 (self.write("text.txt", b"a text of some length\n" * 20), "not an ONNX file; expected a library that Hone compiled, or a model"),
                 (self.write("cut.onnx", self.model.read_bytes()[:60]), "; expected a library that Hone compiled, or a model"),
                 (self.write("cut.so", self.whole[:3000]), "is a damaged shared library: it is cut off"),
                 (Path("/bin/true"), "not a model that Hone compiled"),
                 (self.write("static.a", b"!<arch>\n"), "is a static library, expected a shared one or an ONNX model")]
        for path, message in cases:
            for command in ("run", "bench"):
                with self.subTest(f"{command} {path.name}"):
                    self.assertIn(str(path), self.refuse(message, command, path))

    def test_commands_that_take_a_model(self):
        cases = [(self.folder / "absent.onnx", "no such file or directory"), (self.folder, "it is a directory, expected a file"),
                 (self.write("empty.onnx", b""), "it is empty"), (self.write("text.txt", b"a text of some length\n" * 20), "not an ONNX file"),
                 (self.write("cut.onnx", self.model.read_bytes()[:60]), "truncated, or not an ONNX file"),
                 (self.library, "not an ONNX file but a library or a program, expected the model that it was compiled from")]
        for path, message in cases:
            for command in (["show"], ["explain", "--task", "1"], ["verify"], ["compile", "-o", self.folder / "out.so"]):
                with self.subTest(f"{command[0]} {path.name}"):
                    self.assertIn(str(path), self.refuse(message, command[0], path, *command[1:], "--no-db"))

    def test_what_a_report_is_made_of(self):
        expected = ", expected a database or a file that 'hone tune --report' wrote"
        cases = [(self.folder / "absent.json", "no such file or directory"), (self.folder, "it is a directory, expected a file"),
                 (self.write("empty.db", b""), f"is empty{expected}"), (self.model, expected), (self.library, expected),
                 (self.write("other.json", b'{"format": "other"}'), "expected one that 'hone tune --report' wrote"),
                 (self.write("cut.json", b'{"format": "hone run", "ver'), "the file was cut off or changed")]
        for path, message in cases:
            with self.subTest(path.name):
                self.assertIn(str(path), self.refuse(message, "report", path, "-o", self.folder / "report.html"))
        self.refuse("is empty, expected one in which something was stored", "db", "show", "--db", self.folder / "empty.db")


if __name__ == "__main__":
    support.main()
