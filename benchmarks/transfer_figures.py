"""The table and the drawing of what transferring is worth, of the results of transfer.py."""
import html
import math
import statistics

import transfer_time
from drawing import COLOURS, Frame, document, polyline
from kernel_report import markdown

TARGET = (0.02, 0.7)  # of the tuning time, of the speed-up
TIMES_AS_LONG = 6.5  # that tuning in full needs for the same; the paper's mean on a Xeon, 10.8 on a Cortex-A72
PAPER = (0.0208, 0.4912)  # Transfer-Tuning's mean over eleven models (its table 4), of a weaker default
OF_THE_BEST = ((0, 0.90), (10, 0.97))  # candidates measured per kernel, share of the best known

WIDTH, HEIGHT, HEADER = 980, 270, 44  # of the drawing; of a model's two panels; of what stands above them
LEAST_TIME, LEAST_SHARE = 1e-4, -0.5  # what is below is drawn there
CLASSES = 5  # with bars, those that take longest
PLAIN = "#222222"  # of what is no way


def of_the_best(entry):
    return entry["best_seconds"] / entry["transfer_seconds"]


def timed(entry):
    """Whether a time was given, not a number of candidates per kernel."""
    return isinstance(entry["measure"], str)


def measured(entry):
    """How many candidates of a kernel, or for how long."""
    return "all" if entry["way"].startswith("paper") else str(entry["measure"])


def label(entry):
    """A way as a reader sees it."""
    choice = f", choice {entry['rank']}" if entry["rank"] > 1 else ""
    return f"{entry['way']}{choice}, {'' if timed(entry) else 'N = '}{measured(entry)}"


def percent(share, digits=0):
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def row(result, entry):
    milliseconds = [f"{1e3 * entry[key]:.4g}" for key in ("default_seconds", "transfer_seconds", "best_seconds")]
    return [result["model"], label(entry), entry["source"], f"{entry['score']:.3f}" if entry["score"] else "-", f"{entry['used']:.0f} of {entry['tasks']}",
            *milliseconds, f"{of_the_best(entry):.3f}", percent(entry["speedup_share"]), percent(entry["time_share"], 2),
            *full_tuning(result, entry)]


def full_tuning(result, entry):
    """How many times as long it needs for the same, and the transferred speed over what it has in the same time; "> N": it never has it."""
    if "full_then_seconds" not in entry:
        return ["-", "-"]
    longer = transfer_time.times_as_long(entry)
    text = f"{longer:.1f}x" if longer is not None else f"> {result['full_seconds'] / max(entry['seconds'], 1e-3):.0f}x"
    return [text, f"{entry['full_then_seconds'] / entry['transfer_seconds']:.3f}"]


def mean(values):
    """None without any."""
    values = [value for value in values if value is not None]
    return statistics.fmean(values) if values else None


def means(results):
    """{label: (entries, of the best, of the speed-up, of the time)} of each way and N that several models have."""
    groups = {}
    for result in results:
        for entry in result["entries"]:
            groups.setdefault(label(entry), []).append(entry)
    return {name: (entries, statistics.geometric_mean(map(of_the_best, entries)), mean(entry["speedup_share"] for entry in entries),
                   mean(entry["time_share"] for entry in entries)) for name, entries in groups.items() if len(entries) > 1 or len(results) == 1}


def full_means(results, entries):
    """Geometric means of full_tuning(); an entry whose result tuning in full never has counts with all of its time."""
    whole = {id(found): result["full_seconds"] for result in results for found in result["entries"]}
    known = [found for found in entries if found.get("full_then_seconds")]
    if not known or len(known) < len(entries):
        return ["-", "-"]
    longer = [max(found["full_needs_seconds"] if found["full_needs_seconds"] is not None else whole[id(found)], 0.1) / max(found["seconds"], 1e-3) for found in known]
    return [f"{statistics.geometric_mean(longer):.1f}x", f"{statistics.geometric_mean(found['full_then_seconds'] / found['transfer_seconds'] for found in known):.3f}"]


def table(results):
    """A row per model, way and N; then the means over models."""
    rows = [["model", "way", "source", "score", "kernels", "default ms", "transferred", "best", "of the best", "of the speed-up", "of the time", "full tuning needs", "over full tuning in this time"]]
    rows += [row(result, entry) for result in results for entry in result["entries"]]
    if len(results) > 1:
        rows += [[f"mean of {len(entries)}", name, "", "", "", "", "", "", f"{best:.3f}", percent(speedup), percent(time, 2), *full_means(results, entries)]
                 for name, (entries, best, speedup, time) in means(results).items()]
    return markdown(rows)


def verdicts(results):
    """The figures to reach; lines of text."""
    lines = []
    for name, (entries, best, speedup, time) in means(results).items():
        if entries[0]["way"] != "pool":
            continue
        effort = entries[0]["measure"]
        checks = [(best >= goal, f"{best:.3f} of the best known (goal {goal:.2f})") for n, goal in OF_THE_BEST if n == effort]
        if effort != 0 and speedup is not None and time is not None:
            checks.append((speedup >= TARGET[1] and time <= TARGET[0], f"{percent(speedup)} of the speed-up in {percent(time, 2)} of the time "
                           f"(goal {percent(TARGET[1])} in {percent(TARGET[0])}; the paper's mean {percent(PAPER[1])} in {percent(PAPER[0], 1)})"))
        longer = full_means(results, entries)[0]
        if effort != 0 and longer != "-":
            checks.append((float(longer[:-1]) >= TIMES_AS_LONG, f"tuning in full needs {longer} as long for the same (goal {TIMES_AS_LONG}x, the paper's mean)"))
        lines += [f"{'reached' if ok else 'MISSED '}  {name}: {text}" for ok, text in checks]
    return lines


