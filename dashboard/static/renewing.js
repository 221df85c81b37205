// Parts of a page that renew themselves, by htmx: what somebody does there meanwhile isn't lost.
"use strict";

(() => {
  // A page that nobody sees asks for nothing; what would have been asked for meanwhile is asked for once it is seen.
  const overdue = new Set();
  document.addEventListener("htmx:beforeRequest", (event) => {
    const part = event.detail.elt;
    if (!document.hidden || !part.getAttribute("hx-trigger")?.startsWith("every ")) return;
    overdue.add(part);
    event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const part of overdue) if (part.isConnected) htmx.ajax("get", part.getAttribute("hx-get"), { source: part });
    overdue.clear();
  });

  // A growing log stays at its end, also after a part of the page was replaced.
  const scrollLogsToEnd = () => document.querySelectorAll("[data-follow]").forEach((log) => { log.scrollTop = log.scrollHeight; });
  document.addEventListener("htmx:afterSettle", scrollLogsToEnd);
  scrollLogsToEnd();

  // A page in which somebody types isn't loaded anew: its part asks again until that is sent or taken back.
  const isTyped = (field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (!field.options) return field === document.activeElement || field.value !== field.defaultValue;
    return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
  };
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const fields = [...document.querySelectorAll("input:not([type=hidden]), select, textarea")];
    if (event.detail.xhr.getResponseHeader("HX-Refresh") && fields.some(isTyped)) event.preventDefault();
  });

  // A part that replaces itself keeps how far its tables were scrolled, and waits while text in it is selected.
  let scrolled = [];
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const selection = getSelection();
    const isOwn = detail.requestConfig.elt === detail.target;
    if (isOwn && !selection.isCollapsed && detail.target.contains(selection.anchorNode)) detail.shouldSwap = false;
    scrolled = [...detail.target.querySelectorAll(".scroll[aria-label]")].map((table) => [table.getAttribute("aria-label"), table.scrollLeft]);
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const table of document.querySelectorAll(".scroll[aria-label]")) {
      const before = scrolled.find(([label]) => label === table.getAttribute("aria-label"));
      if (before) [, table.scrollLeft] = before;
    }
  });

  // The keyboard stays where it was when its part of the page is replaced.
  const named = (part) => `${part.tagName} ${part.getAttribute("href") ?? part.getAttribute("aria-label") ?? part.textContent}`;
  const alike = (name) => [...document.querySelectorAll("main :is(a, button, summary, [tabindex])")].filter((part) => named(part) === name);
  let focused = null;
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const part = document.activeElement;
    focused = part !== detail.target && detail.target.contains(part) ? { name: named(part), place: alike(named(part)).indexOf(part) } : null;
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (focused && document.activeElement === document.body) alike(focused.name).at(focused.place)?.focus({ preventScroll: true });
    focused = null;
  });

  // What somebody has opened stays open when its part of the page is replaced.
  const opened = new Set();
  document.addEventListener("toggle", ({ target }) => {
    if (target.id && target.open) opened.add(target.id);
    else if (target.isConnected) opened.delete(target.id);
  }, true);
  document.addEventListener("htmx:load", ({ target }) => {
    target.querySelectorAll("details[id]").forEach((details) => { details.open ||= opened.has(details.id); });
  });
})();
