// Charts of one run or of several over each other.
import { clock, colour, h, s, short, spanned, withUnit } from "dom.js";
import { calibrationCard } from "calibration.js";
import { chartKey, chartTouch } from "chart_input.js";
import { drawErrors, drawUnsmoothed } from "chart_layers.js";

export const AXES = { elapsed: "time", games: "games", rows: "rows", samples: "samples", steps: "steps" };
const DASHES = [[], [6, 4], [2, 3], [9, 3, 2, 3], [1, 2]];
const HEIGHT = 216;
const MARK_COLOURS = { start: "--muted", setting: "--mark", accepted: "--good", rejected: "--bad" };

export const view = { x: "elapsed", smooth: 0, marks: true, zoom: null, logs: new Map(), hidden: new Set() };
let shown = [];

export function smoothed(values, amount) {
  if (!amount) return values;
  let mean = null;
  let weight = 0;
  return values.map((value) => {
    if (value === null || value === undefined) return value;
    // An exponential mean without the bias of its beginning.
    mean = mean === null ? (1 - amount) * value : amount * mean + (1 - amount) * value;
    weight = amount * weight + (1 - amount);
    return mean / weight;
  });
}

// [{label, column, colour, dash, xs, ys, errors, unit, run}] of a chart in these runs.
function seriesOf(id, runs) {
  const found = [];
  runs.forEach((run) => {
    const chart = run.charts.find((one) => one.id === id);
    if (!chart) return;
    const table = run.tables[chart.table];
    let xs = table[view.x];
    if (!xs) return;
    chart.series.forEach((series, number) => {
      const several = runs.length > 1;
      const label = several ? [run.label, chart.series.length > 1 ? series.label : ""].filter(Boolean).join(" · ")
        : series.label || chart.title;
      found.push({
        label, unit: chart.unit, run,
        colour: several ? run.colour : `--c${number % 8}`,
        dash: several ? DASHES[number % DASHES.length] : [],
        xs, ys: table[series.column], errors: chart.kind === "ratings" ? table.error : null,
        names: table.name || null,
      });
    });
  });
  return found;
}

