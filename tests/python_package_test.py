"""The Python package, built and installed as a user does it, in a folder of its own."""
import ast
import faulthandler
import importlib.metadata
import os
import re
import signal
import sys
import tempfile
import threading
import time
import typing
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

import support
from python_package import MODEL, ROOT, SHAPE, Package, install, untyped
from support import make_model, value


class Running(Package):
    def test_inputs_by_position_and_by_name(self):
        model, image = self.compiled(), self.image()
        self.assertEqual([(t.name, t.dtype, t.shape) for t in model.inputs], [("image", "f32", SHAPE)])
        self.assertEqual([(t.name, t.dtype, t.shape) for t in model.outputs], [("scores", "f32", (1, 10))])
        for scores in (model(image), model(image=image), *model.run([image]), *model.run((image,)), *model.run({"image": image})):
            np.testing.assert_allclose(scores, self.expected(image), atol=1e-5)
        self.assertGreater(len(model.summary.tasks), 3)
        self.assertTrue(all(task.multiplicity > 0 and task.kernel_class for task in model.summary.tasks))
        np.testing.assert_array_equal(hone.load(model.path)(image), model(image))

    def test_an_output_is_written_where_it_is_asked_for(self):
        model, image = self.compiled(), self.image()
        first, = model.run([image])
        self.assertEqual(first.ctypes.data % 64, 0)
        address, other = first.ctypes.data, self.image(2)
        second, = model.run([other], out=[first])
        self.assertIs(second, first)
        self.assertEqual(first.ctypes.data, address)
        np.testing.assert_allclose(first, self.expected(other), atol=1e-5)
        first.flags.writeable = False
        self.refused("may be written", model.run, [image], out=[first])
        self.refused("expected a list", model.run, [image], out=[])
        self.refused("'scores' has the shape", model.run, [image], out=[np.zeros((10, 1), np.float32)])

    def test_an_input_may_be_read_only_or_of_another_library(self):
        class Foreign:  # knows DLPack, is no array of NumPy
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **how):
                return self.array.__dlpack__(**how)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        model, image = self.compiled(), self.image()
        expected = model(image)
        np.testing.assert_array_equal(model(Foreign(image)), expected)
        image.flags.writeable = False
        np.testing.assert_array_equal(model(image), expected)
        results = [model(self.image()) for _ in range(4)]  # the inputs are gone, results live as long as they are wanted
        for scores in results:
            np.testing.assert_array_equal(scores, expected)

    def test_wrong_inputs(self):
        model, image = self.compiled(), self.image()
        self.refused("has the type f64, expected f32", model, image.astype(np.float64))
        self.refused("has the shape [1, 1, 32], expected [1, 1, 32, 32]", model, image[..., 0])
        self.refused("not dense in row-major order", model, np.asfortranarray(image))
        self.refused("not dense in row-major order", model, self.image()[..., ::-1])
        self.refused("'image' is missing", model)
        self.refused("'image' is given twice", model, image, image=image)
        self.refused("no input 'picture'", model, picture=image)
        self.refused("found 2 inputs, expected 1", model, image, image)
        self.refused("'image' is of the Python type", model, "picture")
        for dtype in (">f4", "object", "<U4", [("red", "f4")]):
            self.refused(f"'image' has elements of NumPy's type '{np.dtype(dtype)}', expected f32", model, np.zeros(SHAPE, dtype))
        self.refused("'image' has a type that Hone does not know, expected f32", model, image.astype(np.complex64))
        self.refused("expected a list or tuple", model.run, image)
        self.refused("an input is named by the Python type int", model.run, {0: image})
        self.refused("expected a path", hone.load, 3)
        self.refused("expected numbers", hone.load, model.path, "all")
        self.refused("threads is -1, expected 0 (all cores) to 1024", hone.load, model.path, -1)
        self.refused(f"threads is {10**30}, expected", hone.load, model.path, 10**30)
        self.refused("the path 'a\\x00b', expected a text", hone.load, "a\0b")
        self.refused("the path '\\udcff.onnx', expected a text", hone.compile, "\udcff.onnx")

    def test_an_array_in_the_memory_of_a_device(self):
        class OnDevice:  # what a tensor of PyTorch on a GPU says
            def __dlpack_device__(self):
                return (2, 0)

            def __dlpack__(self, **how):
                raise BufferError("the host cannot read it")

        model, image = self.compiled(), self.image()
        self.refused("input 'image' is in the memory of a device, expected an array in the host's memory", model, OnDevice())
        self.refused("output 'scores' is in the memory of a device", model.run, [image], out=[OnDevice()])

    def test_a_list_of_inputs_may_change_under_way(self):
        """Another thread replaces an array while it is read: a run holds those that it began with."""
        model, images = self.compiled(), [self.image()]
        results, done = [model(images[0]), model(np.ones_like(images[0]))], threading.Event()

        def replace():
            while not done.is_set():
                images[0] = np.ones(SHAPE, np.float32)

        thread = threading.Thread(target=replace)
        thread.start()
        try:
            for _ in range(200):
                scores, = model.run(images)
                self.assertTrue(any(np.array_equal(scores, expected) for expected in results))
        finally:
            done.set()
            thread.join()

    def test_a_model_that_is_closed_while_it_runs(self):
        path, image = self.compiled().path, self.image()
        for _ in range(5):
            model, seen = hone.load(path, 1), []

            def again_and_again(model=model, seen=seen):
                while not seen:
                    try:
                        model(image)
                    except hone.InputError as error:
                        seen.append(str(error))

            thread = threading.Thread(target=again_and_again, daemon=True)
            thread.start()
            model.close()
            thread.join(60)
            self.assertIn("is closed: load it again", seen[0])

    def test_an_object_is_of_one_thread_and_one_process(self):
        model, image = self.compiled(), self.image()
        model(image)
        seen, stop = [], threading.Event()

        def again_and_again():
            while not stop.is_set():
                try:
                    model(image)
                except hone.InputError as error:
                    seen.append(str(error))

        threads = [threading.Thread(target=again_and_again) for _ in range(4)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 60
        while not seen and time.monotonic() < deadline:
            time.sleep(0.01)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertIn("another thread", seen[0])
        child = os.fork()
        if child == 0:
            try:
                model(image)
                os._exit(1)
            except hone.InputError as error:
                os._exit(0 if "forked" in str(error) else 2)
            except BaseException:
                os._exit(3)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_many_objects_run_side_by_side(self):
        path = self.compiled().path
        image = self.image()
        expected = hone.load(path, 1)(image)
        results = [None] * 4

        def work(i):
            model = hone.load(path, 1)
            results[i] = [model(image) for _ in range(50)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for scores in sum(results, []):
            np.testing.assert_array_equal(scores, expected)

    def test_shapes_vary(self):
        model = hone.compile(MODEL, self.folder / "any.so", ranges={"image": [(1, 4, "batch"), 1, 32, 32]}, **self.options)
        info, = model.inputs
        self.assertEqual((info.shape, info.least, info.dims), ((4, 1, 32, 32), SHAPE, ["batch", "", "", ""]))
        for batch in (2, 4, 1, 3):
            images = np.concatenate([self.image(i) for i in range(batch)])
            expected = np.concatenate([self.expected(self.image(i)) for i in range(batch)])
            np.testing.assert_allclose(model(images), expected, atol=1e-5)
            out = np.empty((batch, 10), np.float32)
            self.assertIs(model.run([images], out=[out])[0], out)
            np.testing.assert_allclose(out, expected, atol=1e-5)
        tables = [table for task in model.summary.tasks for table in task.sizes]
        self.assertGreater(len(tables), 0)
        for table in tables:
            self.assertIn("batch", table.decided_by)
            self.assertEqual([len(row.times) for row in table.rows], len(table.rows) * [len(table.points)])
            self.assertEqual([row.first for row in table.rows[1:]], [row.last + 1 for row in table.rows[:-1]])
            self.assertFalse(any(time.measured for row in table.rows for time in row.times))
        self.refused("dimension 0 (batch) is 5, expected 1 to 4", model, np.zeros((5, 1, 32, 32), np.float32))
        self.refused("expected one of rank 4", model, self.image()[0])
        self.refused("'ranges' is of the Python type dict", hone.compile, MODEL, ranges={"image": [(1, 2, 3, 4), 1, 32, 32]})

    def test_a_result_whose_shape_depends_on_the_data(self):
        model = hone.compile(make_model([helper.make_node("NonZero", ["x"], ["y"])], [value("x", [6])], [value("y", [1, None], TensorProto.INT64)]),
                             **self.options)
        out = np.empty((1, 6), np.int64)
        for values in ([0, 1, 0, 2, 0, 3], [1, 0, 0, 0, 0, 0], [1] * 6):
            x = np.array(values, np.float32)
            np.testing.assert_array_equal(model(x), np.array(np.nonzero(x)))
            np.testing.assert_array_equal(model.run([x], out=[out])[0], np.array(np.nonzero(x)))

    def test_bfloat16(self):
        import ml_dtypes
        declared = [[value(name, [4], TensorProto.BFLOAT16)] for name in "xy"]
        model = hone.compile(make_model([helper.make_node("Neg", ["x"], ["y"])], *declared), **self.options)
        x = np.array([1, -2, 0.5, 3], ml_dtypes.bfloat16)
        y = model(x)
        self.assertEqual(y.dtype, x.dtype)
        np.testing.assert_array_equal(y, -x)
        np.testing.assert_array_equal(model.run([y], out=[np.empty_like(x)])[0], x)

    def test_a_closed_model_says_so(self):
        with self.compiled() as model:
            self.assertEqual(model(self.image()).shape, (1, 10))
        self.refused("is closed: load it again", model, self.image())
        self.refused("is closed", lambda: model.inputs)
        self.assertEqual(hone.load(model.path)(self.image()).shape, (1, 10))

    def test_steps_are_timed(self):
        model = self.compiled()
        model.profile()
        model(self.image())
        self.assertGreater(sum(step.seconds for step in model.step_times()), 0)


class Making(Package):
    def test_a_model_is_a_path_or_bytes_or_a_proto(self):
        image = self.image()
        for model in (str(MODEL), MODEL.read_bytes(), onnx.load(MODEL)):
            made = hone.compile(model, **self.options)
            folder = Path(made.path).parent
            np.testing.assert_allclose(made(image), self.expected(image), atol=1e-5)
            del made
            self.assertFalse(folder.exists())
        self.refused("of the Python type int, expected a path", hone.compile, 3)
        self.refused("the model: not an ONNX file", hone.compile, b"something else")
        self.refused("the model: not an ONNX file: it is empty", hone.tasks, b"")
        self.refused("no such file", hone.compile, "missing.onnx")

    def test_what_hone_does_not_handle_is_an_error_of_its_own(self):
        def unknown():
            node = helper.make_node("Abacus", ["x"], ["y"], domain="com.example")
            model = make_model([node], [value("x", [4])], [value("y", [4])])
            model.opset_import.append(helper.make_opsetid("com.example", 1))
            return model

        path = self.save(unknown(), "unknown.onnx")
        for model, name in ((path, path), (unknown(), "the model"), (unknown().SerializeToString(), "the model")):
            for function in (hone.compile, hone.tasks, hone.tune):
                self.refused(f"{name}: this operator is not supported in opset 17: com.example.Abacus (node 'y')", function, model,
                             kind=hone.UnsupportedError)
        self.assertTrue(issubclass(hone.UnsupportedError, NotImplementedError) and issubclass(hone.UnsupportedError, hone.Error))

    def test_a_model_in_memory_has_its_weights_inside(self):
        model = make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", [4, 40])], [value("y", [4, 40])], {"w": np.ones((40, 40), np.float32)})
        onnx.external_data_helper.set_external_data(model.graph.initializer[0], "weights.bin")
        model.graph.initializer[0].ClearField("raw_data")
        self.refused("the model: initializer 'w': cannot read external data weights.bin: no such file or directory: a model in memory has no folder",
                     hone.compile, model)

    def test_options(self):
        values = {"shapes": {"image": (4, 1, 32, 32)}, "header": True, "prefix": "small"}
        model = hone.compile(MODEL, self.folder / "four.so", **values, **self.options)
        self.assertEqual(model.inputs[0].shape, (4, 1, 32, 32))
        self.assertIn("small_run", (self.folder / "four.h").read_text())
        bound = hone.compile(MODEL, bind={"image": self.image()}, **self.options)
        self.assertEqual(bound.inputs, [])
        np.testing.assert_allclose(bound(), self.expected(self.image()), atol=1e-5)
        self.refused("no option 'treads'", hone.compile, MODEL, treads=1)
        self.refused("'threads' is of the Python type str", hone.compile, MODEL, threads="all")
        self.refused("an option of hone.tune", hone.compile, MODEL, budget_seconds=1)
        self.refused("abacus", hone.compile, MODEL, device="abacus")
        self.refused("no option 'treads'", hone.Session, treads=1)
        self.assertFalse((self.folder / "model.so").exists())
        session = hone.Session(budget_seconds=20, max_trials=4, **self.options)
        self.assertIsInstance(session.compile(MODEL).summary, hone.CompileSummary)
        self.assertLessEqual(session.tune(MODEL, progress=False).summary.trials, 4)
        self.assertEqual(session.load(model.path).inputs[0].shape, (4, 1, 32, 32))

    def test_tune_tells_its_progress_and_keeps_what_it_measured(self):
        states, db, image = [], self.folder / "hone.db", self.image()
        model = hone.tune(MODEL, self.folder / "tuned.so", budget_seconds=60, max_trials=12, threads=1, db=db, on_progress=states.append)
        self.assertTrue(0 < model.summary.trials <= 12)
        self.assertTrue(states and states[-1].budget == 60 and states[-1].tasks)
        self.assertTrue(all(hone.ProgressLine.text(state) for state in states))
        np.testing.assert_allclose(model(image), self.expected(image), atol=1e-4)
        again = hone.compile(MODEL, db=db, threads=1)
        self.assertIn("stored", [task.source for task in again.summary.tasks])

    def test_a_function_that_raises_ends_the_search(self):
        def enough(state):
            if state.trials > 0:
                raise LookupError("enough")

        begin = time.monotonic()
        with self.assertRaises(LookupError):
            hone.tune(MODEL, self.folder / "tuned.so", budget_seconds=300, on_progress=enough, progress=False, **self.options)
        self.assertLess(time.monotonic() - begin, 200)
        np.testing.assert_allclose(hone.load(self.folder / "tuned.so", 1)(self.image()), self.expected(self.image()), atol=1e-4)
        self.refused("expected a function", hone.tune, MODEL, on_progress=3)

    def test_an_exception_of_the_callers_arrives_as_it_was_raised(self):
        class Stop(hone.InputError):
            def __init__(self, text, trials):
                super().__init__(text)
                self.trials = trials

        def stop(state):
            if state.trials > 0:
                raise Stop("enough", state.trials)

        for model in (MODEL, Path(MODEL).read_bytes()):
            with self.assertRaisesRegex(Stop, "^enough$") as raised:
                hone.tune(model, self.folder / "tuned.so", budget_seconds=300, on_progress=stop, progress=False, **self.options)
            self.assertGreater(raised.exception.trials, 0)

    def test_ctrl_c_keeps_what_was_measured(self):
        process = self.script("""
            import hone, os, sys
            def show(state):
                if state.trials > 0: print("measured", flush=True)
            try:
                hone.tune(os.environ["MODEL"], "tuned.so", db="hone.db", budget_seconds=300, threads=1, on_progress=show, progress=False)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            """)
        self.assertEqual(process.stdout.readline(), "measured\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
        self.assertEqual((process.returncode, out.splitlines()[-1]), (0, "interrupted"), err)
        np.testing.assert_allclose(hone.load(self.folder / "tuned.so", 1)(self.image()), self.expected(self.image()), atol=1e-4)
        again = hone.compile(MODEL, db=self.folder / "hone.db", threads=1)
        self.assertIn("stored", [task.source for task in again.summary.tasks])

    def test_ctrl_c_ends_a_compilation(self):
        nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(60)]
        weights = {f"w{i}": np.ones((40 + i, 41 + i), np.float32) for i in range(60)}
        self.save(make_model(nodes, [value("x0", [64, 40])], [value("x60", [64, 100])], weights), "chain.onnx")
        process = self.script("""
            import hone
            print("begin", flush=True)
            try:
                hone.compile("chain.onnx", "chain.so", use_db=False)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            """)
        self.assertEqual(process.stdout.readline(), "begin\n")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
        self.assertEqual((process.returncode, out), (0, "interrupted\n"), err)
        self.assertFalse((self.folder / "chain.so").exists())

    def test_a_fork_of_a_process_that_tunes_ends(self):
        self.succeed_script("""
            import hone, os, threading
            measured = threading.Event()
            def show(state):
                if state.trials > 0: measured.set()
            def tune():
                hone.tune(os.environ["MODEL"], use_db=False, budget_seconds=300, threads=1, on_progress=show, progress=False)
            threading.Thread(target=tune, daemon=True).start()
            assert measured.wait(200)
            child = os.fork()
            if child: assert os.waitpid(child, 0)[1] == 0
            """)

    def test_an_interpreter_ends_while_models_run_and_are_loaded(self):
        self.compiled()
        self.succeed_script("""
            import hone, numpy, threading
            image, ready = numpy.zeros((1, 1, 32, 32), numpy.float32), threading.Event()
            def work():
                model = hone.load("small.so", 1)
                while True:
                    model(image)
                    ready.set()
            def load():
                while True: hone.load("small.so", 1)
            for target in (work, work, load, load): threading.Thread(target=target, daemon=True).start()
            assert ready.wait(100)
            """)

    def test_an_interpreter_that_ends_ends_its_tune(self):
        begin = time.monotonic()
        self.succeed_script("""
            import hone, os, threading
            measured = threading.Event()
            def show(state):
                if state.trials > 0: measured.set()
            def tune():
                hone.tune(os.environ["MODEL"], "tuned.so", use_db=False, budget_seconds=300, threads=1, on_progress=show, progress=False)
            threading.Thread(target=tune, daemon=True).start()
            assert measured.wait(200)
            """)
        self.assertLess(time.monotonic() - begin, 200)


class Documentation(Package):
    def test_all_that_is_public_is_documented(self):
        def members(thing):
            return [(name, member) for name, member in vars(thing).items() if not name.startswith("_") or name == "__call__"]

        self.assertEqual([name for name in hone.__all__ if not getattr(hone, name).__doc__], [])
        self.assertEqual(sorted(hone.__all__), sorted(set(hone.__all__)))
        for thing in (getattr(hone, name) for name in hone.__all__):
            if isinstance(thing, type):
                undocumented = [name for name, member in members(thing) if not getattr(member, "__doc__", None)]
                self.assertEqual([name for name in undocumented if f"{name}:" not in thing.__doc__], [], thing)
        self.assertIn("float = 60: The time", hone.options()["budget_seconds"])
        self.assertNotIn("budget_seconds", hone.options(tune=False))
        self.assertEqual([name for name, text in hone.options().items() if len(text) < 20], [])
        self.assertEqual(hone.__version__, importlib.metadata.version("hone"))
        self.assertIn("host", hone.devices())
        self.assertIn("mixed", hone.strategies())
        self.assertIn("analytic", hone.cost_models())

    def test_all_that_is_public_has_types(self):
        """As type checkers ask for: stubs that Python can read, and types of all parameters and results."""
        import hone.fleet
        import onnxruntime_ep_hone
        from hone import _option_types
        package = Path(hone.__file__).parent
        stubs = {path.name: ast.parse(path.read_text(), path) for path in package.rglob("*.pyi")}
        self.assertIn("TuneSummary", [node.name for node in stubs["_native.pyi"].body if isinstance(node, ast.ClassDef)])
        for module in (hone, hone.fleet, onnxruntime_ep_hone):
            outermost = sys.modules[module.__name__.partition(".")[0]]  # whose file is about all below it
            self.assertTrue((Path(outermost.__file__).parent / "py.typed").exists(), module.__name__)
            self.assertEqual(untyped(module), [])
        for options, types in ((hone.options(), _option_types.TuneOptions), (hone.options(tune=False), _option_types.CompileOptions),
                               (hone.options(of="make_dataset"), _option_types.DatasetOptions), (hone.options(of="train"), _option_types.TrainOptions)):
            self.assertEqual(sorted(typing.get_type_hints(types)), sorted(options))

    def test_the_examples_run(self):
        for file in (ROOT / "python" / "README.md", ROOT / "docs" / "user" / "python.md"):
            found = re.findall(r"^```python\n(.*?)^```$", file.read_text(), re.M | re.S)
            self.assertTrue(found, file)
            text = "\n".join(found).replace('"resnet18.onnx"', repr(str(MODEL))).replace("(1, 3, 224, 224)", repr(SHAPE))
            text = re.sub(r"budget_seconds=\d+", "budget_seconds=4", text)
            self.succeed_script("import os\nos.environ['XDG_DATA_HOME'] = 'data'\n" + text)

    @unittest.skipUnless(Path("/usr/lib/python3/dist-packages/torch").exists(), "Debian's python3-torch is not here")
    def test_tensors_of_pytorch(self):
        self.compiled()
        np.save(self.folder / "image.npy", self.image())
        self.succeed_script("""
            import hone, numpy, torch
            image = torch.from_numpy(numpy.load("image.npy"))
            model = hone.load("small.so", 1)
            scores = model(image)
            assert isinstance(scores, torch.Tensor) and scores.dtype == torch.float32
            again, = model.run([image.numpy()], out=[scores])
            assert again is scores
            numpy.save("scores.npy", scores.numpy())
            assert not model(image.requires_grad_()).requires_grad
            """, interpreter="/usr/bin/python3")
        np.testing.assert_allclose(np.load(self.folder / "scores.npy"), self.expected(self.image()), atol=1e-5)


if __name__ == "__main__":
    faulthandler.enable()
    with tempfile.TemporaryDirectory(prefix="hone-python") as temporary:
        Package.site = install(Path(temporary))
        sys.path.insert(0, str(Package.site))
        import hone
        if "--fleet" in sys.argv:
            sys.argv.remove("--fleet")
            from fleet_cases import *  # noqa: F403
        from python_search_cases import *  # noqa: F403
        from python_wheel_cases import *  # noqa: F403
        unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
