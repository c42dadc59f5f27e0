"""A library that is written to standard output: nothing else is, and the report is on standard error."""
import json
import os
import struct
import subprocess

import support
from support import HONE, Case, relu_model


class Piped(Case):
    def setUp(self):
        super().setUp()
        self.model = self.save(relu_model())

    def piped(self, *arguments):
        """The bytes behind the pipe, and the text on standard error."""
        done = subprocess.run([HONE, *map(str, arguments)], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr.decode()

    def check(self, library):
        """It is a whole library, and nothing but that."""
        path = self.folder / "copy.so"
        path.write_bytes(library)
        self.succeed("run", path)
        headers = int.from_bytes(library[32:40], "little")
        segments = [struct.unpack_from("<II6Q", library, headers + 56 * i) for i in range(int.from_bytes(library[56:58], "little"))]
        end = max(offset + size for kind, _, offset, _, _, size, _, _ in segments if kind == 1)
        self.assertEqual(len(library), end, "the weights are the last of it, and they are loaded")

    def test_compile(self):
        for output in ("/dev/stdout", "/proc/self/fd/1"):
            library, report = self.piped("compile", self.model, "-o", output, "--no-db")
            self.check(library)
            self.assertIn(f"wrote {output}: ", report)
            self.assertNotIn(" 0 bytes in", report)
            library, report = self.piped("compile", self.model, "-o", output, "--no-db", "--json")
            self.check(library)
            self.assertEqual(json.loads(report)["bytes"], len(library))

    def test_tune(self):
        library, report = self.piped("tune", self.model, "-o", "/dev/stdout", "--no-db", "--budget", "2s")
        self.check(library)
        self.assertIn("wrote /dev/stdout: ", report)

    def test_a_static_library(self):
        library, report = self.piped("compile", self.model, "-o", "/dev/stdout", "--static", "--no-db", "--json")
        self.assertTrue(library.startswith(b"!<arch>\n"))
        self.assertEqual(json.loads(report)["bytes"], len(library))

    def test_another_pipe_knows_its_size(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with open(self.folder / "copy.so", "wb") as copy, subprocess.Popen(["cat", pipe], stdout=copy) as reader:
            report = self.succeed_json("compile", self.model, "-o", pipe, "--no-db")
            self.assertEqual(reader.wait(timeout=60), 0)
        self.assertEqual(report["bytes"], (self.folder / "copy.so").stat().st_size)

    def test_a_file_leaves_the_report_where_it_was(self):
        report, errors = self.piped("compile", self.model, "-o", self.folder / "out.so", "--no-db")
        self.assertIn(b"wrote ", report)
        self.assertEqual(errors, "")
        with open("/dev/null", "wb") as null:
            done = subprocess.run([HONE, "compile", self.model, "-o", "/dev/null", "--no-db"], stdout=null, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, b""))


if __name__ == "__main__":
    support.main()
