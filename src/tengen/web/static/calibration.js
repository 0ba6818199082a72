// The reliability diagram: predicted against actual results.
import { h, s } from "dom.js";

// How often positions were won that searches gave a chance, against that chance.
export function calibrationCard(runs) {
  const lines = runs.flatMap((run) => Object.entries(run.calibration).map(([name, bins]) => ({ run, name, bins })))
    .filter((line) => runs.length === 1 || line.name === "recent");
  if (!lines.length) return null;
  const [width, height, left, bottom] = [360, 250, 44, 34];
  const x = (share) => left + share * (width - left - 12);
  const y = (share) => height - bottom - share * (height - bottom - 10);
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const most = Math.max(...lines.flatMap((line) => line.bins.map((bin) => bin.count)));
  const words = lines[lines.length - 1].bins.map((bin) => `${Math.round(100 * bin.predicted)} %: ${Math.round(100 * bin.actual)} %`);
  const picture = s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "reliability",
    "aria-label": `Calibration, predicted and actual points: ${words.join(", ")}` },
  ticks.map((tick) => [
    s("line", { x1: x(tick), x2: x(tick), y1: y(0), y2: y(1), class: "gridline" }),
    s("line", { x1: x(0), x2: x(1), y1: y(tick), y2: y(tick), class: "gridline" }),
    s("text", { x: x(tick), y: y(0) + 16, "text-anchor": "middle" }, `${100 * tick}`),
    s("text", { x: x(0) - 6, y: y(tick) + 4, "text-anchor": "end" }, `${100 * tick}`)]),
  s("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "diagonal" }),
  s("text", { x: (x(0) + x(1)) / 2, y: height - 3, "text-anchor": "middle" }, "predicted points, %"),
  lines.map((line, at) => {
    const stroke = `var(${runs.length > 1 ? line.run.colour : `--c${at}`})`;
    const points = line.bins.map((bin) => `${x(bin.predicted)},${y(bin.actual)}`).join(" ");
    return s("g", {}, s("polyline", { points, fill: "none", stroke, "stroke-width": 1.75, "stroke-opacity": line.name === "all" && lines.length > 1 ? 0.55 : 1 }),
      line.bins.map((bin) => s("circle", { cx: x(bin.predicted), cy: y(bin.actual), r: 2 + 4 * Math.sqrt(bin.count / most), fill: stroke, "fill-opacity": 0.75 },
        s("title", {}, `predicted ${Math.round(100 * bin.predicted)} %, actual ${(100 * bin.actual).toFixed(1)} %, ${bin.count.toLocaleString("en")} searches`))));
  }));
  const label = (line) => (runs.length > 1 ? line.run.label : line.name === "all" ? "whole run" : "last third");
  return h("section", { class: "card chart", "data-chart": "calibration" },
    h("div", { class: "chart-head" }, h("h3", {}, "Calibration of the value")),
    h("p", { class: "about" }, "What searches in self-play predicted, against the results of the games."),
    picture,
    h("div", { class: "legend" }, lines.map((line, at) => h("span", { class: "entry" },
      h("span", { class: "dot", "data-colour": (runs.length > 1 ? line.run.colour : `--c${at}`).slice(2) }), label(line)))));
}
