// The difference of two texts, line by line: Myers' greedy algorithm (1986) between the common beginning and end.

const MOST_CHANGES = 1000;  // of texts that differ in more lines, one is shown behind the other

// Entries [kind, line] with the kinds " ", "-" and "+".
function diffLines(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) ++start;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) ++end;
  const same = (line) => [" ", line];
  return [...a.slice(0, start).map(same), ...diffMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same)];
}

// `reach` has, for each diagonal k = x - y, how far along `a` the best path with so many changes comes.
function diffMiddle(a, b) {
  const most = Math.min(a.length + b.length, MOST_CHANGES), zero = most + 1, trace = [];
  const reach = new Int32Array(2 * most + 3).fill(-1);
  reach[zero + 1] = 0;
  for (let changes = 0; changes <= most; ++changes) {
    trace.push(reach.slice(zero - changes - 1, zero + changes + 2));
    for (let k = -changes; k <= changes; k += 2) {
      let x = goesDown(reach, zero, k, changes) ? reach[zero + k + 1] : reach[zero + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) ++x;
      reach[zero + k] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, trace, changes);
    }
  }
  return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
}

// Whether the path comes to diagonal k by a line that is new rather than by one that is gone.
function goesDown(reach, zero, k, changes) {
  return k === -changes || (k !== changes && reach[zero + k - 1] < reach[zero + k + 1]);
}

function walkBack(a, b, trace, changes) {
  const result = [];
  let x = a.length, y = b.length;
  for (let d = changes; d > 0; --d) {
    const k = x - y, down = goesDown(trace[d], d + 1, k, d);
    const behindChange = down ? trace[d][d + 1 + k + 1] : trace[d][d + 1 + k - 1] + 1;
    while (x > behindChange) result.push([" ", a[--x]]), --y;
    if (down) result.push(["+", b[--y]]);
    else result.push(["-", a[--x]]);
  }
  while (x > 0) result.push([" ", a[--x]]);
  return result.reverse();
}

// Long stretches without a change are left out.
function makeDiff(before, after) {
  const lines = diffLines(before, after), near = 3;
  const shown = lines.map(() => false);
  lines.forEach(([kind], i) => {
    if (kind !== " ") shown.fill(true, Math.max(0, i - near), i + near + 1);
  });
  const block = make("pre", {tabindex: "0", role: "group", "aria-label": "Differences: lines with - are gone, lines with + are new"});
  let hidden = 0;
  const flush = () => {
    if (hidden > 0) block.append(make("span", {class: "quiet"}, `  ... ${hidden} lines are the same`));
    hidden = 0;
  };
  lines.forEach(([kind, line], i) => {
    if (!shown[i]) {
      ++hidden;
      return;
    }
    flush();
    block.append(make(kind === "+" ? "ins" : kind === "-" ? "del" : "span", {}, `${kind} ${line}`));
  });
  flush();
  return block;
}
