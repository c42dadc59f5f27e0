// Plots as SVG that fit the width they have. Whoever has a pointer or the arrow keys reads single points, whose text stands
// below the plot.

const PLOT = {height: 320, left: 72, right: 16, top: 14, bottom: 44};

function niceTicks(low, high, most) {
  const step = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(step));
  const nice = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= step);
  const ticks = [];
  for (let i = Math.ceil(low / nice); i * nice <= high * (1 + 1e-12) && ticks.length < 20; ++i) ticks.push(i * nice);
  return ticks;
}

function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const factor of decades > 3 ? [1] : decades > 1 ? [1, 3] : [1, 1.5, 2, 3, 5, 7]) {
      const tick = factor * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}

// Where a value lies between 0 and 1.
function makeScale(values, log) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (!(Math.abs(value) < 1e100) || (log && value < 1e-100)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) [low, high] = log ? [1, 10] : [0, 1];
  if (log) {
    [low, high] = [low / 1.15, high * 1.15];
    return {ticks: logTicks(low, high), place: (value) => Math.log(value / low) / Math.log(high / low)};
  }
  const pad = (high - low || high || 1) * 0.04;
  [low, high] = [low >= 0 ? Math.max(0, low - pad) : low - pad, high + pad];
  return {ticks: niceTicks(low, high, 5), place: (value) => (value - low) / (high - low)};
}

// plot: {label, x: {title, log, format}, y: {...}, lines: [{points: [[x, y]], colour, dashes, steps, name}],
// marks: [{x, y, radius, colour, text, open}]}. The readable points are the marks.
function drawPlot(plot, width) {
  const {left, right, top, bottom} = PLOT, height = PLOT.height;
  const everything = [...plot.lines.flatMap((line) => line.points), ...plot.marks.map((mark) => [mark.x, mark.y])];
  const xs = makeScale(everything.map((point) => point[0]), plot.x.log), ys = makeScale(everything.map((point) => point[1]), plot.y.log);
  const atX = (x) => left + (width - left - right) * xs.place(x), atY = (y) => top + (height - top - bottom) * (1 - ys.place(y));
  const svg = makeSvg("svg", {viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true", focusable: "false"});
  for (const tick of ys.ticks) {
    svg.append(makeSvg("line", {class: "grid", x1: left, x2: width - right, y1: atY(tick), y2: atY(tick)}),
      makeSvg("text", {x: left - 6, y: atY(tick) + 4, "text-anchor": "end"}, plot.y.format(tick)));
  }
  const room = Math.max(1, Math.floor((width - left - right) / 64)), every = Math.ceil(xs.ticks.length / room);
  xs.ticks.filter((_, i) => i % every === 0).forEach((tick) => {
    svg.append(makeSvg("line", {class: "grid", x1: atX(tick), x2: atX(tick), y1: top, y2: height - bottom}),
      makeSvg("text", {x: atX(tick), y: height - bottom + 16, "text-anchor": "middle"}, plot.x.format(tick)));
  });
  svg.append(makeSvg("text", {x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle"}, plot.x.title));
  for (const line of plot.lines) {
    let path = "", before = null;
    for (const [x, y] of line.points) {
      const [px, py] = [atX(x).toFixed(1), atY(y).toFixed(1)];
      if (before === null) path += `M${px} ${py}`;
      else path += line.steps ? `H${px}V${py}` : `L${px} ${py}`;
      before = y;
    }
    svg.append(makeSvg("path", {d: path, fill: "none", stroke: `var(${line.colour})`, "stroke-width": 2, "stroke-dasharray": line.dashes || "none"}));
  }
  for (const mark of plot.marks) {
    if (!mark.hidden)
      svg.append(makeSvg("circle", {cx: atX(mark.x).toFixed(1), cy: atY(mark.y).toFixed(1), r: mark.radius || 2, fill: `var(${mark.colour})`, "fill-opacity": mark.opacity || 0.7}));
  }
  return {svg, atX, atY};
}

// The plot with its keys, and the line of text below.
function makePlot(plot) {
  const box = make("div", {class: "plot", tabindex: "0", role: "application", "aria-roledescription": "plot",
    "aria-label": `${plot.label}. Arrow keys read its ${plot.marks.length} points${plot.marks.some((mark) => mark.open) ? ", Enter opens one" : ""}.`});
  const readout = make("p", {class: "readout", "aria-live": "polite"});
  let drawn = null, cursor = null, chosen = -1;
  const draw = () => {
    const width = Math.max(280, box.clientWidth || 800);
    drawn = drawPlot(plot, width);
    cursor = makeSvg("circle", {class: "cursor", r: 7, visibility: "hidden"});
    drawn.svg.append(cursor);
    box.replaceChildren(drawn.svg);
    if (chosen >= 0) choose(chosen);
  };
  const choose = (index) => {
    if (!plot.marks.length) return;
    chosen = Math.max(0, Math.min(plot.marks.length - 1, index));
    const mark = plot.marks[chosen];
    cursor.setAttribute("cx", drawn.atX(mark.x));
    cursor.setAttribute("cy", drawn.atY(mark.y));
    cursor.setAttribute("visibility", "visible");
    readout.textContent = mark.text;
  };
  const nearest = (event) => {
    const frame = box.firstChild.getBoundingClientRect(), scale = box.firstChild.viewBox.baseVal.width / frame.width;
    const x = (event.clientX - frame.left) * scale, y = (event.clientY - frame.top) * scale;
    let best = -1, least = Infinity;
    plot.marks.forEach((mark, i) => {
      const distance = Math.hypot(drawn.atX(mark.x) - x, plot.byX ? 0 : drawn.atY(mark.y) - y);
      if (distance < least) [least, best] = [distance, i];
    });
    return best;
  };
  box.addEventListener("pointermove", (event) => choose(nearest(event)));
  box.addEventListener("click", (event) => {
    choose(nearest(event));
    if (chosen >= 0 && plot.marks[chosen].open) plot.marks[chosen].open();
  });
  box.addEventListener("keydown", (event) => {
    const moves = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9};
    if (event.key in moves) {
      event.preventDefault();
      choose(chosen + moves[event.key]);  // -1 before the first one is chosen
    } else if (event.key === "Enter" && chosen >= 0 && plot.marks[chosen].open) {
      plot.marks[chosen].open();
    }
  });
  new ResizeObserver(draw).observe(box);
  const legend = make("ul", {class: "legend"}, ...plot.lines.filter((line) => line.name).map((line) =>
    make("li", {}, make("span", {class: "swatch", style: `background: var(${line.colour})`}), line.name)));
  draw();
  return make("div", {}, legend, box, readout);
}
