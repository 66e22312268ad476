// The API reference: the try-it component, with the sandbox key filled in and samples of
// each call in every language.

import { newGroup } from "./samples.js";

const sandboxKey = "reg_sandbox_public";

/** The call of an operation with the examples of its parameters filled in. */
function examplePath(path, parameters) {
  const query = new URLSearchParams();
  let filled = path;
  for (const parameter of parameters) {
    const example = parameter.get("example");
    if (example === undefined) continue;
    if (parameter.get("in") === "path") filled = filled.replace(`{${parameter.get("name")}}`, encodeURIComponent(example));
    if (parameter.get("in") === "query" && parameter.get("required")) query.set(parameter.get("name"), example);
  }
  const text = query.toString();
  return text ? `${filled}?${text}` : filled;
}

/** Shows samples above the parameters of each operation that is called with a key. */
function samplesPlugin(system) {
  const { createElement, useEffect, useRef, useState } = system.React;
  function CallSamples({ path }) {
    const holder = useRef(null);
    useEffect(() => {
      let gone = false;
      newGroup(path).then((group) => { if (!gone && holder.current) holder.current.replaceChildren(group); });
      return () => { gone = true; };
    }, [path]);
    return createElement("section", { className: "call-samples", "aria-label": "Samples" },
      createElement("h4", null, "Samples"), createElement("div", { ref: holder }));
  }
  const withSamples = (Original) => function Parameters(props) {
    const [path, method] = props.pathMethod;
    if (method !== "get") return createElement(Original, props);
    return createElement("div", null,
      createElement(CallSamples, { path: examplePath(path, props.parameters) }),
      createElement(Original, props));
  };
  // The headers of a response fold away: they are much the same for each.
  const folded = (Original) => function Headers(props) {
    return createElement("details", { className: "headers-fold" },
      createElement("summary", null, `${props.headers.size} headers`), createElement(Original, props));
  };
  // Of an error only the description is shown until someone wants to see more.
  const shortened = (Original) => function Response(props) {
    const [open, setOpen] = useState(Number(props.code) < 400);
    if (open) return createElement(Original, props);
    const Markdown = props.getComponent("Markdown", true);
    return createElement("tr", { className: "response", "data-code": props.code },
      createElement("td", { className: "response-col_status" }, props.code),
      createElement("td", { className: "response-col_description" },
        createElement(Markdown, { source: props.response.get("description") }),
        createElement("button", {
          type: "button", className: "btn", onClick: () => setOpen(true), "aria-label": `Show the example of ${props.code}`,
        }, "Show the example")));
  };
  // The path of an operation stands inside a button, where no link may stand.
  const unlinked = () => function DeepLink({ text }) { return createElement("span", null, text); };
  return { wrapComponents: { parameters: withSamples, headers: folded, response: shortened, DeepLink: unlinked } };
}

// What the component leaves without a name or out of reach of the keyboard.
const mends = [
  ["button:empty:not([aria-label]), .copy-to-clipboard button:not([aria-label])", (e) => e.setAttribute("aria-label", "Copy")],
  [".close-modal:not([aria-label])", (e) => e.setAttribute("aria-label", "Close")],
  [".examples-select-element:not([aria-label])", (e) => e.setAttribute("aria-label", "Example")],
  ["pre.microlight:not([tabindex])", (e) => { e.tabIndex = 0; }],
  [".auth-container h6:not([aria-level])", (e) => { e.setAttribute("role", "heading"); e.setAttribute("aria-level", "5"); }],
  [".modal-btn.auth[aria-label]", (e) => e.removeAttribute("aria-label")],
];

function mend(root) {
  for (const [selector, how] of mends) root.querySelectorAll(selector).forEach(how);
}

addEventListener("DOMContentLoaded", () => {
  const root = document.getElementById("reference");
  new MutationObserver(() => mend(root)).observe(root, { childList: true, subtree: true });
  const ui = window.SwaggerUIBundle({
    url: "/openapi.json",
    domNode: root,
    deepLinking: true,
    validatorUrl: null,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    persistAuthorization: false,
    supportedSubmitMethods: ["get"],
    syntaxHighlight: { activated: false },
    presets: [window.SwaggerUIBundle.presets.apis],
    plugins: [samplesPlugin],
    layout: "BaseLayout",
    onComplete: () => ui.preauthorizeApiKey("apiKey", sandboxKey),
  });
});
