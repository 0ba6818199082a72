// Boards as SVG: Go, squares, tic-tac-toe, connect four, Hex, chess, Hironaka's points.
import { h, s } from "dom.js";

const CELL = 40;
const EDGE = 28;
const STARS = { 9: [2, 4, 6], 13: [3, 6, 9], 19: [3, 9, 15] };
const PIECES = { K: "♚", Q: "♛", R: "♜", B: "♝", N: "♞", P: "♟" };
const NAMES = { K: "king", Q: "queen", R: "rook", B: "bishop", N: "knight", P: "pawn" };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ROW = 1.5 / Math.sqrt(3);

// The position after `ply` moves of a game.
export function positionAt(game, ply) {
  if (game.start.cells === undefined) return ply ? game.moves[ply - 1].position : game.start;
  const cells = [...game.start.cells];
  for (const move of game.moves.slice(0, ply)) {
    for (let at = 0; at < move.set.length; at += 2) cells[move.set[at]] = move.set[at + 1];
  }
  return { ...game.start, cells: cells.join("") };
}

// Options: last (cells of the last move), heat ({cell: share}), labels ({cell: text}), ownership (a number for each
// cell, 1 is player 0's), legal (cells that can be clicked), flip (the second player sits below), chosen (a cell), goals (where it can move), click (a function), label (in words).
export function drawBoard(position, options = {}) {
  if (position.kind === "text") return h("pre", { class: "board-text" }, position.text);
  if (position.kind === "hironaka") return drawPoints(position, options);
  const { width, height, kind } = position;
  const hex = kind === "hexagons";
  const far = hex ? EDGE : 6; // only the upper and the left edge have coordinates
  const w = (hex ? width + (height - 1) / 2 : width) * CELL + EDGE + far;
  const t = (hex ? ((height - 1) * ROW + 2 / Math.sqrt(3)) * CELL : height * CELL) + EDGE + far;
  const centre = (row, column) => (hex
    ? [EDGE + (column + 0.5 + row / 2) * CELL, EDGE + (row * ROW + 1 / Math.sqrt(3)) * CELL]
    : [EDGE + ((options.flip ? width - 1 - column : column) + 0.5) * CELL, EDGE + ((options.flip ? height - 1 - row : row) + 0.5) * CELL]);
  const board = s("svg", { viewBox: `0 0 ${w} ${t}`, class: `board board-${kind}`, role: options.click ? "group" : "img", "aria-label": options.label || inWords(position) });
  board.append(...ground(position, centre, w, t));
  for (let row = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1) {
      board.append(...cell(position, options, row, column, centre));
    }
  }
  coordinates(position, centre, board);
  const targets = [...board.querySelectorAll(".target")];
  const away = (one) => Math.hypot(Number(one.getAttribute("x")) + CELL / 2 - w / 2, Number(one.getAttribute("y")) + CELL / 2 - t / 2);
  const reached = targets.find((one) => Number(one.dataset.cell) === options.chosen) || targets.sort((a, b) => away(a) - away(b))[0];
  if (reached) reached.setAttribute("tabindex", 0); // one stop of the tab key; the arrow keys go on from there
  return board;
}

function ground(position, centre, w, t) {
  const { width, height, kind } = position;
  const found = [];
  if (kind === "hexagons") {
    // The players' sides: the first joins top and bottom, the second left and right.
    const [a, b, c, d] = [centre(0, 0), centre(0, width - 1), centre(height - 1, width - 1), centre(height - 1, 0)];
    const out = CELL * 0.84;
    const side = (p, q, dx, dy, name) => s("line", { x1: p[0] + dx, y1: p[1] + dy, x2: q[0] + dx, y2: q[1] + dy, class: `side ${name}` });
    found.push(side(a, b, 0, -out * 0.8, "p0"), side(d, c, 0, out * 0.8, "p0"), side(a, d, -out * 0.72, out * 0.3, "p1"), side(b, c, out * 0.72, -out * 0.3, "p1"));
    return found;
  }
  found.push(s("rect", { x: EDGE, y: EDGE, width: width * CELL, height: height * CELL, rx: kind === "holes" ? 12 : 3, class: "ground" }));
  if (kind === "points") {
    for (let row = 0; row < height; row += 1) found.push(s("line", { x1: centre(row, 0)[0], y1: centre(row, 0)[1], x2: centre(row, width - 1)[0], y2: centre(row, 0)[1], class: "ink" }));
    for (let column = 0; column < width; column += 1) found.push(s("line", { x1: centre(0, column)[0], y1: centre(0, 0)[1], x2: centre(0, column)[0], y2: centre(height - 1, 0)[1], class: "ink" }));
    const stars = width === height ? STARS[width] || [] : [];
    for (const row of stars) for (const column of stars) {
      if (width > 9 || (row === 4) === (column === 4)) found.push(s("circle", { cx: centre(row, column)[0], cy: centre(row, column)[1], r: 3, class: "star" }));
    }
  } else if (kind === "squares" || kind === "marks") {
    for (let line = 1; line < width; line += 1) found.push(s("line", { x1: EDGE + line * CELL, x2: EDGE + line * CELL, y1: EDGE, y2: EDGE + height * CELL, class: "ink" }));
    for (let line = 1; line < height; line += 1) found.push(s("line", { y1: EDGE + line * CELL, y2: EDGE + line * CELL, x1: EDGE, x2: EDGE + width * CELL, class: "ink" }));
  }
  return found;
}

