// The pages work without this file: it only copies what stands in a field.
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
