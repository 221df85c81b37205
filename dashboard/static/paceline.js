// What every page has: small comforts, without which it works, and two keys. One file, since each that is asked
// for puts off the first paint.
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

  // A double click sends a form once: what it asks for would be there twice, or be reported as missing.
  let sentAt = new WeakMap();
  addEventListener("submit", (event) => {
    const form = event.target;
    // A download leaves its page as it is, and may be wanted again.
    if (form.method !== "post" || "downloads" in form.dataset || event.defaultPrevented) return;
    if (event.timeStamp - (sentAt.get(form) ?? -Infinity) < 10_000) event.preventDefault();
    else sentAt.set(form, event.timeStamp);
  });
  // Whoever comes back to the page may send it again.
  addEventListener("pageshow", () => { sentAt = new WeakMap(); });

  const copyOnClick = (button, text) => {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, 1500);
    });
  };
  if (navigator.clipboard) {
    for (const button of document.querySelectorAll("[data-copies]")) {
      copyOnClick(button, document.getElementById(button.dataset.copies));
    }
    // Each other command gets a button of its own.
    for (const text of document.querySelectorAll("pre.shell:not(.copyable pre)")) {
      const box = document.createElement("div");
      const button = document.createElement("button");
      box.className = "copyable";
      Object.assign(button, { type: "button", className: "plain copy", textContent: "Copy" });
      text.replaceWith(box);
      box.append(text, button);
      copyOnClick(button, text);
    }
  }

  // On a phone the tabs may be wider than the screen: the one that is shown is in sight.
  for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
    tab.parentElement.scrollLeft = tab.offsetLeft + tab.offsetWidth - tab.parentElement.clientWidth;
  }

  // Nothing is folded on paper.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("main details:not([open])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of folded) details.open = false; });
})();

// `/` goes to the search, `?` lists the keys of the page: its own two, and those of elements with data-key.
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
