"""Libraries for Arm, made here and run by qemu's emulation of user programs: which results are right, and nothing of speed."""
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import support  # first: it says where the others are
from support import Case

import engines
import half_types_test as halves
import in_half
import model_files

QEMU, COMPILER = "qemu-aarch64-static", "aarch64-linux-gnu-gcc"
SYSTEM = "/usr/aarch64-linux-gnu"  # the libraries of Debian's cross compiler
SOURCE = Path(__file__).resolve().parent / "embedding" / "run_library.c"
EXCLUSIONS = Path(__file__).resolve().parent / "conformance" / "exclusions_onnx.txt"
CASES = Path(os.environ.get("HONE_CASES", ""))
EVERY = 48  # one of so many conformance cases runs, beside those with an operator that none before had
DEVICES = ("aarch64-neon", "neoverse-n1", "neoverse-v1", "cortex-a72", "cortex-a53")
# Their inputs are numbers that decide shapes: with those bound nothing is left to compute.
NOT_RUN = {"BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"}
MODELS = ("squeezenet1_1", "mobilenet_v2", "mnasnet1_0", "ssdlite320_raw")  # those with the least arithmetic


class OnArm(Case):
    @classmethod
    def setUpClass(cls):
        for program in (QEMU, COMPILER):
            if shutil.which(program) is None:
                sys.exit(f"there is no {program}: run scripts/setup.sh")

    def setUp(self):
        super().setUp()
        self.runner = self.folder / "runner"
        subprocess.run([COMPILER, "-O1", "-Wall", "-Werror", SOURCE, "-o", self.runner, "-ldl"], check=True)

    def compile(self, model, device="aarch64-neon", *options):
        library = self.folder / "model.so"
        self.succeed("compile", model, "-o", library, "--device", device, "--threads", 1, "--no-db", *options, timeout=300)
        return library

    def run_library(self, library, arrays, kinds):
        """The outputs, whose types are `kinds`."""
        given, written = self.folder / "input.bin", self.folder / "output.bin"
        given.write_bytes(b"".join(array.tobytes() for array in arrays))
        done = subprocess.run([QEMU, "-L", SYSTEM, self.runner, library, given, written], capture_output=True, text=True, timeout=600)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        data, outputs = written.read_bytes(), []
        for kind in kinds:
            rank = int(np.frombuffer(data, np.int64, 1)[0])
            shape = np.frombuffer(data, np.int64, rank, 8)
            count, start = int(np.prod(shape)), 8 + 8 * rank
            outputs.append(np.frombuffer(data, kind, count, start).reshape(shape))
            data = data[start + count * outputs[-1].itemsize:]
        self.assertEqual(data, b"")
        return outputs

class Networks(OnArm):
    def check_model(self, name):
        inputs, model = model_files.inputs(name), model_files.filled(name)
        expected = support.reference(model, inputs)
        ours = [array.dtype for array in expected.values()]
        graph = onnx.load(model, load_external_data=False).graph
        arrays = [inputs[value.name] for value in graph.input if value.name in inputs]
        found = self.run_library(self.compile(model), arrays, ours)
        for (key, array), other in zip(expected.items(), found, strict=True):
            self.assertLessEqual(support.relative_error(other, array), 1e-4, key)

    def test_a_network_on_each_processor_and_as_a_static_library(self):
        model = self.save(support.small_network(size=24, channels=16))
        x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
        (expected,) = support.reference(model, {"x": x}).values()
        for device in DEVICES:
            with self.subTest(device=device):
                (found,) = self.run_library(self.compile(model, device), [x], [np.float32])
                self.assertLessEqual(support.relative_error(found, expected), 1e-5)
        self.succeed("compile", model, "-o", self.folder / "model.a", "--device", "aarch64-neon", "--no-db", "--header")
        program = self.folder / "static.so"
        subprocess.run([COMPILER, "-shared", "-Wl,--whole-archive", self.folder / "model.a", "-Wl,--no-whole-archive", "-o", program, "-lm"], check=True)
        (found,) = self.run_library(program, [x], [np.float32])
        self.assertLessEqual(support.relative_error(found, expected), 1e-5)

    def test_half_types(self):
        x = np.random.default_rng(1).standard_normal((24, 256)).astype(np.float32)
        for kind, stored in (("float16", np.float16), ("bfloat16", np.uint16)):
            given = halves.in_type(x, kind)
            oracle = self.save(halves.rounded_model(halves.large_products(), kind), "oracle.onnx")
            (expected,) = support.reference(oracle, {"x": halves.as_float32(given)}).values()
            model = self.save(in_half.in_half(halves.large_products(), kind))
            for device in ("aarch64-neon", "neoverse-v1"):
                with self.subTest(kind=kind, device=device):
                    (found,) = self.run_library(self.compile(model, device), [given], [stored])
                    found = found.view(np.float16 if kind == "float16" else "V2")
                    self.assertLessEqual(support.relative_error(halves.as_float32(found), expected), halves.TOLERANCE[kind])

    def test_what_the_library_needs(self):
        library = self.compile(self.save(support.small_network(size=24, channels=16)))
        text = subprocess.run(["aarch64-linux-gnu-readelf", "-hd", library], capture_output=True, text=True, check=True).stdout
        self.assertIn("AArch64", text)
        self.assertIn("[libc.so.6]", text)
        self.assertNotIn("libstdc++", text)
        self.refuse("is a shared library for another machine than x86-64", "run", library)


