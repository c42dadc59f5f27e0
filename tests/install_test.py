"""An installation, and a program outside the tree (examples/library) that tunes with it: from any folder, and after it was moved."""
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import onnxruntime

import support
from support import Case, HONE

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(HONE).resolve().parent.parent.parent
MODEL = ROOT / "examples" / "small.onnx"
SANITIZE = os.environ.get("HONE_SANITIZE", "")


class Installation(Case):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        self.call("cmake", "--install", BUILD, "--prefix", self.prefix)

    def call(self, *words, code=0, **options):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, **options)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def build_example(self):
        flags = f"-fsanitize={SANITIZE}" if SANITIZE else ""
        self.call("cmake", "-S", ROOT / "examples" / "library", "-B", self.folder / "build", "-G", "Ninja",
                  f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_FLAGS={flags}")
        self.call("cmake", "--build", self.folder / "build")
        return self.folder / "build" / "tune_model"

    def check_outputs(self):
        session = onnxruntime.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"])
        expected, = session.run(None, {session.get_inputs()[0].name: np.load(self.folder / "input_0.npy")})
        output = np.load(self.folder / "output_0.npy")
        self.assertEqual(output.shape, expected.shape)
        np.testing.assert_allclose(output, expected, atol=1e-5)
        self.assertGreater(np.ptp(np.load(self.folder / "input_0.npy")), 0)

    def tune(self, program, **options):
        """Tunes in a process that is not Hone's own program; the number of measurements. On an idle machine it takes a second."""
        text = self.call(program, MODEL, self.folder / "small.so", "30", "8", **options)
        self.check_outputs()
        (self.folder / "output_0.npy").unlink()
        return int(text.split(" trials")[0].rpartition(" ")[2])

    def test_a_program_tunes_with_the_library(self):
        program = self.build_example()
        self.assertGreater(self.tune(program), 0)

        # The installation moves: all that belongs to it is found from the library, wherever that lies.
        moved = self.folder / "elsewhere" / "hone"
        moved.parent.mkdir()
        self.prefix.rename(moved)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(moved / "lib"), "XDG_DATA_HOME": str(self.folder / "new")}
        self.assertGreater(self.tune(program, env=environment), 0)
        # So it is where the loader knows the library by a path that is relative to another folder.
        environment |= {"LD_LIBRARY_PATH": "lib", "XDG_DATA_HOME": str(self.folder / "newer")}
        self.assertGreater(self.tune(program, env=environment, cwd=moved), 0)
        self.call(moved / "bin" / "hone", "tune", MODEL, "-o", self.folder / "by_hone.so", "--budget", "3s")

        # Without the worker there is one message, which names the places.
        worker = moved / "libexec" / "hone" / "hone-worker"
        worker.rename(moved / "worker")
        message = self.call(program, MODEL, self.folder / "small.so", "1", code=1, env=environment, cwd=moved)
        self.assertEqual(len(message.splitlines()), 1, message)
        for place in (worker, moved / "lib" / "hone-worker"):
            self.assertIn(str(place), message)
        environment["HONE_WORKER"] = str(moved / "worker")
        self.assertGreater(self.tune(program, env=environment, cwd=moved), 0)

    def test_pkg_config(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}
        words = self.call("pkg-config", "--cflags", "--libs", "hone", env=environment).split()
        include, folder, library = words
        self.assertTrue((Path(include.removeprefix("-I")) / "hone" / "tune.h").exists(), include)
        self.assertTrue((Path(folder.removeprefix("-L")) / "libhone.so").exists(), folder)
        self.assertEqual(library, "-lhone")

    @unittest.skipIf(SANITIZE, "a sanitizer's library has to come first")
    def test_loaded_into_python(self):
        library = self.prefix / "lib" / "libhone.so"
        self.call(sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library)

    def test_manual_pages_and_completion_come_along(self):
        share = self.prefix / "share"
        self.assertIn("hone tune", (share / "man" / "man1" / "hone-tune.1").read_text())
        for script in ("bash-completion/completions/hone", "zsh/site-functions/_hone", "fish/vendor_completions.d/hone.fish"):
            self.assertIn("tune", (share / script).read_text())

    def test_shipped_records_come_along(self):
        records = list((self.prefix / "share" / "hone" / "records").glob("*.jsonl"))
        self.assertEqual({path.name for path in records}, {path.name for path in (ROOT / "data" / "records").glob("*.jsonl")})


if __name__ == "__main__":
    support.main()
