// The list of runs, the ladder, the data and the settings.
import { bytes, clock, h, percent, s, short, spanned } from "dom.js";

const STATES = { running: "running", stopped: "stopped", killed: "was killed", new: "not begun" };

export function pill(state) {
  return h("span", { class: `pill ${state}` }, STATES[state] || state);
}

// For those who hear the page: a table's head that the eye does not need.
function unseen(text) {
  return h("span", { class: "unseen" }, text);
}

function minus(elo) {
  return String(Math.round(elo)).replace("-", "−");
}

export function rating(run) {
  return run.rating && run.rating.elo !== null ? `${minus(run.rating.elo)} ± ${Math.round(run.rating.error || 0)}` : "–";
}

export function runTable(runs, chosen, toggle, open) {
  const head = [unseen("shown"), "run", "game", "state", "time", "games", "rows", "steps", "loss", "Elo"];
  return h("div", { class: "card scroll" }, h("table", { class: "runs" },
    h("thead", {}, h("tr", {}, head.map((text, at) => h("th", { scope: "col", class: at > 3 ? "number" : null }, text)))),
    h("tbody", {}, runs.map((run) => h("tr", { "data-run": run.id },
      h("td", {}, h("input", { type: "checkbox", "aria-label": `show ${run.label}`, checked: chosen.has(run.id), onchange: () => toggle(run.id) })),
      h("td", {}, h("button", { type: "button", class: "link", onclick: () => open(run.id) }, run.label), run.about && h("div", { class: "faint" }, run.about)),
      h("td", {}, run.game), h("td", {}, pill(run.state)), h("td", { class: "number" }, clock(run.elapsed)),
      [run.games, run.rows, run.steps, run.loss].map((value) => h("td", { class: "number" }, short(value))), h("td", { class: "number" }, rating(run)))))));
}

// Whether a run learns from data that others write, as a daemon does: it does not see their games.
function elsewhere(run) {
  return !run.data.chunks && run.data.chunks_read !== null;
}

export function summary(run, brief) {
  if (brief) return h("div", { class: "summary brief" }, h("div", { class: "title-row" }, h("h1", {}, run.label), pill(run.state), h("span", { class: "faint" }, run.state === "running" ? run.stage : run.reached)));
  const tile = (name, value, more) => h("div", { class: "tile" }, h("div", { class: "tile-name" }, name), h("div", { class: "tile-value" }, value), more && h("div", { class: "faint" }, more));
  const goal = run.goal;
  return h("div", { class: "summary" },
    h("div", { class: "title-row" }, h("h1", {}, run.label), pill(run.state), h("span", { class: "faint" }, run.state === "running" ? run.stage : run.reached)),
    run.about && h("p", { class: "faint lead" }, run.about),
    goal && h("div", { class: "goal" }, h("progress", { max: 1, value: goal.share, "aria-label": `share of ${goal.words}` }),
      h("span", { class: "faint" }, `${percent(goal.share)} of ${goal.words}${run.state === "running" && goal.left ? `, ${clock(goal.left)} left` : ""}`)),
    h("div", { class: "tiles" }, tile("time", clock(run.elapsed)), tile("games", elsewhere(run) ? "–" : short(run.games)), tile("rows", short(run.rows)), tile("steps", short(run.steps)),
      tile("loss", short(run.loss)), tile("Elo", rating(run), run.ladders.length ? `${run.ladders[0].anchor} is 0` : "")),
    run.problems.length > 0 && h("details", { class: "problems" }, h("summary", {}, `${run.problems.length} problems`), h("ul", {}, run.problems.map((text) => h("li", {}, text)))));
}

export function ladderTab(run, matches) {
  const found = run.ladders.map(ladderCard);
  const all = [...run.matches, ...matches];
  if (all.length) {
    found.push(h("section", { class: "card scroll" }, h("h3", {}, "Matches"), h("p", { class: "about" }, "Played by tengen match, also against outside engines."),
      h("table", {}, h("thead", {}, h("tr", {}, ["A", "B", "wins", "draws", "losses", "score of A", "Elo of A – B"].map((text, at) => h("th", { scope: "col", class: at > 1 ? "number" : null }, text)))),
        h("tbody", {}, all.map((one) => h("tr", {}, h("td", {}, one.a), h("td", {}, one.b), [one.wins, one.draws, one.losses].map((count) => h("td", { class: "number" }, short(count))),
          h("td", { class: "number" }, percent((one.wins + one.draws / 2) / (one.wins + one.draws + one.losses))),
          h("td", { class: "number" }, one.elo === null ? "–" : `${minus(one.elo)} (${one.elo_low === null ? "−∞" : minus(one.elo_low)} to ${one.elo_high === null ? "∞" : minus(one.elo_high)})`)))))));
  }
  return found.length ? found : [h("p", { class: "empty" }, "No match was played yet.")];
}

