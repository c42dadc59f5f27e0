"""Compiles models made of independent subgraphs, runs them, compares every output, and reduces what differs to its smallest part."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import onnx
from differences import difference
from oracle import by_reference
from subgraph import merged_model, names_read, text_of

HONE = os.environ.get("HONE", "hone")
RUN_LIBRARY = Path(__file__).resolve().parent / "run_library.py"


class Refused(Exception):
    """hone ended with an error message, or crashed; clean: it says what of the model it cannot compile."""

    def __init__(self, message, clean=False):
        super().__init__(message)
        self.clean = clean


def hone(*arguments):
    done = subprocess.run([HONE, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(done.stderr.strip() or f"hone {arguments[0]} ended with exit code {done.returncode}", done.returncode == 2)
    return done.stdout


class Runner:
    """`arguments`: what else `hone compile` and `hone show` are given."""

    ir_version = 8

    def __init__(self, opset, folder, arguments=()):
        self.opset, self.folder, self.arguments = opset, folder, arguments

    def _save(self, subgraphs):
        model = self.folder / "model.onnx"
        onnx.save_model(merged_model(subgraphs, self.opset, self.ir_version), model)
        return model

    def differences(self, subgraph, found):
        return differences(subgraph, found)

    def outputs(self, subgraphs):
        """{name: array} of a model with these subgraphs."""
        library = self.folder / "model.so"
        hone("compile", self._save(subgraphs), "-o", library, "--no-db", "--no-check", "--threads", 2, *self.arguments)
        # In a process of its own: a crash is a finding like any other.
        inputs, outputs = self.folder / "inputs.npz", self.folder / "outputs.npz"
        np.savez(inputs, **{v.name: v.array for subgraph in subgraphs for v in subgraph.inputs()})
        done = subprocess.run([sys.executable, RUN_LIBRARY, str(library), str(inputs), str(outputs)], capture_output=True, text=True)
        if done.returncode != 0:
            raise Refused(f"running it ended with exit code {done.returncode}: {done.stderr.strip()[-300:]}")
        with np.load(outputs) as found:
            return dict(found)

    def passes(self, subgraphs):
        """{pass: {rule: how often}} of the passes that changed the graph."""
        shown = json.loads(hone("show", self._save(subgraphs), "--passes", "--json", "--no-db", "--threads", 2, *self.arguments))
        return {entry["pass"]: entry["rules"] for entry in shown["passes"] if entry["changed"]}

    # ---- what differs ----

    def still_wrong(self, subgraph, message):
        """Whether it differs or, where hone or the model failed, fails with the like message."""
        try:
            wrong = self.differences(subgraph, self.outputs([subgraph]))
        except Refused as refused:
            return message is not None and kind_of(str(refused)) == kind_of(message)
        return message is None and bool(wrong)

    def minimised(self, subgraph, outputs, message=None):
        """The part of a subgraph that shows the difference: results become inputs one after the other."""
        small = subgraph.restricted(subgraph.nodes, outputs)
        if not self.still_wrong(small, message):
            return subgraph
        shrinks = True
        while shrinks:
            shrinks = False
            for node in list(small.nodes):
                smaller = small.restricted([other for other in small.nodes if other is not node], small.outputs)
                if node.output[0] in small.outputs:
                    read = sorted(name for name in names_read(node) if name in small.values and small.values[name].kind == "result") if len(small.nodes) > 1 else []
                    smaller = small.restricted(small.nodes, read[:1]) if read else None
                if smaller and smaller.nodes and self.still_wrong(smaller, message):
                    small, shrinks = smaller, True
                    break
        return small

    def first_failing(self, subgraphs):
        """By halves: one subgraph whose compilation or run crashes."""
        while len(subgraphs) > 1:
            half = subgraphs[:len(subgraphs) // 2]
            try:
                self.outputs(half)
                subgraphs = subgraphs[len(half):]
            except Refused:
                subgraphs = half
        return subgraphs[0]

    def check(self, subgraphs):
        """(subgraphs compared, findings, refusals); a finding is a subgraph and what is wrong with it."""
        subgraphs = [subgraph for subgraph in subgraphs if subgraph.outputs]
        findings, refusals = [], []
        while subgraphs:
            try:
                found = self.outputs(subgraphs)
            except Refused as refused:
                message = str(refused)
                culprits = named_subgraphs(message, subgraphs)
                if culprits and refused.clean:
                    refusals += [message] + [f"{subgraph.prefix[:-1]}, with the one before" for subgraph in culprits[1:]]
                else:
                    culprits = culprits[:1] or [self.first_failing(subgraphs)]
                    findings.append((self.minimised(culprits[0], culprits[0].outputs, message), message))
                subgraphs = [subgraph for subgraph in subgraphs if not any(subgraph is culprit for culprit in culprits)]
                continue
            for subgraph in subgraphs:
                wrong = self.differences(subgraph, found)
                if wrong:
                    name, what = wrong[0]
                    small = self.minimised(subgraph, [name])
                    findings.append((small, f"output {name}: {what}{self.other_opinion(small, name)}"))
            break
        return subgraphs, findings, refusals

    def other_opinion(self, subgraph, name):
        """What the reference implementation says about an output that differs."""
        if name not in subgraph.outputs:
            name = subgraph.outputs[0]
        model = merged_model([subgraph], self.opset)
        results = by_reference(model, {v.name: v.array for v in subgraph.inputs()})
        if results is None:
            return " (ONNX's reference cannot run it)"
        result, value = results[subgraph.outputs.index(name)], subgraph.values[name]
        agrees = difference(result, value.array, subgraph.signs, value.rounds) is None
        try:
            same = difference(self.outputs([subgraph])[name], result, subgraph.signs, value.rounds) is None
        except Refused:
            same = False
        return f" (ONNX's reference {'agrees' if agrees else 'agrees with hone' if same else 'gives a third result'})"

    def report(self, seed, findings, keep):
        for i, (small, what) in enumerate(findings):
            print(f"seed {seed}: {what}\n{text_of(small, self.opset, self.ir_version)}", flush=True)
            if keep:
                keep.mkdir(parents=True, exist_ok=True)
                onnx.save_model(merged_model([small], self.opset, self.ir_version), keep / f"seed{seed}_{i}.onnx")
                np.savez(keep / f"seed{seed}_{i}.npz", **{v.name: v.array for v in small.values.values()})


def differences(subgraph, found):
    """[(output, what)]"""
    wrong = []
    for name in subgraph.outputs:
        value = subgraph.values[name]
        what = difference(found[name], value.array, subgraph.signs and value.exact and value.signed, value.rounds)
        if what:
            wrong.append((name, what))
    return wrong


def kind_of(message):
    return re.sub(r"'[^']*'|\d+", "", message)[:80]


def named_subgraphs(message, subgraphs):
    """Those that an error message is about."""
    return [subgraph for subgraph in subgraphs if f"'{subgraph.prefix}" in message or f" {subgraph.prefix}n" in message]
