// The search, the tabs of examples and the buttons that copy code. Without this script, pages have all but these.
import MiniSearch from "./minisearch.js";

/** Most results of a search. */
const MOST = 8;

for (const figure of document.querySelectorAll("figure.code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(figure.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2_000);
  });
  if (navigator.clipboard) figure.append(button);
}

/** Shows an example in one language; all examples of a page follow. */
function choose(name) {
  for (const tabs of document.querySelectorAll(".tabs")) {
    const names = [...tabs.querySelectorAll("figure")].map(({ dataset }) => dataset.tab);
    const shown = names.includes(name) ? name : names[0];
    for (const figure of tabs.querySelectorAll("figure")) figure.hidden = figure.dataset.tab !== shown;
    for (const tab of tabs.querySelectorAll("[role=tab]")) {
      tab.setAttribute("aria-selected", String(tab.textContent === shown));
      tab.tabIndex = tab.textContent === shown ? 0 : -1;
    }
  }
}

for (const tabs of document.querySelectorAll(".tabs")) {
  const list = document.createElement("div");
  list.role = "tablist";
  list.ariaLabel = "Language";
  for (const figure of tabs.querySelectorAll("figure")) {
    figure.role = "tabpanel";
    figure.ariaLabel = figure.dataset.tab;
    const tab = document.createElement("button");
    tab.type = "button";
    tab.role = "tab";
    tab.textContent = figure.dataset.tab;
    tab.addEventListener("click", () => {
      choose(tab.textContent);
      sessionStorage.setItem("language", tab.textContent);
    });
    list.append(tab);
  }
  list.addEventListener("keydown", ({ key }) => {
    const next = key === "ArrowRight" ? "nextElementSibling" : key === "ArrowLeft" ? "previousElementSibling" : "";
    const tab = next && document.activeElement?.[next];
    tab?.focus();
    tab?.click();
  });
  tabs.prepend(list);
}
choose(sessionStorage.getItem("language"));

// The menu is open beside the content, and closed above it on a small screen.
document.querySelector(".menu").open = matchMedia("(min-width: 60rem)").matches;

const input = document.querySelector("#search");
const results = document.querySelector("#results");
const status = document.querySelector("#found");
input.closest("search").hidden = false;

let loading;
/** Loads the index when the search is first used. */
function load() {
  loading ??= fetch("/docs/search.json").then(async (response) => {
    const { options, index } = await response.json();
    return MiniSearch.loadJS(index, options);
  });
  return loading;
}

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function show(found, text) {
  const items = found.slice(0, MOST).map(({ id, page, heading, start }) => {
    const link = element("a", "", "");
    link.href = id;
    link.append(element("strong", "", heading), element("span", "page", heading === page ? "" : page));
    link.append(element("span", "start", start));
    const item = element("li", "", "");
    item.append(link);
    return item;
  });
  const count = found.length === 1 ? "1 result" : `${found.length} results`;
  status.textContent = found.length === 0 ? `Nothing is found for “${text}”.` : count;
  results.replaceChildren(...items);
  results.hidden = items.length === 0;
}

function close() {
  results.hidden = true;
  status.textContent = "";
}

async function find() {
  const text = input.value.trim();
  if (text === "") return close();
  const index = await load();
  if (text !== input.value.trim()) return;
  const search = { prefix: true, fuzzy: 0.2, boost: { heading: 4, page: 2 }, combineWith: "AND" };
  show(index.search(text, search), text);
}

input.addEventListener("focus", load);
input.addEventListener("input", find);
// Arrows move between the field and the results; Escape closes them.
input.closest("search").addEventListener("keydown", (event) => {
  const stops = [input, ...results.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    stops.at((at + (event.key === "ArrowDown" ? 1 : -1)) % stops.length)?.focus();
  } else if (event.key === "Enter" && document.activeElement === input) stops[1]?.click();
  else if (event.key === "Escape") {
    input.focus();
    close();
  }
});
document.addEventListener("click", ({ target }) => target.closest("search") ?? close());
document.addEventListener("keydown", (event) => {
  const isKey = event.key === "/" || (event.key === "k" && (event.metaKey || event.ctrlKey));
  if (!isKey || event.target.closest("input, textarea")) return;
  event.preventDefault();
  input.focus();
});
