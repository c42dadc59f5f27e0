"""The execution provider for ONNX Runtime (plugins/onnxruntime), as a user registers it and selects it, against ONNX Runtime's CPU provider."""
import ctypes
import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper


from support import Case, make_model, small_network, value

LIBRARY = str(Path(os.environ["HONE_ONNXRUNTIME_EP"]).resolve())
NAME = "HoneExecutionProvider"


def random(shape, dtype=np.float32, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), output.split(), name=f"{op.lower()}_{output.split()[0]}", **attributes)


def layers(count=3, size=32, dtype=np.float32, refused=None):
    """A batch that is open, through matrices; behind layer `refused` stands an operator that Hone has not."""
    kind = TensorProto.FLOAT if dtype == np.float32 else TensorProto.FLOAT16
    nodes, constants, name = [], {}, "x"
    for i in range(count):
        constants[f"w{i}"] = random((size, size), dtype, seed=i) / np.asarray(size ** 0.5, dtype)
        nodes += [node("MatMul", f"{name} w{i}", f"m{i}"), node("Relu", f"m{i}", f"r{i}")]
        name = f"r{i}"
        if i == refused:
            nodes.append(helper.make_node("Trilu", [name], [f"lower{i}"], name="refused", domain="com.microsoft", upper=0))
            name = f"lower{i}"
    nodes.append(node("Neg", name, "y"))
    model = make_model(nodes, [value("x", ("batch", size), kind)], [value("y", ("batch", size), kind)], constants)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


class Provider(Case):
    @classmethod
    def setUpClass(cls):
        onnxruntime.register_execution_provider_library("hone", LIBRARY)
        cls.devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]

    @classmethod
    def tearDownClass(cls):
        onnxruntime.unregister_execution_provider_library("hone")

    def options(self, entries=(), **provider):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        for key, text in dict(entries).items():
            options.add_session_config_entry(key, text)
        options.add_provider_for_devices(self.devices, {"db": "none", "threads": "1", **provider})
        return options

    def session(self, model, entries=(), **provider):
        return onnxruntime.InferenceSession(model if isinstance(model, bytes) else str(model), self.options(entries, **provider))

    def parts(self, session):
        """The types of the operators of each part that Hone runs."""
        return [sorted(each.op_type for each in part.get_nodes()) for part in session.get_provider_graph_assignment_info() if part.ep_name == NAME]

    def compare(self, session, path, inputs, tolerance=1e-4):
        outputs = session.run(None, inputs)
        expected = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, inputs)
        for found, wanted in zip(outputs, expected, strict=True):
            self.assertEqual((found.shape, found.dtype), (wanted.shape, wanted.dtype))
            np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance)
        return outputs

    def refused(self, message, model, entries=(), **provider):
        with self.assertRaises(Exception) as caught:
            self.session(model, entries, **provider)
        self.assertIn(message, str(caught.exception))