function ladderCard(ladder) {
  const players = ladder.players;
  const elos = players.filter((one) => one.elo !== null);
  const [low, high] = spanned(elos.map((one) => one.elo), elos.map((one) => one.error));
  const x = (elo) => 4 + (Math.max(0, Math.min(1, (elo - low) / (high - low || 1)))) * 192;
  const bar = (one) => (one.elo === null ? "" : s("svg", { viewBox: "0 0 200 16", class: "elo-bar", "aria-hidden": "true" },
    s("line", { x1: x(one.elo - one.error), x2: x(one.elo + one.error), y1: 8, y2: 8, class: `interval ${one.kind}` }), s("circle", { cx: x(one.elo), cy: 8, r: 4, class: `dot-${one.kind}` })));
  const about = ladder.fitted ? `${ladder.anchor} is 0; intervals hold 95 %.` : "Too many players to rate all of them together: each has the rating that it was given when it was rated.";
  return h("section", { class: "card ladder" }, h("h3", {}, `Ladder: ${ladder.title}`), h("p", { class: "about" }, about),
    h("div", { class: "scroll" }, h("table", { class: "ladder" },
      h("thead", {}, h("tr", {}, [unseen("rank"), "player", "Elo", "±", "games", "score", unseen("interval")].map((text, at) => h("th", { scope: "col", class: at > 1 ? "number" : null }, text)))),
      h("tbody", {}, players.map((one, at) => h("tr", { class: one.kind }, h("td", { class: "number faint" }, at + 1), h("td", {}, one.name),
        h("td", { class: "number" }, one.elo === null ? "–" : minus(one.elo)), h("td", { class: "number faint" }, one.error ? Math.round(one.error) : ""),
        h("td", { class: "number" }, short(one.games)), h("td", { class: "number" }, percent(one.points / one.games)), h("td", {}, bar(one))))))),
    ladder.more_players > 0 && h("p", { class: "faint" }, `and ${ladder.more_players} more`),
    crossTable(ladder));
}

// Who scored how much against whom, for the strongest players.
function crossTable(ladder) {
  const names = ladder.players.slice(0, 16).map((one) => one.name);
  const scores = new Map();
  for (const { a, b, wins, draws, losses } of ladder.matches) {
    scores.set(`${a}\n${b}`, [wins, draws, losses]);
    scores.set(`${b}\n${a}`, [losses, draws, wins]);
  }
  const met = names.filter((name) => names.some((other) => scores.has(`${name}\n${other}`)));
  if (met.length < 2) return null;
  const one = (row, column) => {
    const counts = scores.get(`${row}\n${column}`);
    if (!counts) return h("td", { class: row === column ? "self" : "" });
    const share = (counts[0] + counts[1] / 2) / (counts[0] + counts[1] + counts[2]);
    return h("td", { class: `score s${Math.round(share * 10)}`, title: `${row} against ${column}: +${counts[0]} =${counts[1]} −${counts[2]}` }, percent(share));
  };
  return h("details", { class: "cross", open: met.length <= 10 }, h("summary", {}, "Who beat whom"),
    h("div", { class: "scroll" }, h("table", { class: "cross" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, unseen("player")), met.map((name, at) => h("th", { scope: "col", title: name }, at + 1)))),
      h("tbody", {}, met.map((row, at) => h("tr", {}, h("th", { scope: "row" }, `${at + 1}  ${row}`), met.map((column) => one(row, column))))))));
}

// The parts of the run in a ring, what each does, and what flows between them.
const RING = [["selfplay", "self-play", "rows"], ["shuffle", "shuffle", "samples"], ["train", "training", "weights"], ["export", "export", "candidates"], ["gate", "gate", "networks"]];

