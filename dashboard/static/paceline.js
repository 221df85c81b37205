// Small comforts; every page works without them.
"use strict";

(() => {
  // A select that filters a list needs no button.
  for (const select of document.querySelectorAll("[data-submits]")) {
    select.addEventListener("change", () => select.form.requestSubmit());
    const button = select.form.querySelector("button");
    if (button) button.hidden = true;
  }

  // Typing into a choice's field chooses it.
  for (const field of document.querySelectorAll("[data-chooses]")) {
    field.addEventListener("input", () => {
      field.form.querySelector(`[name=which][value="${field.dataset.chooses}"]`).checked = true;
    });
  }

  for (const button of document.querySelectorAll("[data-copies]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  // On a phone the tabs may be wider than the screen: the one that is shown is in sight.
  for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
    tab.parentElement.scrollLeft = tab.offsetLeft + tab.offsetWidth - tab.parentElement.clientWidth;
  }

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

  // Nothing is folded on paper.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("main details:not([open])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of folded) details.open = false; });

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
