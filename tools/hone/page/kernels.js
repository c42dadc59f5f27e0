// The table of the kernels, which sorts and filters, and the window with all that is known of one.

const PAGE_ROWS = 50;

// What the tables of one run show of a kernel; of two runs, `other` is the same kernel in the second one.
function kernelRows(runs) {
  const whole = sum(runs[0].kernels, (kernel) => kernel.times * kernel.seconds);
  const others = new Map(runs.length > 1 ? runs[1].kernels.map((kernel) => [kernel.key, kernel]) : []);
  const rows = runs[0].kernels.map((kernel) => ({kernel, other: others.get(kernel.key), share: kernel.times * kernel.seconds / whole}));
  const known = new Set(runs[0].kernels.map((kernel) => kernel.key));
  for (const kernel of others.values()) {
    if (!known.has(kernel.key)) rows.push({kernel, other: kernel, onlySecond: true, share: 0});
  }
  return rows;
}

function sum(list, value) {
  let total = 0;
  for (const item of list) total += value(item) || 0;
  return total;
}

const nameOf = (kernel) => kernel.name || kernel.kernel;
const limitShare = (kernel) => kernel.limit_seconds > 0 && kernel.measured && kernel.seconds > 0 ? kernel.limit_seconds / kernel.seconds : NaN;
const limitText = (kernel) => Number.isFinite(limitShare(kernel)) ? `${percent(limitShare(kernel))}${kernel.limit ? ` of ${kernel.limit}` : ""}` : "-";
const rate = (kernel) => kernel.flops > 0 && kernel.seconds > 0 ? kernel.flops / kernel.seconds : NaN;
const firstTime = (row) => row.onlySecond ? NaN : row.kernel.seconds;

function shareCell(share) {
  const bar = make("span", {class: "bar", style: `width: ${(100 * Math.min(1, Math.max(0, share || 0))).toFixed(1)}%`, "aria-hidden": "true"});
  return make("span", {}, percent(share), bar);
}

// Columns: value() sorts, show() is what stands there.
function kernelColumns(runs) {
  const one = [
    {title: "Kernel", text: true, value: (row) => nameOf(row.kernel), show: (row) => make("span", {},
      make("button", {type: "button", class: "plain", onclick: () => openKernel(row, runs)}, nameOf(row.kernel)),
      make("span", {class: "quiet"}, row.kernel.name ? ` ${row.kernel.kernel}` : "", row.kernel.times === 0 ? " (not in the model)" : ""))}];
  const numbers = (title, value, format) => ({title, value, show: (row) => format(value(row))});
  if (runs.length > 1) {
    return [...one,
      numbers("Calls", (row) => row.kernel.times, count),
      numbers("A", firstTime, seconds),
      numbers("B", (row) => row.other ? row.other.seconds : NaN, seconds),
      numbers("A / B", (row) => row.other ? firstTime(row) / row.other.seconds : NaN, ratio),
      numbers("Difference in the model", (row) => row.other && !row.onlySecond ? row.kernel.times * (row.kernel.seconds - row.other.seconds) : NaN,
        (value) => Number.isFinite(value) && value !== 0 ? `${value > 0 ? "-" : "+"}${seconds(Math.abs(value))}` : "-"),
      numbers("Trials A", (row) => row.onlySecond ? NaN : row.kernel.trials, count),
      numbers("Trials B", (row) => row.other ? row.other.trials : NaN, count)];
  }
  const ofModel = !runs[0].of_database;
  return [...one,
    ...(ofModel ? [numbers("Calls", (row) => row.kernel.times, count)] : []),
    {title: "Time", value: (row) => row.kernel.seconds, show: (row) => `${row.kernel.measured ? "" : "~"}${seconds(row.kernel.seconds)}`},
    numbers(ofModel ? "Before" : "First", (row) => row.kernel.before_seconds, seconds),
    numbers("Gain", (row) => row.kernel.before_seconds / row.kernel.seconds, ratio),
    {title: ofModel ? "Share of the model" : "Share of all", value: (row) => row.share, show: (row) => shareCell(row.share)},
    {title: "Of limit", value: (row) => limitShare(row.kernel), show: (row) => limitText(row.kernel)},
    {title: "FLOP/s", value: (row) => rate(row.kernel), show: (row) => Number.isFinite(rate(row.kernel)) ? count(rate(row.kernel)) : "-"},
    numbers("Trials", (row) => row.kernel.trials, count),
    {title: "Schedule", text: true, value: (row) => row.kernel.source || row.kernel.algorithm, show: (row) => row.kernel.source || row.kernel.algorithm || "-"}];
}