export function dataTab(run, machine) {
  const { data } = run;
  const facts = elsewhere(run) ? [["rows", short(run.rows)], ["chunks", short(data.chunks_read)]] : [["rows on disk", short(data.rows)], ["games", short(data.games)], ["chunks", short(data.chunks)]];
  if (data.corrupt) facts.push(["damaged chunks", short(data.corrupt)]);
  const table = run.tables.progress || {};
  const last = (name) => { const values = (table[name] || []).filter((value) => value !== null); return values.length ? values[values.length - 1] : null; };
  if (last("window")) facts.push(["window", `${short(last("window"))} rows`]);
  if (data.shuffle) facts.push(["newest shuffle", `${short(data.shuffle.rows)} rows of rows ${short(data.shuffle.window[0])} to ${short(data.shuffle.window[1])}`], ["held back for validation", short(data.shuffle.validation_rows)]);
  if (data.appetite) facts.push(["the learner could use", `${short(data.appetite)} rows/s`]);
  const { disk } = run;
  const found = [h("section", { class: "card" }, h("h3", {}, "The loop"), h("p", { class: "about" }, "What each part is doing, and what flows between them."), h("div", { class: "scroll" }, ringPicture(run, last))),
    h("section", { class: "card" }, h("h3", {}, "Data"), windowPicture(run, last), h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])))];
  if (run.parts.length > 1) found.push(partsCard(run.parts));
  if (disk) {
    const folders = Object.entries(disk.folders).filter(([, size]) => size > 0).sort((a, b) => b[1] - a[1]);
    found.push(h("section", { class: "card" }, h("h3", {}, "Disk"), h("p", { class: "about" }, `${bytes(disk.used)} used${disk.free === null ? "" : `, ${bytes(disk.free)} free`}`),
      h("table", {}, h("tbody", {}, folders.map(([name, size]) => h("tr", {}, h("th", { scope: "row" }, name || "files"), h("td", { class: "number" }, bytes(size)),
        h("td", { class: "bar-cell" }, meter(size / folders[0][1]))))))));
  }
  if (machine) found.push(machineCard(machine));
  if (run.networks.length) {
    found.push(h("section", { class: "card scroll wide" }, h("h3", {}, "Networks"), h("table", {}, h("thead", {}, h("tr", {}, ["network", "state", "samples", "rows", "Elo"].map((text, at) => h("th", { scope: "col", class: at > 1 ? "number" : null }, text)))),
      h("tbody", {}, run.networks.slice(0, 60).map((one) => h("tr", {}, h("td", {}, one.name), h("td", {}, one.state), h("td", { class: "number" }, short(one.samples)), h("td", { class: "number" }, short(one.rows)),
        h("td", { class: "number" }, one.elo === undefined || one.elo === null ? "–" : `${Math.round(one.elo)} ± ${Math.round(one.error || 0)}`))))),
    run.networks.length + run.more_networks > 60 && h("p", { class: "faint" }, `and ${run.networks.length + run.more_networks - 60} more`)));
  }
  return found;
}

// The processes of a run in parts, or the nodes of a cluster, each with the figures that it reports.
function partsCard(parts) {
  const nodes = parts.some((part) => part.kind === "node");
  const listed = nodes ? parts.filter((part) => part.kind === "node") : parts;
  const figure = (name) => (part) => short(part.figures[name]);
  const columns = {
    [nodes ? "node" : "part"]: (part) => (nodes || [part.kind, "all"].includes(part.name) ? part.name.replace("all", part.kind) : `${part.kind} ${part.name}`),
    machine: (part) => (nodes ? null : part.machine),
    doing: (part) => `${part.waiting ? "waiting: " : ""}${nodes ? part.words.split(", ")[0] : part.words}`,
    for: (part) => (part.alive ? clock(part.seconds) : "has ended"),
    "evaluations/s": figure("evaluations_per_second"), games: figure("games"), rows: figure("rows"), steps: figure("steps"),
    "age of network": (part) => clock(part.figures.network_age), "actors waiting": figure("waiting"), restarts: (part) => (part.restarts || nodes ? short(part.restarts) : "–"),
  };
  const shown = Object.entries(columns).filter(([, text]) => listed.some((part) => ![null, "–"].includes(text(part))));
  const number = (name) => (["for", "part", "node", "machine", "doing"].includes(name) ? null : "number");
  return h("section", { class: "card scroll wide parts" }, h("h3", {}, nodes ? "Nodes" : "Parts"), h("table", {},
    h("thead", {}, h("tr", {}, shown.map(([name]) => h("th", { scope: "col", class: number(name) }, name)))),
    h("tbody", {}, listed.map((part) => h("tr", {}, shown.map(([name, text]) => h("td", { class: number(name) }, text(part))))))));
}

