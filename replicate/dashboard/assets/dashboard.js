// The pages work without this file. It copies what stands in a field, shows times in the reader's zone,
// brings the link of the page into view, and makes lists of tables that are wider than a phone.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const field = document.getElementById(button.dataset.copy);
  const said = document.getElementById(button.dataset.copy + "-said");
  button.hidden = false;
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      said.textContent = "Copied.";
    } catch {
      said.textContent = "Press Ctrl-C (or ⌘C) to copy.";
    }
  });
}

// A moment is in UTC as the server writes it: here it becomes one of the reader's zone. Pointing at it
// shows UTC.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const date = { day: "numeric", month: "short", year: "numeric" };
const forms = {
  day: new Intl.DateTimeFormat("en-GB", date),
  minute: new Intl.DateTimeFormat("en-GB", { ...date, hour: "2-digit", minute: "2-digit" }),
};
for (const moment of document.querySelectorAll("time[data-precision]")) {
  moment.textContent = forms[moment.dataset.precision].format(new Date(moment.dateTime));
}
const year = new Date().getFullYear();
if ([0, 6].some((month) => new Date(year, month).getTimezoneOffset() !== 0)) { // UTC has many names, and some zones are UTC
  document.getElementById("zone").textContent =
    `Times are of your zone (${zone}); point at one for UTC. Days of calls and credits are UTC days.`;
}

// On a phone the links of the head are wider than the screen.
document.querySelector(".head nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

// A table that is wider than a phone becomes a list, in which each cell has the name of its column. One that is
// wider than another screen says so.
const phone = matchMedia("(max-width: 40rem)");
for (const scroll of document.querySelectorAll(".scroll")) {
  const columns = [...scroll.querySelectorAll("thead th")].map((th) => (th.querySelector(".hidden") ? "" : th.textContent));
  for (const row of scroll.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, i) => (cell.dataset.column = columns[i]));
  }
  const hint = document.createElement("p");
  hint.className = "sideways";
  hint.textContent = "Scroll sideways for more columns →";
  scroll.before(hint);
  const isWide = () => scroll.scrollWidth > scroll.clientWidth + 1;
  const fit = () => {
    scroll.classList.remove("stacked");
    scroll.classList.toggle("stacked", phone.matches && isWide());
    hint.hidden = !isWide();
  };
  let width = -1;
  new ResizeObserver(() => {
    if (scroll.clientWidth !== width) {
      width = scroll.clientWidth;
      requestAnimationFrame(fit); // it changes the height, of which the observer would hear at once
    }
  }).observe(scroll);
  fit();
}