def ways(results):
    """{way: colour}"""
    names = dict.fromkeys(entry["way"] for result in results for entry in result["entries"])
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def span(share):
    """Where a share of the speed-up lies between the least that is drawn (0) and all of it (1)."""
    return (min(max(share, LEAST_SHARE), 1) - LEAST_SHARE) / (1 - LEAST_SHARE)


def hint(entry):
    return (f"<title>{html.escape(label(entry))}, {html.escape(entry['source'])}: {percent(entry['speedup_share'])} of the speed-up in "
            f"{percent(entry['time_share'], 2)} of the time</title>")


def marks(frame, result, colours):
    """Of the speed-up against of the time: a mark per way and N, hollow for the rule's second choice and below."""

    def place(time, share):
        return (frame.left + frame.width * (1 - math.log(min(max(time, LEAST_TIME), 1)) / math.log(LEAST_TIME)),
                frame.top + frame.height * (1 - span(share)))

    parts = [frame.title(f"{html.escape(result['model'])}: share of the speed-up (%) against share of the tuning time (%)")]
    parts += [frame.row(place(1, share)[1], f"{100 * share:.0f}") for share in (-0.5, 0, 0.5, 1)]
    parts += [frame.column(place(time, 0)[0], f"{100 * time:g}") for time in (1e-4, 1e-3, 1e-2, 1e-1, 1)]
    parts.append(frame.below(f"of {result['full_seconds']:.0f} s, {result['full_trials']} trials"))
    x, y = place(*TARGET)
    parts.append(f'<path d="M{frame.left} {y:.1f}H{x:.1f}V{frame.top}" fill="none" stroke="{PLAIN}" stroke-dasharray="6 4"/>'
                 f'<text x="{frame.left + 4}" y="{y - 5:.1f}" fill="{PLAIN}">target: {percent(TARGET[1])} in {percent(TARGET[0])}</text>')
    x, y = place(*PAPER)
    parts.append(f'<path d="M{x - 4:.1f} {y:.1f}h8m-4 -4v8" stroke="{PLAIN}"/><text x="{x + 7:.1f}" y="{y + 4:.1f}" fill="{PLAIN}">mean in the paper</text>')
    for way, colour in colours.items():
        drawn = sorted((entry for entry in result["entries"] if entry["way"] == way and None not in (entry["time_share"], entry["speedup_share"])),
                       key=lambda entry: (entry["rank"], entry["time_share"]))
        first = [place(entry["time_share"], entry["speedup_share"]) for entry in drawn if entry["rank"] == 1]
        if len(first) > 1:
            parts.append(polyline(first, colour, width=1))
        for entry in drawn:
            x, y = place(entry["time_share"], entry["speedup_share"])
            fill = colour if entry["rank"] == 1 else "white"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{colour}">{hint(entry)}</circle>')
            if entry["rank"] == 1:
                parts.append(f'<text x="{x + 6:.1f}" y="{y - 5:.1f}" fill="{colour}">{measured(entry)}</text>')
    return parts


def bars(frame, result, colours):
    """Of the speed-up of the kernel classes that take longest: a bar per way, of what took longest."""
    last = {}
    for entry in sorted(result["entries"], key=lambda entry: entry["seconds"]):
        if entry["rank"] == 1:
            last[entry["way"]] = entry
    if not last:
        return []
    longest = next(iter(last.values()))
    names = [one["kernel"] for one in sorted(longest["classes"], key=lambda one: -one["default_seconds"])[:CLASSES]]
    seconds = {one["kernel"]: one["default_seconds"] for one in longest["classes"]}
    parts = [frame.title("share of the speed-up (%) by kernel class")]
    parts += [frame.column(frame.left + frame.width * span(share), f"{100 * share:.0f}") for share in (-0.5, 0, 0.5, 1)]
    zero, step = frame.left + frame.width * span(0), frame.height / max(len(names), 1)
    for i, name in enumerate(names):
        top = frame.top + i * step
        text = name if len(name) <= 26 else f"{name[:25]}…"
        parts.append(f'<text x="{frame.left - 6}" y="{top + step / 2 + 4:.1f}" text-anchor="end">{html.escape(text)} '
                     f'({percent(seconds[name] / longest["default_seconds"])})</text>')
        thick = step / (len(last) + 1)
        for j, (way, entry) in enumerate(last.items()):
            share = next((one["speedup_share"] for one in entry["classes"] if one["kernel"] == name), None)
            if share is None:
                continue
            end = frame.left + frame.width * span(share)
            parts.append(f'<rect x="{min(zero, end):.1f}" y="{top + (j + 0.5) * thick:.1f}" width="{max(abs(end - zero), 1):.1f}" height="{0.85 * thick:.1f}" '
                         f'fill="{colours[way]}"><title>{html.escape(f"{label(entry)}: {percent(share)}")}</title></rect>')
    return parts


def svg(results):
    """Two panels per model, below what the colours mean."""
    colours = ways(results)
    parts = ['<text x="10" y="24" font-size="13">What the schedules of other models are worth. At marks: candidates measured per kernel, or seconds of search</text>']
    x = 10
    for way, colour in colours.items():
        parts.append(f'<circle cx="{x + 4}" cy="38" r="4" fill="{colour}"/><text x="{x + 12}" y="42" fill="{colour}">{html.escape(way)}</text>')
        x += 30 + 7 * len(way)
    for i, result in enumerate(results):
        top = HEADER + i * HEIGHT + 36
        parts += marks(Frame(left=46, top=top, width=400, height=HEIGHT - 86), result, colours)
        parts += bars(Frame(left=690, top=top, width=270, height=HEIGHT - 86), result, colours)
    return document(WIDTH, HEADER + HEIGHT * len(results), parts)
