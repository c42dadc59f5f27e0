"""Libraries as a program takes them in: static and shared, the caller's threads, what the file holds and requires."""
import os
import re
import subprocess
import time
from pathlib import Path

import numpy as np

import support
from support import Case, helper, make_model, small_network, value

SOURCE = Path(__file__).resolve().parent / "embedding" / "run_model.c"


def matmuls(weights):
    """x @ w0 @ w1 ... with relu between."""
    nodes, last = [], "x"
    for i in range(len(weights)):
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"], name=f"m{i}"),
                  helper.make_node("Relu", [f"m{i}"], [f"y{i}"], name=f"r{i}")]
        last = f"y{i}"
    return make_model(nodes, [value("x", (4, 256))], [value(last, (4, 256))],
                      {f"w{i}": weight for i, weight in enumerate(weights)})


class Program(Case):
    """A C program with the model inside gives the bits that `hone run` gives."""

    def setUp(self):
        super().setUp()
        self.model = self.save(small_network(size=48, channels=32))
        self.x = np.random.default_rng(1).standard_normal((1, 3, 48, 48)).astype(np.float32)
        np.save(self.folder / "x.npy", self.x)
        (self.folder / "input.bin").write_bytes(self.x.tobytes())
        self.succeed("compile", self.model, "-o", self.folder / "model.so", "--no-db", "--header")
        self.succeed("run", self.folder / "model.so", "--input", f"x={self.folder / 'x.npy'}", "--output-dir", self.folder)
        self.expected = np.load(self.folder / "y.npy").tobytes()

    def build(self, library):
        program = self.folder / "program"
        link = [str(library), "-lpthread", "-lm"] if library.suffix == ".a" else [str(library)]
        built = subprocess.run(["cc", "-O1", "-Wall", "-Werror", f"-I{self.folder}", SOURCE, *link, "-o", program],
                               capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        return program

    def run_program(self, program, *arguments):
        output = self.folder / "output.bin"
        done = subprocess.run([program, self.folder / "input.bin", output, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(output.read_bytes(), self.expected)
        return done.stdout

    def test_runs_without_allocating(self):
        self.succeed("compile", self.model, "-o", self.folder / "model.a", "--no-db", "--header")
        for library in ("model.so", "model.a"):
            program = self.build(self.folder / library)
            for threads in ("0", "1", "2"):
                with self.subTest(library=library, threads=threads):
                    self.assertIn("0 allocations in 50 runs, 0 calls", self.run_program(program, threads))

    def test_runs_on_the_callers_threads(self):
        program = self.build(self.folder / "model.so")
        for threads in ("1", "2", "7"):
            with self.subTest(threads=threads):
                said = self.run_program(program, threads, "own")
                calls, used = map(int, re.search(r"(\d+) calls of the pool, (\d+) threads", said).groups())
                self.assertEqual(calls > 0, used > 1, said)
                if threads != "1":
                    self.assertGreater(used, 1, said)

    def test_tuning_writes_a_static_library(self):
        library = self.folder / "tuned.a"
        report = self.succeed_json("tune", self.model, "-o", library, "--no-db", "--budget", "12s", "--prefix", "hone_model")
        self.assertGreater(report["model_seconds"], 0)
        self.assertEqual(report["bytes"], library.stat().st_size)
        program = self.build(library)
        found = self.folder / "output.bin"
        subprocess.run([program, self.folder / "input.bin", found, "2"], check=True, capture_output=True)
        found = np.frombuffer(found.read_bytes(), np.float32)
        self.assertLess(support.relative_error(found, np.frombuffer(self.expected, np.float32)), 1e-4)

    def test_static_by_option(self):
        library = self.folder / "model.lib"
        self.succeed("compile", self.model, "-o", library, "--no-db", "--static")
        self.assertEqual(library.read_bytes()[:8], b"!<arch>\n")
        for command in ("run", "bench"):
            self.refuse("is a static library, expected a shared one or an ONNX model", command, library)


class File(Case):
    def test_is_the_same_in_any_process_folder_and_time(self):
        """With what was tuned, too: the same database gives the same bytes."""
        model = self.save(small_network())
        db = self.folder / "trials.db"
        self.succeed("tune", model, "-o", self.folder / "tuned.so", "--db", db, "--budget", "4s", "--threads", "1")
        first, second = self.folder / "first", self.folder / "a second folder"
        for extension in ("so", "a"):
            for options in (["--no-db"], ["--db", db]):
                with self.subTest(extension=extension, options=options):
                    files = []
                    for i, folder in enumerate((first, second)):
                        folder.mkdir(exist_ok=True)
                        environment = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C" if i else "C.UTF-8"}
                        self.succeed("compile", model, "-o", f"net.{extension}", "--threads", "1", *options, cwd=folder, env=environment)
                        files.append((folder / f"net.{extension}").read_bytes())
                        time.sleep(1.1 * (1 - i))
                    self.assertEqual(files[0], files[1])
                    self.assertNotIn(b"second folder", files[1])
        self.assertNotEqual((first / "net.so").read_bytes(), b"")

    def test_holds_equal_weights_once(self):
        rng = np.random.default_rng(0)
        weights = [rng.standard_normal((256, 256)).astype(np.float32) for _ in range(4)]
        sizes = {}
        for name, chosen in (("equal", [weights[0]] * 4), ("different", weights)):
            for extension in ("so", "a"):
                library = self.folder / f"{name}.{extension}"
                self.succeed("compile", self.save(matmuls(chosen)), "-o", library, "--no-db")
                sizes[name, extension] = library.stat().st_size
        for extension in ("so", "a"):
            saved = sizes["different", extension] - sizes["equal", extension]
            self.assertAlmostEqual(saved, 3 * weights[0].nbytes, delta=8192)

    def test_requires_the_cpu_it_was_compiled_for(self):
        """A requirement that no CPU meets, faked in the file: a message, not a crash."""
        model = self.save(small_network())
        library = self.folder / "model.so"
        self.succeed("compile", model, "-o", library, "--no-db", "--device", "x86-64-avx2" if os.uname().machine == "x86_64" else "host")
        code = library.read_bytes()
        start = re.search(rb"HONEPLAN[\x01-\x7f]\0\0\0", code).start()  # its version follows
        end = start + int.from_bytes(code[start + 16:start + 24], "little")
        plan = code[start:end]
        known = next(name for name in (b"avx2", b"neon") if b"\0" + name + b"\0" in plan)
        plan = plan.replace(b"\0" + known + b"\0", b"\0zzz2\0")
        library.write_bytes(code[:start] + plan + code[end:])
        self.refuse("compiled for a CPU with zzz2, which this machine does not have", "run", library)

    def test_for_a_cpu_that_is_not_here(self):
        """--device: real code for another CPU is refused by name when it lacks what it needs."""
        devices = {"x86-64-avx512": "avx512f", "x86-64-avx2": "avx2"}
        flags = Path("/proc/cpuinfo").read_text()
        lacking = [device for device, flag in devices.items() if f" {flag}" not in flags]
        model = self.save(small_network())
        for device in devices:
            library = self.folder / f"{device}.so"
            if os.uname().machine != "x86_64":
                self.refuse("kernels for x86-64 cannot be linked", "compile", model, "-o", library, "--no-db", "--device", device)
                continue
            self.succeed("compile", model, "-o", library, "--no-db", "--device", device)
            if device in lacking:
                self.refuse("compiled for a CPU with", "run", library)
            else:
                self.succeed("run", library)
        self.refuse("no-such-device", "compile", model, "-o", self.folder / "x.so", "--no-db", "--device", "no-such-device")

    def test_prefix_is_a_c_identifier(self):
        model = self.save(small_network())
        for prefix in ("2net", "a-b", "", "n\u00e4h", "a b"):
            self.refuse("expected a C identifier", "compile", model, "-o", self.folder / "x.so", "--no-db", "--header", "--prefix", prefix)
        for prefix in ("int", "class"):
            self.refuse("which C, C++ or libc uses", "tune", model, "-o", self.folder / "x.a", "--no-db", "--prefix", prefix)
        for prefix in ("hone", "Net_2"):
            library = self.folder / f"{prefix}.a"
            self.succeed("compile", model, "-o", library, "--no-db", "--header", "--prefix", prefix)
            main = self.folder / "main.c"
            main.write_text(f'#include "{prefix}.h"\nint main(void) {{ {prefix}* m; '
                            f'return {prefix}_create(&m, 1) != 0 || {prefix}_abi_version() != HONE_ABI_VERSION; }}\n')
            program = self.folder / "main"
            subprocess.run(["cc", main, library, "-o", program, "-lpthread", "-lm"], check=True)
            subprocess.run([program], check=True)
            symbols = subprocess.run(["nm", "-g", "--defined-only", library], capture_output=True, text=True, check=True).stdout
            names = [line.split()[-1] for line in symbols.splitlines() if " T " in line]
            self.assertGreater(len(names), 15)
            self.assertFalse([name for name in names if not name.startswith(prefix + "_")], names)


if __name__ == "__main__":
    support.main()
