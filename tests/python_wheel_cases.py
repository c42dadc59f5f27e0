"""What a wheel of the Python package has with it: all that it needs, the program, and a provider for ONNX Runtime.

python_package_test.py runs these with its package."""
import os
import re
import shutil
from pathlib import Path

import numpy as np

import hone
from python_package import MODEL, ROOT, SHAPE, Package, call
from remote_machine import Server


class Wheel(Package):
    def test_it_needs_nothing_of_the_system(self):
        """Neither a linker nor a library but glibc's."""
        used = self.succeed_script("""
            import hone, os
            os.environ["PATH"] = "/nowhere"
            hone.tune(os.environ["MODEL"], "small.so", use_db=False, budget_seconds=60, max_trials=4, threads=1, progress=False)
            print(*(line.split()[-1] for line in open("/proc/self/maps") if ".so" in line), sep="\\n")
            """).split()
        hone.load(self.folder / "small.so", 1)
        package = Path(hone.__file__).parent
        worker = call("ldd", *(package / "prefix" / "libexec" / "hone").iterdir())
        used += re.findall(r"=> (/\S+)", worker)
        named = {"libLLVM", "libprotobuf", "libhwloc", "libsqlite3", "libhone", "libstdc++"}
        self.assertEqual(named - {Path(path).name.split(".so")[0] for path in used}, set())
        ours = [path for path in used if Path(path).name.split(".so")[0] in named and ".so" in Path(path).name]
        self.assertEqual([path for path in ours if not path.startswith(str(package)) and "libstdc++" not in path], [])

    def program(self, *arguments, **environment):
        """What the command `hone` of the package prints, without a linker or a Python in PATH."""
        return call(Path(self.site) / "bin" / "hone", *arguments, cwd=self.folder,
                    env={**os.environ, "PYTHONPATH": str(self.site), "PATH": "/nowhere", **environment})

    def test_it_has_the_program(self):
        prefix = Path(hone.__file__).parent / "prefix"
        self.assertTrue(self.program("version").startswith(f"hone {hone.__version__} "))
        found = self.program("doctor")
        for file in ("hone-worker", "ld.lld"):
            self.assertIn(str((prefix / "libexec" / "hone" / file).resolve()), found)
        self.assertIn("a kernel was compiled, run by a worker and verified", found)
        hone.tune(MODEL, self.folder / "tuned.so", budget_seconds=60, max_trials=8, threads=1, db=self.folder / "hone.db", progress=False)
        self.program("report", "hone.db", "-o", "report.html")
        page = (self.folder / "report.html").read_text()
        self.assertIn("small", page)
        self.assertIn("</html>", page)

    def test_it_tunes_for_a_machine_elsewhere(self):
        os.environ["XDG_CONFIG_HOME"] = str(self.folder / "config")
        self.addCleanup(os.environ.pop, "XDG_CONFIG_HOME")
        program = Path(hone.__file__).parent / "prefix" / "bin" / "hone"
        with Server(program, self.folder / "config" / "hone" / "token") as server:
            model = hone.tune(MODEL, self.folder / "far.so", machine=f"grpc://127.0.0.1:{server.port}", budget_seconds=60, max_trials=4,
                              progress=False, **self.options)
        self.assertTrue(0 < model.summary.trials <= 4)
        np.testing.assert_allclose(model(self.image()), self.expected(self.image()), atol=1e-4)


class OnnxRuntime(Package):
    def test_it_runs_models_by_the_provider_of_the_package(self):
        np.save(self.folder / "image.npy", self.image())
        self.succeed_script("""
            import os, numpy, onnxruntime, onnxruntime_ep_hone
            onnxruntime.register_execution_provider_library("hone", onnxruntime_ep_hone.get_library_path())
            devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == onnxruntime_ep_hone.get_ep_name()]
            options = onnxruntime.SessionOptions()
            options.add_provider_for_devices(devices, {"threads": "1", "db": "none"})
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
            session = onnxruntime.InferenceSession(os.environ["MODEL"], options)
            scores, = session.run(None, {"image": numpy.load("image.npy")})
            numpy.save("scores.npy", scores)
            """)
        np.testing.assert_allclose(np.load(self.folder / "scores.npy"), self.expected(self.image()), atol=1e-5)

    def test_the_examples_run(self):
        """All of them in one program; the last session is that of the model that they have written."""
        found = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "user" / "onnxruntime.md").read_text(), re.M | re.S)
        self.assertEqual(len(found), 2)
        shutil.copy(MODEL, self.folder / "model.onnx")
        np.save(self.folder / "image.npy", self.image())
        last = 'np.save("scores.npy", session.run(None, {"image": np.load("image.npy")})[0])\n'
        self.succeed_script("import os\nos.environ['XDG_DATA_HOME'] = 'data'\n" + "\n".join(found).replace("(1, 3, 224, 224)", repr(SHAPE)) + last)
        np.testing.assert_allclose(np.load(self.folder / "scores.npy"), self.expected(self.image()), atol=1e-5)
        self.assertTrue((self.folder / "compiled_hone_0.so").exists())
