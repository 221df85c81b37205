// Sections that are folded: a link into one opens it, and all can be opened.
"use strict";

(() => {
  const sections = () => [...document.querySelectorAll(".folded > details")];

  const openLinked = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let parent = target.closest("details"); parent; parent = parent.parentElement.closest("details")) parent.open = true;
    target.scrollIntoView();
  };

  const button = document.querySelector("[data-opens-all]");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const closed = sections().some((details) => !details.open);
      for (const details of sections()) details.open = closed;
      button.textContent = closed ? "Fold all" : "Open all";
    });
  }

  // Which section is in sight, in the contents that stay.
  const links = new Map([...document.querySelectorAll(".on-page.stays a")].map((link) => [link.hash.slice(1), link]));
  const inSight = new Set();
  const markCurrent = () => {
    const current = [...links.keys()].find((id) => inSight.has(id));
    for (const [id, link] of links) {
      if (id === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const id = target.getAttribute("aria-labelledby");
      if (isIntersecting) inSight.add(id);
      else inSight.delete(id);
    }
    markCurrent();
  }, { rootMargin: "-60px 0px -55% 0px" });
  for (const section of document.querySelectorAll("main section[aria-labelledby]")) {
    if (links.has(section.getAttribute("aria-labelledby"))) watcher.observe(section);
  }

  addEventListener("hashchange", openLinked);
  openLinked();
})();