function hexagon(x, y, size) {
  const corners = [0, 1, 2, 3, 4, 5].map((k) => (Math.PI / 180) * (60 * k - 90));
  return corners.map((angle) => `${(x + size * Math.cos(angle)).toFixed(1)},${(y + size * Math.sin(angle)).toFixed(1)}`).join(" ");
}

function cell(position, options, row, column, centre) {
  const { kind, width } = position;
  const at = row * width + column;
  const sign = position.cells[at];
  const [x, y] = centre(row, column);
  const found = [];
  const size = CELL / Math.sqrt(3);
  if (kind === "chess") found.push(s("rect", { x: x - CELL / 2, y: y - CELL / 2, width: CELL, height: CELL, class: (row + column) % 2 ? "dark" : "light" }));
  if (kind === "hexagons") found.push(s("polygon", { points: hexagon(x, y, size), class: sign === "x" ? "hex p0" : sign === "o" ? "hex p1" : "hex" }));
  if (kind === "holes") found.push(s("circle", { cx: x, cy: y, r: 0.42 * CELL, class: sign === "x" ? "disc p0" : sign === "o" ? "disc p1" : "hole" }));
  const owner = options.ownership ? options.ownership[at] : 0;
  const heat = options.heat ? options.heat[at] || 0 : 0;
  const [last, chosen] = [(options.last || []).includes(at), options.chosen === at];
  if (kind === "chess" && (last || chosen)) found.push(s("rect", { x: x - CELL / 2, y: y - CELL / 2, width: CELL, height: CELL, class: chosen ? "chosen" : "moved" }));
  if (owner && Math.abs(owner) > 0.05) found.push(s("rect", { x: x - CELL * 0.5, y: y - CELL * 0.5, width: CELL, height: CELL, class: owner > 0 ? "own p0" : "own p1", "fill-opacity": Math.min(0.55, 0.55 * Math.abs(owner)) }));
  if (heat > 0.004) {
    found.push(kind === "chess"
      ? s("rect", { x: x - CELL / 2, y: y - CELL / 2, width: CELL, height: CELL, class: "heat", "fill-opacity": 0.05 + 0.8 * Math.sqrt(heat) })
      : s("circle", { cx: x, cy: y, r: CELL * 0.4, class: "heat", "fill-opacity": 0.05 + 0.85 * Math.sqrt(heat) }));
  }
  if (sign !== "." && (kind === "points" || kind === "squares")) found.push(s("circle", { cx: x, cy: y, r: 0.46 * CELL, class: sign === "x" ? "stone p0" : "stone p1" }));
  if (kind === "marks" && sign === "x") found.push(s("path", { d: `M${x - 11} ${y - 11}L${x + 11} ${y + 11}M${x + 11} ${y - 11}L${x - 11} ${y + 11}`, class: "cross p0" }));
  if (kind === "marks" && sign === "o") found.push(s("circle", { cx: x, cy: y, r: 12, class: "ring p1" }));
  if (kind === "chess" && sign !== ".") {
    const white = sign === sign.toUpperCase();
    found.push(s("text", { x, y: y + 0.31 * CELL, "text-anchor": "middle", "font-size": 0.86 * CELL, class: white ? "piece white" : "piece black" }, `${PIECES[sign.toUpperCase()]}\uFE0E`));
  }
  if (options.goals && options.goals.has(at)) found.push(s("circle", { cx: x, cy: y, r: 7, class: "goal-dot" }));
  if (last && kind !== "chess") found.push(s("circle", { cx: x, cy: y, r: kind === "marks" ? 3 : 6, class: "last" }));
  if (options.labels && options.labels[at]) found.push(s("text", { x, y: y + 4, "text-anchor": "middle", "font-size": 11, class: sign === "." ? "percent" : "percent on" }, options.labels[at]));
  if (options.click && (!options.legal || options.legal.has(at))) {
    const name = [`${position.columns[column]}${position.rows[row]}`, kind === "chess" && sign !== "." ? NAMES[sign.toUpperCase()] : "", last ? "last move" : ""].filter(Boolean).join(", ");
    found.push(s("rect", { x: x - CELL / 2, y: y - CELL / 2, width: CELL, height: CELL, class: "target", tabindex: -1, role: "button", "aria-label": name, "data-cell": at,
      onclick: () => options.click(at),
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") options.click(at);
        else if (!(event.key in ARROWS)) return;
        else walk(event.currentTarget, ...ARROWS[event.key]);
        event.preventDefault();
        event.stopPropagation();
      } }));
  }
  return found;
}

