// Draws the figures of a page. The figures are data in the page; their colours are names of CSS custom
// properties, so that light and dark have one figure, and a change of scheme draws it again.
"use strict";

(() => {
  const VARIABLE = /^var\((--[\w-]+)\)$/;
  const coarse = matchMedia("(pointer: coarse)");
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const resolveColours = (value, style) => {
    if (typeof value === "string") {
      const name = VARIABLE.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => resolveColours(item, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolveColours(item, style)]));
    }
    return value;
  };

  // As many commit names as fit beside each other.
  const thinTickLabels = (axis, width) => {
    if (!axis || !axis.tickvals) return;
    const spacing = Math.ceil(axis.tickvals.length / Math.max(2, Math.floor(width / 90)));
    const last = axis.tickvals.length - 1;
    const isKept = (_, index) => (last - index) % spacing === 0;
    axis.ticktext = axis.ticktext.filter(isKept);
    axis.tickvals = axis.tickvals.filter(isKept);
    axis.tickangle = 0;
  };

  // A marker's label stands right of its line, left of it at the chart's end, and in a higher lane where it would
  // overlap another. Where every lane is taken it is left out: the list beside the chart has all of them.
  const LANES = [0, 1, 2];
  const LANE_HEIGHT = 15;
  const LETTER_WIDTH = 6.5;
  const placeMarkerLabels = (layout, width) => {
    const labels = (layout.annotations || []).filter((annotation) => annotation.name === "marker");
    if (!labels.length) return;
    const [low, high] = layout.xaxis.range;
    const plot = width - 90;
    const ends = LANES.map(() => -Infinity);
    for (const label of labels) {
      const x = ((label.x - low) / (high - low)) * plot;
      const size = LETTER_WIDTH * label.text.length + 8;
      const atEdge = x + size > plot;
      const left = atEdge ? x - size : x;
      const lane = LANES.find((candidate) => ends[candidate] <= left);
      label.xanchor = atEdge ? "right" : "left";
      label.visible = lane !== undefined;
      if (!label.visible) continue;
      label.yshift = LANE_HEIGHT * lane;
      ends[lane] = left + size;
    }
  };

  const openPoint = (event) => {
    const target = event.points && event.points[0] && event.points[0].customdata;
    if (typeof target === "string" && target.startsWith("/") && !target.startsWith("//")) location.assign(target);
  };

  const drawFigure = (figure) => {
    const source = document.getElementById(figure.dataset.figure);
    const canvas = figure.querySelector(".canvas");
    const { data, layout } = resolveColours(JSON.parse(source.textContent), getComputedStyle(document.documentElement));
    layout.font = { ...layout.font, family: getComputedStyle(document.body).fontFamily };
    layout.autosize = true;
    thinTickLabels(layout.xaxis, canvas.clientWidth);
    placeMarkerLabels(layout, canvas.clientWidth);
    // A finger that drags over a chart wants to scroll the page.
    if (coarse.matches) layout.dragmode = false;
    const first = !canvas.dataset.drawn;
    if (first) canvas.replaceChildren();
    return Plotly.react(canvas, data, layout, { responsive: true, displayModeBar: false }).then(() => {
      canvas.dataset.drawn = dark.matches ? "dark" : "light";
      if (first) canvas.on("plotly_click", openPoint);
    });
  };

  const drawAllFigures = () => document.querySelectorAll("figure[data-figure]").forEach(drawFigure);
  dark.addEventListener("change", drawAllFigures);
  // A part of the page that was replaced brings figures that nobody has drawn yet.
  document.addEventListener("htmx:load", ({ target }) => {
    if (target !== document.body) target.querySelectorAll("figure[data-figure]").forEach(drawFigure);
  });
  drawAllFigures();
})();
