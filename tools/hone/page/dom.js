// Numbers for people, and elements of the page. Texts from models and files only ever become text, never HTML.

const COLOURS = ["--first", "--second", "--third", "--fourth", "--fifth", "--sixth", "--seventh"];

function digits(value) {
  if (!Number.isFinite(value)) return "-";
  const text = value.toPrecision(3);
  return text.includes("e") ? String(Number(text)) : text;
}

function seconds(value) {
  if (!(value > 0)) return "-";
  if (value < 1e-6) return `${digits(value * 1e9)} ns`;
  if (value < 1e-3) return `${digits(value * 1e6)} us`;
  if (value < 1) return `${digits(value * 1e3)} ms`;
  return `${value < 100 ? digits(value) : Math.round(value)} s`;
}

function count(value) {
  for (const [unit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= unit) return `${digits(value / unit)}${letter}`;
  }
  return Number.isInteger(value) ? String(value) : digits(value);
}

const percent = (share) => Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "-";
const ratio = (value) => Number.isFinite(value) && value > 0 ? `${value.toFixed(2)}x` : "-";

// An element with attributes, and children that are elements or texts.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

function makeSvg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// A table of texts; a column is {title, text: true if it is aligned left}. The first cell of a row is its header.
function makeTable(caption, columns, rows, className = "") {
  const cell = (value, column, index) => {
    const kind = column.text ? "text" : "";
    return index === 0 ? make("th", {scope: "row", class: kind}, value) : make("td", {class: kind, "data-label": column.title}, value);
  };
  return make("table", {class: className},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...columns.map((column) => make("th", {scope: "col", class: column.text ? "text" : ""}, column.title)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((value, i) => cell(value, columns[i], i))))));
}

// A part of the page that is made when it is first opened.
function lazyDetails(title, fill, open = false) {
  const element = make("details", {open}, make("summary", {}, title));
  let filled = false;
  const look = () => {
    if (!element.open || filled) return;
    filled = true;
    element.append(...[fill()].flat());
  };
  element.addEventListener("toggle", look);
  look();
  return element;
}

function radios(title, name, options, chosen, onChange) {
  return make("fieldset", {}, make("legend", {}, title), ...options.map((option) => make("label", {},
    make("input", {type: "radio", name, value: option, checked: option === chosen, onchange: () => onChange(option)}), ` ${option}`)));
}