function joined(series, log) {
  const tables = series.map((one) => {
    const ys = smoothed(one.ys, one.errors ? 0 : view.smooth);
    const pairs = [];
    one.xs.forEach((x, at) => {
      const y = ys[at];
      if (x !== null && y !== null && y !== undefined && !(log && y <= 0)) pairs.push([x, y]);
    });
    pairs.sort((a, b) => a[0] - b[0]);
    const unique = pairs.filter((pair, at) => at === 0 || pair[0] > pairs[at - 1][0]);
    return [unique.map((pair) => pair[0]), unique.map((pair) => pair[1])];
  });
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

function xText(x) {
  return view.x === "elapsed" ? clock(x) : short(Math.round(x));
}

function timeSteps() {
  return view.x === "elapsed"
    ? [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 1209600, 2419200, 4838400, 9676800, 38707200, 154828800]
    : undefined;
}

class ChartCard {
  constructor(id, runs) {
    this.id = id;
    this.plot = null;
    this.host = h("div", { class: "plot", tabindex: 0, role: "group", onkeydown: (event) => chartKey(this.plot, event, view, zoomTo), onblur: () => this.plot && this.plot.setCursor({ left: -10, top: -10 }) });
    this.tip = h("div", { class: "tip", hidden: true, "aria-live": "polite" });
    this.legend = h("div", { class: "legend" });
    this.numbers = h("div", { class: "numbers", hidden: true });
    const spec = this.spec(runs);
    this.log = view.logs.has(id) ? view.logs.get(id) : spec.log;
    this.logButton = h("button", { type: "button", class: "small", title: "Logarithmic scale", onclick: () => this.toggleLog() }, "log");
    const table = h("button", { type: "button", class: "small", "aria-expanded": "false", title: "The numbers as a table",
      onclick: () => this.toggleNumbers(table) }, "table");
    const wide = h("button", { type: "button", class: "small", title: "Wider", onclick: () => {
      this.element.classList.toggle("wide");
      this.draw(this.runs, true);
    } }, "⤢");
    this.element = h("section", { class: "card chart", "data-chart": id },
      h("div", { class: "chart-head" }, h("h3", {}, spec.title), h("span", { class: "tools" }, this.logButton, table, wide)),
      spec.about && h("p", { class: "about" }, spec.about),
      h("div", { class: "plot-box" }, this.host, this.tip), this.legend, this.numbers);
  }

  spec(runs) {
    return runs.map((run) => run.charts.find((one) => one.id === this.id)).find(Boolean);
  }

  toggleLog() {
    this.log = !this.log;
    view.logs.set(this.id, this.log);
    this.draw(this.runs, true);
  }

  toggleNumbers(button) {
    this.numbers.hidden = !this.numbers.hidden;
    button.setAttribute("aria-expanded", String(!this.numbers.hidden));
    this.fillNumbers();
  }

  key() {
    return [view.x, this.log, this.series.map((one) => one.label + one.colour).join("|")].join("~");
  }

  draw(runs, anew = false) {
    this.runs = runs;
    this.series = seriesOf(this.id, runs);
    this.logButton.setAttribute("aria-pressed", String(this.log));
    this.data = this.series.length ? joined(this.series, this.log) : [[]];
    this.element.hidden = !this.data[0].length;
    if (this.element.hidden) return;
    if (this.plot && !anew && this.made === this.key()) {
      this.plot.setData(this.data, false);
      this.rescale();
    } else {
      this.build();
    }
    this.describe();
    if (!this.numbers.hidden) this.fillNumbers();
  }

  build() {
    this.made = this.key();
    if (this.plot) this.plot.destroy();
    const ink = colour("--muted");
    const axis = { stroke: ink, grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const unit = this.series[0].unit;
    const few = (one) => one.ys.filter((y) => y !== null).length <= (one.errors ? 150 : 40);
    this.plot = new uPlot({
      width: Math.max(this.host.clientWidth, 200), height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: true, y: false }, sync: { key: "tengen", setSeries: false }, points: { size: 6 } },
      scales: { x: { time: false }, y: { distr: this.log ? 3 : 1, range: this.log ? undefined : (u, low, high) => this.range(low, high) } },
      axes: [
        { ...axis, values: (u, ticks) => ticks.map((x) => xText(x).replace(/ 0:00:00$/, "")), incrs: timeSteps(), space: 70, size: 32, gap: 9 },
        { ...axis, size: 56, gap: 4, grid: { ...axis.grid, filter: this.log ? roundSteps : (u, splits) => splits }, filter: this.log ? roundSteps : (u, splits) => splits, values: (u, ticks) => ticks.map((y) => (y === null ? "" : this.tick(y, unit, u.scales.y))) },
      ],
      series: [{}, ...this.series.map((one) => ({
        label: one.label, stroke: colour(one.colour), width: 1.75, dash: one.dash, spanGaps: true,
        show: !view.hidden.has(`${this.id}/${one.label}`),
        points: { show: few(one), size: one.errors ? 6 : 4, fill: colour(one.colour) },
      }))],
      hooks: {
        drawClear: [(u) => this.drawReferences(u), (u) => view.smooth && drawUnsmoothed(u, this.series, this.log)],
        draw: [(u) => drawErrors(u, this.series), (u) => this.drawMarks(u)],
        setCursor: [(u) => this.hover(u)],
        setSelect: [(u) => { if (u.select.width > 3) zoomTo(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false); }],
      },
    }, this.data, this.host);
    this.plot.over.addEventListener("dblclick", () => zoomTo(null));
    chartTouch(this.plot, zoomTo);
    this.host.setAttribute("aria-label", `${this.spec(this.runs).title}: arrow keys read the values`);
    const canvas = this.plot.root.querySelector("canvas");
    canvas.setAttribute("role", "img");
    this.canvas = canvas;
    this.legend.replaceChildren(...this.series.map((one, at) => this.legendEntry(one, at)));
    this.legend.hidden = this.series.length === 1 && this.runs.length === 1;
    this.rescale();
  }

  // A number at an axis, with as many digits as tell it from the next.
  tick(y, unit, { min, max }) {
    return unit === "%" && max - min < 0.06 && !this.log ? `${(100 * y).toFixed(1)} %` : withUnit(y, unit);
  }

  legendEntry(one, at) {
    const name = `${this.id}/${one.label}`;
    const swatch = s("svg", { width: 18, height: 8, "aria-hidden": "true" },
      s("line", { x1: 0, x2: 18, y1: 4, y2: 4, stroke: `var(${one.colour})`, "stroke-width": 2.5, "stroke-dasharray": one.dash.join(" ") || null }));
    const button = h("button", { type: "button", "aria-pressed": String(!view.hidden.has(name)), onclick: () => {
      const off = !view.hidden.has(name);
      if (off) view.hidden.add(name); else view.hidden.delete(name);
      button.setAttribute("aria-pressed", String(!off));
      this.plot.setSeries(at + 1, { show: !off });
    } }, swatch, one.label);
    return button;
  }

  range(low, high) {
    if (low === null || high === null) return [0, 1];
    if (this.series.some((one) => one.errors)) {
      const known = this.series.flatMap((one) => one.ys.map((y, at) => [y, one.errors[at]])).filter(([y]) => y !== null);
      const elos = spanned(known.map(([y]) => y), known.map(([, error]) => error));
      const references = this.runs.flatMap((run) => run.references.map((one) => one.elo));
      [low, high] = [Math.min(...elos, ...references), Math.max(...elos, ...references)];
    } else if (low >= 0 && low < 0.35 * high) low = 0;
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    if (this.series[0].unit === "%") return [low === 0 ? 0 : Math.max(0, low - room), Math.min(high + room, Math.max(1.01, high))];
    return [low === 0 ? 0 : low - room, high + room];
  }

  rescale() {
    const xs = this.data[0];
    const zoom = view.zoom;
    // All charts end where the runs do, also those whose last values are not known.
    const ends = this.runs.flatMap((run) => ((run.tables.progress || {})[view.x] || []).slice(-1));
    let [low, high] = zoom || [Math.min(xs[0], 0), Math.max(xs[xs.length - 1], ...ends)];
    if (high <= low) high = low + 1;
    if (!zoom) high += 0.012 * (high - low); // room for the last point and its bar
    this.plot.setScale("x", { min: low, max: high });
  }

  drawReferences(u) {
    if (!this.series.some((one) => one.errors) || !this.runs.length) return;
    const { ctx } = u;
    ctx.save();
    ctx.strokeStyle = colour("--grid-strong");
    ctx.fillStyle = colour("--muted");
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
    let [above, end] = [Infinity, 0]; // of the last name: one that is too near to it stands beside it
    for (const { name, elo } of this.runs[0].references.slice(0, 8).sort((a, b) => a.elo - b.elo)) {
      const y = Math.round(u.valToPos(elo, "y", true));
      end = above - y < 13 * devicePixelRatio ? end + 10 * devicePixelRatio : 0;
      above = y;
      ctx.beginPath();
      ctx.moveTo(u.bbox.left, y);
      ctx.lineTo(u.bbox.left + u.bbox.width, y);
      ctx.stroke();
      ctx.textAlign = "left"; // the newest networks are on the right
      ctx.fillText(name.slice(0, 24), u.bbox.left + 4 * devicePixelRatio + end, y - 4 * devicePixelRatio);
      end += ctx.measureText(name.slice(0, 24)).width;
    }
    ctx.restore();
  }

  // Marks have times, which another x must be read off the run's table for.
  marksAt() {
    if (!view.marks) return [];
    return this.runs.flatMap((run) => run.marks.map((mark) => ({ ...mark, x: view.x === "elapsed" ? mark.elapsed : atTime(run, mark.elapsed) })))
      .filter((mark) => mark.x !== null);
  }

  drawMarks(u) {
    const { ctx } = u;
    ctx.save();
    for (const mark of this.marksAt()) {
      const x = u.valToPos(mark.x, "x", true);
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
      const small = mark.kind === "accepted" || mark.kind === "rejected";
      ctx.strokeStyle = colour(MARK_COLOURS[mark.kind] || "--muted");
      ctx.globalAlpha = small ? 0.9 : 0.7;
      ctx.lineWidth = (small ? 2 : 1) * devicePixelRatio;
      ctx.setLineDash(small ? [] : [3 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top + u.bbox.height);
      ctx.lineTo(x, small ? u.bbox.top + u.bbox.height - 7 * devicePixelRatio : u.bbox.top);
      ctx.stroke();
    }
    ctx.restore();
  }

  hover(u) {
    const { left, idx } = u.cursor;
    if (left === undefined || left < 0 || idx === null || idx === undefined) {
      this.tip.hidden = true;
      return;
    }
    const x = u.posToVal(left, "x");
    const lines = [];
    this.series.forEach((one, at) => {
      if (!u.series[at + 1].show) return;
      const ys = u.data[at + 1];
      let near = idx;
      if (ys[near] === null || ys[near] === undefined) {
        near = nearest(u.data[0], ys, idx);
        if (near === null) return;
      }
      const place = one.errors ? one.xs.indexOf(u.data[0][near]) : -1;
      const error = place >= 0 && one.errors[place] ? ` ± ${short(one.errors[place])}` : "";
      lines.push(h("div", {}, h("span", { class: "dot", "data-colour": one.colour.slice(2) }), ` ${one.label} `,
        h("b", {}, withUnit(ys[near], one.unit) + error)));
      if (place >= 0 && one.names) lines.push(h("div", { class: "faint" }, one.names[place]));
    });
    const marks = this.marksAt().filter((mark) => Math.abs(u.valToPos(mark.x, "x") - left) < 5).slice(0, 4);
    lines.push(...marks.map((mark) => h("div", { class: `mark-${mark.kind}` }, mark.text)));
    this.tip.replaceChildren(h("div", { class: "faint" }, xText(u.data[0][idx] ?? x)), ...lines);
    this.tip.hidden = !lines.length;
    const width = this.tip.offsetWidth;
    const across = u.over.offsetLeft + left;
    this.tip.style.left = `${Math.max(0, across + width + 16 > this.host.clientWidth ? across - width - 12 : across + 12)}px`;
  }

  describe() {
    const words = this.series.slice(0, 6).map((one) => {
      const ys = one.ys.filter((y) => y !== null && y !== undefined);
      return ys.length ? `${one.label} from ${withUnit(ys[0], one.unit)} to ${withUnit(ys[ys.length - 1], one.unit)}` : "";
    }).filter(Boolean);
    this.canvas.setAttribute("aria-label", `${this.spec(this.runs).title}: ${words.join("; ")}`);
  }

  fillNumbers() {
    const xs = this.data[0];
    const step = Math.max(1, Math.ceil(xs.length / 14));
    const rows = xs.map((x, at) => at).filter((at) => at % step === 0 || at === xs.length - 1);
    this.numbers.replaceChildren(h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, AXES[view.x]), this.series.map((one) => h("th", { scope: "col" }, one.label)))),
      h("tbody", {}, rows.map((at) => h("tr", {}, h("td", {}, xText(xs[at])),
        this.series.map((one, number) => h("td", {}, withUnit(this.data[number + 1][at], one.unit))))))));
  }
}

