"""What the end-to-end tests share: the program, folders, small models, assertions about how a command ended."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    sys.exit(f"the end-to-end tests need numpy, onnx and onnxruntime ({missing}): run scripts/setup.sh, or configure with -DHONE_E2E=OFF")

for folder in ("models", "benchmarks"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / folder))

HONE = os.environ.get("HONE", "")
SKIPPED = 77  # the exit code that CTest takes for a test that did not run
SANITIZED = os.environ.get("HONE_SANITIZE", "") != ""  # it needs terabytes of addresses, and is slow
PATIENCE = 5 if SANITIZED else 1  # times as long as tests wait elsewhere


def hone(*arguments, timeout=120, **options):
    """Runs the program to its end; a CompletedProcess with text output."""
    return subprocess.run([HONE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout * PATIENCE, **options)


class Case(unittest.TestCase):
    """A test with a folder of its own and no database but those it names."""

    def setUp(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="hone-test")
        self.folder = Path(self._temporary.name)
        self.addCleanup(self._temporary.cleanup)
        os.environ["XDG_DATA_HOME"] = str(self.folder / "data")

    def succeed(self, *arguments, **options):
        done = hone(*arguments, **options)
        self.assertEqual(done.returncode, 0, f"hone {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def succeed_json(self, *arguments, **options):
        return json.loads(self.succeed(*arguments, "--json", **options))

    def outputs(self, path, inputs, *options):
        """The outputs of a run, by name, with these arrays as inputs."""
        arguments = []
        for name, array in inputs.items():
            np.save(self.folder / f"{name}.npy", array)
            arguments += ["--input", f"{name}={self.folder / name}.npy"]
        printed = self.succeed_json("run", path, *arguments, *options, "--output-dir", self.folder / "out")
        return {output["name"]: np.load(self.folder / "out" / output["file"]) for output in printed["outputs"]}

    def refuse(self, message, *arguments, **options):
        """Bad input: exit code 2, one line that holds `message`, and no file appears or disappears in the folder. On a slow machine
        `tune` may show its progress before."""
        before = self.files()
        done = hone(*arguments, **options)
        self.assertEqual(done.returncode, 2, f"exit code {done.returncode}: {done.stderr}")
        lines = done.stderr.splitlines()
        if arguments[:1] == ("tune",):
            lines = lines[-1:]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("hone: "), lines[0])
        self.assertIn(message, lines[0])
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.files(), before)
        return lines[0]

    def files(self):
        """All but what SQLite keeps beside an open database."""
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        return {name for name in found if not name.endswith(("-wal", "-shm"))}

    def save(self, model, name="model.onnx"):
        path = self.folder / name
        onnx.save_model(model, path)
        return path


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def make_model(nodes, inputs, outputs, constants=(), opset=17):
    """constants: {name: array}. Not checked: tests make bad models, too."""
    initializers = [numpy_helper.from_array(array, name) for name, array in dict(constants).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


def relu_model(shape=(1, 4)):
    return make_model([helper.make_node("Relu", ["x"], ["y"], name="relu")], [value("x", shape)], [value("y", shape)])


def small_network(size=24, channels=16):
    """Two convolutions, a pooling and a classifier: a network that is tuned in seconds."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((channels, 3, 3, 3)) / 5, "b1": rng.standard_normal(channels),
        "w2": rng.standard_normal((channels, channels, 3, 3)) / 12, "b2": rng.standard_normal(channels),
        "w3": rng.standard_normal((10, channels)) / 4, "b3": rng.standard_normal(10)}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name="conv2", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="classify", transB=1)]
    return make_model(nodes, [value("x", (1, 3, size, size))], [value("y", (1, 10))],
                      {name: array.astype(np.float32) for name, array in weights.items()})


def reference(path, inputs):
    """ONNX Runtime's outputs."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs), strict=True))


def relative_error(found, expected):
    difference = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max()
    return float(difference / np.abs(expected).max())


def exit_code(result):
    """Returns the exit code of a program with these results of its tests. CTest shows one as skipped of which no test
    ran."""
    skipped = [(test, why) for test, why in result.skipped if not hasattr(test, "test_case")]  # a part of a test has the test
    # A class or module that was skipped as a whole is no test, and none of its tests is counted as run.
    ran = result.testsRun - sum(isinstance(test, unittest.TestCase) for test, _ in skipped)
    if not result.wasSuccessful():
        return 1
    if not skipped or ran > 0:
        return 0
    for why in dict.fromkeys(why for _, why in skipped):
        print(f"skipped: {why}", flush=True)
    return SKIPPED


def main():
    if not os.access(HONE, os.X_OK):
        sys.exit(f"set HONE to the program to test; found '{HONE}'")
    sys.exit(exit_code(unittest.main(verbosity=2, exit=False).result))
