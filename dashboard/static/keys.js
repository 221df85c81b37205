// One key for each button, link or field that names one in `data-key`; its title says what it does.
"use strict";

(() => {
  const isTyping = ({ target }) => target.closest("input, textarea, select, [contenteditable]");

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const target = [...document.querySelectorAll("[data-key]")].find((part) => part.dataset.key === event.key && !part.hidden);
    if (!target) return;
    event.preventDefault();
    if (target.matches("input, textarea, select")) target.focus();
    else target.click();
  });
})();
