// Code samples: turns the list of languages into tabs, remembers the choice for all
// samples, adds copy buttons, and shows other calls in them.

const storageKey = "language";
const sandboxKey = "reg_sandbox_public";
// Where clients reach the service: as configured, else where this page came from, which
// behind a proxy the server cannot know.
const base = document.documentElement.dataset.base || location.origin;
let templates;

/** Loads the samples of all languages once. */
export function loadTemplates() {
  templates ??= fetchTemplates();
  return templates;
}

// None while they can't be had: the next call asks again.
async function fetchTemplates() {
  try {
    const response = await fetch("/assets/samples.json");
    if (response.ok) return await response.json();
  } catch {
    // there is no network
  }
  templates = undefined;
  return [];
}

/** Rewrites the samples inside group as calls of path with the sandbox key. */
export async function showCall(group, path) {
  const url = base + path;
  for (const { name, code } of await loadTemplates()) {
    const target = group.querySelector(`[data-language="${name}"] code`);
    if (target) target.textContent = code.replaceAll("{url}", url).replaceAll("{key}", sandboxKey);
  }
}

let groups = 0;

function enhance(group) {
  const id = "samples-" + ++groups;
  const samples = [...group.querySelectorAll(".sample")];
  const list = document.createElement("div");
  list.className = "tabs";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Language");
  const tabs = samples.map((sample, i) => tabFor(sample, `${id}-${i}`));
  tabs.forEach((tab) => {
    tab.addEventListener("click", () => choose(tab.dataset.language));
    tab.addEventListener("keydown", (event) => move(event, tabs));
  });
  list.append(...tabs);
  const choice = document.createElement("div");
  choice.className = "choice";
  choice.append(list, copyButton(group));
  group.prepend(choice);
  group.classList.add("tabbed");
  select(group, remembered());
}

function tabFor(sample, id) {
  const tab = document.createElement("button");
  tab.type = "button";
  tab.id = id + "-tab";
  tab.dataset.language = sample.dataset.language;
  tab.textContent = sample.querySelector("p").textContent;
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", id);
  sample.id = id;
  sample.setAttribute("role", "tabpanel");
  sample.setAttribute("aria-labelledby", tab.id);
  return tab;
}

function copyButton(group) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const code = group.querySelector(".sample:not([hidden]) code");
    try {
      await navigator.clipboard.writeText(code.innerText);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return button;
}

// move follows the keys that a list of tabs is used with.
function move(event, tabs) {
  const at = tabs.indexOf(event.currentTarget);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const tab = tabs[(to + tabs.length) % tabs.length];
  choose(tab.dataset.language);
  tab.focus();
}

function remembered() {
  try {
    return localStorage.getItem(storageKey) || "curl";
  } catch {
    return "curl"; // storage may be forbidden
  }
}

function choose(language) {
  try {
    localStorage.setItem(storageKey, language);
  } catch {
    // the choice then lasts as long as the page
  }
  document.querySelectorAll(".samples.tabbed").forEach((group) => select(group, language));
}

function select(group, language) {
  const offered = [...group.querySelectorAll("[role=tab]")].map((tab) => tab.dataset.language);
  if (!offered.includes(language)) [language] = offered;
  group.querySelectorAll("[role=tab]").forEach((tab) => {
    const chosen = tab.dataset.language === language;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  });
  group.querySelectorAll(".sample").forEach((sample) => {
    sample.hidden = sample.dataset.language !== language;
  });
}

// The address that the server takes for its own. Behind a proxy it may be another, or that of HTTP, where a key must not travel.
const guessed = document.documentElement.dataset.guessed ?? location.origin;
if (guessed !== location.origin) {
  for (const code of document.querySelectorAll("main pre code")) {
    const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(guessed, location.origin);
  }
}

document.querySelectorAll(".samples").forEach(enhance);
