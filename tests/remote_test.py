"""Tuning for a machine elsewhere, over the loopback interface: what is measured, what lost connections and a server that is
started again cost, and what is refused."""
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
import unittest
from pathlib import Path

import numpy as np

import support
from remote_machine import Network, Server, program_of
from support import Case, small_network

CONNECT, FRAME, LOST = 8, 9, 10  # base/wire.h
VERSION, WELCOME, REFUSAL = 2, 2, 3  # remote/protocol.h


class Relay:
    """The process that connects for a tuner, with this test as the tuner."""

    def __init__(self, port, token):
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(30)
        self.process = subprocess.Popen([program_of(support.HONE), "--connect", "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno()])
        theirs.close()
        (self.magic, self.version), kind, _ = self.receive()
        self.send(CONNECT, b"".join(map(text, (f"127.0.0.1:{port}", token, "", ""))))

    def send(self, kind, body):
        self.socket.sendall(struct.pack("<IIIIQ", self.magic, self.version, kind, 0, len(body)) + body)

    def receive(self):
        magic, version, kind, _, length = struct.unpack("<IIIIQ", self.socket.recv(24, socket.MSG_WAITALL))
        return (magic, version), kind, self.socket.recv(length, socket.MSG_WAITALL) if length else b""

    def close(self):
        self.socket.close()
        return self.process.wait(30)


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def hello(version=VERSION, job_version=None, session="abc"):
    return struct.pack("<BII", 1, version, job_version) + text("9.9.9") + text(session) + struct.pack("<Q", 0)


def make_certificate(folder, name):
    """NAME.pem, a certificate that is its own authority, and NAME.key."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
               "-addext", f"subjectAltName=DNS:{name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl: {done.stderr}")


class Remote(Case):
    def setUp(self):
        super().setUp()
        os.environ["XDG_CONFIG_HOME"] = str(self.folder / "config")
        self.addCleanup(os.environ.pop, "XDG_CONFIG_HOME")
        self.token = self.folder / "config" / "hone" / "token"

    def serve(self, *options):
        return self.enterContext(Server(support.HONE, self.token, *options))

    def records(self, db):
        self.succeed("db", "export", self.folder / "trials.jsonl", "--db", db)
        return [json.loads(line) for line in (self.folder / "trials.jsonl").read_text().splitlines()]

    def test_tunes_as_on_the_machine_itself(self):
        server = self.serve()
        machine, model, db = f"grpc://127.0.0.1:{server.port}", self.save(small_network()), self.folder / "trials.db"
        here = self.succeed_json("devices")[0]
        there = self.succeed_json("devices", "--machine", machine)
        self.assertEqual([{**here, "roofline": None}], [{**device, "roofline": None} for device in there])
        library = self.folder / "model.so"
        report = self.succeed_json("tune", model, "-o", library, "--machine", machine, "--db", db, "--threads", "1",
                                   "--budget", "60s" if support.SANITIZED else "4s")
        self.assertGreater(report["trials"], 10)
        self.assertIn("not timed on a machine elsewhere", report["not_compared"])
        self.assertEqual(report["failures"], {})
        x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
        (expected,) = support.reference(model, {"x": x}).values()
        self.assertLessEqual(support.relative_error(self.outputs(library, {"x": x})["y"], expected), 1e-4)
        self.assertEqual({record["device"] for record in self.records(db)}, {here["key"]})
        compiled = self.succeed_json("compile", model, "-o", library, "--db", db, "--threads", "1")
        self.assertTrue(any(kernel["source"] == "stored" for kernel in compiled["kernels"]), compiled["kernels"])
        self.succeed("dataset", "make", model, "--machine", machine, "--db", self.folder / "data.db", "--schedules", "4", "--max-tasks", "1",
                     "--threads", "1", "--budget", "5s")
        self.assertEqual(len(self.records(self.folder / "data.db")), 4)

    def test_lost_connections_cost_nothing_and_a_restart_one_candidate(self):
        server = self.serve()
        network = self.enterContext(Network(server.port))
        model, db = self.save(small_network()), self.folder / "trials.db"
        process = subprocess.Popen([support.HONE, "tune", model, "-o", self.folder / "model.so", "--db", db, "--threads", "1",
                                    "--budget", f"{9 * support.PATIENCE}s", "--machine", f"grpc://127.0.0.1:{network.port}", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.wait_for_trials(db, 1)
        self.assertGreater(network.cut(), 0)
        before = self.wait_for_trials(db, self.trials(db) + 8)
        server.kill()
        network.cut()
        server.start()
        self.wait_for_trials(db, before + 8)
        printed, messages = process.communicate(timeout=60 * support.PATIENCE)
        self.assertEqual(process.returncode, 0, messages)
        self.assertIn("connecting again", messages)
        self.assertGreater(json.loads(printed)["trials"], before + 8)
        outcomes = [record["outcome"] for record in self.records(db)]
        self.assertLessEqual(len(outcomes) - outcomes.count("ok"), 1, outcomes)

    def test_runs_models_as_on_the_machine_itself(self):
        network = self.enterContext(Network(self.serve().port))
        machine = ("--machine", f"grpc://127.0.0.1:{network.port}")
        model, library = self.save(small_network(channels=64)), self.folder / "model.so"
        self.succeed("compile", model, "-o", library, "--threads", "1", "--no-db")
        x = np.random.default_rng(1).standard_normal((1, 3, 24, 24)).astype(np.float32)
        here = self.outputs(library, {"x": x}, "--threads", "1")
        np.testing.assert_array_equal(self.outputs(library, {"x": x}, "--threads", "1", *machine)["y"], here["y"])
        size = library.stat().st_size
        self.assertGreater(network.sent, size)
        before = network.sent
        printed = self.succeed_json("run", library, *machine, "--threads", "1", "--repeat", "20", "--profile")
        self.assertLess(network.sent - before, size // 2)  # the library was there
        self.assertEqual(printed["runs"], 20)
        self.assertGreater(printed["min_seconds"], 0)
        self.assertGreater(len(printed["profile"]), 2)
        self.assertTrue(all(kernel["calls"] == 1 and kernel["seconds"] > 0 for kernel in printed["profile"]), printed["profile"])
        (expected,) = support.reference(model, {"x": x}).values()
        self.assertLessEqual(support.relative_error(self.outputs(model, {"x": x}, *machine)["y"], expected), 1e-4)
        bench = self.succeed_json("bench", library, *machine, "--threads", "1", "--repeat", "5")
        self.assertEqual([kernel["name"] for kernel in bench["kernels"]],
                         [kernel["name"] for kernel in self.succeed_json("bench", library, "--threads", "1", "--repeat", "1")["kernels"]])
        self.assertGreater(bench["seconds"], 0)
        self.refuse("record no traces", "run", library, *machine, "--trace", self.folder / "trace.json")
        self.refuse("is not a shared library", "run", self.save_text("model.so", "\x7fELF nonsense"), *machine)

    def test_runs_models_of_varying_shapes(self):
        machine = ("--machine", f"grpc://127.0.0.1:{self.serve().port}")
        model, library = self.save(support.relu_model(("batch", 4))), self.folder / "model.so"
        self.succeed("compile", model, "-o", library, "--shape", "x=1..8x4", "--threads", "1", "--no-db")
        for batch in (3, 8):
            x = np.random.default_rng(batch).standard_normal((batch, 4)).astype(np.float32)
            np.testing.assert_array_equal(self.outputs(library, {"x": x}, *machine)["y"], np.maximum(x, 0))
        sizes = self.succeed_json("bench", library, *machine, "--shape", "batch=1,2", "--repeat", "2")["sizes"]
        self.assertEqual([size["size"] for size in sizes], ["batch=1", "batch=2"])

    def start_long_run(self, port):
        """hone run, for longer than any test lasts; when the server runs the model."""
        library = self.folder / "model.so"
        self.succeed("compile", self.save(small_network()), "-o", library, "--threads", "1", "--no-db")
        process = subprocess.Popen([support.HONE, "run", library, "--machine", f"grpc://127.0.0.1:{port}", "--repeat", "1000000", "--threads", "1"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def test_a_lost_connection_costs_no_run_of_a_model_and_a_crash_is_an_error(self):
        server = self.serve()
        network = self.enterContext(Network(server.port))
        process = self.start_long_run(network.port)
        end = time.monotonic() + 20 * support.PATIENCE
        while network.sent < 20000 and time.monotonic() < end:
            time.sleep(0.05)
        self.assertGreater(network.cut(), 0)
        # The first one that is killed may be that of the connection that was cut. One that only starts cannot crash yet.
        while process.poll() is None and time.monotonic() < end:
            time.sleep(1)
            server.kill_model()
        _, messages = process.communicate(timeout=30 * support.PATIENCE)
        self.assertEqual(process.returncode, 1, messages)
        self.assertIn("connecting again", messages)
        self.assertIn("the model crashed: the worker was killed by signal 9", messages.splitlines()[-1])

    @unittest.skipIf(support.SANITIZED, "sanitizers reserve terabytes of addresses")
    def test_a_model_gets_a_part_of_the_memory(self):
        server = self.serve()
        self.start_long_run(server.port)
        found, end = None, time.monotonic() + 20
        while found is None:
            self.assertLess(time.monotonic(), end, "no process runs a model, or it has no limit")
            time.sleep(0.05)
            for process in server.models():
                with contextlib.suppress(OSError):  # it may have ended
                    found = re.search(r"^Max address space +([0-9]+) ", Path(f"/proc/{process}/limits").read_text(), re.MULTILINE)
        self.assertLess(int(found[1]), 2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE"))

    def trials(self, db):
        done = support.hone("db", "stat", "--db", db, "--json")
        return json.loads(done.stdout)["trials"] if done.returncode == 0 else 0

    def wait_for_trials(self, db, wanted):
        end = time.monotonic() + 40 * support.PATIENCE
        while (found := self.trials(db)) < wanted:
            self.assertLess(time.monotonic(), end, f"{found} trials, expected {wanted}")
        return found

    def refuse_machine(self, message, machine):
        return self.refuse(message, "devices", "--machine", machine)

    def test_bad_tokens(self):
        server = self.serve()
        machine = f"grpc://127.0.0.1:{server.port}"
        token = self.token.read_text()
        self.token.write_text("0" * 32)
        self.refuse_machine(f"{machine}: the token is wrong", machine)
        self.refuse("the token is wrong", "tune", self.save(small_network()), "-o", self.folder / "model.so", "--machine", machine)
        self.token.write_text("short")
        self.refuse_machine("a token of 5 characters, expected 16 to 1024", machine)
        self.token.chmod(0o644)
        self.refuse_machine("other users may read or write this token", machine)
        self.token.unlink()
        self.refuse_machine("there is no token", machine)
        self.token.write_text(token)
        self.token.chmod(0o600)
        self.succeed("devices", "--machine", machine)

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl to make certificates: apt-get install openssl")
    def test_tls(self):
        for name in ("board", "other"):
            make_certificate(self.folder, name)
        server = self.serve("--tls-cert", self.folder / "board.pem", "--tls-key", self.folder / "board.key")
        plain = self.serve()

        def file(port, **keys):
            path = self.folder / "machine.toml"
            keys |= {"address": f"127.0.0.1:{port}", "token_file": self.token, "wait": "3s"}
            path.write_text("".join(f'{key} = "{value}"\n' for key, value in keys.items()))
            return path

        model, library = self.save(support.relu_model()), self.folder / "model.so"
        self.succeed("compile", model, "-o", library, "--threads", "1", "--no-db")
        x = np.array([[-1, 2, -3, 4]], np.float32)
        start = library.read_bytes()[:64]
        for port, keys, is_readable in ((server.port, {"tls_ca": "board.pem", "tls_name": "board"}, False), (plain.port, {}, True)):
            network = self.enterContext(Network(port))
            np.testing.assert_array_equal(self.outputs(library, {"x": x}, "--machine", file(network.port, **keys))["y"], np.maximum(x, 0))
            self.assertGreater(network.sent, library.stat().st_size)
            self.assertEqual(start in network.seen, is_readable)
        (device,) = self.succeed_json("devices", "--machine", file(server.port, tls_ca="board.pem", tls_name="board"))
        self.assertEqual(device["name"], "host")
        for message, port, keys in (
                ("certificate verify failed; the server's certificate is not from the authority that the machine's file names as tls_ca",
                 server.port, {"tls_ca": "other.pem", "tls_name": "board"}),
                ("Peer name elsewhere is not in peer certificate; the machine's file may say as tls_name which name", server.port,
                 {"tls_ca": "board.pem", "tls_name": "elsewhere"}),
                ("Peer name 127.0.0.1 is not in peer certificate", server.port, {"tls_ca": "board.pem"}),
                ("Socket closed; the server may ask for TLS: name the authority of its certificate as tls_ca", server.port, {}),
                ("wrong version number; the server may have no TLS: start it with --tls-cert, or leave tls_ca out", plain.port,
                 {"tls_ca": "board.pem", "tls_name": "board"})):
            self.refuse_machine(message, file(port, **keys))
        self.refuse_serve("the certificate and its key do not fit", "--port", 0, "--tls-cert", self.folder / "board.pem", "--tls-key", self.folder / "other.key")

    def test_servers_that_are_none(self):
        self.token.parent.mkdir(parents=True)
        self.token.write_text("0" * 32)
        self.token.chmod(0o600)
        with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and says nothing
            port = silent.getsockname()[1]
            board = self.folder / "board.toml"
            board.write_text(f'address = "127.0.0.1:{port}"\nwait = "1s"\n')
            self.refuse_machine(f"{board} does not answer within 1 s", board)
        self.refuse_machine("Connection refused", f"grpc://127.0.0.1:{port}")
        self.refuse_machine("expected HOST:PORT", "grpc://127.0.0.1")
        self.refuse_machine("expected grpc://HOST:PORT or a file", "ssh://127.0.0.1:1")
        board.write_text("adress = 1\n")
        self.refuse_machine("unknown key 'adress'", board)

    def test_ports_that_are_taken(self):
        server = self.serve()
        self.refuse_serve(f"cannot listen on port {server.port} of 127.0.0.1: address already in use", "--port", server.port)
        self.refuse_serve("mode 600", "--port", 0, "--token-file", self.save_text("token", "0" * 32))
        self.refuse_serve("--cache", "--port", 0, "--cache", "much")

    def save_text(self, name, contents):
        (self.folder / name).write_text(contents)
        return self.folder / name

    def refuse_serve(self, message, *arguments):
        done = support.hone("serve", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_peers_of_another_version_and_messages_that_are_too_long(self):
        server = self.serve()
        token = self.token.read_text().strip()
        relay = Relay(server.port, token)
        relay.send(FRAME, hello(version=99, job_version=relay.version))
        _, kind, welcome = relay.receive()
        self.assertEqual((kind, welcome[0], struct.unpack_from("<II", welcome, 1)), (FRAME, WELCOME, (VERSION, relay.version)))
        _, kind, refusal = relay.receive()
        self.assertEqual((kind, refusal[0]), (FRAME, REFUSAL))
        self.assertIn(b"the tuner's protocol is 99.", refusal)
        self.assertEqual(relay.receive()[1], LOST)
        self.assertEqual(relay.close(), 0)
        relay = Relay(server.port, token)
        relay.send(FRAME, hello(job_version=relay.version))
        self.assertEqual(relay.receive()[2][0], WELCOME)
        relay.send(FRAME, bytes(65 << 20))
        _, kind, lost = relay.receive()
        self.assertEqual(kind, LOST)
        self.assertIn(b"larger than max", lost)
        self.assertEqual(relay.close(), 0)
        relay = Relay(server.port, token)
        relay.socket.sendall(struct.pack("<IIIIQ", relay.magic, relay.version, FRAME, 0, 10 << 30))  # its length alone
        self.assertEqual(relay.receive()[1], LOST)
        self.assertEqual(relay.close(), 0)
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as stranger, contextlib.suppress(ConnectionError):
            stranger.sendall(b"POST / HTTP/1.1\r\nContent-Length: 10737418240\r\n\r\n" + bytes(1 << 20))
            while stranger.recv(1 << 16):  # until the server ends the connection
                pass
        self.succeed("devices", "--machine", f"grpc://127.0.0.1:{server.port}")  # it lives


if __name__ == "__main__":
    support.main()
