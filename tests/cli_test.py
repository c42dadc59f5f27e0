"""The commands that need no tuning: what they print, as text and as JSON, and how fast the tool starts."""
import json
import os
import pty
import signal
import subprocess
import time

import numpy as np
from onnx import helper

import support
from support import Case, make_model, relu_model, small_network, value


class Commands(Case):
    def test_version(self):
        self.assertRegex(self.succeed("version"), r"^hone \d+\.\d+\.\d+ \(artifact interface \d+\)\n$")
        self.assertEqual(self.succeed_json("version")["abi_version"], 6)

    def test_devices(self):
        devices = {device["name"]: device for device in self.succeed_json("devices")}
        for name in ("host", "host-avx2", "x86-64-avx2", "x86-64-avx512", "aarch64-neon"):
            self.assertIn(name, devices)
            self.assertIn(name, self.succeed("devices"))
        self.assertGreater(devices["host"]["cores"], 0)
        self.assertEqual((devices["host"]["kind"], devices["cuda-sm_90a"]["kind"]), ("CPU", "GPU"))
        self.assertEqual(devices["cuda-sm_90a"]["key"], "sm_90a-132sm-50M-80G")
        for name in ("cuda", "opencl"):  # of this machine: described, or the reason why there is none
            self.assertEqual(devices[name]["key"] is None, "missing" in devices[name])
            self.assertIn(devices[name]["key"] or devices[name]["missing"], self.succeed("devices"))

    def test_devices_looks_how_the_cores_stand_to_each_other(self):
        state = self.succeed_json("devices", "--cores")
        self.assertEqual(state["apart"], state["slowdown"] < 1.5)
        self.assertEqual(state["exchange_seconds"] > 0, state["threads"] > 1)
        self.assertEqual(state["good"], state["apart"], "as near as ever seen")
        self.assertEqual(state["nearest_seconds"], state["exchange_seconds"] if state["apart"] else 0)
        nearer = self.succeed_json("devices", "--cores", "--nearest", 1e-12)
        self.assertEqual(nearer["good"], nearer["threads"] == 1, "far from what was seen")
        self.assertEqual(nearer["nearest_seconds"], 1e-12)
        self.assertIn("1 threads at once take 1.00", self.succeed("devices", "--cores", "--threads", 1))
        self.assertEqual(self.succeed_json("devices", "--cores", "--threads", 4096)["threads"], state["threads"], "no more than cores")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([support.HONE, "devices"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "hone: cannot write to standard output: no space left on device\n")


    def test_operators(self):
        operators = {operator["name"]: operator for operator in self.succeed_json("ops")}
        self.assertEqual([meaning["since"] for meaning in operators["ArgMax"]["opsets"]], [7, 12])
        self.assertEqual(operators["Conv"]["becomes"], "contraction")
        self.assertFalse([name for name in operators if name.startswith("hone.")])
        self.assertIn("HardSwish", self.succeed("ops"))


class InPlace(Case):
    def test_a_residual_sum_takes_the_place_of_its_operand(self):
        """Three tensors of one size live at a time; in place two are enough."""
        rng = np.random.default_rng(7)
        weights = {f"w{i}": (rng.standard_normal((16, 16, 1, 1)) * 0.1).astype(np.float32) for i in range(4)}
        nodes = [helper.make_node("Conv", ["x", "w0"], ["a"], name="stem"), helper.make_node("Sigmoid", ["a"], ["r"], name="act"),
                 helper.make_node("Conv", ["r", "w1"], ["b"], name="first"), helper.make_node("Relu", ["b"], ["c"], name="relu"),
                 helper.make_node("Conv", ["c", "w2"], ["d"], name="second"), helper.make_node("Add", ["d", "r"], ["s"], name="sum"),
                 helper.make_node("Conv", ["s", "w3"], ["y"], name="last")]
        shape = (1, 16, 24, 24)
        model = self.save(make_model(nodes, [value("x", shape)], [value("y", shape)], weights))
        library = self.folder / "model.so"
        report = self.succeed_json("compile", model, "-o", library, "--no-db", "--threads", "1")
        tensor = 4 * int(np.prod(shape))
        self.assertGreaterEqual(report["arena_bytes"], 2 * tensor)
        self.assertLess(report["arena_bytes"], 3 * tensor)
        x = rng.standard_normal(shape).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        self.succeed("run", library, "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder)
        expected = support.reference(model, {"x": x})["y"]
        self.assertLessEqual(support.relative_error(np.load(self.folder / "y.npy"), expected), 1e-4)


class Library(Case):
    def setUp(self):
        super().setUp()
        self.model = self.save(small_network())
        self.library = self.folder / "model.so"
        self.report = self.succeed_json("compile", self.model, "-o", self.library, "--no-db", "--threads", "1")

    def test_compile_reports_every_kernel(self):
        self.assertEqual(self.report["output"], str(self.library))
        self.assertEqual(self.report["bytes"], self.library.stat().st_size)
        for kernel in self.report["kernels"]:
            self.assertIn(kernel["source"], ("default", "predicted"))
            self.assertTrue(kernel["steps"])

    def test_the_same_model_gives_the_same_file(self):
        again = self.folder / "again.so"
        self.succeed("compile", self.model, "-o", again, "--no-db", "--threads", "1")
        self.assertEqual(again.read_bytes(), self.library.read_bytes())

    def test_interrupt_leaves_nothing(self):
        """SIGINT at any moment of a compilation: a clean end, no library, no temporary folder."""
        model = self.save(small_network())
        before = sorted(path.name for path in self.folder.iterdir())
        output = self.folder / "late.so"
        interrupted = 0
        for delay in (0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.3, 0.6):
            process = subprocess.Popen([support.HONE, "compile", str(model), "-o", str(output), "--no-db"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
            self.assertIn(process.returncode, (130, 0, -signal.SIGINT), errors)  # -2: before it listened
            if process.returncode == 130:
                interrupted += 1
                self.assertEqual(errors, "hone: interrupted; nothing was written\n")
                self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)
            output.unlink(missing_ok=True)
        self.assertGreater(interrupted, 0)

    def test_termination_of_what_compiles_first_leaves_nothing(self):
        """SIGTERM at any moment of `run` and `bench` of an ONNX file: its library goes away, too."""
        model = self.save(small_network())
        scratch = self.folder / "scratch"
        scratch.mkdir()
        for command in ("run", "bench"):
            with self.subTest(command):
                interrupted = 0
                for delay in (0.02, 0.05, 0.1, 0.3, 0.6):
                    process = subprocess.Popen([support.HONE, command, str(model), "--repeat", "1000000"],
                                               env={**os.environ, "TMPDIR": str(scratch)},
                                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                    time.sleep(delay)
                    process.send_signal(signal.SIGTERM)
                    _, errors = process.communicate(timeout=30)
                    self.assertIn(process.returncode, (143, -signal.SIGTERM), errors)  # -15: before it listened
                    self.assertEqual(list(scratch.iterdir()), [])
                    if process.returncode == 143:
                        interrupted += 1
                        self.assertEqual(errors, "hone: interrupted; nothing was written\n")
                self.assertGreater(interrupted, 0)

    def test_run_with_random_inputs_repeats_with_its_seed(self):
        def outputs(seed):
            self.succeed("run", self.library, "--seed", seed, "--output-dir", self.folder / "out")
            return np.load(self.folder / "out" / "y.npy")
        first = outputs(3)
        self.assertEqual(first.shape, (1, 10))
        np.testing.assert_array_equal(outputs(3), first)
        self.assertFalse(np.array_equal(outputs(4), first))

    def test_run_says_what_came_out(self):
        report = self.succeed_json("run", self.library, "--repeat", 5)
        self.assertEqual(report["runs"], 5)
        self.assertEqual(report["outputs"][0]["shape"], [1, 10])
        self.assertIn("y", self.succeed("run", self.library))

    def test_run_compiles_an_onnx_model_for_the_shapes_given(self):
        model = self.save(relu_model(("batch", 4)), "open.onnx")
        x = np.array([[-1, 2, -3, 4], [5, -6, 7, -8]], np.float32)
        np.save(self.folder / "x.npy", x)
        self.succeed("run", model, "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder)
        np.testing.assert_array_equal(np.load(self.folder / "y.npy"), np.maximum(x, 0))

    def test_inputs_whose_values_decide_a_shape_are_bound(self):
        reshape = support.helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape")
        model = self.save(support.make_model(
            [reshape, support.helper.make_node("Relu", ["y"], ["z"])],
            [support.value("x", (2, 6)), support.value("shape", (2,), support.TensorProto.INT64)],
            [support.value("z", None)]), "reshape.onnx")
        x = np.arange(12, dtype=np.float32).reshape(2, 6) - 5
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "shape.npy", np.array([3, -1]))
        library = self.folder / "reshape.so"
        self.refuse("bind it (ModelOptions::bind, --bind shape=FILE.npy)", "compile", model, "-o", library, "--no-db")
        self.refuse("expected i64 [2]", "compile", model, "-o", library, "--no-db", "--bind", f"shape={self.folder / 'x.npy'}")
        self.refuse("'size', which is no input", "compile", model, "-o", library, "--no-db", "--bind", f"size={self.folder / 'x.npy'}")
        inputs = ["--input", f"x={self.folder / 'x.npy'}"]
        shape = f"shape={self.folder / 'shape.npy'}"
        self.succeed("compile", model, "-o", library, "--no-db", "--bind", shape)
        for arguments in ([library, *inputs], [model, *inputs, "--input", shape], [model, *inputs, "--bind", shape]):
            with self.subTest(arguments):
                self.succeed("run", *arguments, "--output-dir", self.folder)
                np.testing.assert_array_equal(np.load(self.folder / "z.npy"), np.maximum(x, 0).reshape(3, 4))
                (self.folder / "z.npy").unlink()
        self.refuse("no input 'shape'", "run", library, *inputs, "--input", shape)
        self.refuse("--bind", "run", library, *inputs, "--bind", shape)

    def test_bench_accounts_for_the_whole_model(self):
        report = self.succeed_json("bench", self.library, "--threads", 1, "--repeat", 20)
        self.assertGreater(len(report["kernels"]), 2)
        total = sum(kernel["seconds"] for kernel in report["kernels"])
        self.assertAlmostEqual(total, report["kernel_seconds"], places=12)
        self.assertGreater(total, 0.3 * report["seconds"])
        self.assertLess(total, 3 * report["seconds"])
        self.assertIn("whole model", self.succeed("bench", self.model, "--threads", 1, "--repeat", 3))

    def test_run_profiles_the_kernels(self):
        run = ("run", self.library, "--threads", 1, "--repeat", 5)
        self.assertNotIn("profile", self.succeed_json(*run))
        report = self.succeed_json("run", self.library, "--threads", 1, "--repeat", 200, "--profile")  # so that one disturbed run weighs little
        compiled = {(kernel["name"], kernel["kernel"], kernel["times"]): kernel for kernel in self.report["kernels"]}
        profiled = {(kernel["name"], kernel["kernel"], kernel["calls"]): kernel for kernel in report["profile"]}
        self.assertEqual(set(profiled), set(compiled))
        for key, kernel in profiled.items():
            self.assertEqual(kernel["flops"], compiled[key]["flops"] * compiled[key]["times"])
        total = sum(kernel["seconds"] for kernel in report["profile"])
        self.assertGreater(total, 0)
        self.assertLess(total, 5 * report["median_seconds"])
        text = self.succeed(*run, "--profile")
        self.assertRegex(text, r"first node +kernel +calls +ms +share +GFLOP/s")
        self.assertRegex(text, r"conv1 +conv2d\S* +1 ")

    def test_show_describes_graph_and_tasks(self):
        text = self.succeed("show", self.model, "--no-db")
        self.assertIn("output y = ", text)
        self.assertRegex(text, r"conv1 +conv2d\S* +\[1, 16, 24, 24\] +1 ")
        self.assertRegex(text, r"\d+ nodes, \d+ tasks, \d+ distinct")
        report = self.succeed_json("show", self.model, "--no-db")
        self.assertEqual(sum(kernel["times"] for kernel in report["kernels"]), report["tasks"])
        self.assertEqual(len(report["kernels"]), report["distinct_tasks"])
        self.assertEqual(sum(kernel["times"] * kernel["flops"] for kernel in report["kernels"]), report["flops"])
        conv = next(kernel for kernel in report["kernels"] if kernel["name"] == "conv1")
        self.assertEqual(conv["bytes"], 4 * (3 * 26 * 26 + 16 * 3 * 3 * 3 + 16 + 16 * 24 * 24))
        self.assertGreater(conv["predicted_seconds"], 0)
        self.assertGreater(report["arena_bytes"], 0)

    def test_kernels_are_compared_with_the_limits_of_the_machine(self):
        db = self.folder / "limits.db"
        for command in (("show", self.model), ("bench", self.library, "--repeat", 2), ("run", self.library, "--profile")):
            self.assertNotIn("of limit", self.succeed(*command))
        found = self.succeed_json("devices", "--measure", "--db", db)
        roofline = next(device for device in found if device["name"] == "host")["roofline"]
        self.assertGreater(roofline["flops_all"], 1e9)
        self.assertEqual([level["level"] for level in roofline["levels"]][-1], 0)
        self.assertEqual(next(device for device in self.succeed_json("devices", "--db", db) if device["name"] == "host")["roofline"], roofline)
        self.assertIn("measured L1: read ", self.succeed("devices", "--db", db))
        for command in (("show", self.model), ("bench", self.library, "--repeat", 2), ("run", self.library, "--profile"),
                        ("compile", self.model, "-o", self.folder / "again.so")):
            with self.subTest(command[0]):
                self.assertIn("of limit", self.succeed(*command, "--db", db))
        conv = next(kernel for kernel in self.succeed_json("show", self.model, "--threads", 1, "--db", db)["kernels"]
                    if kernel["name"] == "conv1")
        self.assertGreaterEqual(conv["limit_seconds"], 0.999 * conv["least_flops"] / roofline["flops_one"])
        for command in (("bench", self.library), ("run", self.library, "--profile")):
            report = self.succeed_json(*command, "--threads", 1, "--db", db)
            for kernel in report["kernels" if command[0] == "bench" else "profile"]:
                self.assertGreater(kernel["limit_seconds"], 0, kernel)
                self.assertIn(kernel["limit"], ("compute", "L1", "L2", "L3", "memory"))
        for command in (("bench", self.library), ("run", self.library, "--profile"), ("devices",)):
            self.refuse("none.db", *command, "--db", self.folder / "none.db")

    def test_explain_shows_a_task_down_to_its_machine_code(self):
        kernels = self.succeed_json("show", self.model, "--no-db", "--threads", 1)["kernels"]
        conv = next(kernel for kernel in kernels if kernel["name"] == "conv1")
        explain = ("explain", self.model, "--no-db", "--threads", 1, "--task")
        text = self.succeed(*explain, conv["task"])
        for part in (conv["key"], "schedule (", "loop program:", "inner loop of hone_kernel_", "fma", "vector registers: ",
                     "cycles an iteration: at least ", "bytes to L1", "predicted: ", "measured now: "):
            self.assertIn(part, text)
        self.assertIn("measured: not yet", self.succeed(*explain, conv["task"], "--no-measure"))
        self.assertNotIn("limit", text)
        self.assertGreater(len(self.succeed(*explain, conv["task"], "--no-measure", "--code")), len(text))
        self.assertRegex(self.succeed(*explain, conv["task"], "--no-measure", "--passes"), r"before the passes:(.|\n)*after simplify, .*\(first: ")
        passes = self.succeed_json(*explain, conv["task"], "--no-measure", "--passes")["passes"]
        self.assertEqual([passes[0]["name"], passes[-1]["name"]], ["simplify", "simplify"])
        self.assertTrue(all(p["changed"] == bool(p["program"]) and p["seconds"] >= 0 for p in passes))
        report = self.succeed_json(*explain, conv["key"], "--default", "--measure")
        self.assertEqual((report["task"], report["name"], report["source"]), (conv["key"], "conv1", "default"))
        self.assertGreater(max(loop["fma"] for loop in report["loops"]), 0)
        self.assertGreater(report["measured"]["seconds"], 0)
        self.assertTrue(report["measured"]["verified"])
        again = self.succeed_json(*explain, conv["task"], "--schedule", report["steps"].replace("\n", ";"))
        self.assertEqual((again["source"], again["steps"], again["program"]), ("given", report["steps"], report["program"]))
        steps = self.folder / "steps.txt"
        steps.write_text(report["steps"])
        self.assertEqual(self.succeed_json(*explain, conv["task"], "--schedule", f"@{steps}")["steps"], report["steps"])
        self.refuse("expected 1 to ", *explain, len(kernels) + 1)
        self.refuse("no best schedule of task 1", *explain, 1, "--best")
        self.refuse("nothing", *explain, 1, "--schedule", "vectorize(nothing, oc)")
        self.refuse("steps.none", *explain, 1, "--schedule", f"@{self.folder / 'steps.none'}")
        self.refuse("expected a key", "explain", "--task", "conv1", "--no-db")
        self.refuse("aarch64-neon cannot be measured here", *explain, 1, "--measure", "--device", "aarch64-neon")
        self.refuse("none.db", "explain", self.model, "--task", 1, "--db", self.folder / "none.db")

    def test_explain_takes_what_was_tuned(self):
        db = self.folder / "tuned.db"
        self.succeed("tune", self.model, "-o", self.folder / "tuned.so", "--budget", "8s", "--threads", 1, "--db", db)
        task = max(self.succeed_json("show", self.model, "--threads", 1, "--db", db)["kernels"], key=lambda kernel: kernel["seconds"])
        # What runs fastest inside the network may be another schedule than what runs fastest alone.
        of_model = self.succeed_json("explain", self.model, "--task", task["task"], "--threads", 1, "--db", db)
        self.assertFalse(of_model["measured"]["now"])
        self.assertAlmostEqual(of_model["measured"]["seconds"], task["seconds"])
        alone = self.succeed_json("explain", self.model, "--task", task["task"], "--threads", 1, "--db", db, "--best")
        self.assertFalse(alone["measured"]["now"])
        stored = self.succeed_json("explain", "--task", task["key"], "--threads", 1, "--db", db)  # without the model
        self.assertEqual((stored["source"], stored["program"], stored["measured"]), ("stored", alone["program"], alone["measured"]))

    def test_show_follows_the_passes(self):
        text = self.succeed("show", self.model, "--no-db", "--passes")
        self.assertIn("after import:\ngraph test", text)
        self.assertIn("after assign_layouts:\ngraph test", text)
        imported = self.succeed("show", self.model, "--no-db", "--after", "import")
        self.assertIn("Flatten(p[1, 16, 1, 1])", imported)
        self.assertNotIn("@", imported)
        self.assertIn("@0231", self.succeed("show", self.model, "--no-db", "--after", "assign_layouts"))
        self.refuse("'nothing', expected one of import, remove_identities", "show", self.model, "--after", "nothing")

    def test_show_counts_what_passes_did(self):
        node = support.helper.make_node
        weights = {name: np.ones((4, 4), np.float32) * i for i, name in enumerate("ab")}
        model = self.save(support.make_model(
            [node("Identity", ["x"], ["i"]), node("MatMul", ["i", "a"], ["p"]), node("MatMul", ["i", "b"], ["q"]),
             node("Softmax", ["p"], ["y"]), node("Softmax", ["q"], ["z"])],
            [support.value("x", (2, 4))], [support.value("y", (2, 4)), support.value("z", (2, 4))], weights), "two.onnx")
        passes = lambda *more: {entry["pass"]: entry for entry in self.succeed_json("show", model, "--no-db", "--passes", *more)["passes"]}
        found = passes()
        self.assertEqual(found["remove_identities"], {"pass": "remove_identities", "changed": True, "rules": {"Identity": 1}})
        self.assertEqual(found["merge_pads"], {"pass": "merge_pads", "changed": False, "rules": {}})
        self.assertFalse(found["merge_parallel_products"]["changed"])
        merged = ("--also-pass", "merge_parallel_products")
        self.assertEqual(passes(*merged)["merge_parallel_products"]["rules"], {"MatMul": 1})
        self.assertNotIn("passes", self.succeed_json("show", model, "--no-db"))
        self.succeed("compile", model, "-o", self.folder / "two.so", "--no-db", *merged)
        self.refuse("no pass is named 'nothing'", "compile", model, "-o", self.folder / "no.so", "--also-pass", "nothing")

    def test_a_pass_can_be_left_out(self):
        model = self.save(support.make_model(
            [support.helper.make_node("Identity", ["x"], ["i"], name="same"),
             support.helper.make_node("Relu", ["i"], ["y"], name="relu")],
            [support.value("x", (2, 3))], [support.value("y", (2, 3))]), "same.onnx")
        self.assertEqual(self.succeed_json("show", model, "--no-db")["nodes"], 1)
        skip = ("--no-db", "--skip-pass", "remove_identities")
        self.assertEqual(self.succeed_json("show", model, *skip)["nodes"], 2)
        self.succeed("compile", model, "-o", self.folder / "same.so", *skip)
        self.refuse("no pass is named 'nothing'", "compile", model, "-o", self.folder / "no.so", "--skip-pass", "nothing")

    def test_kernels_that_need_nothing_of_each_other_run_together(self):
        node = support.helper.make_node
        names = [f"y{i}" for i in range(4)]
        model = self.save(support.make_model(
            [node("ReduceSum", ["x"], [name], name=name, keepdims=1) for name in names[:2]]
            + [node("Softmax", ["x"], [name], name=name, axis=i) for i, name in enumerate(names[2:])],
            [support.value("x", (40, 60))],
            [support.value(name, (1, 1)) for name in names[:2]] + [support.value(name, (40, 60)) for name in names[2:]]),
            "branches.onnx")
        compiled = ("compile", model, "-o", self.folder / "branches.so", "--no-db", "--threads", "2")
        together = self.succeed_json(*compiled)
        self.assertLess(together["turns"], together["calls"])
        self.assertIn(f"starts {together['calls']} kernels in {together['turns']} turns", self.succeed(*compiled))
        apart = self.succeed_json(*compiled, "--skip-pass", "run_together")
        self.assertEqual(apart["turns"], together["calls"])
        self.succeed("verify", model, "--no-db", "--threads", "2")

    def test_show_draws_the_tasks(self):
        drawing = self.folder / "net.dot"
        report = self.succeed_json("show", self.model, "--no-db", "--dot", drawing)
        text = drawing.read_text()
        self.assertTrue(text.startswith('digraph "test" {'), text)
        self.assertEqual(text.count("subgraph cluster_"), report["tasks"])
        self.refuse("no/net.dot", "show", self.model, "--no-db", "--json", "--dot", self.folder / "no" / "net.dot")

    def reference_tensors(self):
        """Every tensor of the small network, by ONNX Runtime, with the input."""
        model = small_network()
        names = [name for node in model.graph.node for name in node.output]
        for name in names[:-1]:
            model.graph.output.append(support.value(name, None))
        x = np.random.default_rng(4).standard_normal((1, 3, 24, 24)).astype(np.float32)
        return {"x": x, **support.reference(self.save(model, "all.onnx"), {"x": x})}

    def test_verify_finds_a_sound_model_sound(self):
        report = self.succeed_json("verify", self.model, "--no-db")
        self.assertEqual(report["divergences"], [])
        self.assertGreaterEqual(report["compared"], 4)
        self.assertLess(report["worst_error"], 1e-4)
        self.assertIn("0 beyond the tolerance of 0.001", self.succeed("verify", self.model, "--no-db"))
        np.savez(self.folder / "all.npz", **self.reference_tensors())
        report = self.succeed_json("verify", self.model, "--no-db", "--reference", self.folder / "all.npz", "--skip-pass", "fold_constants")
        self.assertGreaterEqual(report["compared"], 4)
        self.assertIn("c1", report["missing"])

    def test_verify_names_the_first_node_that_diverges(self):
        tensors = self.reference_tensors()
        tensors["r2"][0, 3, 5, 7] += 100
        tensors["y"][0, 1] = np.nan
        np.savez(self.folder / "all.npz", **tensors)
        arguments = ("verify", self.model, "--no-db", "--reference", self.folder / "all.npz")
        done = support.hone(*arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^hone: node 'relu2' \(Relu\) diverges: tensor 'r2': found \S+ at \[0, 3, 5, 7\], expected 1\d\d")
        self.assertIn("its nodes: conv2, relu2", done.stdout)
        self.assertIn("then 'y' of node 'classify'", done.stdout)
        self.assertIn("1 of 2304 elements are wrong", done.stdout)
        done = support.hone(*arguments, "--json")
        first, second = json.loads(done.stdout)["divergences"]
        self.assertEqual((first["value"], first["wrong"], first["index"]), ("r2", 1, [0, 3, 5, 7]))
        self.assertEqual((second["value"], second["expected"]), ("y", "nan"))

    def test_verify_refuses_what_it_cannot_compare(self):
        np.savez(self.folder / "y.npz", y=np.zeros((1, 10), np.float32))
        np.savez(self.folder / "z.npz", z=np.zeros(3))
        np.save(self.folder / "x.npy", np.zeros((1, 3, 24, 24), np.float32))
        self.refuse("has no tensor 'x', which is an input", "verify", self.model, "--reference", self.folder / "y.npz")
        self.refuse("no tensor of", "verify", self.model, "--no-db", "--reference", self.folder / "z.npz", "--input", f"x={self.folder / 'x.npy'}")
        self.refuse("--tolerance: found 'little'", "verify", self.model, "--tolerance", "little")
        self.refuse("'z', which is no input", "verify", self.model, "--no-db", "--input", f"z={self.folder / 'x.npy'}")
        self.refuse("no.npz", "verify", self.model, "--reference", self.folder / "no.npz")

    def test_names_may_be_any_bytes(self):
        model = small_network()
        for node in model.graph.node:
            node.name = "conv\u00e4"
        # Bytes of the same length that are not UTF-8.
        path = self.folder / "bytes.onnx"
        path.write_bytes(model.SerializeToString().replace("conv\u00e4".encode(), b"conv\xff\xfe"))
        report = self.succeed_json("compile", path, "-o", self.library, "--no-db")
        self.assertTrue(any(kernel["name"].startswith("conv\ufffd") for kernel in report["kernels"]), report)

    def test_header_and_prefix(self):
        library = self.folder / "net.so"
        self.succeed("compile", self.model, "-o", library, "--no-db", "--header", "--prefix", "net")
        self.assertIn("net_create", (self.folder / "net.h").read_text())

    def test_another_device_gets_its_own_code(self):
        library = self.folder / "avx2.so"
        self.succeed("compile", self.model, "-o", library, "--no-db", "--device", "x86-64-avx2", "--threads", "1")
        self.assertNotEqual(library.read_bytes(), self.library.read_bytes())

    def test_terminal_gets_a_bar(self):
        main, sub = pty.openpty()
        process = subprocess.Popen([support.HONE, "tune", self.model, "-o", self.library, "--no-db", "--budget", "3s"],
                                   stdout=subprocess.DEVNULL, stderr=sub)
        os.close(sub)
        shown = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            shown += part
        os.close(main)
        self.assertEqual(process.wait(), 0)
        self.assertRegex(shown, rb"\n\[#*-*\] +\d+%  ")
        self.assertTrue(shown.endswith(b"\n"))


if __name__ == "__main__":
    support.main()