// Kept while a live page is drawn again.
const kernelView = {sort: null, descending: true, filter: "", shown: PAGE_ROWS};

function makeKernels(runs) {
  const rows = kernelRows(runs), columns = kernelColumns(runs);
  const usual = runs.length > 1 ? "Difference in the model" : columns.find((column) => column.title.startsWith("Share")).title;
  const body = make("tbody"), state = make("p", {role: "status", class: "quiet"});
  const more = make("button", {type: "button", onclick: () => {
    kernelView.shown += PAGE_ROWS;
    fill();
  }}, `Show ${PAGE_ROWS} more`);
  const heads = columns.map((column) => make("th", {scope: "col", class: column.text ? "text" : ""}, make("button", {type: "button", onclick: () => {
    kernelView.descending = kernelView.sort === column.title ? !kernelView.descending : !column.text;
    kernelView.sort = column.title;
    fill();
  }}, column.title)));
  const order = () => {
    const column = columns.find((one) => one.title === (kernelView.sort ?? usual)) ?? columns[0];
    const wanted = kernelView.filter.toLowerCase();
    const found = rows.filter((row) => `${row.kernel.name} ${row.kernel.kernel} ${row.kernel.key}`.toLowerCase().includes(wanted));
    const key = (row) => {
      const value = column.value(row);
      return typeof value === "number" ? (Number.isFinite(value) ? (column.title === "Difference in the model" ? Math.abs(value) : value) : -Infinity) : value;
    };
    const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;
    found.sort((a, b) => (kernelView.descending ? -1 : 1) * compare(key(a), key(b)));
    heads.forEach((head, i) => head.setAttribute("aria-sort", columns[i] === column ? (kernelView.descending ? "descending" : "ascending") : "none"));
    return found;
  };
  const fill = () => {
    const found = order(), visible = found.slice(0, kernelView.shown);
    body.replaceChildren(...visible.map((row) => make("tr", {}, ...columns.map((column, i) => i === 0
      ? make("th", {scope: "row", class: "text"}, column.show(row))
      : make("td", {class: column.text ? "text" : "", "data-label": column.title}, column.show(row))))));
    state.textContent = `${visible.length} of ${found.length} kernels${found.length < rows.length ? `, which match '${kernelView.filter}'` : ""}`;
    more.hidden = visible.length === found.length;
  };
  const search = make("input", {type: "search", id: "kernel-filter", value: kernelView.filter, oninput: (event) => {
    kernelView.filter = event.target.value;
    kernelView.shown = PAGE_ROWS;
    fill();
  }});
  fill();
  return [make("p", {}, make("label", {for: "kernel-filter"}, "Filter by name, class or key "), search), state,
    make("div", {class: "wide"}, make("table", {class: "cards"}, make("caption", {}, "A name opens all that is known of the kernel; a heading sorts."),
      make("thead", {}, make("tr", {}, ...heads)), body)), more];
}

// What is known of a kernel in a run: names and values.
function kernelFacts(kernel, run) {
  const least = kernel.least_flops > 0 && kernel.least_flops < kernel.flops ? [["FLOPs of the algorithm that needs the fewest", count(kernel.least_flops)]] : [];
  return [["Time", `${kernel.measured ? "" : "~"}${seconds(kernel.seconds)}`], [run.of_database ? "First" : "Before", seconds(kernel.before_seconds)],
    ["Limit", kernel.limit_seconds > 0 ? `${seconds(kernel.limit_seconds)}${kernel.limit ? ` by ${kernel.limit}` : ""}` : "-"],
    ["FLOPs", count(kernel.flops)], ...least, ["Bytes", count(kernel.bytes)], ["Trials", `${count(kernel.trials)}, ${count(kernel.failed)} failed`]];
}

