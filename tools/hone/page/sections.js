// The sections of the page besides the kernels.

function sectionSummary(runs) {
  if (runs.length > 1) return comparisonTable(runs);
  const run = runs[0], tiles = [], whole = sum(run.kernels, (kernel) => kernel.times * kernel.seconds);
  if (run.model_seconds > 0) {
    tiles.push(["Model", seconds(run.model_seconds)], ["Before tuning", seconds(run.untuned_model_seconds)],
      ["Gain", run.kept_untuned ? "none: it stays as it was" : ratio(run.untuned_model_seconds / run.model_seconds)]);
  }
  const before = sum(run.kernels, (kernel) => kernel.times * (kernel.before_seconds || kernel.seconds));
  tiles.push([run.of_database ? "All kernels, each once" : "Sum of the kernels", seconds(whole)]);
  if (!(run.model_seconds > 0) && before > 0 && whole > 0) tiles.push([run.of_database ? "Their first times" : "Before tuning", seconds(before)], ["Gain", ratio(before / whole)]);
  tiles.push(["Kernels", count(run.kernels.length)], ["Trials", count(run.trials)],
    ["Time of tuning", run.budget > 0 ? `${seconds(run.seconds)} of ${seconds(run.budget)}` : seconds(run.seconds)]);
  const notes = [...run.notes];
  if (run.interrupted) notes.push("The run was interrupted.");
  if (run.not_compared) notes.push(`The whole model was not compared with what it was before: ${run.not_compared}.`);
  return [make("dl", {class: "tiles"}, ...tiles.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    ...notes.map((note) => make("p", {class: "note"}, note))];
}

function comparisonTable([a, b]) {
  const row = (name, value, show) => {
    const [first, second] = [value(a), value(b)];
    return [name, show(first), show(second), ratio(first / second)];
  };
  const common = a.kernels.filter((kernel) => b.kernels.some((other) => other.key === kernel.key)).length;
  const rows = [
    row("Model", (run) => run.model_seconds, seconds), row("Model before tuning", (run) => run.untuned_model_seconds, seconds),
    row("Sum of the kernels", (run) => sum(run.kernels, (kernel) => kernel.times * kernel.seconds), seconds),
    row("Kernels", (run) => run.kernels.length, count), row("Trials", (run) => run.trials, count), row("Time of tuning", (run) => run.seconds, seconds)];
  const notes = [a, b].map((run, i) => [run, "AB"[i]]).flatMap(([run, letter]) => run.notes.map((note) => `${letter}: ${note}`));
  if (a.device !== b.device || a.threads !== b.threads) {
    notes.push(`They were measured on different devices or numbers of threads: ${a.device} with ${a.threads}, and ${b.device} with ${b.threads}.`);
  }
  return [make("p", {}, `A is ${describeRun(a)}, B is ${describeRun(b)}. They have ${common} kernels in common.`),
    makeTable("Both runs", [{title: "", text: true}, {title: "A"}, {title: "B"}, {title: "A / B"}], rows),
    ...notes.map((note) => make("p", {class: "note"}, note))];
}

function describeRun(run) {
  const when = run.began > 0 && run.began < 8e12 ? `, ${new Date(run.began * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC` : "";
  return `${run.name || "this run"}${run.model ? ` (${run.model})` : ""}, ${run.device || "unknown device"}, ${run.threads} thread${run.threads === 1 ? "" : "s"}${when}`;
}

const curveView = {axis: "seconds"};

function sectionCurve(runs) {
  if (!runs.some((run) => run.curve.at.length)) return null;
  const box = make("div");
  const draw = () => {
    const byTime = curveView.axis === "seconds", marks = [];
    const lines = runs.map((run, i) => {
      const {at, trial, seconds: times} = run.curve, xs = byTime ? at : trial;
      const points = xs.map((x, j) => [x, times[j]]);
      points.forEach(([x, y], j) => marks.push({x, y, colour: COLOURS[i], radius: 3,
        text: `${runs.length > 1 ? `${"AB"[i]}: ` : ""}${seconds(times[j])} after ${seconds(at[j])} and ${trial[j]} trials`}));
      const last = byTime ? run.seconds : run.trials;
      if (points.length && last > points[points.length - 1][0]) points.push([last, points[points.length - 1][1]]);
      return {name: runs.length > 1 ? `${"AB"[i]}: ${run.name}` : "", points, colour: COLOURS[i], dashes: i ? "6 3" : "", steps: true};
    });
    marks.sort((a, b) => a.x - b.x);
    const table = () => runs.map((run, i) => {
      const step = Math.ceil(run.curve.at.length / 100);
      const rows = run.curve.at.map((at, j) => [seconds(at), String(run.curve.trial[j]), seconds(run.curve.seconds[j])])
        .filter((_, j) => j % step === 0 || j === run.curve.at.length - 1);
      return makeTable(runs.length > 1 ? "AB"[i] : "The best so far", [{title: "After"}, {title: "Trials"}, {title: "Time"}], rows);
    });
    box.replaceChildren(makePlot({label: `Time of the model against ${curveView.axis}`, byX: true, lines, marks,
      x: {title: byTime ? "seconds of tuning" : "trials", format: byTime ? (value) => `${digits(value)} s` : count}, y: {format: seconds}}),
    lazyDetails("Table of the points", table));
  };
  draw();
  return [make("p", {}, runs[0].of_database
    ? "The sum of the best times of all kernels, each once. Pauses of more than a minute are left out."
    : "The sum of the best times of the kernels, each as often as the model calls it."),
  radios("Horizontal axis", "axis", ["seconds", "trials"], curveView.axis, (axis) => {
    curveView.axis = axis;
    draw();
  }), box];
}

// Returns points of the kernels: the least FLOPs that an algorithm needs, as in the limits, so that no algorithm lifts a
// kernel above the arithmetic.
function rooflineMarks(runs) {
  const rows = kernelRows(runs);
  return runs.flatMap((run, i) => {
    const whole = sum(run.kernels, (kernel) => kernel.times * kernel.seconds);
    return run.kernels.filter((kernel) => kernel.least_flops > 0 && kernel.bytes > 0 && kernel.seconds > 0 && kernel.measured).map((kernel) => {
      const x = kernel.least_flops / kernel.bytes, y = kernel.least_flops / kernel.seconds, share = limitShare(kernel);
      const name = `${runs.length > 1 ? `${"AB"[i]}: ` : ""}${nameOf(kernel)}`;
      return {x, y, share, limit: limitText(kernel), name, colour: COLOURS[i], opacity: 0.6, radius: 3 + 9 * Math.sqrt(Math.min(1, kernel.times * kernel.seconds / whole || 0)),
        text: `${name}: ${digits(x)} FLOP per byte, ${count(y)}FLOP/s${Number.isFinite(share) ? `, ${percent(share)} of its limit` : ""}`,
        open: () => openKernel(rows.find((row) => row.kernel.key === kernel.key), runs)};
    });
  }).sort((a, b) => a.x - b.x);
}

function rooflineLines(roofline, low, high) {
  const levels = roofline.levels.map((level, i) => {
    const ridge = roofline.flops / level.bandwidth;
    const points = [low, ridge, high].filter((x, j) => j !== 1 || (x > low && x < high)).map((x) => [x, Math.min(roofline.flops, x * level.bandwidth)]);
    return {name: `${level.name}: ${count(level.bandwidth)}B/s`, points, colour: COLOURS[(i + 2) % COLOURS.length]};
  });
  return [...levels, ...roofline.matrix.map((matrix) => ({name: `matrix instructions of ${matrix.type}: ${count(matrix.flops)}FLOP/s`,
    points: [[low, matrix.flops], [high, matrix.flops]], colour: "--seventh", dashes: "4 3"}))];
}

// Returns what the lines mean, and whether any kernel is faster than its own run's limits say, in the digits that are
// shown. A run without limits says nothing of its kernels: it may be of another device than the lines.
function rooflineTexts(roofline, marks) {
  const judged = marks.filter((mark) => Number.isFinite(mark.share));
  const faster = judged.filter((mark) => mark.share > 1.0005).sort((a, b) => b.share - a.share);
  const limits = `the arithmetic of the device (${count(roofline.flops)}FLOP/s) or the bandwidth of the closest memory that holds all its data`;
  const texts = [`${faster.length || !judged.length ? "The limit of a kernel is" : "No kernel is above its limit:"} ${limits}. `
    + "FLOPs are those of the algorithm that needs the fewest. A larger point has a larger share of the time."];
  if (faster.length) {
    const named = faster.slice(0, 3).map((mark) => `${mark.name} (${mark.limit})`).join(", ");
    texts.push(`${faster.length} of ${judged.length} points ${faster.length > 1 ? "are" : "is"} above the limit: ${named}${faster.length > 3 ? " and others" : ""}. `
      + "That can be: a part of a kernel's data may lie in a closer cache, a schedule may leave out products with zeros, "
      + "and other work may have slowed the machine down when its limits were measured.");
  }
  return texts;
}

// Returns why runs have no limits, each reason once; a reason that is not that of all runs says whose it is.
function limitsUnknown(runs) {
  const without = runs.map((run, i) => [run.limits_unknown, "AB"[i]]).filter(([why], i) => !runs[i].roofline && why);
  const reasons = [...new Set(without.map(([why]) => why))];
  return without.length === runs.length && reasons.length === 1 ? reasons : without.map(([why, letter]) => `${letter}: ${why}`);
}

function sectionRoofline(runs) {
  const marks = rooflineMarks(runs), of = runs.findIndex((run) => run.roofline), roofline = runs[of]?.roofline;
  if (!marks.length) return null;
  const lines = roofline ? rooflineLines(roofline, marks[0].x / 2, marks[marks.length - 1].x * 2) : [];
  const texts = roofline ? [...rooflineTexts(roofline, marks), ...(runs.length > 1 ? [`The lines are those of ${"AB"[of]}.`] : [])] : [];
  const parts = [...texts.map((text) => make("p", {}, text)), ...limitsUnknown(runs).map((why) => make("p", {class: "note"}, why))];
  const table = () => makeTable("Kernels", [{title: "Kernel", text: true}, {title: "FLOP per byte"}, {title: "FLOP/s"}, {title: "Of limit"}], marks.slice(0, 200)
    .map((mark) => [mark.name, digits(mark.x), count(mark.y), percent(mark.share)]));
  return [...parts, makePlot({label: "Rates of the kernels by their arithmetic intensity", lines, marks,
    x: {title: "FLOP per byte", log: true, format: digits}, y: {log: true, format: count}}),
  lazyDetails(marks.length > 200 ? `Table of 200 of ${marks.length} kernels` : "Table of the points", table)];
}

function sectionSpent(runs) {
  const shown = runs.map((run, i) => [run, runs.length > 1 ? "AB"[i] : ""]).filter(([run]) => run.spent);
  if (!shown.length) return null;
  return shown.flatMap(([run, letter]) => {
    const parts = Object.entries(run.spent).filter(([name, value]) => name !== "overlapped" && value > 0);
    const whole = sum(parts, (part) => part[1]);
    const colour = (i) => `background: var(${COLOURS[i % COLOURS.length]})`;
    const rows = parts.map(([name, value], i) => [make("span", {}, make("span", {class: "swatch", style: colour(i)}), name), seconds(value), percent(value / whole)]);
    return [make("div", {class: "stack", "aria-hidden": "true"}, ...parts.map(([, value], i) => make("div", {style: `${colour(i)}; flex: ${value / whole} 0 0`}))),
      makeTable(letter ? `Seconds of ${letter}` : "Seconds of the thread that tunes", [{title: "Work", text: true}, {title: "Time"}, {title: "Share"}], rows),
      ...(run.spent.overlapped > 0 ? [make("p", {class: "quiet"}, `${seconds(run.spent.overlapped)} of choosing and compiling while candidates were measured.`)] : [])];
  });
}

function decisionTable(decisions, ofKernel) {
  const columns = [{title: "Decision", text: true}, ...(ofKernel ? [{title: "Best value", text: true}, {title: "Values tried"}] : [{title: "Kernels"}]),
    {title: "Explains of the variance"}, {title: "Best with another value"}];
  return makeTable(ofKernel ? "Decisions with more than one value that was measured" : "Roles of decisions, over all kernels by their share of the time", columns, decisions.map((one) => [one.role,
    ...(ofKernel ? [one.best, count(one.values)] : [count(one.kernels)]), shareCell(one.explained), one.other > 0 ? `${one.other.toFixed(2)}x the time` : "-"]), ofKernel ? "" : "cards");
}

function sectionDecisions(runs) {
  const shown = runs.map((run, i) => [run, runs.length > 1 ? `${"AB"[i]}` : ""]).filter(([run]) => run.roles.length);
  if (!shown.length) return null;
  return [make("p", {}, "How much of the differences between the measured schedules a decision explains, and how much longer the best schedule with another value takes. "
    + "A search tries good values more often, so this is what was seen, no proof of a cause."),
  ...shown.flatMap(([run, letter]) => [...(letter ? [make("h3", {}, letter)] : []), decisionTable(run.roles, false)])];
}

function sectionFailures(runs) {
  const rows = runs.flatMap((run, i) => run.failures.map((one) => [runs.length > 1 ? `${"AB"[i]}: ${one.outcome}` : one.outcome, count(one.count), one.first]));
  if (!rows.length) return null;
  return [makeTable("By how they ended", [{title: "Outcome", text: true}, {title: "Schedules"}, {title: "The first one", text: true}], rows)];
}
