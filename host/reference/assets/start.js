// The start page: searches with the sandbox key, shows a match as a record, and beside it
// the call that was made. The address of a search is ?name=NAME, that of a record #company/CIN, #llp/LLPIN or
// #director/DIN, so that back, forward, reload and links work.

import { loadTemplates, showCall } from "./samples.js";
import { listed } from "./suggestion.js";

const sandboxKey = "reg_sandbox_public";
const paths = new Map([["company", "/v1/companies/"], ["llp", "/v1/llps/"], ["director", "/v1/directors/"]]);
const $ = (id) => document.getElementById(id);
const form = $("search"), input = $("name"), said = $("said");
const matches = $("matches"), record = $("record"), meant = $("meant"), suggestions = $("suggestions");
const samples = document.querySelector(".call .samples");

let calls = 0;
let searched, searching; // the name whose matches are shown, and the one whose answer is still to come

/**
 * Calls the service and shows the call; returns the data, null after a problem, or undefined when another call
 * has begun meanwhile: its answer is the one to show, whichever comes first.
 */
async function call(path) {
  const number = ++calls;
  searching = undefined;
  suggest([]);
  showCall(samples, path);
  said.textContent = "Asking…";
  const started = performance.now();
  let response, body;
  try {
    response = await fetch(path, { headers: { Authorization: "Bearer " + sandboxKey } });
    body = await response.json();
  } catch {
    body = undefined;
  }
  if (number !== calls) return undefined;
  if (body === undefined) {
    said.textContent = "The service cannot be reached. Try again in a moment.";
    return null;
  }
  showOutcome(response, performance.now() - started);
  $("answer").firstElementChild.replaceChildren(...coloured(JSON.stringify(body, null, 2)));
  $("answer").scrollTop = 0;
  if (!response.ok) {
    said.textContent = `${body.title}. ${body.detail}`;
    return null;
  }
  suggest(listed(response.headers.get("Search-Suggestion") ?? ""));
  return body.data;
}

function showOutcome(response, milliseconds) {
  const badge = element("span", { className: "badge " + (response.ok ? "good" : "bad") });
  badge.textContent = `${response.status} ${response.statusText}`.trim();
  const parts = [badge, element("span", {}, `${milliseconds.toFixed(1)} ms round trip`)];
  const left = response.headers.get("RateLimit-Remaining");
  if (left !== null) {
    parts.push(element("span", {}, `${left} of ${response.headers.get("RateLimit-Limit")} calls left this minute`));
  }
  $("outcome").replaceChildren(...parts);
}

/** Searches for a name, and makes the search the page's address. */
function ask(name) {
  if (name !== asked() || location.hash) history.replaceState(null, "", "/?" + new URLSearchParams({ name }));
  return search(name);
}

async function search(name) {
  input.value = name;
  searched = undefined;
  record.hidden = true;
  const answer = call("/v1/search/companies?" + new URLSearchParams({ name, limit: 10 }));
  searching = name;
  const found = await answer;
  if (found === undefined) return;
  searching = undefined;
  if (found === null) {
    matches.hidden = true;
    return;
  }
  searched = name;
  said.textContent = found.length === 0 ? "No name matches. A search without a match is free."
    : found.length === 1 ? "1 match" : `${found.length} matches, best first`;
  matches.replaceChildren(...found.map((match) => {
    const link = element("a", { href: `#${match.type}/${encodeURIComponent(match.value)}` },
      element("span", {}, match.label), element("code", {}, match.value));
    return element("li", {}, link);
  }));
  matches.hidden = found.length === 0;
}

function suggest(names) {
  suggestions.replaceChildren(...names.map((name) => {
    const link = element("a", { href: "?" + new URLSearchParams({ name }) }, name);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      ask(name);
    });
    return element("li", {}, link);
  }));
  suggestions.hidden = meant.hidden = names.length === 0;
}

async function open(type, id) {
  const data = await call(paths.get(type) + encodeURIComponent(id));
  if (data === undefined) return;
  if (data === null) {
    record.hidden = true;
    return;
  }
  said.textContent = "";
  record.replaceChildren(...views[type](data));
  record.hidden = false;
  const title = $("record-title");
  title.focus({ preventScroll: true });
  record.scrollIntoView({ block: "nearest" });
}

const rupees = (n) => n === null ? null : "₹ " + n.toLocaleString("en-IN");
const yesNo = (b) => b === null ? null : b ? "yes" : "no";

