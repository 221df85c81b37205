// A part of a long series: what is chosen in the chart is asked for in full, and the address, the table and the
// files follow.
"use strict";

(() => {
  const { drawData } = window.pacelineCharts;
  const WAIT = 120;
  const SHARE_OF_A_MOVE = 0.5;
  const ZOOM = 2;

  const addZoom = (figure) => {
    const canvas = figure.querySelector(".canvas");
    const tools = figure.querySelector(".chart-tools");
    const thinned = figure.querySelector(".thinned");
    const part = document.querySelector(".part");
    let asked = 0;
    let drawing = false;

    const addressOf = (base, zoom) => {
      const address = new URL(base, location.href);
      address.searchParams.delete("page");
      if (zoom) address.searchParams.set("zoom", zoom);
      else address.searchParams.delete("zoom");
      return address;
    };

    // To Back a part is a place of its own, and the whole line another one; going from part to part is not.
    const partOfAddress = () => new URLSearchParams(location.search).get("zoom") || "";
    let shownPart = partOfAddress();
    const keepAddress = (zoom) => {
      const method = Boolean(zoom) === Boolean(partOfAddress()) ? "replaceState" : "pushState";
      history[method](history.state, "", addressOf(location.href, zoom));
      shownPart = zoom;
    };

    // The positions of the commits that a range of the axis shows, with their neighbours: the line leads there.
    const positionsWithin = ([low, high]) => {
      const places = canvas.data.flatMap((trace, curve) => (trace.meta && trace.meta.positions
        ? trace.meta.positions.map((position, index) => ({ position, x: Number(canvas._fullData[curve].x[index]) }))
        : [])).sort((first, second) => first.x - second.x);
      if (!places.length) return null;
      const from = places.findLast(({ x }) => x < low) || places[0];
      const to = places.find(({ x }) => x > high) || places[places.length - 1];
      return [from.position, to.position].sort((first, second) => first - second);
    };

    const asNumber = (end) => (typeof end === "string" ? Date.parse(`${end.replace(" ", "T")}Z`) : Number(end));
    const shownRange = () => canvas.layout.xaxis.range.map(asNumber);

    const show = (answer, zoom, range) => {
      const read = JSON.parse(answer.figure);
      if (range) read.layout.xaxis.range = range;
      const table = document.getElementById("points-of-series");
      if (table) {
        table.outerHTML = answer.points;
        if (window.htmx) window.htmx.process(document.getElementById("points-of-series"));
      }
      thinned.textContent = answer.thinned;
      thinned.hidden = !answer.thinned;
      part.hidden = !answer.part;
      part.firstElementChild.textContent = answer.part;
      keepAddress(zoom);
      document.querySelectorAll("[data-keeps-part]").forEach((link) => { link.href = addressOf(link.href, zoom); });
      drawing = true;
      return drawData(figure, read).finally(() => { drawing = false; });
    };

    const load = async (zoom, range) => {
      const number = ++asked;
      figure.setAttribute("aria-busy", "true");
      const response = await fetch(addressOf(figure.dataset.part + location.search, zoom), { headers: { Accept: "application/json" } });
      if (number !== asked) return;
      figure.removeAttribute("aria-busy");
      if (response.ok) await show(await response.json(), zoom, range);
      else {
        thinned.textContent = "This part couldn't be loaded. Try again in a moment.";
        thinned.hidden = false;
      }
    };

    let waiting;
    const follow = () => {
      const range = shownRange();
      const ends = positionsWithin(range);
      clearTimeout(waiting);
      if (ends) waiting = setTimeout(() => load(ends.join("-"), range), WAIT);
    };

    const moveTo = (low, high) => Plotly.relayout(canvas, { "xaxis.range": [low, high] });
    const moves = {
      earlier: ([low, high]) => moveTo(low - SHARE_OF_A_MOVE * (high - low), high - SHARE_OF_A_MOVE * (high - low)),
      later: ([low, high]) => moveTo(low + SHARE_OF_A_MOVE * (high - low), high + SHARE_OF_A_MOVE * (high - low)),
      in: ([low, high]) => moveTo(low + (high - low) / (2 * ZOOM), high - (high - low) / (2 * ZOOM)),
      out: ([low, high]) => moveTo(low - (high - low) / 2, high + (high - low) / 2),
      all: () => load("", null),
    };

    canvas.on("plotly_relayout", (changed) => {
      const moved = Object.keys(changed).some((name) => name.startsWith("xaxis."));
      if (moved && !drawing) follow();
    });
    canvas.on("plotly_doubleclick", () => { load("", null); });
    addEventListener("popstate", () => {
      if (partOfAddress() !== shownPart) load(partOfAddress(), null);
    });
    tools.hidden = false;
    tools.addEventListener("click", ({ target }) => {
      const move = moves[target.dataset.moves];
      if (move) move(shownRange());
    });
  };

  document.querySelectorAll("figure[data-part]").forEach((figure) => {
    if (figure.querySelector(".canvas[data-drawn]")) addZoom(figure);
    else figure.addEventListener("chart:drawn", () => addZoom(figure), { once: true });
  });
})();
