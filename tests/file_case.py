"""What the tests of hostile files share: cases that compare files before and after a command, a model with external data."""
import os
import socket
import stat
from pathlib import Path

import numpy as np
from onnx import helper

import support
from support import Case, make_model, small_network, value


def matmul_model():
    weights = np.random.default_rng(0).standard_normal((48, 64)).astype(np.float32)
    return make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", (32, 48))], [value("y", (32, 64))], {"w": weights})


def identity(path):
    return path.read_bytes(), os.lstat(path).st_ino, stat.S_IFMT(os.lstat(path).st_mode)


class FileCase(Case):
    def external(self, folder=None, location="weights.bin", name="model.onnx"):
        """A model with its weights in a file beside it."""
        path = (folder or self.folder) / name
        support.onnx.save_model(small_network(), path, save_as_external_data=True, location=location, size_threshold=0)
        return path

    def unchanged(self, message, files, *arguments, **options):
        """Refused with one line, and these files are what they were."""
        before = [identity(Path(file)) for file in files]
        line = self.refuse(message, *arguments, **options)
        self.assertEqual([identity(Path(file)) for file in files], before)
        return line


def bound_socket(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    return listener
