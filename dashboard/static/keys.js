// One key for each link, button or field that names one in `data-key`; its title says what it does. Nothing is
// sent by a single key: a form's button gets the focus, and Enter then does it.
"use strict";

(() => {
  const isTyping = ({ target }) => target.closest("input, textarea, select, [contenteditable]");

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const target = [...document.querySelectorAll("[data-key]")].find((part) => part.dataset.key === event.key && part.getClientRects().length);
    if (!target) return;
    event.preventDefault();
    if (target.form) target.focus();
    else target.click();
  });
})();
