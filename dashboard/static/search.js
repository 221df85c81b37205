// `/` goes to the search, `?` lists the keys of the page: its own two, and those of elements with data-key.
"use strict";

(() => {
  const keys = document.getElementById("keys");
  const typing = (target) => target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

  const listKeys = () => {
    const list = keys.querySelector("dl");
    list.querySelectorAll("[data-of-page]").forEach((row) => row.remove());
    for (const element of document.querySelectorAll("[data-key]")) {
      // What stands in two places is shown in one of them.
      if (!element.getClientRects().length) continue;
      const row = document.createElement("div");
      row.dataset.ofPage = "";
      const key = document.createElement("dt");
      key.append(Object.assign(document.createElement("kbd"), { textContent: element.dataset.key }));
      const label = element.dataset.keyLabel || element.title || element.getAttribute("aria-label") || element.textContent.trim();
      row.append(key, Object.assign(document.createElement("dd"), { textContent: label }));
      list.append(row);
    }
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("site-search").focus();
    } else if (event.key === "?" && !keys.open) {
      event.preventDefault();
      listKeys();
      keys.showModal();
    }
  });
})();
