"""The Python package, built and installed as a user does it: what its tests share.

python_package.py FOLDER makes it in FOLDER/site, for the tests that find it by HONE_PYTHON_SITE."""
import inspect
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

import support
from support import Case, HONE

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(HONE).resolve().parent.parent.parent
MODEL = ROOT / "examples" / "small.onnx"
SHAPE = (1, 1, 32, 32)


def call(*words, timeout=600, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def install(folder):
    """Returns the folder of the package: HONE_PYTHON_SITE, where that is set, has one that was made already, such as one with
    sanitizers."""
    if "HONE_PYTHON_SITE" in os.environ:
        return Path(os.environ["HONE_PYTHON_SITE"]).resolve()
    return make(folder)


def make(folder):
    """Makes a wheel of this build, and installs it into folder/site."""
    together = {**os.environ, "SKBUILD_CMAKE_DEFINE": "CMAKE_UNITY_BUILD=ON"}  # several sources in one run of the compiler
    call(ROOT / "scripts" / "make_wheel.sh", "--build", BUILD, folder / "wheels", env=together)
    call(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", folder / "site", *(folder / "wheels").glob("*.whl"))
    return folder / "site"


def untyped(module):
    """The parameters and results without a type of what a module of the package offers and Python wrote."""
    def missing(name, function):
        signature = inspect.signature(function)
        found = [each for each in signature.parameters.values() if each.annotation is each.empty and each.name != "self"]
        return [f"{name}: {each.name}" for each in found] + ([f"{name}: result"] if signature.return_annotation is signature.empty else [])

    found = []
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing):
            found += missing(name, thing)
        elif isinstance(thing, type) and thing.__module__ != "hone._native":
            for member, value in vars(thing).items():
                function = getattr(value, "fget", None) or getattr(value, "__func__", value)
                own = inspect.isfunction(function) and function.__code__.co_filename.startswith(os.path.dirname(module.__file__))
                if own and (not member.startswith("_") or member.endswith("__")):
                    found += missing(f"{name}.{member}", function)
    return found


class Package(Case):
    site = None  # where the package is; it can be imported from there

    def setUp(self):
        super().setUp()
        self.options = {"use_db": False, "threads": 1}

    def compiled(self):
        import hone
        return hone.compile(MODEL, self.folder / "small.so", **self.options)

    def image(self, seed=1):
        return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)

    def expected(self, image):
        return support.reference(MODEL, {"image": image})["scores"]

    def script(self, text, interpreter=sys.executable, **options):
        """Starts a program that has the package, with the folder as its working directory."""
        environment = {**os.environ, "PYTHONPATH": str(self.site), "MODEL": str(MODEL)}
        # In the background of a shell, programs begin with SIGINT ignored.
        text = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + textwrap.dedent(text)
        return subprocess.Popen([interpreter, "-X", "faulthandler", "-c", text], cwd=self.folder, env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def succeed_script(self, text, **options):
        process = self.script(text, **options)
        out, err = process.communicate(timeout=200)
        self.assertEqual(process.returncode, 0, err)
        return out

    def refused(self, message, function, *arguments, kind=None, **options):
        import hone
        with self.assertRaises(kind or hone.InputError) as caught:
            function(*arguments, **options)
        self.assertIn(message, str(caught.exception))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    make(target)