// The same of one kernel in several runs, with a column for each.
function factsTable(parts) {
  const facts = parts.map((part) => new Map(kernelFacts(part.kernel, part.run)));
  const names = [...new Set(facts.flatMap((one) => [...one.keys()]))];
  return makeTable("The kernel in both runs", [{title: "", text: true}, ...parts.map((part) => ({title: part.name}))],
    names.map((name) => [name, ...facts.map((one) => one.get(name) ?? "-")]));
}

// A kernel as the runs have it that have it; with two runs, each has a name.
function kernelParts(row, runs) {
  if (runs.length === 1) return [{name: "", kernel: row.kernel, run: runs[0]}];
  return [...(row.onlySecond ? [] : [{name: "A", kernel: row.kernel, run: runs[0]}]), ...(row.other ? [{name: "B", kernel: row.other, run: runs[1]}] : [])];
}

// Where its schedule is from, if it is another kernel's.
function kernelSource(part) {
  const {kernel, name} = part;
  return kernel.from ? `, schedule${name ? ` of ${name}` : ""} from ${kernel.from}` : "";
}

function openKernel(row, runs) {
  const dialog = document.getElementById("details"), parts = kernelParts(row, runs), kernel = row.kernel;
  const close = make("button", {type: "button", onclick: () => dialog.close()}, "Close");
  const of = (part) => part.name ? ` of ${part.name}` : "";
  const only = runs.length > 1 && parts.length === 1 ? `, only in ${parts[0].name}` : "";
  dialog.replaceChildren(
    make("div", {class: "top"}, make("h2", {id: "details-title"}, nameOf(kernel)), close),
    make("p", {class: "quiet"}, `${kernel.kernel}, task ${kernel.key}${only}${parts.map(kernelSource).join("")}`),
    parts.length > 1 ? factsTable(parts)
      : make("dl", {class: "tiles"}, ...kernelFacts(kernel, parts[0].run).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    ...kernelTrials(parts.map((part) => [part.name, part.kernel])),
    ...parts.filter((part) => part.kernel.decisions.length).map((part) => lazyDetails(`Decisions of its schedules${of(part)}`,
      () => decisionTable(part.kernel.decisions.map((one) => ({...one, role: one.name})), true))),
    ...parts.flatMap((part) => kernelSizes(part.kernel, part.name)),
    ...parts.flatMap((part, i) => kernelTexts(part.kernel, of(part), part.run.running, i === 0)),
    ...kernelChanges(parts));
  dialog.showModal();
  close.focus();
}

const letter = (i) => String.fromCharCode("A".charCodeAt(0) + i);

// Where shapes vary: which schedule runs at which sizes, and what was measured of parts of the task.
function kernelSizes(kernel, run) {
  const of = run ? ` of ${run}` : "", interval = (one) => one.from === one.most ? String(one.most) : `${one.from} to ${one.most}`;
  const tables = kernel.sizes.map((table) => {
    const columns = [{title: "Schedule", text: true}, {title: table.decided_by, text: true}, ...table.points.map((point) => ({title: `at ${point.value}`}))];
    const rows = table.schedules.map((one, i) => [`${letter(i)}${i + 1 === table.schedules.length ? ", for the largest" : ""}`, interval(one),
      ...one.seconds.map((value, p) => `${one.measured[p] ? "" : "~"}${seconds(value)}`)]);
    const measured = table.points.filter((_, p) => table.schedules.every((one) => one.measured[p])).length;
    return lazyDetails(`Schedules by size${of}: ${table.schedules.length}, ${measured} of ${table.points.length} sizes measured`, () => [
      make("div", {class: "wide"}, makeTable(`${table.decided_by} decides which schedule runs in ${table.calls} call${table.calls === 1 ? "" : "s"}. ~: predicted`, columns, rows)),
      make("ul", {}, ...table.points.filter((point) => point.run !== `${table.decided_by}=${point.value}`)
        .map((point) => make("li", {}, `${table.decided_by} = ${point.value} with ${point.run}`))),
      ...table.schedules.map((one, i) => lazyDetails(`Schedule ${letter(i)}`, () => textBlock(one.steps, `Schedule ${letter(i)}`)))]);
  });
  if (!kernel.parts.length) return tables;
  return [...tables, lazyDetails(`Times of parts of the task${of}`, () => makeTable("What runs of smaller sizes need of the task", [{title: "Part", text: true},
    {title: "Schedules"}, {title: "Failed"}, {title: "Least time"}, {title: "Longest time"}],
  kernel.parts.map((one) => [one.part, count(one.schedules), count(one.failed), seconds(one.seconds), seconds(one.largest)])))];
}

function kernelTrials(parts) {
  const marks = parts.flatMap(([name, kernel], part) => kernel.points.at.map((at, i) => ({
    x: kernel.points.trial[i], y: kernel.points.seconds[i], colour: COLOURS[part], run: name,
    text: `${name ? `${name}: ` : ""}trial ${kernel.points.trial[i]}, after ${seconds(at)}: ${seconds(kernel.points.seconds[i])}`}))).filter((mark) => mark.y > 0);
  if (!marks.length) return [make("p", {class: "quiet"}, "No measurement of it was recorded.")];
  const lines = parts.map(([name, kernel], part) => {
    const points = [];
    kernel.points.trial.forEach((trial, i) => {
      const time = kernel.points.seconds[i];
      if (time > 0 && (!points.length || time < points[points.length - 1][1])) points.push([trial, time]);
    });
    points.push([Math.max(...kernel.points.trial), points[points.length - 1]?.[1]]);
    return {name: name && `best of ${name}`, points: points.filter((point) => point[1] > 0), colour: COLOURS[part], steps: true};
  });
  marks.sort((a, b) => a.x - b.x);
  const two = parts.length > 1 ? [{title: "Run"}] : [];
  const table = () => makeTable("Measured schedules", [{title: "Trial"}, {title: "Time"}, ...two], marks.slice(0, 200)
    .map((mark) => [String(mark.x), seconds(mark.y), ...(two.length ? [mark.run] : [])]));
  return [make("h3", {}, "Measurements"), makePlot({label: "Times of the measured schedules", byX: true, x: {title: "trial of the run", format: count},
    y: {log: true, format: seconds}, lines, marks}), lazyDetails(marks.length > 200 ? `Table of the first 200 of ${marks.length} points` : "Table of the points", table)];
}

function textBlock(text, label) {
  return make("pre", {tabindex: "0", role: "group", "aria-label": label}, text);
}

function kernelTexts(kernel, of, running, open) {
  const missing = running ? "Loop programs come when the run is finished." : `The loop program is not in this file; 'hone explain --task ${kernel.key}' prints it.`;
  return [lazyDetails(`Schedule${of}`, () => textBlock(kernel.steps || "no step", `Schedule${of}`), open),
    lazyDetails(`Loop program${of}`, () => kernel.program ? textBlock(kernel.program, `Loop program${of}`) : make("p", {class: "quiet"}, missing))];
}

// What differs between two runs, or between the schedule of one and the untuned one.
function kernelChanges(parts) {
  const [{kernel}, other] = parts, what = other ? "changes from A to B" : "changes from the untuned one";
  const [before, after] = other ? [[kernel.steps, kernel.program], [other.kernel.steps, other.kernel.program]]
    : [[kernel.untuned_steps, kernel.untuned_program], [kernel.steps, kernel.program]];
  return ["Schedule", "Loop program"].flatMap((title, i) => !before[i] || !after[i] ? []
    : [lazyDetails(`${title}: ${what}`, () => before[i] === after[i] ? make("p", {}, "They are the same.") : makeDiff(before[i], after[i]))]);
}
