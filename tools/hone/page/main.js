// Puts the page together, and draws it again while a run goes on.

const SECTIONS = {summary: sectionSummary, curve: sectionCurve, kernels: makeKernels, roofline: sectionRoofline, spent: sectionSpent,
  decisions: sectionDecisions, failures: sectionFailures};
const POLL_SECONDS = 2;

function drawPage(data) {
  const runs = data.runs;
  const first = runs[0];
  const title = runs.length > 1 ? `Hone report: ${runs[0].name} and ${runs[1].name}` : `Hone report: ${first.model || first.name}`;
  document.getElementById("title").textContent = title;
  document.title = title;
  document.getElementById("subtitle").textContent = runs.length > 1 ? "" : describeRun(first);
  const links = [];
  for (const [id, fill] of Object.entries(SECTIONS)) {
    const section = document.getElementById(id), content = fill(runs);
    section.hidden = content === null;
    if (content === null) continue;
    section.querySelector(".content").replaceChildren(...content);
    links.push(make("a", {href: `#${id}`}, section.querySelector("h2").textContent));
  }
  document.getElementById("sections").replaceChildren(...links);
}

function chooseScheme(scheme) {
  if (scheme === "system") delete document.documentElement.dataset.scheme;
  else document.documentElement.dataset.scheme = scheme;
}

// A browser may refuse to store anything for a page that is a file.
function storedScheme(scheme) {
  try {
    if (scheme) localStorage.setItem("hone-scheme", scheme);
    return localStorage.getItem("hone-scheme") || "system";
  } catch {
    return scheme || "system";
  }
}

function listenForScheme() {
  const chosen = storedScheme();
  chooseScheme(chosen);
  for (const input of document.querySelectorAll("#schemes input")) {
    input.checked = input.value === chosen;
    input.addEventListener("change", () => chooseScheme(storedScheme(input.value)));
  }
}

// Whether a part of the page is in use, so that drawing it again would disturb.
function inUse() {
  const active = document.activeElement;
  return document.getElementById("details").open || (active && active.closest && active.closest("#kernels, .plot, details") !== null)
    || document.querySelector("main details[open]") !== null;
}

async function follow(data) {
  const status = document.getElementById("status");
  const say = (text) => {
    status.hidden = false;
    if (status.textContent !== text) status.textContent = text;
  };
  let known = data.changes;
  if (!data.runs[0].running) {
    say("The run is finished.");
    return;
  }
  say("The run goes on; this page follows it.");
  while (true) {
    await new Promise((wake) => setTimeout(wake, POLL_SECONDS * 1000));
    try {
      const answer = await fetch(`data.json?known=${known}`, {cache: "no-store"});
      if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
      const news = await answer.json();
      if (news.runs && !inUse()) {
        known = news.changes;
        drawPage(news);
      } else if (news.runs) {
        say("The run goes on; the page shows news when nothing in it is open or in use.");
      }
      if (news.runs && !news.runs[0].running) {
        drawPage(news);
        say("The run is finished.");
        return;
      }
    } catch (problem) {
      say("The run has ended, or cannot be reached any more; this is its last state.");
      return;
    }
  }
}

function start() {
  listenForScheme();
  const data = JSON.parse(document.getElementById("data").textContent);
  drawPage(data);
  if (data.live) follow(data);
}

start();
