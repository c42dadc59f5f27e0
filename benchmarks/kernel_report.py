"""Tables of the kernels benchmark, from stored results: a row for each operator, then what each class reached beside its target.

A time is that of one copy, without an engine's empty call and without reorders at the model's ends. A ratio is the rival's time over
Hone's: above 1 Hone is faster. The rows' ratios are those of the fastest rounds; the medians of all rounds' ratios stand beside them.
An estimated time below what the machine can do at all is raised to that and marked with a * (floor() says how much is certain).
"""
import statistics

import kernel_rows

# (title, which rows, which rivals, least ratio of each row or None, geometric mean or None)
TARGETS = (
    ("dense: convolutions and products, against the best rival without Winograd", lambda r: r["class"] == "dense", "direct", 0.95, 1.25),
    ("3x3 stride 1, >= 64 channels, against the best direct rival", lambda r: r["winograd"], "direct", None, 2.3),
    ("3x3 stride 1, >= 64 channels, against oneDNN's Winograd", lambda r: r["winograd"], "onednn winograd", 1.0, None),
    ("depthwise, depthwise + pointwise", lambda r: r["class"] == "depthwise", "direct", None, 1.3),
    ("attention of 128, 256, 512 tokens", lambda r: r["class"] == "attention" and not kernel_rows.has_many_tokens(r["key"]), "direct", 1.2, None),
    ("attention of more tokens", lambda r: kernel_rows.has_many_tokens(r["key"]), "direct", None, None),
    ("normalisation, softmax, GELU, pooling, elementwise, transposes", lambda r: r["class"] == "memory", "direct", 1.0, None),
    ("other convolutions: grouped, dilated, transposed, 1-D, 3-D", lambda r: r["class"] == "convolutions", "direct", None, None),
    ("other operators", lambda r: r["class"] == "operators", "direct", None, None),
    ("share of the limit where nothing is multiplied", lambda r: r["class"] in ("memory", "operators"), "limit", 0.8, None),
)
AVX2_TARGET = ("AVX2 against oneDNN limited to AVX2", lambda r: True, "onednn", None, 0.95)
SHORT = {"onednn": "oneDNN", "onednn winograd": "oneDNN Winograd", "openblas": "OpenBLAS", "onnxruntime": "ORT", "openvino": "OpenVINO"}


RAISED = "*: estimated below what the machine can do at all, and raised to that"


def is_estimated(found):
    """Whether an engine's time is not what was measured: less an empty call, or a share of it."""
    return found["share"] < 1 or found["empty_call"] > 0


def estimates(result, name):
    """The seconds of a copy in each round, medians of its samples, as measured or estimated; None if the engine has no time."""
    found = result["engines"].get(name)
    if not found:
        return None
    return [max(statistics.median(samples) - found["empty_call"], 1e-9) * found["share"] / result["copies"] for samples in found["rounds"]]


def floor(result):
    """The least seconds of a copy that an estimate is believed; 0 if there is no such bound.

    That is the row's limit where it is the arithmetic's, of the algorithm with the fewest products (Winograd's where there is one). A cache's
    bandwidth is none: part of a working set may lie in a closer one. And what an engine was measured to take, no other one is denied: the peak
    rate may have been measured in a slow moment.
    """
    if result.get("limit") != "compute":
        return 0.0
    measured = [min(estimates(result, name)) for name, found in result["engines"].items() if not is_estimated(found)]
    return min([result["limit_seconds"], *measured])


def times(result, name):
    """As estimates(), but none below the floor."""
    found = estimates(result, name)
    if not found or not is_estimated(result["engines"][name]):
        return found
    least = floor(result)
    return [max(seconds, least) for seconds in found]


def mark(result, name):
    """A star if the engine's time is not its estimate."""
    found = estimates(result, name)
    return "*" if found and min(found) < min(times(result, name)) else ""


def rivals_of(result, which):
    if which != "direct":
        return [which] if which in result["engines"] else []
    return [name for name in result["engines"] if name not in ("hone", "onednn winograd")]


def ratios(result, which):
    """(of the fastest rounds, median over rounds, the best rival's name); None if there is no rival. The rival "limit" is the machine."""
    ours = times(result, "hone")
    if which == "limit":
        least = result.get("limit_seconds")
        return (least / min(ours), least / statistics.median(ours), which) if ours and least else None
    names = rivals_of(result, which)
    if not ours or not names:
        return None
    best = min(names, key=lambda name: min(times(result, name)))
    theirs = times(result, best)
    return min(theirs) / min(ours), statistics.median(b / a for a, b in zip(ours, theirs, strict=True)), best


def cell(result, name):
    """min / median of a rival's time over Hone's; a dash if it has none."""
    theirs, ours = times(result, name), times(result, "hone")
    return f"{min(theirs) / min(ours):.2f}{mark(result, name)}" if theirs and ours else "-"