class Sessions(Provider):
    def test_a_whole_model_is_one_part(self):
        self.assertEqual([(device.ep_name, device.ep_vendor) for device in self.devices], [(NAME, "Hone")])
        path = self.save(small_network())
        session = self.session(path)
        self.assertEqual(len(self.parts(session)), 1)
        # Nothing is left to others.
        self.session(path, {"session.disable_cpu_ep_fallback": "1"})
        for seed in range(2):
            self.compare(session, path, {"x": random((1, 3, 24, 24), seed=seed)})
        # A model that is no file.
        self.compare(self.session(path.read_bytes()), path, {"x": random((1, 3, 24, 24))})

    def test_an_operator_in_the_middle_divides_a_model(self):
        path = self.save(layers(refused=1))
        session = self.session(path)
        self.assertEqual(self.parts(session), [["MatMul", "MatMul", "Relu", "Relu"], ["MatMul", "Neg", "Relu"]])
        for batch in (2, 5):
            self.compare(session, path, {"x": random((batch, 32))})
        # What is said of an input holds for what follows from it.
        for shape in ("x=16x32", "x=10..20x32", "x=b,32 b=1..16"):
            self.compare(self.session(path, shape=shape), path, {"x": random((16, 32))})

    def test_sizes_of_a_batch(self):
        path = self.save(layers())
        session = self.session(path, shape="batch=1..6")
        for batch in (1, 6, 3, 3, 2):
            self.compare(session, path, {"x": random((batch, 32), seed=batch)})
        with self.assertRaisesRegex(Exception, "batch.*1 to 6.*option shape|batch.*1\\.\\.6.*option shape"):
            session.run(None, {"x": random((7, 32))})
        self.compare(session, path, {"x": random((4, 32))})
        self.compare(self.session(path, shape="batch=4"), path, {"x": random((4, 32))})
        self.refused("option shape: the model has no input 'bathc', and no dimension of that name; did you mean 'batch'?", path, shape="bathc=1..4")
        self.refused("batch", path, shape="x=batchx32 batch=batch", on_failure="error")

    def test_sizes_between_parts(self):
        # How many rows are left, the data decide: what reads them behind another provider's node may get any number.
        nodes = [node("MatMul", "x w", "m"), helper.make_node("Compress", ["m", "chosen"], ["rows"], axis=0),
                 helper.make_node("Trilu", ["rows"], ["lower"], domain="com.microsoft", upper=0), node("MatMul", "lower w", "p"), node("Relu", "p", "y")]
        model = make_model(nodes, [value("x", (40, 16)), value("chosen", (40,), TensorProto.BOOL)], [value("y", (None, 16))], {"w": random((16, 16))})
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        path = self.save(model)
        session = self.session(path)
        self.assertEqual(self.parts(session), [["Compress", "MatMul"]])
        for count in (30, 3):
            self.compare(session, path, {"x": random((40, 16)), "chosen": np.arange(40) < count})

        # A length stands in front between the parts; it has the range of lengths there, too.
        nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), node("MatMul", "t w", "m"),
                 helper.make_node("Trilu", ["m"], ["lower"], domain="com.microsoft", upper=0), node("MatMul", "lower w", "p"), node("Relu", "p", "y")]
        model = make_model(nodes, [value("x", (16, "length"))], [value("y", ("length", 16))], {"w": random((16, 16))})
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        path = self.save(model, "length.onnx")
        session = self.session(path)
        self.assertEqual(len(self.parts(session)), 2)
        for length in (100, 2):
            self.compare(session, path, {"x": random((16, length))})

    def test_subgraphs_and_shapes_that_the_data_decide(self):
        branches = {name: helper.make_graph([node(op, "m", f"{name}_out")], name, [], [value(f"{name}_out", (4, 8))])
                    for name, op in (("then", "Exp"), ("else", "Neg"))}
        body = helper.make_graph(
            [node("Identity", "go", "go_on"), node("Add", "sum m", "next")], "body",
            [value("i", (), TensorProto.INT64), value("go", (), TensorProto.BOOL), value("sum", (4, 8))],
            [value("go_on", (), TensorProto.BOOL), value("next", (4, 8))])
        model = make_model(
            [node("MatMul", "x w", "m"), helper.make_node("If", ["c"], ["b"], then_branch=branches["then"], else_branch=branches["else"]),
             helper.make_node("Loop", ["n", "", "m"], ["l"], body=body), node("Add", "b m", "a"), node("Softmax", "a", "y"), node("NonZero", "m", "places")],
            [value("x", (4, 8)), value("c", (), TensorProto.BOOL), value("n", (), TensorProto.INT64)],
            [value("y", (4, 8)), value("l", (4, 8)), value("places", (2, None), TensorProto.INT64)], {"w": random((8, 8))})
        path = self.save(model)
        session = self.session(path)
        self.assertEqual(sorted(self.parts(session)), [["Add", "Softmax"], ["MatMul", "NonZero"]])
        x = random((4, 8))
        x[1] = 0
        for go in (True, False):
            _, _, places = self.compare(session, path, {"x": x, "c": np.array(go), "n": np.array(3)})
            self.assertEqual(places.shape, (2, 24))

    def test_float16_and_integers(self):
        path = self.save(layers(dtype=np.float16))
        session = self.session(path, {"session.disable_cpu_ep_fallback": "1"})
        self.compare(session, path, {"x": random((3, 32), np.float16)}, 2e-2)
        numbers = make_model([node("Gather", "table ids", "g"), node("ReduceSum", "g axes", "y", keepdims=0)],
                             [value("ids", (1, 5), TensorProto.INT64)], [value("y", (1, 8), TensorProto.INT32)],
                             {"table": np.arange(160, dtype=np.int32).reshape(20, 8), "axes": np.array([1])})
        path = self.save(numbers, "numbers.onnx")
        self.compare(self.session(path), path, {"ids": np.array([[3, 1, 4, 1, 19]])})

    def test_sessions_and_threads_at_once(self):
        path = self.save(layers())
        sessions = [self.session(path), self.session(path)]
        inputs = [random((1 + i % 4, 32), seed=i) for i in range(8)]
        expected = [sessions[0].run(None, {"x": x})[0] for x in inputs]
        wrong = []

        def work(i):
            for _ in range(50):
                found = sessions[i % 2].run(None, {"x": inputs[i]})[0]
                if not np.array_equal(found, expected[i]):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_tuning_within_a_budget(self):
        path = self.save(layers(count=1))
        session = self.session(path, shape="batch=4", budget="2s", db=str(self.folder / "tuned.db"))
        self.compare(session, path, {"x": random((4, 32))})
        self.assertGreater((self.folder / "tuned.db").stat().st_size, 0)


