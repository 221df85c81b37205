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