def rate(result):
    """Per cent of the peak rate of multiply-adds, or GB/s where nothing is multiplied."""
    ours = times(result, "hone")
    if not ours:
        return "failed"
    if result["flops"] and result["peak_flops"]:
        return f"{100 * result['flops'] / min(ours) / result['peak_flops']:.0f} %"
    return f"{result['bytes'] / min(ours) * 1e-9:.1f} GB/s"


def of_limit(result):
    """Per cent of what binds, as in "71 % of compute" or "48 % of L2" (kernel_limit.py); a dash in results from before it was stored."""
    ours = times(result, "hone")
    if not ours or "limit_seconds" not in result:
        return "-"
    return f"{100 * result['limit_seconds'] / min(ours):.0f} % of {result['limit']}"


def milliseconds(values):
    return f"{1e3 * min(values):.4g} / {1e3 * statistics.median(values):.4g}" if values else "-"


def line(result):
    """A result in one line."""
    found = ratios(result, "direct")
    error = result["engines"].get("hone", {}).get("error")
    verdict = f"{found[0]:.2f}{mark(result, found[2])} ({found[1]:.2f}) of {SHORT[found[2]]}" if found else "no rival"
    if "hone" in result["failures"]:
        verdict = f"Hone failed: {result['failures']['hone']}"
    own = f"{milliseconds(times(result, 'hone'))}{mark(result, 'hone')} ms, {rate(result)}, {of_limit(result)}"
    return f"{result['name']} [{result['threads']}t, {result['weights']}]: {own}, {verdict}" + (f", error {error:.0e}" if error is not None else "")


def markdown(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
    return "\n".join("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |" for row in rows)


def table(results):
    names = [name for name in SHORT if any(name in result["engines"] for result in results)]
    rows = [["operator", "threads", "weights", "Hone ms min / median", "of peak or rate", "of limit", *[f"{SHORT[name]} /" for name in names],
             "best rival's min / median", "error"]]
    for result in results:
        found = ratios(result, "direct")
        error = result["engines"].get("hone", {}).get("error")
        rows.append([result["name"], str(result["threads"]), f"{result['weights']}", milliseconds(times(result, "hone")) + mark(result, "hone"), rate(result),
                     of_limit(result), *[cell(result, name) for name in names],
                     f"{found[0]:.2f}{mark(result, found[2])} / {found[1]:.2f}" if found else "-",
                     f"{error:.0e}" if error is not None else "-"])
    raised = any(mark(result, name) for result in results for name in result["engines"])
    return markdown(rows) + (f"\n\n{RAISED}" if raised else "")


def verdict(title, results, which, least, mean):
    found = sorted((r for r in (ratios(result, which) for result in results) if r), key=lambda r: r[0])
    if not found:
        return None
    values = [r[0] for r in found]
    worst, reached = values[0], statistics.geometric_mean(values)
    middle = statistics.geometric_mean([r[1] for r in found])
    ok = (least is None or worst >= least) and (mean is None or reached >= mean)
    below = f", {sum(v < least for v in values)} below {least}" if least else ""
    goal = " and ".join(text for text in (f"each >= {least}" if least else "", f"mean >= {mean}" if mean else "") if text)
    return [title, str(len(values)), f"{worst:.2f}{below}", f"{reached:.2f} ({middle:.2f})", goal, ("reached" if ok else "MISSED") if goal else ""]


def verdicts(results):
    rows = [["class", "rows", "least", "geometric mean (of medians)", "target", ""]]
    for threads in sorted({result["threads"] for result in results}):
        for isa in sorted({result["isa"] for result in results}):
            part = [r for r in results if r["threads"] == threads and r["isa"] == isa]
            for title, chosen, which, least, mean in TARGETS if isa == "host" else (AVX2_TARGET,):
                row = verdict(f"{title}, {threads} thread{'s' if threads > 1 else ''}", [r for r in part if chosen(r)], which, least, mean)
                rows += [row] if row else []
    return markdown(rows) if len(rows) > 1 else ""


def furthest_behind(results, count):
    found = [(ratios(result, "direct"), result) for result in results]
    found = sorted(((r, result) for r, result in found if r), key=lambda pair: pair[0][0])
    return "\n".join(f"{ratio:.2f}  {line(result)}" for (ratio, _, _), result in found[:count])


def failures(results):
    return "\n".join(f"{SHORT.get(name, name)} can't do {result['name']} [{result['threads']}t]: {text}"
                     for result in results for name, text in result["failures"].items())


def tables(results, worst):
    parts = []
    for class_name in dict.fromkeys(result["class"] for result in results):
        for isa in ("host", "avx2"):
            chosen = [r for r in results if r["class"] == class_name and r["isa"] == isa]
            if chosen:
                parts.append(f"{class_name}{', AVX2' if isa == 'avx2' else ''}\n\n{table(chosen)}")
    parts += [verdicts(results), f"furthest behind:\n{furthest_behind(results, worst)}", failures(results)]
    return "\n\n".join(part for part in parts if part)