for _name in MODELS:
    setattr(Networks, f"test_{_name}", lambda self, name=_name: self.check_model(name))


def shapes_of(names, arrays):
    return [f"--shape={name}={'x'.join(map(str, array.shape))}" for name, array in zip(names, arrays, strict=False) if array.ndim > 0]


@unittest.skipIf(not CASES.name, "HONE_CASES is not set")
class Operators(OnArm):
    def case_arrays(self, folder, kind):
        arrays = []
        for i in range(len(list(folder.glob(f"{kind}_*.pb")))):
            arrays.append(numpy_helper.to_array(onnx.TensorProto.FromString((folder / f"{kind}_{i}.pb").read_bytes())))
        return arrays

    def bindings(self, names, arrays):
        options = []
        for name, array in zip(names, arrays, strict=False):
            path = self.folder / f"bound_{len(options)}.npy"
            np.save(path, array)
            options.append(f"--bind={name}={path}")
        return options

    def check_case(self, folder):
        model = onnx.load(folder / "model.onnx")
        data = folder / "test_data_set_0"
        given, expected = self.case_arrays(data, "input"), self.case_arrays(data, "output")
        constants = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in constants]
        for bound in sorted({0, max(len(given) - 1, 0)}):  # inputs whose values decide shapes are mostly behind the first one
            free, values = given[:len(given) - bound], given[len(given) - bound:]
            done = support.hone("compile", folder / "model.onnx", "-o", self.folder / "model.so", "--device", "aarch64-neon", "--threads", 1, "--no-db",
                                *shapes_of(names, free), *self.bindings(names[len(free):], values))
            if done.returncode != 2:
                break
        else:
            return False
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.run_library(self.folder / "model.so", free, [array.dtype for array in expected])
        relative, absolute = map(float, (folder / "tolerance").read_text().split())
        for ours, array in zip(found, expected, strict=True):
            self.assertEqual(ours.shape, array.shape)
            np.testing.assert_allclose(ours.astype(np.float64), array.astype(np.float64), max(relative, 1e-4), max(absolute, 1e-6))
        return True

    def test_conformance_cases_of_every_operator(self):
        excluded = {line.split(":")[0] for line in EXCLUSIONS.read_text().splitlines()}
        cases = [folder for folder in sorted(CASES.iterdir()) if (folder / "test_data_set_0").is_dir() and not (folder / "skip").exists()
                 and folder.name not in excluded and "bfloat16" not in folder.name]
        ran, known, met = 0, set(), set()
        for i, folder in enumerate(cases):
            operators = {(node.domain, node.op_type) for node in onnx.load(folder / "model.onnx").graph.node}
            known |= operators
            if i % EVERY != 0 and operators <= met:
                continue
            with self.subTest(case=folder.name):
                if self.check_case(folder):
                    ran += 1
                    met |= operators
        print(f"{ran} of {len(cases)} cases ran; of {len(known)} operators none ran for {', '.join(sorted(name for _, name in known - met)) or '-'}")
        self.assertEqual({name for _, name in known - met}, NOT_RUN)
        self.assertGreater(ran, len(cases) // EVERY + len(known) // 2)


if __name__ == "__main__":
    support.main()
