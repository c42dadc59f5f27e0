#!/usr/bin/env python3
"""The instructions that Hone counts of machine code for Arm, without running it, against those that qemu executes of it, one by one."""
import bisect
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

QEMU, COMPILER, NAMES = "qemu-aarch64-static", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-nm"
PROGRAM = os.environ.get("HONE_ARM_COUNTS", "hone_arm_counts")
DEVICES = ("aarch64-neon", "neoverse-n1")
TOLERANCE = 0.02  # of what is not counted exactly
TRACE = re.compile(rb"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/")

DRIVER = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef int (*Kernel)(void* const*, void*, int64_t, int64_t, int);
static int run(Kernel kernel, const char* data, const int64_t* bytes, int count, int64_t scratch_bytes, int64_t tiles) {
  void* arguments[64];
  FILE* file = fopen(data, "rb");
  if (file == NULL || count > 64) return 1;
  for (int i = 0; i < count; ++i) {
    arguments[i] = aligned_alloc(64, (bytes[i] + 127) / 64 * 64);
    if (fread(arguments[i], 1, bytes[i], file) != (size_t)bytes[i]) return 1;
  }
  fclose(file);
  void* scratch = aligned_alloc(64, (scratch_bytes + 127) / 64 * 64);
  return kernel(arguments, scratch, 0, tiles, 0);
}
"""


def build(folder, phases):
    """One program that runs all of them."""
    lines, calls = [DRIVER], []
    for i, phase in enumerate(phases):
        lines.append(f"int {phase['symbol']}(void* const*, void*, int64_t, int64_t, int);")
        lines.append(f"static const int64_t bytes_{i}[] = {{{', '.join(map(str, phase['arguments']))}}};")
        data = json.dumps(str(folder / (phase["name"] + ".bin")))
        calls.append(f"  if (run({phase['symbol']}, {data}, bytes_{i}, {len(phase['arguments'])}, {phase['scratch']}, {phase['tiles']})) return {i % 200 + 1};")
    (folder / "run.c").write_text("\n".join([*lines, "int main(void) {", *calls, "  return 0;", "}", ""]))
    objects = sorted({folder / (phase["name"] + ".o") for phase in phases})
    subprocess.run([COMPILER, "-static", "-O1", folder / "run.c", *objects, "-lm", "-o", folder / "run"], check=True)
    return folder / "run"


def places(program, phases):
    """[(first address, last address + 1, symbol of the phase)], ascending: of its entry point and of what that calls."""
    symbols = {phase["symbol"] for phase in phases}
    found = []
    for line in subprocess.run([NAMES, "-S", program], check=True, capture_output=True, text=True).stdout.splitlines():
        parts = line.split()
        if len(parts) != 4 or parts[2] not in "tT":
            continue
        owner = next((parts[3][:end] for end in range(len(parts[3]), 0, -1) if parts[3][:end] in symbols), None)
        if owner:
            found.append((int(parts[0], 16), int(parts[0], 16) + int(parts[1], 16), owner))
    return sorted(found)


def executed(program, ranges, log):
    """{symbol of a phase: instructions}: each is a block of its own (-singlestep), which qemu tells every time (nochain)."""
    first, last = ranges[0][0], max(end for _, end, _ in ranges)
    subprocess.run([QEMU, "-cpu", "max", "-singlestep", "-d", "exec,nochain", "-dfilter", f"{first:#x}..{last:#x}", "-D", log, program], check=True, timeout=600)
    starts, counts = [start for start, _, _ in ranges], collections.Counter()
    with open(log, "rb") as lines:
        for line in lines:
            found = TRACE.match(line)
            if not found:
                continue
            address = int(found[1], 16)
            start, end, symbol = ranges[bisect.bisect_right(starts, address) - 1]
            if start <= address < end:
                counts[symbol] += 1
    return counts


def main():
    for program in (QEMU, COMPILER, NAMES):
        if shutil.which(program) is None:
            sys.exit(f"there is no {program}: run scripts/setup.sh")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = subprocess.run([PROGRAM, folder, *DEVICES], check=True, capture_output=True, text=True)
        phases = [json.loads(line) for line in written.stdout.splitlines()]
        assert len(phases) >= 60, len(phases)
        program = build(folder, phases)
        counts = executed(program, places(program, phases), folder / "log")
    exact, worst, wrong = 0, 0.0, []
    for phase in phases:
        counted, found = phase["counted"], counts[phase["symbol"]]
        if phase["failure"] or found == 0:
            wrong.append(f"{phase['symbol']}: {phase['failure'] or 'it was not executed'}")
            continue
        difference = abs(counted - found) / found
        exact += counted == found
        worst = max(worst, difference)
        if difference > (0 if phase["exact"] else TOLERANCE):
            wrong.append(f"{phase['symbol']}: counted {counted}, executed {found}, exact: {phase['exact']}")
    print(f"{exact} of {len(phases)} phases are exact, others within {100 * worst:.2f} %")
    assert not wrong, "\n".join(wrong)
    assert exact >= 0.9 * len(phases), exact


if __name__ == "__main__":
    main()
