"""Outputs that are not what they seem: outputs that are inputs, links, pipes, devices, full disks, closed descriptors."""
import json
import os
import shutil
import signal
import stat
import subprocess

import numpy as np

import support
from file_case import FileCase, matmul_model
from support import HONE, relu_model


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


if __name__ == "__main__":
    support.main()
