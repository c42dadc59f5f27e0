"""Files that are not what they seem: outputs that are inputs, links, pipes, devices, folders of others, full disks."""
import json
import os
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time
import unittest
import zipfile
import zlib
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import support
from support import HONE, Case, hone, make_model, relu_model, small_network, value


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


class OutputsThatAreInputs(FileCase):
    def setUp(self):
        super().setUp()
        self.model = self.external()
        self.weights = self.folder / "weights.bin"
        self.other_names = []
        for name, target in (("soft", self.model), ("hard", self.model), ("soft_weights", self.weights), ("hard_weights", self.weights)):
            path = self.folder / name
            (os.symlink if name.startswith("soft") else os.link)(target, path)
            self.other_names.append(path)
        (self.folder / "folder").symlink_to(self.folder)

    def outputs(self):
        return (self.model, self.weights, *self.other_names, self.folder / "folder" / "model.onnx", f"{self.folder}/./weights.bin")

    def test_compile_and_tune(self):
        for output in self.outputs():
            for command in ("compile", "tune"):
                with self.subTest(command, output=str(output)):
                    self.unchanged("is the same file as", [self.model, self.weights], command, self.model, "-o", output, "--no-db")

    def test_show_dot(self):
        for output in self.outputs():
            with self.subTest(str(output)):
                self.unchanged("--dot", [self.model, self.weights], "show", self.model, "--dot", output, "--no-db")

    def test_header(self):
        header = self.folder / "out.h"
        shutil.copy(self.model, header)
        self.unchanged("--header", [header], "compile", header, "-o", self.folder / "out.so", "--header", "--no-db")
        bound = self.folder / "bound.h"
        with open(bound, "wb") as file:
            np.save(file, np.zeros((1, 3, 24, 24), np.float32))
        self.unchanged("--bind", [bound], "compile", self.model, "--bind", f"x={bound}", "-o", self.folder / "bound.so", "--header", "--no-db")

    def test_two_outputs_of_one_name(self):
        for output in (self.folder / "new.h", self.folder / "folder" / "new.h"):
            self.unchanged("--header", [], "compile", self.model, "-o", output, "--header", "--no-db")
        (self.folder / "later.h").symlink_to("later.so")  # neither is there yet
        self.unchanged("--header", [], "compile", self.model, "-o", self.folder / "later.so", "--header", "--no-db")

    def test_values_and_cost_models(self):
        array = self.folder / "x.npy"
        np.save(array, np.zeros((1, 3, 24, 24), np.float32))
        cost = self.folder / "trained.model"
        cost.write_text("hone cost model 2\nkind gbdt\n")
        for command in ("compile", "tune"):
            self.unchanged("--bind", [array], command, self.model, "--bind", f"x={array}", "-o", array, "--no-db")
            self.unchanged("--cost", [cost], command, self.model, "--cost", cost, "-o", cost, "--no-db")
        self.unchanged("--cost", [cost], "tune", self.model, "--guide", cost, "-o", cost, "--no-db")

    def test_run(self):
        library = self.folder / "model.so"
        self.succeed("compile", self.save(relu_model(), "relu.onnx"), "-o", library, "--no-db")
        array = self.folder / "y.npy"  # as the output is called
        np.save(array, np.zeros((1, 4), np.float32))
        self.unchanged("--output-dir", [array], "run", library, "--input", f"x={array}", "--output-dir", self.folder)
        os.link(self.weights, self.folder / "linked")
        (self.folder / "out").mkdir()
        (self.folder / "out" / "y.npy").symlink_to(self.weights)
        self.unchanged("--output-dir", [self.weights], "run", self.model, "--output-dir", self.folder / "out")

    def test_database(self):
        model = self.save(relu_model(), "relu.onnx")
        db = self.folder / "trials.db"
        self.succeed("tune", model, "-o", self.folder / "first.so", "--db", db, "--budget", "2s")
        link = self.folder / "link.db"
        link.symlink_to(db)
        writers = [("compile", model, "-o", db), ("tune", model, "-o", db, "--budget", "2s"), ("show", model, "--dot", db), ("db", "export", db),
                   ("dataset", "export", db), ("dataset", "split", "-o", db), ("dataset", "representatives", "-o", db),
                   ("train", "-o", db), ("train", "-o", self.folder / "m.onnx", "--cost", "mlp", "--curve", db), ("eval", "--predictions", db)]
        for arguments in writers:
            for named in (db, link):
                with self.subTest(" ".join(map(str, arguments[:2])), db=str(named)):
                    self.unchanged("is the same file as", [db], *arguments, "--db", named)
        for ending in ("-wal", "-shm", "-journal"):
            self.unchanged("is the same file as", [db], "compile", model, "-o", f"{db}{ending}", "--db", db)
        self.unchanged("is the same file as", [db], "db", "merge", link, "--db", db)
        for import_command in (("db", "import"), ("dataset", "import")):
            self.unchanged("is the same file as", [db], *import_command, db, "--db", link)

    def test_ship(self):
        measured, db, lines = self.folder / "measured.db", self.folder / "trials.db", self.folder / "verified.jsonl"
        self.succeed("dataset", "make", self.save(matmul_model(), "matmul.onnx"), "--db", measured, "--threads", "1", "--schedules", "12")
        self.succeed("db", "export", lines, "--db", measured)
        records = [json.loads(line) for line in lines.read_text().splitlines()]
        lines.write_text("".join(json.dumps({**record, "verified": record["outcome"] == "ok"}) + "\n" for record in records))
        self.succeed("db", "import", lines, "--db", db)
        shipped = self.folder / "shipped"
        shipped.mkdir()
        self.succeed("db", "ship", shipped, "--db", db)
        file = next(shipped.iterdir())
        file.unlink()
        file.symlink_to(db)
        self.unchanged("FOLDER", [db], "db", "ship", shipped, "--db", db)

    def test_default_database(self):
        model = self.save(relu_model(), "relu.onnx")
        data = self.folder / "data" / "hone"
        self.succeed("tune", model, "-o", self.folder / "first.so", "--budget", "2s")
        self.unchanged("--db", [data / "hone.db"], "compile", model, "-o", data / "hone.db")
        self.unchanged("--db", [data / "hone.db"], "compile", model, "-o", self.folder / "data" / "hone" / "hone.db-wal")

    def test_trained_files(self):
        lists = [self.folder / name for name in ("list", "from.model", "from.onnx")]
        for path in lists:
            path.write_text("a list of something\n")
        only, trees, net = lists
        self.unchanged("--only", [only], "train", "--db", "x.db", "--only", only, "-o", only)
        self.unchanged("--split-file", [only], "train", "--db", "x.db", "--split-file", only, "-o", only)
        self.unchanged("--from", [trees], "train", "--db", "x.db", "--from", trees, "-o", trees)
        self.unchanged("--from", [net], "train", "--db", "x.db", "--from", net, "-o", net)
        self.unchanged("--curve", [], "train", "--db", "x.db", "-o", self.folder / "a.onnx", "--cost", "mlp", "--curve", self.folder / "a.onnx")
        self.unchanged("--except", [only], "eval", "--db", "x.db", "--except", only, "--predictions", only)
        self.unchanged("--network", [self.model], "eval", "--db", "x.db", "--network", self.model, "--predictions", self.model)

    def test_standard_output(self):
        before = self.model.read_bytes()
        with open(self.model, "ab") as output:
            done = subprocess.run([HONE, "show", self.model, "--no-db"], stdout=output, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("standard output", done.stderr)
        self.assertEqual(self.model.read_bytes(), before)

    def test_an_old_output_is_still_replaced(self):
        library = self.folder / "out.so"
        for _ in range(2):
            self.succeed("compile", self.model, "-o", library, "--header", "--no-db")


class Publishing(FileCase):
    def setUp(self):
        super().setUp()
        self.model = self.save(relu_model())

    def write_all(self, output, *options):
        """By every command that writes such a file."""
        yield lambda: self.succeed("compile", self.model, "-o", output, "--no-db", *options)
        yield lambda: self.succeed("show", self.model, "--dot", output, "--no-db", *options)
        yield lambda: self.succeed("tune", self.model, "-o", output, "--no-db", "--budget", "2s", *options)

    def test_links_stay(self):
        real, link = self.folder / "real.so", self.folder / "link.so"
        link.symlink_to("real.so")  # it is not there at first
        for write in self.write_all(link):
            write()
            self.assertTrue(link.is_symlink() and real.is_file() and not real.is_symlink())
            content = real.read_bytes()
            self.assertGreater(len(content), 100)
            real.write_bytes(b"old")

    def test_permissions_stay(self):
        output, header = self.folder / "out.so", self.folder / "out.h"
        for path in (output, header):
            path.write_bytes(b"old")
            path.chmod(0o600)
        for write in self.write_all(output):
            write()
            self.assertEqual(output.stat().st_mode & 0o7777, 0o600)
        self.succeed("compile", self.model, "-o", output, "--header", "--no-db")
        self.assertEqual(header.stat().st_mode & 0o7777, 0o600)
        self.assertIn("hone_model_run", header.read_text())

    def test_the_umask_holds(self):
        output = self.folder / "out.so"
        self.succeed("compile", self.model, "-o", output, "--header", "--no-db", preexec_fn=lambda: os.umask(0o077))
        self.assertEqual(output.stat().st_mode & 0o077, 0)
        self.assertEqual((self.folder / "out.h").stat().st_mode & 0o077, 0)

    def test_pipes_are_written_to(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for write in self.write_all(pipe):
            with open(self.folder / "copy", "wb") as copy, subprocess.Popen(["cat", pipe], stdout=copy) as reader:
                write()
                self.assertEqual(reader.wait(timeout=60), 0)
            self.assertTrue(stat.S_ISFIFO(os.lstat(pipe).st_mode))
            content = (self.folder / "copy").read_bytes()
            self.assertTrue(content.startswith((b"\x7fELF", b"digraph")), content[:20])
            self.assertEqual(content.count(b"\x7fELF\x02\x01\x01"), int(content[:1] == b"\x7f"))

    def test_devices_stay(self):
        for write in self.write_all("/dev/null"):
            write()
            self.assertTrue(stat.S_ISCHR(os.lstat("/dev/null").st_mode))
        device = self.folder / "null"
        if os.geteuid() == 0:
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            for write in self.write_all(device):
                write()
                self.assertTrue(stat.S_ISCHR(os.lstat(device).st_mode))
        self.refuse("no header", "compile", self.model, "-o", "/dev/null", "--header", "--no-db")

    def test_full_devices_are_errors(self):
        for command, option in (("compile", "-o"), ("tune", "-o"), ("show", "--dot")):
            with self.subTest(command):
                budget = ("--budget", "2s") if command == "tune" else ()
                self.refuse("no space left on device", command, self.model, option, "/dev/full", "--no-db", *budget)

    def test_nothing_is_left_beside(self):
        before = self.files()
        self.succeed("compile", self.model, "-o", self.folder / "out.so", "--header", "--no-db")
        self.assertEqual(self.files(), before | {"out.so", "out.h"})
        self.assertEqual([path for path in self.folder.iterdir() if path.name.startswith(".")], [])


def library_path(path):
    """The entries of RPATH and RUNPATH of an executable or a shared object; nothing for other files."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
    done = subprocess.run(["readelf", "-d", path], capture_output=True, text=True)
    found = [line.split("[", 1)[1].rstrip("]") for line in done.stdout.splitlines() if "(RUNPATH)" in line or "(RPATH)" in line]
    return [entry for text in found for entry in text.split(":")]


@unittest.skipIf(shutil.which("readelf") is None, "needs readelf")
class Binaries(FileCase):
    build = Path(HONE).resolve().parent.parent.parent

    def check(self, folder):
        checked = 0
        for path in folder.rglob("*"):
            if path.is_symlink() or not path.is_file() or path.suffix in (".o", ".a", ".gch"):
                continue
            checked += os.access(path, os.X_OK) or path.suffix == ".so"
            for entry in library_path(path):
                self.assertTrue(entry.startswith(("/", "$ORIGIN")), f"{path}: entry '{entry}' of its library path")
        self.assertGreater(checked, 0)

    def test_built(self):
        self.check(self.build / "tools")
        self.check(self.build / "src")
        self.check(self.build / "benchmarks")

    def test_installed(self):
        subprocess.run(["cmake", "--install", self.build, "--prefix", self.folder / "prefix"], check=True, stdout=subprocess.DEVNULL)
        self.check(self.folder / "prefix")
        version = subprocess.run([self.folder / "prefix" / "bin" / "hone", "version"], capture_output=True, text=True)
        self.assertEqual(version.returncode, 0, version.stderr)

    def test_the_current_folder_holds_no_code(self):
        """A library of a name that the program loads lies in the current folder: it is not even opened."""
        names = [line.split()[0] for line in subprocess.run(["ldd", HONE], capture_output=True, text=True).stdout.splitlines() if "=> /" in line]
        self.assertGreater(len(names), 3)
        for name in names:
            (self.folder / name).write_bytes(b"no library")
        done = subprocess.run([HONE, "version"], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_protection(self):
        dynamic = subprocess.run(["readelf", "-Wd", HONE], capture_output=True, text=True).stdout
        self.assertRegex(dynamic, r"FLAGS_1.*NOW")
        self.assertRegex(dynamic, r"FLAGS_1.*PIE")
        self.assertIn("GNU_RELRO", subprocess.run(["readelf", "-Wl", HONE], capture_output=True, text=True).stdout)
        self.assertIn("__stack_chk_fail", subprocess.run(["readelf", "-W", "--dyn-syms", HONE], capture_output=True, text=True).stdout)


class LoadedCode(FileCase):
    def test_no_linker_of_the_current_folder(self):
        model = self.save(relu_model())
        trap = self.folder / "ld"
        trap.write_text(f"#!/bin/sh\ntouch {self.folder}/trapped\nexit 1\n")
        trap.chmod(0o755)
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "ld").symlink_to(shutil.which("ld"))
        for path in (f":{bin_folder}", f".:{bin_folder}", f"../{self.folder.name}:{bin_folder}", f"{bin_folder}:"):
            environment = {**os.environ, "PATH": path}
            self.succeed("compile", model, "-o", self.folder / "out.so", "--no-db", cwd=self.folder, env=environment)
            self.assertFalse((self.folder / "trapped").exists(), path)
        self.refuse("no linker in PATH", "compile", model, "-o", self.folder / "out.so", "--no-db", cwd=self.folder, env={**os.environ, "PATH": ":."})


class TemporaryFolders(FileCase):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.output = self.folder / "output"
        self.output.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.temporary)}
        self.model = self.save(small_network())

    def left(self):
        return [path for folder in (self.temporary, self.output) for path in folder.iterdir() if ".hone-" in path.name]

    def kill_a_tuner(self):
        """In the middle of its work: it keeps the model as it was before in a temporary folder until its end."""
        arguments = ("tune", self.model, "-o", self.output / "out.so", "--no-db", "--budget", "60s")
        with subprocess.Popen([HONE, *map(str, arguments)], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            end = time.monotonic() + 60
            while not any(self.temporary.iterdir()) and process.poll() is None and time.monotonic() < end:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
        self.assertNotEqual(self.left(), [])

    def test_a_later_run_clears_what_a_killed_one_left(self):
        self.kill_a_tuner()
        for path in self.left():
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        self.succeed("compile", self.model, "-o", self.output / "out.so", "--no-db", env=self.environment)
        self.assertEqual(self.left(), [])

    def test_what_others_use_stays(self):
        self.kill_a_tuner()
        left = self.left()
        for path in (self.temporary / "work.hone-mine", self.temporary / "hone-run.AbCdEf", self.temporary / (left[0].name + ".txt")):
            path.mkdir()
        with subprocess.Popen([HONE, "tune", self.model, "-o", self.output / "other.so", "--no-db", "--budget", "10s"], env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            end = time.monotonic() + 60
            while not any(path not in left for path in self.temporary.glob("*.hone-*[a-p]")) and running.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            self.succeed("compile", self.model, "-o", self.output / "third.so", "--no-db", env=self.environment)
            _, errors = running.communicate(timeout=100)
            self.assertEqual(running.returncode, 0, errors)
        for path in (self.temporary / "work.hone-mine", self.temporary / "hone-run.AbCdEf", self.temporary / (left[0].name + ".txt")):
            self.assertTrue(path.is_dir())
        self.assertEqual([path for path in left if path.exists()], [])


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
        self.refuse_data("not a regular file", model)
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


def bound_socket(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    return listener


class StandardOutput(FileCase):
    """A reader that goes away is no error to tell of; a full disk and a closed descriptor are."""

    def setUp(self):
        super().setUp()
        model = self.save(matmul_model())
        library = self.folder / "model.so"
        db = self.folder / "trials.db"
        self.succeed("compile", model, "-o", library, "--no-db")
        self.succeed("dataset", "make", model, "--db", db, "--threads", "1", "--schedules", "12")
        self.commands = [
            ("show", model, "--no-db"), ("show", model, "--no-db", "--json"), ("compile", model, "-o", self.folder / "out.so", "--no-db"),
            ("run", library), ("bench", library, "--repeat", "2"), ("verify", model, "--no-db"), ("explain", model, "--task", "1", "--no-db", "--no-measure"),
            ("db", "show", "--db", db), ("db", "best", "--db", db), ("db", "stat", "--db", db), ("db", "verify", "--db", db),
            ("db", "export", "-", "--db", db), ("db", "gc", "--dry-run", "--db", db),
            ("dataset", "stat", "--db", db), ("dataset", "export", "-", "--db", db), ("dataset", "make", model, "--list"),
            ("eval", "--db", db), ("ops",), ("devices", "--db", db), ("version",), ("--help",), ("tune", "--help"),
            ("tune", model, "-o", self.folder / "out.so", "--db", db, "--budget", "1s")]

    def each(self, run):
        for command in self.commands:
            with self.subTest(" ".join(map(str, command[:2]))):
                run([HONE, *map(str, command)])

    def test_a_reader_that_is_gone(self):
        def run(command):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=100)
            os.close(writer)
            self.assertEqual(done.returncode, -signal.SIGPIPE, done.stderr)
            self.assertNotIn("hone: ", done.stderr)
        self.each(run)

    def test_full_disk(self):
        def run(command):
            with open("/dev/full", "w") as full:
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100)
            self.assertEqual(done.returncode, 2, done.stderr)
            errors = [line for line in done.stderr.splitlines() if line.startswith("hone: ")]
            self.assertEqual(errors, ["hone: cannot write to standard output: no space left on device"])
        self.each(run)

    def test_closed(self):
        def run(command):
            done = subprocess.run(["bash", "-c", 'exec "$@" >&-', "bash", *command], stderr=subprocess.PIPE, text=True, timeout=100)
            self.assertEqual(done.returncode, 2, done.stderr)
            errors = [line for line in done.stderr.splitlines() if line.startswith("hone: ")]
            self.assertEqual(errors, ["hone: cannot write to standard output: bad file descriptor"])
        self.each(run)

    def test_closed_or_full_standard_error(self):
        def run(command):
            whole = subprocess.run(command, capture_output=True, text=True, timeout=100)
            for redirection in ("2>/dev/full", "0<&- 2>&-"):
                done = subprocess.run(["bash", "-c", f'exec "$@" {redirection}', "bash", *command], stdout=subprocess.PIPE, text=True, timeout=100)
                self.assertEqual(done.returncode, 0, redirection)
                self.assertEqual(len(done.stdout) > 0, len(whole.stdout) > 0)
        self.each(run)
        done = subprocess.run(["bash", "-c", 'exec "$@" 2>&-', "bash", HONE, "compile", "absent.onnx", "-o", "x.so"], cwd=self.folder, timeout=100)
        self.assertEqual(done.returncode, 2)


class Memory(FileCase):
    """What a file says of its size is not believed."""

    # Of the address space of the program, so that the bound is the same on every machine: three quarters of this.
    LIMIT = 2 << 30

    def limited(self):
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
