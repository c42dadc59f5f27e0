"""Inputs that are not what they seem: pipes, devices, links out of the folder, sizes that are not true."""
import json
import os
import resource
import shutil
import struct
import subprocess
import zipfile
import zlib

import numpy as np
from onnx import TensorProto, helper

import support
from file_case import FileCase, bound_socket
from support import HONE, hone, make_model, relu_model, value


class Inputs(FileCase):
    """What is no file is refused, and nothing waits for it."""

    def setUp(self):
        super().setUp()
        self.pipe = self.folder / "pipe"
        os.mkfifo(self.pipe)
        self.out = ("-o", self.folder / "out.so", "--no-db")

    def test_models(self):
        for path in (self.pipe, "/dev/zero", "/dev/null", self.folder):
            for command in (("compile", path, *self.out), ("tune", path, *self.out), ("show", path, "--no-db"), ("run", path), ("bench", path),
                            ("explain", path, "--task", "1", "--no-db"), ("verify", path, "--no-db"), ("dataset", "make", path, "--list")):
                with self.subTest(command[0], path=str(path)):
                    self.refuse(str(path), *command, timeout=60)

    def test_arrays_and_records(self):
        model = self.save(relu_model())
        library = self.folder / "model.so"
        self.succeed("compile", model, "-o", library, "--no-db")
        db = self.folder / "trials.db"
        for path in (self.pipe, "/dev/zero"):
            for command in (("run", library, "--input", f"x={path}"), ("compile", model, "--bind", f"x={path}", *self.out),
                            ("verify", model, "--reference", path, "--no-db"), ("compile", model, "--cost", path, *self.out),
                            ("explain", model, "--task", "1", "--schedule", f"@{path}", "--no-db"), ("db", "show", "--db", path),
                            ("compile", model, "-o", self.folder / "out.so", "--db", path), ("db", "import", path, "--db", db),
                            ("dataset", "import", path, "--db", db)):
                with self.subTest(" ".join(map(str, command[:2])), path=str(path)):
                    done = hone(*command, timeout=60)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                    self.assertIn(str(path), done.stderr)

    def test_a_shells_pipe_is_read(self):
        library = self.folder / "model.so"
        self.succeed("compile", self.save(relu_model()), "-o", library, "--no-db")
        np.save(self.folder / "x.npy", np.ones((1, 4), np.float32))
        done = subprocess.run(["bash", "-c", f'"{HONE}" run "{library}" --input x=<(sleep 0.2; cat "{self.folder}/x.npy") --json'],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["outputs"][0]["mean"], 1)

    def refuse_data(self, message, model):
        for command in (("compile", model, *self.out), ("show", model, "--no-db"), ("run", model)):
            with self.subTest(command[0]):
                line = self.refuse(message, *command, timeout=60)
        return line

    def test_external_data_that_is_no_file(self):
        model = self.external()
        data = self.folder / "weights.bin"
        data.unlink()
        os.mkfifo(data)
        self.refuse_data("not a regular file", model)
        data.unlink()
        data.mkdir()
        self.refuse_data("it is a directory, expected a file", model)
        data.rmdir()
        listener = bound_socket(data)
        self.refuse_data("weights.bin", model)
        listener.close()
        data.unlink()
        data.symlink_to("/dev/zero")
        for options in ((), ("--allow-linked-data",)):
            self.refuse("weights.bin", "compile", model, *self.out, *options, timeout=60)

    def test_external_data_out_of_the_folder(self):
        inner = self.folder / "inner"
        inner.mkdir()
        model = self.external(inner)
        shutil.move(inner / "weights.bin", self.folder / "weights.bin")
        for location in ("../weights.bin", str(self.folder / "weights.bin"), "a/../../weights.bin", ".", "..", ""):
            changed = support.onnx.load_model(model, load_external_data=False)
            for tensor in changed.graph.initializer:
                tensor.external_data[0].value = location
            path = inner / "changed.onnx"
            support.onnx.save_model(changed, path)
            for options in ((), ("--allow-linked-data",)):
                with self.subTest(location, options=options):
                    self.refuse("inside the model's folder", "compile", path, *self.out, *options)
        (inner / "weights.bin").symlink_to("../weights.bin")
        self.refuse_data("--allow-linked-data", model)

    def test_a_link_inside_the_folder_is_followed(self):
        model = self.external()
        shutil.move(self.folder / "weights.bin", self.folder / "real.bin")
        (self.folder / "weights.bin").symlink_to("real.bin")
        self.succeed("compile", model, *self.out)

    def test_cache_of_hugging_face(self):
        snapshot, blobs = self.folder / "snapshots" / "0123", self.folder / "blobs"
        snapshot.mkdir(parents=True)
        blobs.mkdir()
        model = self.external(snapshot, "model.onnx_data")
        for name, blob in (("model.onnx", "aaaa"), ("model.onnx_data", "bbbb")):
            shutil.move(snapshot / name, blobs / blob)
            (snapshot / name).symlink_to(f"../../blobs/{blob}")
        line = self.refuse_data("--allow-linked-data", model)
        self.assertIn("model.onnx_data", line)
        library = self.folder / "out.so"
        self.succeed("compile", model, "-o", library, "--no-db", "--allow-linked-data")
        for command in (("show", model, "--no-db"), ("run", model), ("bench", model, "--repeat", "2"), ("verify", model, "--no-db"),
                        ("dataset", "make", model, "--list"), ("explain", model, "--task", "1", "--no-db", "--no-measure")):
            with self.subTest(command[0]):
                self.succeed(*command, "--allow-linked-data")
        for output in (blobs / "bbbb", snapshot / "model.onnx_data", blobs / "aaaa"):
            self.unchanged("is the same file as", [output], "compile", model, "-o", output, "--no-db", "--allow-linked-data")