function meter(share) {
  return s("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "meter", "aria-hidden": "true" }, s("rect", { width: 100, height: 8, class: "meter-ground" }), s("rect", { width: Math.max(0, Math.min(100, 100 * share)), height: 8, class: "meter-fill" }));
}

function ringPicture(run, last) {
  const alive = run.parts.filter((part) => part.alive);
  const inOne = alive.some((part) => ["fused", "roles", "sync", "cluster", "daemon"].includes(part.kind)) || !alive.length;
  const nodes = alive.filter((part) => part.kind === "node");
  const pipeline = alive.some((part) => RING.some(([kind]) => kind === part.kind)) || run.data.shuffle || alive.some((part) => part.kind === "sync");
  const driver = alive.find((part) => part.kind !== "node" && !RING.some(([kind]) => kind === part.kind));
  const served = driver && driver.kind === "daemon";
  const stages = pipeline ? RING : [["selfplay", served ? "data from elsewhere" : "self-play", "rows"], ["train", "training", "weights"]];
  const [w, t] = [620, stages.length === 2 ? 230 : 300];
  const place = (at) => {
    const angle = (2 * Math.PI * at) / stages.length - Math.PI / 2;
    return stages.length === 2 ? [at ? 450 : 170, 115] : [w / 2 + 225 * Math.cos(angle), t / 2 + 6 + 108 * Math.sin(angle)];
  };
  const rate = (name) => (last(`${name}_per_second`) ? `${short(last(`${name}_per_second`))} ${name}/s` : "");
  const count = (state) => { const found = run.networks.filter((one) => one.state === state).length; return found ? `${found} ${state}` : ""; };
  const rates = { rows: rate("rows"), samples: rate("samples"), weights: rate("steps"), candidates: count("waiting"), networks: count("accepted") };
  const doing = (kind) => {
    const parts = alive.filter((part) => part.kind === kind);
    if (parts.length) return [parts.length > 1 ? `${parts.length} processes` : "", (parts[0].waiting ? "waiting: " : "") + parts[0].words].filter(Boolean).join(", ");
    if (!driver || !inOne) return "";
    if (nodes.length) return kind === "train" ? driver.words : `${nodes.every((part) => part.waiting) ? "waiting: " : ""}${nodes.length > 1 ? `${nodes.length} nodes, ` : ""}${nodes[0].words.split(", ")[0]}`;
    const words = driver.words.toLowerCase();
    const named = RING.find(([name]) => words.startsWith(name)); // a stage of a run whose parts take turns
    if (named) return kind === named[0] ? driver.words : "";
    const playing = served ? words.startsWith("waiting for data") : /play|game/.test(words) && !/against|train|learn/.test(words);
    if (kind === "selfplay") return playing ? driver.words : "";
    return !playing && kind === "train" ? driver.words : "";
  };
  const arrows = stages.map(([kind, , flow], at) => {
    const [a, b] = [place(at), place((at + 1) % stages.length)];
    const bend = stages.length === 2 ? (at ? 86 : -86) : 0;
    const middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2 + bend];
    // Where the line from p to q leaves the box around p.
    const toward = (p, q, gap) => { const [x, y] = [q[0] - p[0], q[1] - p[1]]; const d = Math.hypot(x, y); const far = Math.min(84 * d / Math.abs(x), 37 * d / Math.abs(y)) + gap; return [p[0] + (x * far) / d, p[1] + (y * far) / d]; };
    const [from, to] = stages.length === 2 ? [[a[0], a[1] + Math.sign(bend) * 39], [b[0], b[1] + Math.sign(bend) * 39]] : [toward(a, b, 2), toward(b, a, 4)];
    return [s("path", { d: bend ? `M${from} Q${middle} ${to}` : `M${from} L${to}`, class: "flow", "marker-end": "url(#arrow)" }),
      rates[flow] && flowText(stages.length === 2 ? [middle[0], bend > 0 ? 206 : 30, 0] : [middle[0], middle[1], Math.abs(middle[0] - w / 2) < 30 ? 0 : Math.sign(middle[0] - w / 2)], rates[flow])];
  });
  const boxes = stages.map(([kind, title], at) => {
    const [x, y] = place(at);
    const words = doing(kind);
    const lines = wrapped(words || (alive.length ? "idle" : "not running"), 25).slice(0, 3);
    return s("g", { class: words && !words.startsWith("waiting") ? "stage busy" : "stage" }, s("rect", { x: x - 84, y: y - 37, width: 168, height: 74, rx: 10 }),
      s("text", { x, y: y - 17, "text-anchor": "middle", class: "stage-title" }, title), lines.map((line, number) => s("text", { x, y: y + 2 + 14 * number, "text-anchor": "middle", class: "stage-words" }, line)), s("title", {}, words));
  });
  return s("svg", { viewBox: stages.length === 2 ? "74 12 472 206" : `0 0 ${w} ${t}`, class: "ring", role: "img", "aria-label": stages.map(([kind, title]) => `${title}: ${doing(kind) || "idle"}`).join("; ") },
    s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, s("path", { d: "M0 0L8 4L0 8z", class: "arrow" }))),
    arrows, boxes);
}

