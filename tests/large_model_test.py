"""Weights of more than 2 GiB, from external data: compiled, mapped read-only, right. Skipped on a small machine."""
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx

import support
from support import Case, TensorProto, helper, make_model, value

ROWS, COLUMNS, WIDTH = 1_100_000, 512, 16  # the table has 2.25e9 bytes
NEEDED = 8 << 30  # of memory, for the tensors and the pages of files; and of disk


def available_memory():
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def external(name, shape, offset):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "weights.bin"), ("offset", offset), ("length", 4 * np.prod(shape))):
        tensor.external_data.add(key=key, value=str(text))
    return tensor


@unittest.skipIf(available_memory() < NEEDED or shutil.disk_usage(tempfile.gettempdir()).free < NEEDED,
                 "needs 8 GiB of free memory and disk")
class LargeModel(Case):
    def test_weights_above_2_gib(self):
        rows = np.array([0, 1, ROWS // 2, ROWS - 1])
        table_bytes = 4 * ROWS * COLUMNS
        w = np.arange(COLUMNS * WIDTH, dtype=np.float32).reshape(COLUMNS, WIDTH) % 7
        with open(self.folder / "weights.bin", "wb") as file:  # zeros but for the rows that are looked at
            for row in rows:
                file.seek(4 * row * COLUMNS)
                file.write(np.full(COLUMNS, row % 97 + 1, np.float32).tobytes())
            file.seek(table_bytes)
            file.write(w.tobytes())
        model = make_model([helper.make_node("Gather", ["table", "ids"], ["e"], name="embed"),
                            helper.make_node("MatMul", ["e", "w"], ["y"], name="project")],
                           [value("ids", (4,), TensorProto.INT64)], [value("y", (4, WIDTH))])
        model.graph.initializer.extend([external("table", (ROWS, COLUMNS), 0), external("w", (COLUMNS, WIDTH), table_bytes)])
        path = self.folder / "large.onnx"
        onnx.save_model(model, path)
        library = self.folder / "large.so"
        self.succeed("compile", path, "-o", library, "--no-db", timeout=500)
        self.assertGreater(library.stat().st_size, 1 << 31)
        np.save(self.folder / "ids.npy", rows)
        self.succeed("run", library, "--input", f"ids={self.folder / 'ids.npy'}", "--output-dir", self.folder, timeout=200)
        expected = (rows % 97 + 1)[:, None] * w.sum(axis=0)
        self.assertLess(support.relative_error(np.load(self.folder / "y.npy"), expected), 1e-5)
        segments = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout
        loaded = [line.split() for line in segments.splitlines() if line.split()[:1] == ["LOAD"]]
        large = [line for line in loaded if int(line[4], 16) > 1 << 31]
        self.assertEqual(len(large), 1, segments)
        self.assertEqual(large[0][6], "R", segments)


if __name__ == "__main__":
    support.main()
