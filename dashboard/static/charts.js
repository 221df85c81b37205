// Draws the figures of a page. The figures are data in the page; their colours are names of CSS custom
// properties, so that light and dark have one figure, and a change of scheme draws it again.
"use strict";

(() => {
  const VARIABLE = /^var\((--[\w-]+)\)$/;
  const coarse = matchMedia("(pointer: coarse)");
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Once what the page has by itself is painted, charts drawn by the site among it. A page that nobody looks at
  // paints nothing.
  const afterPaint = (then) => {
    if (document.hidden) then();
    else requestAnimationFrame(() => setTimeout(then));
  };
  const load = (tag, attributes) => new Promise((resolve) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.addEventListener("load", resolve);
    document.head.append(element);
  });
  const addressOf = (name) => document.querySelector(`meta[name="${name}"]`).content;
  const plotlyLoaded = new Promise(afterPaint).then(() => Promise.all([
    // By this name and class Plotly knows that it needs no styles of its own.
    load("link", { rel: "stylesheet", href: addressOf("plotly-styles"), id: "plotly.js-style-global", className: "no-inline-styles" }),
    load("script", { src: addressOf("plotly") }),
    // Of the page, for charts that are drawn.
    ...[...document.querySelectorAll('meta[name="chart-script"]')].map(({ content }) => load("script", { src: content })),
  ]));

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

  // Labels of markers stand above the drawing, where they cover no value: right of their line, left of it at the
  // chart's end, and in a higher lane where they would overlap another. Where every lane is taken a label is left
  // out: the list beside the chart has all of them.
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
      const lane = x < 0 || x > plot ? undefined : LANES.find((candidate) => ends[candidate] <= left);
      label.xanchor = atEdge ? "right" : "left";
      label.visible = lane !== undefined;
      if (!label.visible) continue;
      label.yshift = LANE_HEIGHT * lane;
      ends[lane] = left + size;
    }
    const lanes = ends.filter((end) => end > -Infinity).length;
    layout.margin = { ...layout.margin, t: 8 + LANE_HEIGHT * Math.max(1, lanes) };
  };

  // What Plotly takes for an array: one, or a typed one in base64.
  const TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i2: Int16Array, i1: Int8Array, u4: Uint32Array, u2: Uint16Array, u1: Uint8Array };
  const readNumbers = (array) => {
    if (!array.bdata) return [...array];
    return [...new TYPES[array.dtype](Uint8Array.from(atob(array.bdata), (letter) => letter.charCodeAt(0)).buffer)];
  };

  // The label of a change stands over (or under) its first point, and further away where it would cover another
  // one: on a phone three have room beside each other. Where no height is free it is left out: the list beside
  // the chart has all of them. If there is room it covers no cross of a tainted run either.
  const LABEL_HEIGHT = 21;
  const HEIGHTS = [0, 1, 2, 3, 4];
  const BELOW_PLOT = 58;
  const CROSS = 5;
  const placeChangeLabels = (layout, width, tainted) => {
    const labels = (layout.annotations || []).filter((annotation) => annotation.arrowhead !== undefined);
    if (!labels.length || (labels.length < 2 && !tainted)) return;
    const [first, last] = layout.xaxis.range;
    const [low, high] = layout.yaxis.range;
    const plot = { width: width - 90, height: layout.height - layout.margin.t - BELOW_PLOT };
    const taken = [];
    const heights = tainted ? readNumbers(tainted.y) : [];
    const crosses = heights.map((y, index) => ({ y: ((high - y) / (high - low)) * plot.height, index }));
    const places = tainted ? readNumbers(tainted.x).map((x) => ((x - first) / (last - first)) * plot.width) : [];
    // The site names those first that have to be seen.
    for (const label of labels) {
      const x = ((label.x - first) / (last - first)) * plot.width;
      const size = LETTER_WIDTH * label.text.length + 8;
      const left = x - size * ({ left: 0, right: 1 }[label.xanchor] ?? 0.5);
      const away = Math.sign(label.ay);
      const topAt = (height) => ((high - label.y) / (high - low)) * plot.height + label.ay + away * LABEL_HEIGHT * height - LABEL_HEIGHT / 2;
      const isFree = (height) => {
        const top = topAt(height);
        // Near its point it may leave the drawing, as a collapse to nearly nothing does: there is a margin.
        const isInside = height === 0 || (top >= 0 && top + LABEL_HEIGHT <= plot.height);
        return isInside && taken.every((box) => left >= box.left + box.size || box.left >= left + size || Math.abs(top - box.top) >= LABEL_HEIGHT);
      };
      const coversNone = (height) => {
        const top = topAt(height);
        return crosses.every(({ y, index }) => Math.abs(places[index] - left - size / 2) >= size / 2 + CROSS || y <= top - CROSS || y >= top + LABEL_HEIGHT + CROSS);
      };
      const height = HEIGHTS.find((each) => isFree(each) && coversNone(each)) ?? HEIGHTS.find(isFree);
      label.visible = height !== undefined;
      if (!label.visible) continue;
      taken.push({ left, size, top: topAt(height) });
      label.ay += away * LABEL_HEIGHT * height;
    }
  };

  const openAddress = (target) => {
    if (typeof target === "string" && target.startsWith("/") && !target.startsWith("//")) location.assign(target);
  };

  // A finger has no other way to read a point than to touch it: its text is shown below, with a link.
  const openPoint = (figure) => (event) => {
    const point = event.points && event.points[0];
    if (!point) return;
    if (figure.dataset.pointer === "mouse") openAddress(point.customdata);
    else figure.dispatchEvent(new CustomEvent("chart:chosen", { detail: point }));
  };

  // What a figure shows now, with the names of its colours: another scheme draws the same part again.
  const shown = new WeakMap();
  const revisions = new WeakMap();
  const drawData = async (figure, json) => {
    if (shown.get(figure) !== json) revisions.set(figure, (revisions.get(figure) ?? 0) + 1);
    shown.set(figure, json);
    await plotlyLoaded;
    if (shown.get(figure) !== json) return;
    const canvas = figure.querySelector(".canvas");
    const { data, layout } = resolveColours(json, getComputedStyle(document.documentElement));
    layout.font = { ...layout.font, family: getComputedStyle(document.body).fontFamily };
    layout.autosize = true;
    // What somebody zoomed into stays when the same is drawn again.
    layout.uirevision = revisions.get(figure);
    thinTickLabels(layout.xaxis, canvas.clientWidth);
    placeMarkerLabels(layout, canvas.clientWidth);
    placeChangeLabels(layout, canvas.clientWidth, data.find(({ name }) => name === "tainted"));
    // A finger that drags over a chart wants to scroll the page.
    if (coarse.matches) layout.dragmode = false;
    const first = !canvas.dataset.drawn;
    if (first) canvas.replaceChildren();
    // In a box without a height Plotly would draw a flat chart once the window gets another width.
    canvas.style.height = layout.height ? `${layout.height}px` : "";
    const config = { responsive: true, displayModeBar: false, doubleClick: figure.dataset.part ? false : "reset+autosize" };
    await Plotly.react(canvas, data, layout, config);
    canvas.dataset.drawn = dark.matches ? "dark" : "light";
    if (first) {
      canvas.addEventListener("pointerdown", (event) => { figure.dataset.pointer = event.pointerType; }, true);
      canvas.on("plotly_click", openPoint(figure));
      canvas.on("plotly_clickannotation", (event) => openAddress(event.annotation.name));
    }
    figure.dispatchEvent(new CustomEvent("chart:drawn"));
  };

  const drawFigure = (figure) => {
    const source = document.getElementById(figure.dataset.figure);
    return drawData(figure, shown.get(figure) || JSON.parse(source.textContent));
  };
  window.pacelineCharts = { drawData, openAddress };

  const drawAllFigures = () => document.querySelectorAll("figure[data-figure]").forEach(drawFigure);
  dark.addEventListener("change", drawAllFigures);
  // Paper is light: the figures are drawn with the colours that the style sheet gives a printed page.
  const showOnPaper = (printed) => {
    document.documentElement.classList.toggle("printed", printed);
    if (dark.matches) drawAllFigures();
  };
  addEventListener("beforeprint", () => showOnPaper(true));
  addEventListener("afterprint", () => showOnPaper(false));
  // Another width has room for other labels. On a phone scrolling changes the height alone.
  let width = innerWidth;
  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => {
      if (innerWidth !== width) drawAllFigures();
      width = innerWidth;
    }, 150);
  });
  // A part of the page that was replaced brings figures that nobody has drawn yet.
  document.addEventListener("htmx:load", ({ target }) => {
    if (target !== document.body) target.querySelectorAll("figure[data-figure]").forEach(drawFigure);
  });
  drawAllFigures();
})();
