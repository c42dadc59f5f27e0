"""--max-memory of the commands that take memory themselves: what needs more ends with one line that names the bound, what it is
for and how much, and takes no more than that before."""
import os
import resource
import subprocess
import sys
import unittest

import numpy as np

import support
from support import HONE, SANITIZED, Case, TensorProto, helper, make_model, relu_model, value

BOUND = 64 << 20
ALLOWED = f"expected at most {BOUND} bytes in all, the bound of --max-memory"
COMMANDS = (("show",), ("explain", "--task", "1"), ("verify",), ("run",), ("bench", "--repeat", "1"))
OVER_SOME_PAGES = 100 << 20  # the program itself and what it maps
# Runs a program and prints the KiB that it took at most. What starts it counts, too, so that this one is small.
LARGEST = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(used.ru_maxrss)
child.returncode = os.waitstatus_to_exitcode(status)
sys.exit(child.returncode)
"""

# The stacks of the threads count, and there is one for each core.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])


def command_on(command, model, *options):
    return [command[0], model, *command[1:], *([] if command[0] in ("run", "bench") else ["--no-db"]), *options]


class Bounded(Case):
    def refuse_bounded(self, message, command, model, *options):
        return self.refuse(message, *command_on(command, model, "--max-memory", "64M", *options))

    def filled(self, elements):
        """A constant of so many elements that the model's file does not hold."""
        nodes = [helper.make_node("ConstantOfShape", ["s"], ["f"], name="fill"), helper.make_node("Add", ["f", "x"], ["y"])]
        return self.save(make_model(nodes, [value("x", (1,))], [value("y", None)], {"s": np.array([elements])}), "filled.onnx")

    def sparse(self, name, size):
        path = self.folder / name
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (size // 4,)})
            file.truncate(file.tell() + size)
        return path


class Option(Bounded):
    def test_nonsense_is_refused(self):
        model = self.save(relu_model())
        for command in COMMANDS:
            for text in ("0", "-1", "0M", "64MB", "64m", "much", "1e3", "nan", "9999999999999G", "1M1", " 64M"):
                with self.subTest(command[0], text=text):
                    self.refuse("--max-memory: ", *command_on(command, model, f"--max-memory={text}"))

    def test_enough_is_enough(self):
        model = self.save(relu_model())
        for command in COMMANDS:
            for text in ("1G", "1.5G", "900000G"):  # the last one: no machine has that
                with self.subTest(command[0], text=text):
                    self.succeed(*command_on(command, model, "--max-memory", text))

    def test_the_lower_bound_counts(self):
        if SANITIZED:
            self.skipTest("a sanitizer needs more than ulimit -d allows")
        limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_DATA, (BOUND, BOUND))}
        model = self.filled(1 << 27)
        for options in ((), ("--max-memory", "1G")):
            self.refuse(f"expected at most {BOUND} bytes in all, the limit of ulimit -d", "show", model, "--no-db", *options, **limited)
        self.refuse(f"expected at most {BOUND // 2} bytes in all, the bound of --max-memory", "show", model, "--no-db", "--max-memory", "32M", **limited)