// Of the many lines of a logarithmic scale, those at 1, 2 and 5, or 1 alone if there are many decades.
function roundSteps(u, splits) {
  const many = splits[splits.length - 1] / splits[0] > 200;
  return splits.map((value) => ((many ? ["1"] : ["1", "2", "5"]).includes(value.toExponential().split("e")[0]) ? value : null));
}

function nearest(xs, ys, idx) {
  for (let away = 1; away < ys.length; away += 1) {
    for (const at of [idx - away, idx + away]) {
      if (at >= 0 && at < ys.length && ys[at] !== null && ys[at] !== undefined) return at;
    }
  }
  return null;
}

function atTime(run, elapsed) {
  const table = run.tables.progress;
  if (!table || !table[view.x]) return null;
  const at = table.elapsed.findIndex((x) => x >= elapsed);
  return table[view.x][at < 0 ? table.elapsed.length - 1 : at] ?? null;
}

export function zoomTo(low, high) {
  view.zoom = low === null ? null : [low, high];
  shown.forEach((card) => card.plot && !card.element.hidden && card.rescale());
  document.dispatchEvent(new CustomEvent("zoomed"));
}

// Draw the charts of these runs into `host`, keeping those that are there.
export function drawCharts(host, runs, anew = false) {
  const all = runs.flatMap((run) => run.charts).sort((a, b) => a.order - b.order);
  const ids = [...new Set(all.map((chart) => chart.id))];
  const kept = new Map(anew ? [] : shown.map((card) => [card.id, card]));
  if (anew) shown.forEach((card) => card.plot && card.plot.destroy());
  shown = ids.map((id) => kept.get(id) || new ChartCard(id, runs));
  const wanted = shown.map((card) => card.element);
  const reliability = calibrationCard(runs);
  if (reliability) {
    const at = Math.max(ids.indexOf("value_error") + 1, 1);
    wanted.splice(at, 0, reliability);
  }
  if (wanted.length !== host.children.length || wanted.some((element, at) => host.children[at] !== element)) host.replaceChildren(...wanted);
  shown.forEach((card) => card.draw(runs));
}

export function resizeCharts() {
  shown.forEach((card) => card.plot && card.plot.setSize({ width: Math.max(card.host.clientWidth, 200), height: HEIGHT }));
}
