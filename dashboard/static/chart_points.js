// The points of a chart for those who don't hover: the keyboard goes from point to point and from change to
// change, a finger chooses one; what they say stands below the chart, where screen readers announce it.
"use strict";

(() => {
  const { openAddress } = window.pacelineCharts;
  // These belong to the page's own line; every other trace with texts is a line of its own.
  const OWN = ["value", "tainted", "failed"];

  const plainText = (markup) => {
    const read = new DOMParser().parseFromString(markup.replaceAll("<br>", " · "), "text/html");
    return read.body.textContent.replace(/\s+/g, " ").trim();
  };

  // The lines of a chart, each its points from left to right.
  const readLines = (canvas) => {
    const lines = new Map();
    canvas.data.forEach((trace, curve) => {
      // Bars have texts of their own; a point leads to an address.
      if (!Array.isArray(trace.text) || !Array.isArray(trace.customdata)) return;
      if (!trace.customdata.length || !String(trace.customdata[0]).startsWith("/")) return;
      const { x } = canvas._fullData[curve];
      const key = OWN.includes(trace.name) ? "own" : curve;
      const points = trace.text.map((text, index) => ({ curve, index, x: Number(x[index]), text, address: trace.customdata[index] }));
      lines.set(key, [...(lines.get(key) || []), ...points]);
    });
    const ordered = [...lines.entries()].sort(([first], [second]) => (second === "own") - (first === "own"));
    return ordered.map(([, points]) => points.sort((first, second) => first.x - second.x));
  };

  const readChanges = (canvas) => (canvas.layout.annotations || [])
    .filter((annotation) => annotation.arrowhead !== undefined)
    .map((annotation) => ({ x: Number(annotation.x), text: annotation.text }))
    .sort((first, second) => first.x - second.x);

  const nearestIndex = (points, x) => points.reduce(
    (best, point, index) => (Math.abs(point.x - x) < Math.abs(points[best].x - x) ? index : best), 0);

  const addKeys = (figure) => {
    const canvas = figure.querySelector(".canvas");
    let lines = readLines(canvas);
    if (!lines.some((points) => points.length)) return;
    const status = document.createElement("p");
    status.className = "point-status";
    status.setAttribute("role", "status");
    canvas.after(status);
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "chart");
    const label = canvas.getAttribute("aria-label");
    canvas.setAttribute("aria-label", `${label}: arrow keys read its points, with Shift its changes, Enter opens one`);
    const chosen = { line: 0, index: -1 };

    const say = (point, before = "") => {
      const link = document.createElement("a");
      link.href = point.address;
      link.textContent = "open";
      const place = `${chosen.index + 1} of ${lines[chosen.line].length}`;
      status.replaceChildren(`${before}${plainText(point.text)} (${place}) `, ...(point.address ? [link] : []));
    };

    const choose = (line, index, before = "") => {
      const points = lines[line];
      if (!points || !points.length) return;
      chosen.line = line;
      chosen.index = Math.min(Math.max(index, 0), points.length - 1);
      const point = points[chosen.index];
      Plotly.Fx.hover(canvas, [{ curveNumber: point.curve, pointNumber: point.index }]);
      say(point, before);
    };

    const chooseChange = (direction) => {
      const points = lines[0];
      const from = chosen.index < 0 ? (direction > 0 ? -Infinity : Infinity) : lines[chosen.line][chosen.index].x;
      const changes = readChanges(canvas);
      const next = direction > 0
        ? changes.find((change) => change.x > from)
        : changes.findLast((change) => change.x < from);
      if (next) choose(0, nearestIndex(points, next.x), `${plainText(next.text)}: `);
      else status.textContent = direction > 0 ? "No later change is shown." : "No earlier change is shown.";
    };

    const moves = {
      ArrowRight: () => choose(chosen.line, chosen.index + 1),
      ArrowLeft: () => choose(chosen.line, chosen.index < 0 ? Infinity : chosen.index - 1),
      Home: () => choose(chosen.line, 0),
      End: () => choose(chosen.line, Infinity),
      ArrowUp: () => chooseLine(-1),
      ArrowDown: () => chooseLine(1),
    };
    const chooseLine = (direction) => {
      const line = Math.min(Math.max(chosen.line + direction, 0), lines.length - 1);
      const from = chosen.index < 0 ? undefined : lines[chosen.line][chosen.index];
      choose(line, from ? nearestIndex(lines[line], from.x) : 0);
    };

    // Plotly keeps a click from giving the focus.
    canvas.addEventListener("pointerdown", () => canvas.focus({ preventScroll: true }), true);
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const isSideways = event.key === "ArrowRight" || event.key === "ArrowLeft";
      if (event.shiftKey && isSideways) chooseChange(event.key === "ArrowRight" ? 1 : -1);
      else if (event.key === "Enter" && chosen.index >= 0) openAddress(lines[chosen.line][chosen.index].address);
      else if (moves[event.key] && (lines.length > 1 || !["ArrowUp", "ArrowDown"].includes(event.key))) moves[event.key]();
      else return;
      event.preventDefault();
    });
    figure.addEventListener("chart:chosen", ({ detail }) => {
      const line = lines.findIndex((points) => points.some((point) => point.curve === detail.curveNumber));
      if (line < 0) return;
      choose(line, lines[line].findIndex((point) => point.curve === detail.curveNumber && point.index === detail.pointNumber));
    });
    // That nothing follows holds of the point that was chosen, as long as somebody reads on.
    const forgetEnd = () => {
      if (!status.firstElementChild) status.textContent = "";
    };
    canvas.addEventListener("blur", forgetEnd);
    // Another part has other points.
    figure.addEventListener("chart:drawn", () => {
      lines = readLines(canvas);
      // A point's text stays: a phone draws anew while somebody reaches for its link.
      forgetEnd();
      chosen.line = 0;
      chosen.index = -1;
    });
  };

  const prepare = (figure) => {
    if (figure.querySelector(".canvas[data-drawn]")) addKeys(figure);
    else figure.addEventListener("chart:drawn", () => addKeys(figure), { once: true });
  };
  document.querySelectorAll("figure[data-figure]").forEach(prepare);
  document.addEventListener("htmx:load", ({ target }) => {
    if (target !== document.body) target.querySelectorAll("figure[data-figure]").forEach(prepare);
  });
})();