class Contexts(Provider):
    """Models that keep what was compiled."""

    def written(self, path, name="compiled.onnx", entries=(), **provider):
        made = self.folder / name
        self.session(path, {"ep.context_enable": "1", "ep.context_file_path": str(made), **dict(entries)}, **provider)
        return made

    def test_a_library_beside_the_model(self):
        path = self.save(layers(refused=1))
        made = self.written(path, shape="batch=1..4")
        self.assertEqual([each.op_type for each in onnx.load(made).graph.node], ["EPContext", "Trilu", "EPContext"])
        path.unlink()
        loaded = self.session(made)
        path = self.save(layers(refused=1), "again.onnx")
        for batch in (4, 1):
            self.compare(loaded, path, {"x": random((batch, 32))})

        # They move together, and a file that is not there is one message.
        (self.folder / "elsewhere").mkdir()
        files = sorted(each for each in self.folder.iterdir() if each.name.startswith("compiled"))
        self.assertEqual([each.name for each in files], ["compiled.onnx", "compiled_hone_0.so", "compiled_hone_1.so"])
        for each in files:
            each.rename(self.folder / "elsewhere" / each.name)
        self.compare(self.session(self.folder / "elsewhere" / "compiled.onnx"), path, {"x": random((2, 32))})
        (self.folder / "elsewhere" / "compiled_hone_1.so").unlink()
        self.refused("compiled_hone_1.so", self.folder / "elsewhere" / "compiled.onnx")

    def test_a_library_inside_the_model(self):
        path = self.save(small_network())
        made = self.written(path, entries={"ep.context_embed_mode": "1"})
        image = {"x": random((1, 3, 24, 24))}
        self.compare(self.session(made), path, image)
        self.compare(self.session(made.read_bytes()), path, image)

    def test_names_of_files_outside_of_the_folder(self):
        made = onnx.load(self.written(self.save(small_network())))
        for attribute in made.graph.node[0].attribute:
            if attribute.name == "ep_cache_context":
                attribute.s = b"../compiled_hone_0.so"
        self.refused("expected one in the model's folder", self.save(made, "leaving.onnx"))
        for attribute in made.graph.node[0].attribute:
            if attribute.name == "ep_cache_context":
                attribute.s = b"model.onnx"
        self.refused("model.onnx", self.save(made, "no_library.onnx"))
        self.refused("ep.context_embed_mode of 1", made.SerializeToString())


class Failures(Provider):
    def test_options(self):
        path = self.save(small_network())
        for options, message in (
                ({"treads": "4"}, "has no option 'treads', expected one of accuracy, budget, db, on_failure, shape, threads"),
                ({"threads": "many"}, "option threads: "), ({"budget": "60"}, "option budget: "), ({"accuracy": "high"}, "expected strict, default or fast"),
                ({"shape": "x=1..0"}, "option shape x: "), ({"on_failure": "retry"}, "expected fallback or error")):
            self.refused(message, path, **options)

    def test_a_part_that_cannot_be_compiled(self):
        # The sides of the image have no range by rule.
        model = make_model([node("Conv", "x w", "c"), node("Relu", "c", "y")], [value("x", (1, 3, "height", "width"))],
                           [value("y", (1, 4, None, None))], {"w": random((4, 3, 3, 3))})
        path = self.save(model)
        image = {"x": random((1, 3, 9, 11))}
        session = self.session(path)
        self.assertEqual(self.parts(session), [])
        self.compare(session, path, image)
        self.refused("height", path, on_failure="error")
        self.compare(self.session(path, on_failure="error", shape="height=5..16 width=5..16"), path, image)
        # A database that is not there.
        self.refused("missing.db", path, on_failure="error", db=str(self.folder / "missing.db"), shape="height=9 width=11")

    def test_the_reason_is_a_warning(self):
        path = self.save(make_model([node("Conv", "x w", "y")], [value("x", (1, 3, "height", "width"))], [value("y", (1, 4, None, None))],
                                    {"w": random((4, 3, 3, 3))}))
        program = ("import sys, onnxruntime as ort\nort.register_execution_provider_library('hone', sys.argv[1])\noptions = ort.SessionOptions()\n"
                   f"options.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == '{NAME}'], {{'db': 'none'}})\n"
                   "ort.InferenceSession(sys.argv[2], options)")
        done = subprocess.run([sys.executable, "-c", program, LIBRARY, path], capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "Hone: 1 of 1 nodes are left to other providers: .*'x'.*height")

    def test_an_older_onnx_runtime(self):
        messages = []
        status = ctypes.c_int()
        create_type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
        create = create_type(lambda code, text: messages.append(text.decode()) or ctypes.addressof(status))
        table = (ctypes.c_void_p * 1)(ctypes.cast(create, ctypes.c_void_p))
        get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(lambda version: ctypes.addressof(table) if version <= 22 else None)
        get_version = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(text))
        text = ctypes.create_string_buffer(b"1.22.2")
        base = (ctypes.c_void_p * 2)(ctypes.cast(get_api, ctypes.c_void_p), ctypes.cast(get_version, ctypes.c_void_p))
        make = ctypes.CDLL(LIBRARY).CreateEpFactories
        make.restype = ctypes.c_void_p
        factories, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t(9)
        self.assertEqual(make(b"hone", base, None, factories, ctypes.c_size_t(4), ctypes.byref(count)), ctypes.addressof(status))
        self.assertEqual((messages, count.value), (["Hone: found ONNX Runtime 1.22.2, expected 1.23 or later"], 0))


if __name__ == "__main__":
    unittest.main()