class Memory(FileCase):
    """What a file says of its size is not believed."""

    # Of the address space of the program, so that the bound is the same on every machine: three quarters of this.
    LIMIT = 2 << 30

    def limited(self):
        if support.SANITIZED:
            self.skipTest("a sanitizer needs terabytes of addresses")
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (self.LIMIT, self.LIMIT)), "timeout": 100}

    def test_archives(self):
        """39 MB that unpack to 40 GB, in ten arrays of the largest size that the format has room for."""
        size = 4_000_000_000
        zeros = 1 << 24
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = deflate.compress(bytes(zeros)) + deflate.flush(zlib.Z_FULL_FLUSH)  # may be repeated
        rest = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = block * (size // zeros) + rest.compress(bytes(size % zeros)) + rest.flush()
        path = self.folder / "bomb.npz"
        directory, places = b"", []
        with open(path, "wb") as file:
            for number in range(10):
                name = f"a{number}.npy".encode()
                fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, 0, len(packed), size, len(name), 0)
                places.append(file.tell())
                file.write(b"PK\x03\x04" + fields + name + packed)
                directory += b"PK\x01\x02" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, places[-1]) + name
            start = file.tell()
            file.write(directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 10, 10, len(directory), start, 0))
        self.assertLess(path.stat().st_size, 40_000_000)
        self.assertEqual(len(zipfile.ZipFile(path).namelist()), 10)
        self.refuse("unpacked, the archive has 4000000000 bytes", "verify", self.save(relu_model()), "--reference", path, "--no-db", **self.limited())

    def test_sparse_files(self):
        model = self.save(relu_model())
        huge = 1 << 42
        for name in ("x.npy", "r.npz", "c.model", "c.onnx"):
            with open(self.folder / name, "wb") as file:
                file.write(b"\x93NUMPY\x01\x00")
                file.truncate(huge)
        out = ("-o", self.folder / "out.so", "--no-db")
        for name, command in (("x.npy", ("run", model, "--input", f"x={self.folder}/x.npy")), ("x.npy", ("compile", model, "--bind", f"x={self.folder}/x.npy", *out)),
                              ("r.npz", ("verify", model, "--reference", self.folder / "r.npz", "--no-db")),
                              ("c.model", ("compile", model, "--cost", self.folder / "c.model", *out)),
                              ("c.onnx", ("compile", model, "--cost", self.folder / "c.onnx", *out)), ("c.onnx", ("compile", self.folder / "c.onnx", *out))):
            with self.subTest(name):
                self.refuse(name, *command, **self.limited())

    def test_sparse_external_data(self):
        model = make_model([helper.make_node("Gather", ["w0", "i"], ["y"])], [value("i", (2,), TensorProto.INT64)], [value("y", None)])
        for sizes in ((50_000_000_000,), (200_000_000, 200_000_000, 200_000_000)):  # 200 GB, three times 800 MB
            del model.graph.initializer[:]
            for number, size in enumerate(sizes):
                tensor = model.graph.initializer.add(name=f"w{number}", data_type=TensorProto.FLOAT, dims=[size])
                tensor.data_location = TensorProto.EXTERNAL
                for key, text in (("location", "sparse.bin"), ("offset", "0"), ("length", str(4 * size))):
                    tensor.external_data.add(key=key, value=text)
            with open(self.folder / "sparse.bin", "wb") as file:
                file.truncate(4 * max(sizes))
            with self.subTest(sizes):
                self.refuse("of external data", "compile", self.save(model), "-o", self.folder / "out.so", "--no-db", **self.limited())

    def test_places_that_overflow(self):
        for offset, length in ((1 << 62, 32), ((1 << 63) - 8, 32), (-8, 32), (0, 1 << 62), (1 << 64, 32), (8, 32)):
            model = make_model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", (8,))], [value("y", None)])
            tensor = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[8])
            tensor.data_location = TensorProto.EXTERNAL
            for key, text in (("location", "data.bin"), ("offset", str(offset)), ("length", str(length))):
                tensor.external_data.add(key=key, value=text)
            (self.folder / "data.bin").write_bytes(bytes(32))
            with self.subTest(offset, length=length):
                self.refuse("external data", "compile", self.save(model), "-o", self.folder / "out.so", "--no-db")

    def test_a_line_of_a_gigabyte(self):
        path = self.folder / "records.jsonl"
        with open(path, "wb") as file:
            file.write(b'{"task": "')
            file.truncate(1 << 30)
        for command in (("db", "import"), ("dataset", "import")):
            with self.subTest(command[0]):
                done = hone(*command, path, "--db", self.folder / "trials.db", **self.limited())
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("line 1", done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    support.main()