class Files(Bounded):
    """Their sizes tell beforehand."""

    def test_arrays(self):
        array = self.sparse("x.npy", BOUND)
        model = self.save(relu_model())
        for command, option in (("run", "--input"), ("verify", "--input"), ("run", "--bind"), ("bench", "--bind"), ("show", "--bind"), ("explain", "--bind")):
            with self.subTest(command, option=option):
                line = self.refuse_bounded("x.npy", next(c for c in COMMANDS if c[0] == command), model, option, f"x={array}")
                self.assertIn(f"expected at most {BOUND // 4 * 3}, as three quarters of the bound of --max-memory", line)

    def test_external_data(self):
        model = make_model([helper.make_node("Gather", ["w", "i"], ["y"])], [value("i", (2,), TensorProto.INT64)], [value("y", None)])
        tensor = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[BOUND // 4])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=self.sparse("w.bin", BOUND).name)
        path = self.save(model)
        for command in COMMANDS:
            with self.subTest(command[0]):
                line = self.refuse_bounded(f"initializer 'w' of shape [{BOUND // 4}] has {BOUND} bytes of external data", command, path)
                self.assertIn("the bound of --max-memory", line)

    def test_models(self):
        weights = np.zeros(BOUND // 4, np.float32)
        path = self.save(make_model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", (1,))], [value("y", None)], {"w": weights}))
        for command in COMMANDS:
            with self.subTest(command[0]):
                line = self.refuse_bounded(f"cannot read '{path}': it has {path.stat().st_size} bytes", command, path)
                self.assertIn("the bound of --max-memory", line)


class Values(Bounded):
    def refuse_small(self, message, command, model, *options):
        """And the process stays small on the way."""
        arguments = [HONE, *map(str, command_on(command, model, "--max-memory", "64M", *options))]
        done = subprocess.run([sys.executable, "-S", "-c", LARGEST, *arguments], capture_output=True, text=True, timeout=120 * support.PATIENCE)
        line = done.stderr
        self.assertEqual(done.returncode, 2, line)
        self.assertEqual(line.count("\n"), 1, line)
        self.assertIn(message, line)
        if not SANITIZED:
            self.assertLess(int(done.stdout) << 10, BOUND + OVER_SOME_PAGES)
        return line

    def test_constants_that_are_computed(self):
        model = self.filled(1 << 27)
        for command in COMMANDS:
            with self.subTest(command[0]):
                self.refuse_small(f"out of memory for node 'fill' (ConstantOfShape): {1 << 29} bytes more, {ALLOWED}", command, model)

    def test_inputs_and_outputs(self):
        model = self.save(relu_model((1 << 28,)))
        self.refuse_small(f"out of memory for input 'x': {1 << 30} bytes more, {ALLOWED}", ("verify",), model)
        for command in (("run",), ("bench", "--repeat", "1")):
            self.refuse_small(ALLOWED, command, model)
        self.succeed("show", model, "--no-db", "--max-memory", "1G")  # which runs nothing

    def test_a_library(self):
        library = self.folder / "large.so"
        self.succeed("compile", self.save(relu_model((1 << 26,))), "-o", library, "--no-db", "--no-check")
        for command in (("run",), ("bench", "--repeat", "1")):
            line = self.refuse_small("bytes of memory, " if not SANITIZED else "out of memory for input 'x'", command, library)
            self.assertIn(ALLOWED, line)

    def large_values(self, rows):
        """Seven values of 8 KiB a row."""
        nodes = [helper.make_node("Expand", ["x", "s"], ["n0"], name="grow")]
        nodes += [helper.make_node("MaxPool", [f"n{i}"], [f"n{i + 1}"], name=f"pool{i}", kernel_shape=[3, 3], pads=[1] * 4) for i in range(6)]
        nodes.append(helper.make_node("ReduceMax", ["n6"], ["y"]))
        return self.save(make_model(nodes, [value("x", (1, 1, 1, 1))], [value("y", None)], {"s": np.array([1, 1, rows, 2048])}), "large.onnx")

    def test_values_between_nodes(self):
        """Each fits, but not all at once: they are kept to be compared."""
        if SANITIZED:
            self.skipTest("a sanitizer's allocator has no bound but that of one array")
        path = self.large_values(2048)
        line = self.refuse_small(ALLOWED, ("verify",), path)
        self.assertRegex(line, rf"out of memory for node 'pool\d' \(MaxPool\): {16 << 20} bytes more")
        self.succeed("verify", path, "--no-db", "--max-memory", "512M")

    def test_the_library_that_is_made_first(self):
        """It needs two of the values at a time."""
        path = self.large_values(4096)
        for command in (("run",), ("bench", "--repeat", "1")):
            line = self.refuse_bounded("than the 64.00 MiB that are allowed (TargetOptions::max_memory, --max-memory)", command, path)
            self.assertIn("between kernels", line)
            self.succeed(*command_on(command, path, "--max-memory", "256M"))


if __name__ == "__main__":
    support.main()
