"""The kernels table as CSV: a line for each row and number of threads, all of it from stored results by kernel_report.py's rules.

Times are those of the fastest round. A rival's column is its time over Hone's: above 1 Hone is faster; empty where it has none. `raised` names
the engines whose estimate was raised to what the machine can do at all.
"""
import csv
import statistics

import kernel_report

HEADER = ("row", "class", "models", "isa", "threads", "weights", "hone_ms", "hone_median_ms", "percent_of_limit", "limit", *kernel_report.SHORT,
          "best_ratio", "best_ratio_median", "best_rival", "raised", "error", "seconds_searched")


def ratio(result, name):
    theirs, ours = kernel_report.times(result, name), kernel_report.times(result, "hone")
    return min(theirs) / min(ours) if theirs and ours else None


def line(result):
    ours, best = kernel_report.times(result, "hone"), kernel_report.ratios(result, "direct")
    limited = kernel_report.ratios(result, "limit")
    best_ratio, best_median, best_rival = best or (None, None, "")
    raised = [name for name in result["engines"] if kernel_report.mark(result, name)]
    return {
        "row": result["name"], "class": result["class"], "models": " ".join(name.replace(" ", "_") for name in result["models"]), "isa": result["isa"],
        "threads": result["threads"], "weights": result["weights"], "hone_ms": digits(ours and 1e3 * min(ours), 4),
        "hone_median_ms": digits(ours and 1e3 * statistics.median(ours), 4), "percent_of_limit": digits(limited and 100 * limited[0], 3),
        "limit": result.get("limit", ""), **{name: digits(ratio(result, name), 3) for name in kernel_report.SHORT},
        "best_ratio": digits(best_ratio, 3), "best_ratio_median": digits(best_median, 3), "best_rival": best_rival, "raised": " ".join(raised),
        "error": digits(result["engines"].get("hone", {}).get("error"), 1), "seconds_searched": digits(result["seconds_to_tune"], 4)}


def digits(value, count):
    return "" if value is None else f"{value:.{count}g}"


def write(results, path):
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, HEADER, lineterminator="\n")
        table.writeheader()
        table.writerows(line(result) for result in results)
