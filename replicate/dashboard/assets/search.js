// The search of an owner's first page: with the sandbox key, at the edge that serves the reference. A match
// links to its record there, a suggestion searches again.
import { listed } from "./suggestion.js";

const sandboxKey = "reg_sandbox_public";
const $ = (id) => document.getElementById(id);
const lookups = $("try").dataset.lookups;

let searches = 0;

/** Searches, and shows what was found unless another search has begun meanwhile. */
async function search(name) {
  const number = ++searches;
  $("try-name").value = name;
  $("try-said").textContent = "Asking…";
  show("matches", []);
  show("suggestions", []);
  let response, body;
  try {
    response = await fetch(`${lookups}/v1/search/companies?${new URLSearchParams({ name })}`, { headers: { Authorization: "Bearer " + sandboxKey } });
    body = await response.json();
  } catch {
    body = undefined;
  }
  if (number !== searches) return;
  if (body === undefined) {
    $("try-said").textContent = `${lookups} cannot be reached. Try again in a moment.`;
    return;
  }
  if (!response.ok) {
    $("try-said").textContent = `${body.title}. ${body.detail}`;
    return;
  }
  const found = body.data.length;
  $("try-said").textContent = found === 0 ? "No name matches." : found === 1 ? "1 match" : `${found} matches, best first`;
  show("matches", body.data.map((m) => link(`${lookups}/#${m.type}/${encodeURIComponent(m.value)}`, m.label, m.value)));
  show("suggestions", listed(response.headers.get("Search-Suggestion") ?? "").map((suggested) => {
    const again = link(`${lookups}/?${new URLSearchParams({ name: suggested })}`, suggested);
    again.addEventListener("click", (event) => {
      event.preventDefault();
      search(suggested);
    });
    return again;
  }));
}

function link(href, label, value) {
  const made = Object.assign(document.createElement("a"), { href });
  made.append(Object.assign(document.createElement("span"), { textContent: label }));
  if (value) made.append(Object.assign(document.createElement("code"), { textContent: value }));
  return made;
}

function show(list, links) {
  $("try-" + list).replaceChildren(...links.map((one) => {
    const item = document.createElement("li");
    item.append(one);
    return item;
  }));
  $("try-" + list).hidden = links.length === 0;
  if (list === "suggestions") $("try-meant").hidden = links.length === 0;
}

$("try").hidden = false; // the page works without this file
$("try-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("try-name").value.trim()) search($("try-name").value.trim());
});