const views = {
  company: (c) => [
    ...heading(c.company_name, c.cin, c.status),
    fields([
      ["Incorporated", c.incorporation_date], ["Registration number", c.registration_no], ["Class", c.class],
      ["Category", c.category], ["Sub-category", c.sub_category], ["Listed", yesNo(c.listed)],
      ["Registrar", c.roc], ["Authorised capital", rupees(c.authorized_capital)], ["Paid-up capital", rupees(c.paid_up_capital)],
      ["Activity", c.activity], ["Address", c.contact.address], ["District", c.district], ["State", c.state],
      ["Postal code", c.pincode], ["E-mail", c.contact.email], ["Phone", c.contact.phone], ["Website", c.contact.website],
      ["Last updated", c.last_updated],
    ]),
    table("Directors", ["Name", "DIN", "Designation", "Appointed"], c.directors.map((d) =>
      [d.name, linkTo("director", d.din), d.designation, d.appointment_date])),
  ],
  llp: (l) => [
    ...heading(l.llp_name, l.llpin, l.status),
    fields([
      ["Incorporated", l.incorporation_date], ["Contribution", rupees(l.contribution)], ["Activity", l.activity],
      ["Address", l.address], ["District", l.district], ["State", l.state], ["Postal code", l.pincode],
      ["Last updated", l.last_updated],
    ]),
    table(`Partners, ${l.partners.length} of ${l.partners_total}`, ["Name", "DIN", "Status", "Joined", "Left"],
      l.partners.map((p) => [p.name, p.din, p.status, p.joined_on, p.left_on])),
  ],
  director: (d) => [
    ...heading(d.name, d.din, d.status),
    table(`Linked companies, ${d.linked_companies.length} of ${d.linked_companies_total}`,
      ["Company", "CIN", "Status", "Designation", "Appointed"], d.linked_companies.map((c) =>
        [c.company_name, linkTo("company", c.cin), c.status, c.designation, c.appointment_date])),
  ],
};

function heading(name, id, status) {
  const tone = status === "ACTIVE" ? "good" : status === null ? "" : "warn";
  const badge = status === null ? "" : element("span", { className: "badge " + tone }, status.replaceAll("_", " "));
  return [
    element("h2", { id: "record-title", tabIndex: -1 }, name),
    element("p", { className: "status" }, element("code", {}, id), badge),
  ];
}

function fields(pairs) {
  return element("dl", { className: "fields" }, ...pairs.map(([term, value]) =>
    element("div", {}, element("dt", {}, term), element("dd", {}, shown(value)))));
}

function table(title, head, rows) {
  if (rows.length === 0) return element("p", { className: "soft" }, title.split(",")[0] + ": none on record.");
  const columns = head.map((name) => element("th", { scope: "col" }, name));
  const lines = rows.map((row) => element("tr", {}, ...row.map((value) => element("td", {}, shown(value)))));
  const scroll = element("div", { className: "scroll", tabIndex: 0 }, element("table", {},
    element("thead", {}, element("tr", {}, ...columns)), element("tbody", {}, ...lines)));
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", title);
  const section = element("div", {}, element("h3", {}, title), scroll);
  return section;
}

const linkTo = (type, id) => element("a", { href: `#${type}/${id}` }, id);
const shown = (value) => value === null ? element("span", { className: "soft" }, "–") : value;

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const token = /"(?:[^"\\]|\\.)*"(\s*:)?|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?\b/g;

// coloured splits JSON into text and spans for the style sheet.
function* coloured(text) {
  let rest = 0;
  for (const match of text.matchAll(token)) {
    yield text.slice(rest, match.index);
    const colon = match[1] || "";
    const className = colon ? "k" : match[0][0] === '"' ? "s" : "n";
    yield element("span", { className }, match[0].slice(0, match[0].length - colon.length));
    yield colon;
    rest = match.index + match[0].length;
  }
  yield text.slice(rest);
}

/** Shows what the address asks for: a search, and below its matches a record. */
async function arrive() {
  const name = asked();
  if (name && name === searching && !paths.has(location.hash.slice(1).split("/")[0])) return; // it is on its way
  const another = name && name !== searched;
  if (another) await search(name);
  if (!another || location.hash.length > 1) follow();
}

function follow() {
  if (document.getElementById(location.hash.slice(1))) return; // a place of this page, such as its content
  const [type, id] = location.hash.slice(1).split("/");
  if (paths.has(type) && id) {
    open(type, decoded(id));
    return;
  }
  calls++; // no answer that is still to come belongs to this address
  searching = undefined;
  said.textContent = "";
  record.hidden = true;
}

/** The search in the page's address, which the search box without scripts makes too. */
function asked() {
  return new URLSearchParams(location.search).get("name");
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a link may end in the middle of a character
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (input.value.trim()) ask(input.value.trim());
});
document.querySelectorAll("[data-query]").forEach((chip) => {
  chip.addEventListener("click", () => ask(chip.dataset.query));
});
addEventListener("popstate", arrive); // also of a link to a record
loadTemplates(); // the first call shows them at once
await arrive();
