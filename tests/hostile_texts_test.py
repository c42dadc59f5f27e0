"""Names that a terminal would obey, or show as something else, go through every command: none of it is printed as it is."""
import json
import os
import re
import sqlite3
import subprocess

import numpy as np
from onnx import helper

import support
from hostile_databases_test import stop, tune_until_trials
from support import Case, make_model, value

# What must never reach a terminal: controls but for line ends, marks of direction, what cannot be seen, bytes that are not UTF-8.
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")
EVIL = "\u009b31m\u202egnp.exe\u202c\u2066\u2069\u200e\u200f\u061c\u200b\u2028\u2029\ufeff*/ /*"  # of names that ONNX's users see
WORSE = "\x1b[2J\x1b]0;title\x07\r\n\t\x7f" + EVIL  # of nodes and graphs, files and records: names of values have no control characters


def evil_model(mark=EVIL, inner=EVIL, node=WORSE):
    nodes = [helper.make_node("Relu", ["x" + mark], ["h" + inner], name="node" + node),
             helper.make_node("MatMul", ["h" + inner, "w" + inner], ["y" + mark], name="last" + node)]
    model = make_model(nodes, [value("x" + mark, (2, 8))], [value("y" + mark, (2, 4))], {"w" + inner: np.ones((8, 4), np.float32)})
    model.graph.name = "graph" + node
    model.producer_name = "maker" + node
    model.graph.doc_string = node
    return model


class HostileTexts(Case):
    def run_raw(self, *arguments, code=0):
        done = subprocess.run([support.HONE, *map(str, arguments)], capture_output=True, timeout=120)
        for stream in (done.stdout, done.stderr):
            text = stream.decode("utf-8")  # an error: bytes that are not UTF-8
            found = HIDDEN.search(text)
            self.assertIsNone(found, f"hone {arguments[0]}: {text[max(0, found.start() - 40):found.end() + 10]!r}" if found else "")
        self.assertIn(done.returncode, (code,) if isinstance(code, int) else code, done.stderr.decode())
        return done

    def test_every_command_makes_names_of_a_model_visible(self):
        model = self.save(evil_model(), f"model{EVIL.replace('/', '')}.onnx")
        library, db = self.folder / "model.so", self.folder / "a.db"
        commands = {
            "compile": ["compile", model, "-o", library, "--no-db", "--header"],
            "tune": ["tune", model, "-o", library, "--db", db, "--budget", "2s", "--threads", "1"],
            "run": ["run", model, "--profile"],
            "run library": ["run", library],
            "bench": ["bench", library],
            "show": ["show", model, "--no-db", "--dot", self.folder / "model.dot"],
            "passes": ["show", model, "--no-db", "--passes"],
            "explain": ["explain", model, "--no-db", "--task", "1"],
            "verify": ["verify", model, "--no-db"]}
        shown = {name: self.run_raw(*command).stdout.decode() for name, command in commands.items()}
        for name in ("run", "show", "passes"):
            self.assertIn(r"\u202egnp.exe", shown[name])
        self.assertNotIn("\n\t", shown["passes"])
        for name, command in commands.items():
            if name == "passes":
                continue
            report = json.loads(self.run_raw(*command, "--json").stdout)
            if name == "run":
                self.assertEqual(report["outputs"][0]["name"], "y" + EVIL, "JSON holds the name itself")
        for file in ("model.h", "model.dot"):
            text = (self.folder / file).read_text("utf-8")
            self.assertIsNone(HIDDEN.search(text.replace("\t", "")), file)
            self.assertIn(r"\u202e", text)
        check = subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", self.folder / "model.h"],
                               capture_output=True, text=True)
        self.assertEqual(check.returncode, 0, check.stderr)
        for command in (["db", "show"], ["db", "best"], ["db", "stat"], ["db", "verify"], ["db", "export", "-"]):
            self.run_raw(*command, "--db", db)

    def test_messages_about_a_model_and_a_file_are_visible(self):
        broken = evil_model()
        broken.graph.node[0].op_type = "Relux" + WORSE
        for command in (["compile", self.save(broken, "broken.onnx"), "-o", self.folder / "m.so", "--no-db"],
                        ["show", self.save(broken, f"broken{EVIL.replace('/', '')}.onnx"), "--no-db"],
                        ["show", self.save(evil_model(mark=WORSE), "controls.onnx"), "--no-db"],
                        ["verify", self.folder / f"none{WORSE.replace('/', '')}"],
                        ["db", "stat", "--db", self.folder / f"none{WORSE.replace('/', '')}"],
                        ["compile", WORSE], [WORSE], ["show", self.folder / "broken.onnx", "--skip-pass", WORSE]):
            done = self.run_raw(*command, code=2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_names_that_are_not_utf8_are_escaped(self):
        model = evil_model("<mark>", "<inner>", "<mark>").SerializeToString()
        path = self.folder / "model.onnx"
        path.write_bytes(model.replace(b"<mark>", b"<\xff\x9bk>").replace(b"<inner>", b"<\xe2\x80er>"))
        for command in (["show", path, "--no-db", "--passes"], ["run", path], ["run", path, "--json"]):
            self.run_raw(*command, code=(0, 2))

    def test_texts_of_records_are_visible(self):
        db = self.folder / "a.db"
        stop(tune_until_trials(self, db))
        connection = sqlite3.connect(db)
        for table, column in (("task", "kernel_class"), ("trial", "model"), ("trial", "message"), ("trial", "version"), ("trial", "algorithm"),
                              ("trial", "steps"), ("device", "key")):
            connection.execute(f"UPDATE {table} SET {column} = {column} || ?", (WORSE,))
        connection.execute("UPDATE trial SET decisions = CAST(x'ff9b41' AS TEXT)")
        connection.commit()
        connection.close()
        for command in (["show"], ["best"], ["stat"], ["export", "-"], ["show", "--json"], ["best", "--json"], ["stat", "--json"]):
            self.run_raw("db", *command, "--db", db)
        self.run_raw("db", "verify", "--db", db, code=2)
        self.run_raw("dataset", "stat", "--db", db, code=(0, 2))
        exported = [json.loads(line) for line in self.run_raw("db", "export", "-", "--db", db).stdout.splitlines()]
        self.assertTrue(all(record["model"].endswith(WORSE) for record in exported))

    def test_logs_are_visible(self):
        done = subprocess.run([support.HONE, "version"], capture_output=True, env={**os.environ, "HONE_LOG": WORSE}, timeout=60)
        self.assertIsNone(HIDDEN.search(done.stderr.decode("utf-8")))


if __name__ == "__main__":
    support.main()
