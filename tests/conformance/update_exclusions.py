"""Rewrites an exclusion table from what fails now: every failing case with the reason that it fails with.

    tests/conformance/update_exclusions.py BINARY TABLE FOLDER...

The reasons are Hone's own messages, shortened. Look at the difference before it is committed: a case that is new in
the table is a regression.
"""
import collections
import pathlib
import re
import subprocess
import sys

TYPES = {8: "strings", 14: "type complex64", 15: "type complex128", 17: "type float8e4m3fn", 18: "type float8e4m3fnuz",
         19: "type float8e5m2", 20: "type float8e5m2fnuz", 21: "type uint4", 22: "type int4", 23: "type float4e2m1",
         24: "type float8e8m0", 25: "type uint2", 26: "type int2"}
CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap"}
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}


def reason(message):
    """Why, without what differs from case to case."""
    if match := re.search(r"element type (\d+)", message):
        return TYPES.get(int(match[1]), f"type {match[1]}")
    if match := re.search(r"not supported in opset \d+: (.*)", message):
        names = [item.split(" (node")[0] for item in match[1].split("; ")]
        for kind, group in (("control flow", CONTROL_FLOW), ("random", RANDOM)):
            if group & set(names):
                return f"{kind}: {', '.join(sorted(group & set(names)))}"
        return f"not yet: {', '.join(names)}"
    if "expected a tensor" in message:
        return "sequences, optionals or strings"
    message = re.sub(r"^\S*model\.onnx: ", "", message)
    return re.sub(r"node '[^']*' ", "", message).strip()


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    binary, table, *folders = sys.argv[1:]
    done = subprocess.run([binary, "--jobs", "2", *folders], capture_output=True, text=True)
    *lines, totals = done.stdout.splitlines()
    failed = dict(re.fullmatch(r"FAIL (\S+): (.*)", line).groups() for line in lines if line.startswith("FAIL "))
    reasons = {name: reason(message) for name, message in failed.items()}
    text = "# Conformance cases that Hone does not pass, each with the reason: conformance/update_exclusions.py writes it.\n"
    text += f"# {totals}\n"
    pathlib.Path(table).write_text(text + "".join(f"{name}: {why}\n" for name, why in sorted(reasons.items())))
    for why, count in collections.Counter(reasons.values()).most_common():
        print(f"{count:5} {why}")
    print(totals)


if __name__ == "__main__":
    main()
