// Keys, theme, copying and well-behaved polling. The pages work without it.
const root = document.documentElement;
const storage = window.localStorage;
const keysOff = () => storage.getItem("keys") === "off";

// --- theme: the switch changes at once and tells the server, which keeps the choice
const THEMES = ["system", "light", "dark"];
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-theme-switch]");
  if (!button) return;
  event.preventDefault();
  const chosen = button.value;
  root.dataset.theme = chosen === "system" ? "auto" : chosen;
  const body = new FormData(button.form);
  body.set("theme", chosen);
  fetch(button.form.action, { method: "POST", body, headers: { Accept: "application/json" } })
    .then((answer) => (answer.ok ? answer.json() : null))
    .then((answer) => answer && button.setAttribute("aria-label", answer.theme_word));
  button.value = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
});

// --- copy buttons
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  navigator.clipboard?.writeText(button.dataset.copy).then(() => say(button.dataset.copied || ""));
});

function say(text) {
  const live = document.getElementById("live");
  if (live && live.textContent !== text) live.textContent = text;
}

// --- a slider and the number beside it
document.addEventListener("input", (event) => {
  const place = document.getElementById(event.target.dataset.mirror || "");
  if (place) place.firstElementChild.textContent = event.target.value;
});

// --- a form is sent once
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "1";
});
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});

// --- ticked rows: count them beside the button that uses them
function countTicks() {
  for (const place of document.querySelectorAll("[data-ticked]")) {
    const ticked = document.querySelectorAll("input[data-tick]:checked").length;
    place.textContent = place.dataset.ticked.replace("0", String(ticked));
  }
}
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-tick-all]")) {
    for (const box of document.querySelectorAll("input[data-tick]:not(:disabled)")) {
      box.checked = event.target.checked;
    }
  }
  if (event.target.matches("[data-tick], [data-tick-all]")) countTicks();
  if (event.target.matches("[data-keys]")) {
    storage.setItem("keys", event.target.checked ? "on" : "off");
  }
});

// --- polling: not while hidden or paused, slower after each failure, never under the cursor
let paused = false;
const failures = new WeakMap();
const isPoll = (element) => (element.getAttribute("hx-trigger") || "").startsWith("every");

document.addEventListener("htmx:beforeRequest", (event) => {
  const element = event.detail.elt;
  if (!isPoll(element)) return;
  const wait = failures.get(element);
  // A swap would take the place away from whoever goes through the page with the keyboard.
  const busy = element.querySelector(":popover-open, :focus-visible");
  if (document.hidden || paused || busy || (wait && Date.now() < wait.until)) event.preventDefault();
});
document.addEventListener("htmx:afterRequest", (event) => {
  const element = event.detail.elt;
  if (!isPoll(element)) return;
  const status = event.detail.xhr?.status || 0;
  if (status > 0 && status < 400) return failures.delete(element);
  const seconds = Math.min(60, 2 * (failures.get(element)?.seconds || 2.5));
  failures.set(element, { seconds, until: Date.now() + 1000 * seconds });
});
let opened = [];
document.addEventListener("htmx:beforeSwap", () => {
  opened = [...document.querySelectorAll("details[open][id]")].map((details) => details.id);
});
document.addEventListener("htmx:afterSwap", (event) => {
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  const said = event.detail.elt?.querySelector?.("[data-say]") || document.querySelector("[data-say]");
  if (said) say(said.dataset.say);
});
function showPause() {
  for (const button of document.querySelectorAll("[data-pause]")) {
    button.hidden = false;
    button.textContent = paused ? button.dataset.resume : button.dataset.pause;
  }
}
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-pause]")) return;
  paused = !paused;
  showPause();
});
document.addEventListener("htmx:oobAfterSwap", showPause);
showPause();

// --- keys: / search, g and a letter, ? help, j and k rows, x tick
let went = 0;
const typing = (target) => target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || keysOff()) return;
  const search = document.getElementById("q");
  const afterG = Date.now() - went < 1200;
  went = 0;
  if (afterG) {
    const link = document.querySelector(`.side a[data-key="${CSS.escape(event.key)}"]`);
    if (link) return link.click();
  }
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "g") went = Date.now();
  else if (event.key === "?") document.querySelector(".foot a[href]")?.click();
  else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else if (event.key === "x") {
    document.activeElement?.closest("tr")?.querySelector("input[data-tick]:not(:disabled)")?.click();
  }
});

function step(by) {
  const links = [...document.querySelectorAll("main tbody th[scope=row] a")];
  const row = document.activeElement?.closest("tr");
  const here = links.findIndex((link) => link.closest("tr") === row);
  links[Math.min(Math.max(here + by, 0), links.length - 1)]?.focus();
}

// --- start: focus on the summary of errors, state of the switch of keys
document.querySelector("[data-focus]")?.focus();
for (const box of document.querySelectorAll("[data-keys]")) box.checked = !keysOff();
countTicks();
