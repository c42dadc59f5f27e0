#!/usr/bin/env python3
"""Manual pages and completion have every option that --help shows, and bash, zsh and fish complete by them, as far as they are here. The
newest version in CHANGELOG.md is that of the program.

    HONE=build/dev/tools/hone/hone tests/shell_texts_test.py
"""
import json
import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import cli_help_test

HONE = os.environ["HONE"]
ROOT = Path(__file__).resolve().parent.parent
OPTION = re.compile(r"^  (-\S+)", re.M)
BELOW = re.compile(r"^  ([a-z]+) +\S", re.M)
SHELLS = {"bash": "bash-completion/completions/hone", "zsh": "zsh/site-functions/_hone", "fish": "fish/vendor_completions.d/hone.fish"}


def call(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=100, **options)
    assert done.returncode == 0 and not done.stderr, f"{words}: {done.returncode}: {done.stderr}"
    return done.stdout


class Help:
    """What --help of a command shows."""

    def __init__(self, command):
        self.command = command
        self.text = call(HONE, *command.split(), "--help")
        self.options = sorted(name for names in OPTION.findall(self.text) for name in names.split(","))
        below = self.text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
        self.below = sorted(BELOW.findall(below))


class ShellTexts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.help = [Help(command) for command in cli_help_test.COMMANDS]
        cls.temporary = tempfile.TemporaryDirectory()
        cls.share = Path(cls.temporary.name) / "share"
        call(HONE, "manual", cls.share)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_scripts_are_printed_as_they_are_installed(self):
        for shell, place in SHELLS.items():
            self.assertEqual(call(HONE, "completion", shell), (self.share / place).read_text())
        refused = subprocess.run([HONE, "completion", "tcsh"], capture_output=True, text=True)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("expected bash, zsh, fish", refused.stderr)

    def test_commands_with_help_are_those_with_a_page(self):
        pages = {path.name for path in (self.share / "man" / "man1").iterdir()}
        self.assertEqual(pages, {"-".join(["hone", *help.command.split()]) + ".1" for help in self.help})
        self.assertNotIn("manual", self.help[0].text)

    def test_manual_pages_have_all_options_and_texts(self):
        for help in self.help:
            path = self.share / "man" / "man1" / ("-".join(["hone", *help.command.split()]) + ".1")
            page = path.read_text().replace("\\-", "-")
            self.assertEqual(sorted(re.findall(r"\\fB(-[^\\ ]+)\\fR", page)), help.options, path)
            for line in help.text.splitlines()[:1]:
                self.assertIn(line, page)
            if shutil.which("groff"):
                done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z", path], capture_output=True, text=True)
                self.assertEqual(done.stderr, "", path)

    def complete_in_bash(self, lines):
        """What bash completes the last word of each line to."""
        script = f"source {self.share / SHELLS['bash']}\n"
        for words in lines:
            script += f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _hone; echo \"${{COMPREPLY[*]}}\"\n"
        return [line.split() for line in call("bash", "--norc", "-c", script, env={**os.environ, "LC_ALL": "C"}).split("\n")[:-1]]

    def test_bash_completes_every_option_and_command(self):
        lines = [["hone", *help.command.split(), last] for help in self.help for last in ("--", "-", "''")]
        found = self.complete_in_bash(lines)
        for number, help in enumerate(self.help):
            long_ones, options, below = found[3 * number:3 * number + 3]
            self.assertEqual(sorted(long_ones), [name for name in help.options if name.startswith("--")], help.command)
            self.assertEqual(sorted(options), help.options, help.command)
            self.assertEqual(sorted(below), help.below, help.command)

    def test_bash_completes_values(self):
        devices = [device["name"] for device in json.loads(call(HONE, "devices", "--json"))]
        lines = [["hone", "tune", "--device", "''"], ["hone", "compile", "--device", "=", "neo"], ["hone", "tune", "--device", "="],
                 ["hone", "tune", "--output", "d"], ["hone", "tune", "db", "s"], ["hone", "tune", "--accuracy", "st"]]
        found = self.complete_in_bash(lines)
        self.assertEqual(found[0], devices)
        self.assertEqual(found[1], [name for name in devices if name.startswith("neo")])
        self.assertEqual(found[2], devices)
        self.assertEqual(found[3:5], [[], []])  # files, which bash adds by itself
        self.assertEqual(found[5], ["strict"])

    def test_bash_completes_at_a_terminal(self):
        child, terminal = pty.fork()
        if child == 0:
            environment = {**os.environ, "LC_ALL": "C", "HISTFILE": "", "INPUTRC": "/dev/null"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        try:
            os.write(terminal, f"source {self.share / SHELLS['bash']}; hone() {{ printf '<%s>' \"$@\"; }}\n".encode())
            os.write(terminal, b"hone devi\t--mea\t--db no_such_\t\n")
            shown, end = b"", time.monotonic() + 30
            while b"<devices><--measure><--db><no_such_>" not in shown and time.monotonic() < end:
                if select.select([terminal], [], [], 1)[0]:
                    shown += os.read(terminal, 4096)
            self.assertIn(b"<devices><--measure><--db><no_such_>", shown)
        finally:
            os.write(terminal, b"\nexit\n")
            os.close(terminal)
            os.waitpid(child, 0)

    def test_zsh_and_fish_know_every_option(self):
        zsh = (self.share / SHELLS["zsh"]).read_text()
        fish = (self.share / SHELLS["fish"]).read_text().splitlines()
        for help in self.help:
            case = zsh.partition(f"\n    '{help.command}')\n      commands=(\n")[2].partition(") ;;")[0]
            self.assertEqual(sorted(re.findall(r"^        '(-[^:]+):", case, re.M)), help.options, help.command)
            self.assertEqual(sorted(re.findall(r"^        '([a-z]+):", case, re.M)), help.below, help.command)
            start = f"complete -c hone -n '__hone_at {help.command}'"
            own = [line.removeprefix(start).partition(" -d ")[0] for line in fish if line.startswith(start + " ")]
            options = ["--" + name for line in own for name in re.findall(r" -l (\S+)", line)]
            options += ["-" + name for line in own for name in re.findall(r" -s (\S+)", line)]
            self.assertEqual(sorted(options), help.options, help.command)
            self.assertEqual(sorted(name for line in own for name in re.findall(r"^ -f -a (\S+)", line)), help.below, help.command)
        for shell, check in (("zsh", "-n"), ("fish", "--no-execute")):
            if shutil.which(shell):
                call(shell, check, self.share / SHELLS[shell])

    @unittest.skipUnless(shutil.which("fish"), "no fish here")
    def test_fish_completes(self):
        for line, wanted in (("hone db sho", "show"), ("hone tune --budg", "--budget"), ("hone compile --device neoverse-v", "neoverse-v1")):
            found = call("fish", "--no-config", "-c", f"source {self.share / SHELLS['fish']}; complete -C '{line}'")
            self.assertEqual([text.split("\t")[0] for text in found.splitlines()], [wanted])

    def test_the_changelog_has_this_version(self):
        version = json.loads(call(HONE, "version", "--json"))
        text = (ROOT / "CHANGELOG.md").read_text()
        self.assertEqual(re.search(r"^## (\S+)", text, re.M)[1], version["version"])
        self.assertIn(f"is version {version['abi_version']} (`HONE_ABI_VERSION`)", text)


if __name__ == "__main__":
    unittest.main()
