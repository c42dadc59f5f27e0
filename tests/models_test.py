"""Whole models: compiled with default schedules, run through the tool and the C interface, compared with ONNX Runtime."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import support  # first: it says where the others are
from support import Case

import engines
import model_files

TOLERANCE = 1e-4  # of the largest output
DEFAULT_ACCURACY = 1e-3  # likewise: what --accuracy default promises of a whole model, against a strict build
# What a default build is predicted to take (on x86-64-avx2) that a strict one may not.
ALGORITHMS = {"bert_base_s128": "strassen"}


def variants(inputs, count):
    """`count` batches of one: the inputs, then rotated ones."""
    return [{key: np.roll(array, i, axis=-1) for key, array in inputs.items()} for i in range(count)]


def matched_detections(found, expected):
    """The share of the expected detections that were found. Not one by one: scores that rounding makes equal change places."""
    hits = 0
    for box, score, label in zip(expected["boxes"], expected["scores"], expected["labels"], strict=True):
        near = np.abs(found["boxes"] - box).max(axis=1) <= 1e-4 * np.abs(expected["boxes"]).max()
        hits += bool((near & (found["labels"] == label) & (np.abs(found["scores"] - score) <= 1e-5)).any())
    return hits / len(expected["scores"])


def joined(parts):
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


class Models(Case):
    def check(self, name, batch=1):
        parts = variants(model_files.inputs(name), batch)
        inputs = joined(parts)
        model = model_files.filled(name)
        library = self.folder / "model.so"
        shapes = [f"--shape={key}={'x'.join(map(str, array.shape))}" for key, array in inputs.items()] if batch > 1 else []
        report = self.succeed_json("compile", model, "-o", library, "--no-db", "--no-check", "--threads", 2, *shapes, timeout=200)
        self.assertGreater(len(report["kernels"]), 5)
        arguments = []
        for key, array in inputs.items():
            np.save(self.folder / f"{key}.npy", array)
            arguments += ["--input", f"{key}={self.folder / key}.npy"]
        self.succeed("run", library, *arguments, "--output-dir", self.folder, "--threads", 2)
        expected = joined([support.reference(model, part) for part in parts])
        found = {key: np.load(self.folder / f"{key}.npy") for key in expected}
        if "labels" in expected:
            self.assertEqual(found["labels"].shape, expected["labels"].shape)
            self.assertGreaterEqual(matched_detections(found, expected), 0.98)
        else:
            for key, array in expected.items():
                self.assertLessEqual(support.relative_error(found[key], array), TOLERANCE, f"output {key}")
        # The number of threads changes who computes a tile, not what is computed.
        outputs = {}
        for threads in (1, 2):
            engine = engines.Hone(library, inputs, threads)
            outputs[threads] = [array.copy() for array in engine.run()]
            for again, first in zip(engine.run(), outputs[threads], strict=True):
                np.testing.assert_array_equal(again, first)
            engine.close()
        for one, two in zip(outputs[1], outputs[2], strict=True):
            np.testing.assert_array_equal(one, two)

    def check_accuracy(self, name):
        """The same device on every machine, so that the same algorithms are predicted."""
        inputs, found = model_files.inputs(name), {}
        for accuracy in ("strict", "default"):
            library = self.folder / f"{accuracy}.so"
            report = self.succeed_json("compile", model_files.filled(name), "-o", library, "--no-db", "--no-check", "--threads", 1,
                                       "--device", "x86-64-avx2", "--accuracy", accuracy, timeout=200)
            others = {algorithm for algorithm in ("winograd", "strassen")
                      if any(f"{algorithm}(" in kernel["steps"] for kernel in report["kernels"])}
            if accuracy == "strict":
                self.assertEqual(others, set())
            else:
                self.assertIn(ALGORITHMS.get(name, "winograd"), others)
            engine = engines.Hone(library, inputs, 1)
            found[accuracy] = [array.copy() for array in engine.run()]
            engine.close()
        for default, strict in zip(found["default"], found["strict"], strict=True):
            error = support.relative_error(default, strict)
            self.assertGreater(error, 0, "the same sums in both")
            self.assertLess(error, DEFAULT_ACCURACY)

    def test_with_sequence(self):
        """A text model of fewer tokens computes what the whole one does where the others are masked; Hone lists its kernels."""
        model, short = model_files.filled("bert_base_s128"), self.folder / "bert_base_s64.onnx"
        scripts = Path(model_files.__file__).parent.parent / "models"
        command = [sys.executable, scripts / "with_sequence.py", model]
        subprocess.run([*command, "64", short], check=True, timeout=120)
        inputs = model_files.inputs("bert_base_s128")
        inputs["attention_mask"] = (np.arange(128) < 64).astype(np.int64).reshape(1, 128)
        expected = support.reference(model, inputs)
        found = support.reference(short, {key: array[:, :64] for key, array in inputs.items()})
        for key, array in expected.items():
            self.assertLessEqual(support.relative_error(found[key], array), TOLERANCE, f"output {key}")
        any_number = self.folder / "bert_base_open.onnx"
        subprocess.run([sys.executable, scripts / "open_sequence.py", model, "seq", any_number], check=True, timeout=120)
        followed = support.reference(any_number, {key: array[:, :64] for key, array in inputs.items()})
        for key, array in found.items():
            self.assertLessEqual(support.relative_error(followed[key], array), TOLERANCE, f"output {key}")
        listed = self.succeed_json("dataset", "make", short, "--list", "--db", self.folder / "none.db")
        self.assertGreater(len(listed["tasks"]), 5)
        refused = subprocess.run([*command, "1000", short], capture_output=True, text=True, timeout=120)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("knows 512 positions", refused.stderr)


for model_entry in model_files.entries():
    setattr(Models, f"test_{model_entry['name']}", lambda self, name=model_entry["name"]: self.check(name))
    setattr(Models, f"test_{model_entry['name']}_accuracy", lambda self, name=model_entry["name"]: self.check_accuracy(name))
    setattr(Models, f"test_{model_entry['name']}_batch4", lambda self, name=model_entry["name"]: self.check(name, 4))


if __name__ == "__main__":
    support.main()