// Beside an arrow: above it, or on the side that is away from the middle of the ring.
function flowText([x, y, side], text) {
  return s("text", { x: x + 12 * side, y: side ? y - 4 : y - 8, "text-anchor": ["end", "middle", "start"][side + 1], class: "flow-text" }, text);
}

function wrapped(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines[lines.length - 1] && (lines[lines.length - 1] + word).length >= width) lines.push("");
    lines[lines.length - 1] = `${lines[lines.length - 1]} ${word.slice(0, width)}`.trim();
  }
  return lines;
}

// All rows of the run as a line, and the part of it that training draws from.
function windowPicture(run, last) {
  const all = Math.max(last("rows") || 0, run.data.rows);
  const range = run.data.shuffle ? run.data.shuffle.window : [all - (last("window") || 0), all];
  if (!all || range[1] <= range[0]) return null;
  const x = (row) => 4 + (row / all) * 592;
  return s("svg", { viewBox: "0 0 600 58", class: "window", role: "img", "aria-label": `training draws from rows ${range[0]} to ${range[1]} of ${all}` },
    s("rect", { x: 4, y: 10, width: 592, height: 18, rx: 4, class: "meter-ground" }), s("rect", { x: x(range[0]), y: 10, width: Math.max(2, x(range[1]) - x(range[0])), height: 18, rx: 4, class: "meter-fill" }),
    s("text", { x: 4, y: 48, class: "coordinate" }, "first row"), s("text", { x: 596, y: 48, "text-anchor": "end", class: "coordinate" }, `row ${short(all)}`),
    s("text", { x: Math.min(450, Math.max(130, (x(range[0]) + x(range[1])) / 2)), y: 48, "text-anchor": "middle", class: "coordinate" }, `window: ${short(range[1] - range[0])}`));
}

function machineCard(machine) {
  const row = (name, share, words) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "bar-cell" }, meter(share)), h("td", { class: "number" }, words));
  return h("section", { class: "card" }, h("h3", {}, `Machine: ${machine.host}`), h("table", {}, h("tbody", {},
    machine.cpu !== null && row(`processors (${machine.cores})`, machine.cpu, percent(machine.cpu)),
    machine.memory && row("memory", machine.memory[0] / machine.memory[1], `${bytes(machine.memory[0])} of ${bytes(machine.memory[1])}`),
    machine.gpus.map((gpu) => [row(gpu.name, gpu.load, percent(gpu.load)), row("its memory", gpu.used / gpu.memory, `${bytes(gpu.used)} of ${bytes(gpu.memory)}`)]))));
}

export function settingsTab(runs) {
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.settings)))];
  const text = (run, key) => (key in run.settings ? JSON.stringify(run.settings[key]) : "–");
  const differ = keys.filter((key) => runs.some((run) => text(run, key) !== text(runs[0], key)));
  const table = (rows, marked) => h("div", { class: "scroll" }, h("table", { class: "settings" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "setting"), runs.map((run) => h("th", { scope: "col" }, runs.length > 1 && h("span", { class: "dot", "data-colour": run.colour.slice(2) }), run.label)))),
    h("tbody", {}, rows.map((key) => h("tr", {}, h("th", { scope: "row" }, key), runs.map((run) => h("td", { class: marked && text(run, key) !== text(runs[0], key) ? "changed" : "" }, text(run, key))))))));
  const found = [];
  if (runs.length > 1) {
    found.push(h("section", { class: "card wide", "data-differences": differ.length }, h("h3", {}, "What differs"), differ.length ? table(differ, true) : h("p", { class: "about" }, "These runs have the same settings.")));
  }
  const changes = runs.flatMap((run) => run.marks.filter((mark) => mark.kind === "setting").map((mark) => [run, mark]));
  if (changes.length) {
    found.push(h("section", { class: "card wide" }, h("h3", {}, "Changed while the run went on"), h("table", {}, h("tbody", {}, changes.map(([run, mark]) => h("tr", {}, runs.length > 1 && h("td", {}, run.label), h("td", { class: "number" }, clock(mark.elapsed)), h("td", {}, mark.text)))))));
  }
  found.push(h("section", { class: "card wide" }, h("details", { open: runs.length === 1 }, h("summary", {}, h("h3", {}, "All settings")), table(keys, false))));
  return found;
}
