// The API reference: sends calls and shows them in the samples, marks the place in the contents, and
// opens what a link leads to.

import "./samples.js";

/** A value as it stands in code; see Sample in package apidoc. */
function written(value, as) {
  switch (as) {
    case "url": return String(new URLSearchParams({ value })).slice("value=".length);
    case "path": return written(value, "url").replaceAll("+", "%20");
    case "number": return String(Number.parseInt(value, 10) || 0);
    default: return JSON.stringify(value).slice(1, -1);
  }
}

/** Shows the value of a parameter in the samples of its call. */
function showValue(operation, name, value) {
  operation.querySelectorAll(`[data-of="${name}"]`).forEach((place) => {
    place.textContent = written(value, place.dataset.as);
  });
  operation.querySelectorAll(`[data-if="${name}"]`).forEach((part) => { part.hidden = value === ""; });
}

/** The address and the headers of the call that a form describes. */
function callOf(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams(), headers = {};
  for (const input of form.querySelectorAll("[data-in]")) {
    const { name, value } = input;
    if (value === "") continue;
    if (input.dataset.in === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    if (input.dataset.in === "query") query.set(name, value);
    if (input.dataset.in === "header") headers[name] = value;
  }
  headers.Authorization = "Bearer " + form.querySelector(".key").value.trim();
  return { target: query.size ? `${path}?${query}` : path, headers };
}

async function send(form, outcome) {
  const button = form.querySelector("button");
  if (button.ariaDisabled) return;
  button.ariaDisabled = "true"; // without aria- the button would lose the focus
  const started = performance.now();
  try {
    const { target, headers } = callOf(form);
    const response = await fetch(target, { headers });
    const body = await response.text();
    show(outcome, response, body, performance.now() - started);
  } catch (error) {
    outcome.replaceChildren(element("p", { className: "bar" }, `No answer: ${error.message}`));
  }
  outcome.hidden = false;
  button.ariaDisabled = null;
}

function show(outcome, response, body, milliseconds) {
  const status = element("span", { className: "http " + (response.ok ? "good" : "bad") }, `${response.status} ${response.statusText}`.trim());
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}\n`).join("");
  outcome.replaceChildren(
    element("p", { className: "bar" }, status, ` ${milliseconds.toFixed(0)} ms`),
    element("pre", { tabIndex: 0, role: "group", ariaLabel: "Answer to the call" }, element("code", {}, laidOut(body))),
    element("details", {}, element("summary", {}, "Headers that came"),
      element("pre", { className: "wrapped", tabIndex: 0, role: "group", ariaLabel: "Headers that came" }, element("code", {}, headers))),
  );
}

function laidOut(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

document.querySelectorAll(".try").forEach((form) => {
  const operation = form.closest(".op");
  form.addEventListener("input", ({ target }) => {
    if (target.dataset.in) showValue(operation, target.name, target.value);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form, operation.querySelector(".outcome"));
  });
});

/** The element that a link or an address leads to, null if there is none: people shorten links anywhere. */
function targetOf({ hash }) {
  try {
    return document.getElementById(decodeURIComponent(hash.slice(1)));
  } catch {
    return null;
  }
}

// Where the reader is: the last section that has begun.
const links = [...document.querySelectorAll(".contents a")];
const targets = links.map(targetOf);
let current;

function mark() {
  // At the top nothing has to be measured, which would lay out the whole page.
  const at = scrollY === 0 ? 0 : Math.max(0, targets.findLastIndex((target) => target.getBoundingClientRect().top < innerHeight / 4));
  if (links[at] === current) return;
  current?.removeAttribute("aria-current");
  current = links[at];
  current?.setAttribute("aria-current", "true");
  if (scrollY > 0 && current?.offsetParent) { // shown: on phones the contents are another list
    const list = current.closest(".contents");
    const above = current.offsetTop - list.scrollTop;
    if (above < 40 || above > list.clientHeight - 80) list.scrollTop = current.offsetTop - list.clientHeight / 2;
  }
}

let marking = false;
addEventListener("scroll", () => {
  if (marking) return;
  marking = true;
  requestAnimationFrame(() => { marking = false; mark(); });
}, { passive: true });
mark();

// A link to a field opens what it lies in. Browsers do that themselves only lately.
function reveal() {
  const target = targetOf(location);
  if (!target) return;
  for (let part = target.parentElement; part; part = part.parentElement) {
    if (part.localName === "details") part.open = true;
  }
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
if (location.hash) reveal();

const short = document.querySelector(".contents-small");
short.addEventListener("click", (event) => { if (event.target.closest("a")) short.open = false; });