// Move the focus to the nearest cell in a direction that can be clicked.
function walk(from, dx, dy) {
  const place = (one) => [Number(one.getAttribute("x")), Number(one.getAttribute("y"))];
  const [x, y] = place(from);
  let [best, nearest] = [null, Infinity];
  for (const one of from.ownerSVGElement.querySelectorAll(".target")) {
    const [across, down] = [place(one)[0] - x, place(one)[1] - y];
    const [ahead, aside] = [across * dx + down * dy, Math.abs(across * dy) + Math.abs(down * dx)];
    if (ahead > 1 && ahead + 3 * aside < nearest) [best, nearest] = [one, ahead + 3 * aside];
  }
  if (!best) return;
  from.setAttribute("tabindex", -1);
  best.setAttribute("tabindex", 0);
  best.focus();
}

function coordinates(position, centre, board) {
  const { width, height, kind } = position;
  for (let column = 0; column < width; column += 1) {
    const [x, y] = [centre(0, column)[0], Math.min(centre(0, 0)[1], centre(height - 1, 0)[1])];
    board.append(s("text", { x: kind === "hexagons" ? x - 6 : x, y: y - CELL * 0.5 - (kind === "hexagons" ? 19 : 9), "text-anchor": "middle", class: "coordinate" }, position.columns[column]));
  }
  if (kind === "holes") return;
  for (let row = 0; row < height; row += 1) {
    const [x, y] = [Math.min(centre(row, 0)[0], centre(row, width - 1)[0]), centre(row, 0)[1]];
    board.append(s("text", { x: x - CELL * 0.5 - (kind === "hexagons" ? 17 : 8), y: y + (kind === "hexagons" ? 0 : 4), "text-anchor": "end", class: "coordinate" }, position.rows[row]));
  }
}

// Hironaka's points: the first two coordinates as a picture, all of them as a table.
function drawPoints(position, options) {
  const points = position.points;
  const dimension = points.length ? points[0].length : 0;
  const [w, t, left] = [320, 280, 34];
  const most = Math.max(1, ...points.flat());
  const x = (value) => left + (value / most) * (w - left - 14);
  const y = (value) => t - 30 - (value / most) * (t - 44);
  const radius = (point) => (dimension > 2 ? 4 + 7 * (point[2] / most) : 6);
  const picture = s("svg", { viewBox: `0 0 ${w} ${t}`, class: "board board-hironaka", role: "img", "aria-label": options.label || `${points.length} points: ${points.map((point) => `(${point.join(", ")})`).join(" ")}` },
    [0, 0.25, 0.5, 0.75, 1].map((share) => [
      s("line", { x1: x(0), x2: x(most), y1: y(share * most), y2: y(share * most), class: "gridline" }),
      s("line", { y1: y(0), y2: y(most), x1: x(share * most), x2: x(share * most), class: "gridline" })]),
    // The region above the points, whose corners the players move.
    points.map((point) => s("rect", { x: x(point[0]), y: y(most), width: Math.max(x(most) - x(point[0]), 0), height: Math.max(y(point[1]) - y(most), 0), class: "hull" })),
    points.map((point) => s("circle", { cx: x(point[0]), cy: y(point[1] ?? 0), r: radius(point), class: "point" }, s("title", {}, `(${point.join(", ")})`))),
    s("text", { x: x(most / 2), y: y(0) + 16, "text-anchor": "middle", class: "coordinate" }, "coordinate 0"),
    s("text", { x: x(0), y: 10, class: "coordinate" }, dimension > 2 ? "coordinate 1; size: coordinate 2" : "coordinate 1"),
    s("text", { x: x(most), y: y(0) + 16, "text-anchor": "end", class: "coordinate" }, String(most)),
    s("text", { x: x(0) - 4, y: y(most) + 10, "text-anchor": "end", class: "coordinate" }, String(most)));
  const heads = Array.from({ length: dimension }, (_, axis) => h("th", { scope: "col", class: position.chosen.includes(axis) ? "picked" : null }, String(axis)));
  const rows = points.map((point) => h("tr", {}, point.map((value, axis) => h("td", { class: position.chosen.includes(axis) ? "picked" : null }, value.toLocaleString("en")))));
  return h("div", { class: "hironaka" }, picture,
    h("table", {}, h("caption", {}, position.chosen.length ? `The host chose {${position.chosen.join(", ")}}` : points.length > 1 ? "The host chooses coordinates" : "One point is left"), h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)));
}

function inWords(position) {
  const count = (test) => [...position.cells].filter(test).length;
  if (position.kind === "chess") return `chess position ${position.fen || position.cells}`;
  return `board of ${position.width} by ${position.height}, ${count((c) => c === "x")} and ${count((c) => c === "o")} stones`;
}
