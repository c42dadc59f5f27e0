"""Prints the tables of docs/studies/gpus.md from the results of device_check.py: summary.py FOLDER."""
import csv
import json
import math
import re
import sys
from pathlib import Path


def rows(folder, part):
    """The rows of a part without what is empty; numbers as such."""
    def cell(text):
        try:
            return float(text)
        except ValueError:
            return text

    file = folder / f"{part}.csv"
    if not file.exists():
        return []
    with file.open(newline="") as opened:
        return [{key: cell(text) for key, text in row.items() if text} for row in csv.DictReader(opened)]


def mean(values):
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def table(title, header, lines):
    if not lines:
        print(f"\n{title}: none")
        return
    print(f"\n{title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for line in lines:
        print(f"| {' | '.join(line)} |")


def number(row, key, scale=1.0, digits=2):
    return f"{row[key] * scale:.{digits}f}" if key in row else "-"


def best_of(found):
    """Of an operator compiled and tuned the faster one."""
    best = {}
    for row in found:
        name = re.sub(r", tuned .*", "", row["name"])
        if "hone_seconds" in row and row["hone_seconds"] < best.get(name, {"hone_seconds": math.inf})["hone_seconds"]:
            best[name] = row
    return best


def print_products(folder):
    found = rows(folder, "products")
    best = best_of(found + rows(folder, "products_tuned"))
    lines = []
    for row in found:
        if ", tuned" not in row["name"]:
            tuned = best.get(row["name"], row)
            lines.append([row["name"], number(row, "hone_seconds", 1e6, 1), number(tuned, "hone_seconds", 1e6, 1), number(row, "torch_seconds", 1e6, 1),
                          number(row, "torch_over_hone"), number(tuned, "torch_over_hone")])
    table("Products: microseconds, and cuBLAS's time over Hone's", ["product", "compiled", "tuned", "cuBLAS", "ratio", "ratio, tuned"], lines)
    for kind in ("fp32", "tf32", "fp16", "bf16"):
        compiled = [row["torch_over_hone"] for row in found if row["name"].startswith(kind) and ", tuned" not in row["name"] and "torch_over_hone" in row]
        fastest = [row["torch_over_hone"] for name, row in best.items() if name.startswith(kind) and "torch_over_hone" in row]
        if compiled:
            print(f"\n{kind}: geometric mean {mean(compiled):.2f} compiled, {mean(fastest):.2f} with tuning, of {len(compiled)} products")


def print_memory(folder):
    best = best_of(rows(folder, "memory") + rows(folder, "memory_tuned"))
    lines = [[row["name"], number(row, "hone_seconds", 1e6, 1), number(row, "share_of_copy"), number(best.get(row["name"], row), "share_of_copy"),
              number(row, "torch_over_hone")] for row in rows(folder, "memory") if ", tuned" not in row["name"]]
    table("Operators on 64 MiB: share of the rate of a copy", ["operator", "microseconds", "share", "share, tuned", "PyTorch's time over Hone's"], lines)


def print_models(folder):
    compiled = {row["name"]: row for row in rows(folder, "compiled")}
    lines, ratios, others = [], [], []
    for row in rows(folder, "models"):
        other = compiled.get(row["name"], {})
        if "torch_over_hone" in row:
            ratios.append(row["torch_over_hone"])
        if "torch_compile_seconds" in other and "hone_seconds" in row:
            row["compile_over_hone"] = other["torch_compile_seconds"] / row["hone_seconds"]
            others.append(row["compile_over_hone"])
        problems = [row.get("problem", ""), row.get("rival_problem", ""), other.get("rival_problem", "")]
        lines.append([row["name"], number(row, "hone_seconds", 1e3, 3), number(row, "torch_seconds", 1e3, 3), number(row, "torch_over_hone"),
                      number(other, "torch_compile_seconds", 1e3, 3), number(row, "compile_over_hone"), number(other, "compile_seconds", digits=0),
                      f"{row['error']:.1e}" if "error" in row else "-", "; ".join(filter(None, problems))])
    table("Models: milliseconds as compiled, without measuring",
          ["model", "Hone", "PyTorch eager", "eager / Hone", "torch.compile", "torch.compile / Hone", "seconds to compile", "error", "problem"], lines)
    print(f"\nGeometric mean over eager: {mean(ratios):.2f} of {len(ratios)}, {sum(r >= 1 for r in ratios)} of them at least 1; over torch.compile: {mean(others):.2f} of {len(others)}")


def print_sanitizer(folder):
    found = rows(folder, "sanitizer")
    lines = [[row["name"], row.get("summary", "it did not end"), number(row, "passed", digits=0), row.get("problem") or row.get("unfinished", "")] for row in found]
    if found:
        table("compute-sanitizer", ["tool and tests", "what it says", "tests that passed", "problem"], lines)
        print(f"\n{sum(not row.get('problem') and not row.get('unfinished') for row in found)} of {len(found)} whole and without an error")


def print_parts(folder):
    """What ran, and why the rest did not."""
    for file in sorted(folder.glob("*.json")):
        part = json.loads(file.read_text())
        if "status" in part:
            print(f"{part['part']}: {part['status']}, {len(part['rows'])} rows in {part['seconds']} s{', ' if part['reason'] else ''}{part['reason']}")


def main():
    folder = Path(sys.argv[1])
    print_parts(folder)
    for row in rows(folder, "machine"):
        print(f"{row['name']}: {row['value']}")
    for part in ("tests", "watchdog", "tuning", "data", "kernels"):
        for row in rows(folder, part):
            print(f"{part}: {', '.join(f'{key} {value}' for key, value in row.items())}")
    print_sanitizer(folder)
    print_products(folder)
    print_memory(folder)
    print_models(folder)


if __name__ == "__main__":
    main()
