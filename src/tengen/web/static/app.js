// The page: which runs are shown, and in which tab.
import { colour, h, pointer, remembered, renew } from "dom.js";
import { AXES, drawCharts, resizeCharts, view, zoomTo } from "charts.js";
import { GamesTab } from "viewer.js";
import { dataTab, ladderTab, runTable, settingsTab, summary } from "tables.js";
import { PlayTab } from "play.js";

const page = JSON.parse(document.getElementById("page").textContent);
const TABS = { runs: "Runs", curves: "Curves", ladder: "Ladder", games: "Games", data: "Data", settings: "Settings", play: "Play & analyse" };
const COLOURS = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];
const REFRESH = 4000; // milliseconds between two readings of a run

// Where the page has its data from: what it contains, or the server that it came from.
const token = page.token;

async function ask(path, body) {
  const headers = { ...(token ? { "X-Tengen-Token": token } : {}), ...(body ? { "Content-Type": "application/json" } : {}) };
  const answer = await fetch(path, { headers, method: body ? "POST" : "GET", body: body ? JSON.stringify(body) : undefined });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error || answer.statusText);
  return found;
}

// The lines of JSON of an answer, one by one as they come.
async function* lines(path, body, signal) {
  const answer = await fetch(path, { method: "POST", signal, headers: { "X-Tengen-Token": token, "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error((await answer.json()).error);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const found = (rest + value).split("\n");
    rest = found.pop();
    for (const line of found) yield JSON.parse(line);
  }
}

const embedded = {
  run: async (id) => page.runs.find((run) => run.id === id),
  games: async (id, network) => page.runs.find((run) => run.id === id).games_embedded.filter((game) => game.network === network),
  game: async (id, network, key) => page.runs.find((run) => run.id === id).games_embedded.find((game) => game.key === key && game.network === network),
};
const served = {
  run: (id) => ask(`/api/runs/${encodeURIComponent(id)}`),
  games: (id, network) => ask(`/api/runs/${encodeURIComponent(id)}/games?network=${encodeURIComponent(network)}`),
  game: (id, network, key) => ask(`/api/runs/${encodeURIComponent(id)}/game?network=${encodeURIComponent(network)}&key=${encodeURIComponent(key)}`),
  disk: (id) => ask(`/api/runs/${encodeURIComponent(id)}/disk`),
  machine: () => ask("/api/machine"),
  ask,
  stream: lines,
};
const source = page.live ? served : embedded;

const state = { runs: page.runs, chosen: new Set(), documents: new Map(), colours: new Map(), tab: "", machine: null };
const live = h("span", { class: "live", title: "this page changes with the runs" });
const chips = h("div", { class: "chips", role: "group", "aria-label": "runs" });
const tabs = h("nav", { class: "tabs", "aria-label": "views" });
const summaryHost = h("div", {});
const grid = h("div", { class: "charts" });
const noCurves = h("p", { class: "empty", hidden: true }, "There are no figures yet: the first come when the run has played a while.");
const markKey = h("span", { class: "mark-key" });
const MARKS = { start: "┆ resumed", setting: "┆ setting changed", accepted: "╷ accepted", rejected: "╷ rejected" };
const panels = Object.fromEntries(Object.keys(TABS).map((name) => [name, h("div", { class: "panel", id: `panel-${name}`, hidden: true })]));
let bar = null;
let games = null;
let play = null;

function label(run) {
  const same = state.runs.filter((other) => other.name === run.name).length > 1;
  return same ? run.id : run.name;
}

function runs() {
  return [...state.chosen].map((id) => state.documents.get(id)).filter(Boolean);
}

// Each run that is shown has a colour, which it keeps as long as it is.
function numbered() {
  for (const id of state.colours.keys()) if (!state.chosen.has(id)) state.colours.delete(id);
  for (const id of state.chosen) {
    const free = COLOURS.find((name) => ![...state.colours.values()].includes(name));
    if (!state.colours.has(id)) state.colours.set(id, free || COLOURS[state.colours.size % COLOURS.length]);
  }
  for (const run of [...state.runs, ...state.documents.values()]) Object.assign(run, { label: label(run), colour: state.colours.get(run.id) || "--muted" });
}

async function choose(id, alone = false) {
  if (alone) state.chosen = new Set([id]);
  else if (state.chosen.has(id)) { if (state.chosen.size > 1) state.chosen.delete(id); } else state.chosen.add(id);
  await load([...state.chosen].filter((one) => !state.documents.has(one)));
  draw(true);
}

async function load(ids) {
  for (const id of ids) {
    const found = await source.run(id);
    const known = state.runs.find((run) => run.id === id);
    if (known) Object.assign(known, { state: found.state, elapsed: found.elapsed, games: found.games, rows: found.rows, steps: found.steps, loss: found.loss, rating: found.rating });
    state.documents.set(id, { ...found });
  }
  numbered();
}

function draw(anew = false) {
  const shown = runs();
  numbered();
  const links = tabNames().map((name) => h("a", { href: `#${name}`, "aria-current": name === state.tab ? "page" : null }, TABS[name]));
  if (links.map((link) => link.href + link.ariaCurrent).join() !== [...tabs.children].map((link) => link.href + link.ariaCurrent).join()) {
    tabs.replaceChildren(...links);
    const current = tabs.querySelector("[aria-current]");
    if (current) tabs.scrollLeft = current.offsetLeft - tabs.offsetLeft - 8; // on a phone, the row of tabs is longer than the page
  }
  chips.hidden = state.runs.length < 2 || state.runs.length > 12;
  renew(chips, state.runs.slice(0, 12).map((run) => h("button", { type: "button", class: "chip", "aria-pressed": String(state.chosen.has(run.id)), title: "click to show or hide", onclick: () => choose(run.id) },
    h("span", { class: "dot", "data-colour": run.colour.slice(2) }), run.label)));
  if (!shown.length) {
    renew(summaryHost, h("p", { class: "empty" }, "There is no run here yet; this page shows those that begin."));
    return;
  }
  const first = shown[0];
  document.title = `${shown.map((run) => run.label).join(", ")} · Tengen`;
  if (state.tab === "runs") renew(summaryHost, h("div", { class: "summary" }, h("div", { class: "title-row" }, h("h1", {}, `${state.runs.length} runs`))));
  else renew(summaryHost, shown.length === 1 ? summary(first, ["games", "settings", "play"].includes(state.tab)) : h("div", { class: "summary" }, h("div", { class: "title-row" }, h("h1", {}, `${shown.length} runs`))),
    shown.length > 1 ? runTable(shown, state.chosen, choose, (id) => choose(id, true)) : null);
  if (state.tab === "runs") renew(panels.runs, runTable(state.runs, state.chosen, choose, async (id) => { await choose(id, true); go("curves"); }));
  if (state.tab === "curves") {
    drawCharts(grid, shown, anew);
    const none = !shown.some((run) => run.charts.length);
    bar.hidden = none;
    noCurves.hidden = !none;
    const kinds = Object.entries(MARKS).filter(([kind]) => shown.some((run) => run.marks.some((mark) => mark.kind === kind)));
    markKey.replaceChildren(...kinds.map(([kind, text]) => h("span", { class: `mark-${kind}` }, text)));
  }
  if (state.tab === "ladder") renew(panels.ladder, shown.flatMap((run, at) => [shown.length > 1 && h("h2", {}, run.label), ...ladderTab(run, at ? [] : page.matches)].filter(Boolean)));
  if (state.tab === "games") games.show(first);
  if (state.tab === "data") renew(panels.data, shown.flatMap((run, at) => [shown.length > 1 && h("h2", {}, run.label), h("div", { class: "cards" }, dataTab(run, at ? null : state.machine))].filter(Boolean)));
  if (state.tab === "settings") renew(panels.settings, h("div", { class: "cards" }, settingsTab(shown)));
  if (state.tab === "play" && play) play.show(first);
}

function tabNames() {
  return Object.keys(TABS).filter((name) => (name !== "runs" || state.runs.length > 1) && (name !== "play" || page.live));
}

function go(tab) {
  const names = tabNames();
  const anew = state.tab !== tab;
  state.tab = names.includes(tab) ? tab : "curves";
  for (const [name, panel] of Object.entries(panels)) panel.hidden = name !== state.tab;
  if (location.hash !== `#${state.tab}`) history.replaceState(null, "", `${location.search}#${state.tab}`);
  if (state.tab === "data" && page.live) refreshMachine();
  draw(anew);
}

function toolbar() {
  const axis = h("select", { id: "axis", onchange: () => { view.x = axis.value; view.zoom = null; draw(); } }, Object.entries(AXES).map(([value, text]) => h("option", { value }, text)));
  const amount = h("output", { for: "smooth" }, "0");
  const smooth = h("input", { id: "smooth", type: "range", min: 0, max: 0.98, step: 0.02, value: 0, oninput: () => { view.smooth = Number(smooth.value); amount.textContent = smooth.value; drawCharts(grid, runs()); } });
  const marks = h("input", { id: "marks", type: "checkbox", checked: true, onchange: () => { view.marks = marks.checked; drawCharts(grid, runs(), true); } });
  const reset = h("button", { type: "button", class: "small", hidden: true, onclick: () => zoomTo(null) }, "reset zoom");
  document.addEventListener("zoomed", () => { reset.hidden = view.zoom === null; });
  return h("div", { class: "toolbar" }, h("label", {}, "against ", axis), h("label", {}, "smoothing ", smooth, " ", amount), h("label", {}, marks, " marks"), markKey, reset, h("span", { class: "faint" }, "drag to zoom", h("span", { class: "by-keys" }, ", double-click to reset; with the keyboard, arrows read a chart, + and − zoom")));
}

function theme() {
  const wanted = remembered("theme");
  if (wanted) document.documentElement.dataset.theme = wanted;
  const button = h("button", { type: "button", class: "icon", "aria-label": "light or dark", title: "light or dark", onclick: () => {
    const dark = colour("--dark") === "1";
    document.documentElement.dataset.theme = remembered("theme", dark ? "light" : "dark");
    if (state.tab === "curves") drawCharts(grid, runs(), true);
  } }, "◐");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.tab === "curves" && drawCharts(grid, runs(), true));
  return button;
}

async function refreshMachine() {
  try {
    state.machine = await source.machine();
    for (const run of runs()) run.disk = await source.disk(run.id);
    if (state.tab === "data") draw();
  } catch (error) { /* the next time */ }
}

// Server-sent events say which runs have changed; those that are shown are read again, not too often.
function follow() {
  const changed = new Set();
  let busy = false;
  let before = 0;
  let events = null;
  const refresh = async () => {
    if (busy || document.hidden || !changed.size) return;
    const wait = pointer.down ? 200 : before + REFRESH - Date.now();
    if (wait > 0) { setTimeout(refresh, wait); return; }
    busy = true;
    before = Date.now();
    const ids = [...changed].filter((id) => state.chosen.has(id));
    changed.clear();
    try {
      await load(ids);
      if (ids.length || state.tab === "runs") draw();
      if (state.tab === "data") refreshMachine();
      live.dataset.updates = String(Number(live.dataset.updates || 0) + 1);
    } catch (error) { live.dataset.state = "lost"; }
    busy = false;
    if (changed.size) setTimeout(refresh, REFRESH);
  };
  const told = (event) => {
    const news = JSON.parse(event.data);
    const before = state.runs.length;
    state.runs = news.runs.map((run) => ({ ...state.runs.find((one) => one.id === run.id), ...run }));
    numbered();
    news.changed.forEach((id) => changed.add(id));
    if (!state.chosen.size && state.runs.length) choose(state.runs[0].id);
    else if (state.runs.length !== before) draw();
    refresh();
  };
  // A browser has six connections to a server, for all of its tabs: those that nobody sees let theirs go.
  const listen = () => {
    if (document.hidden) {
      if (events) events.close();
      events = null;
      live.dataset.state = "asleep";
      return;
    }
    if (events) return;
    state.chosen.forEach((id) => live.dataset.state && changed.add(id)); // what happened meanwhile is not told
    events = new EventSource(`/api/events${token ? `?token=${encodeURIComponent(token)}` : ""}`);
    events.addEventListener("open", () => { live.dataset.state = "open"; });
    events.addEventListener("error", () => { live.dataset.state = "lost"; });
    events.addEventListener("runs", told);
  };
  document.addEventListener("visibilitychange", listen);
  listen();
}

async function begin() {
  document.body.replaceChildren(
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); document.getElementById("main").focus(); } }, "to the content"),
    h("header", { class: "top" }, h("span", { class: "brand" }, "Tengen"), tabs, page.live && live, theme()),
    h("main", { id: "main", tabindex: -1 }, chips, summaryHost, Object.values(panels)),
    h("footer", {}, page.live ? "" : `Made ${page.made.replace("T", " ").replace("+00:00", " UTC")} by tengen report.`));
  bar = toolbar();
  panels.curves.append(bar, noCurves, grid);
  games = new GamesTab(panels.games, source);
  if (page.live) {
    play = new PlayTab(panels.play, source);
    games.viewer.ask = (game, ply) => play.look(state.documents.get([...state.chosen][0]), game, ply);
  }
  numbered();
  // A report shows a few runs over each other; else the run that goes on, or the one that was the last to.
  const current = (run) => `${run.state === "running" ? 1 : 0}${run.since || ""}`;
  const newest = [...state.runs].sort((a, b) => current(b).localeCompare(current(a))).slice(0, 1);
  for (const run of page.live || state.runs.length > 6 ? newest : state.runs) state.chosen.add(run.id);
  await load([...state.chosen]);
  go(location.hash.slice(1) || (page.live && state.runs.length > 1 ? "runs" : "curves"));
  window.addEventListener("hashchange", () => go(location.hash.slice(1)));
  let resizing = null;
  window.addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(resizeCharts, 100); });
  if (page.live) follow();
  document.body.dataset.ready = "yes";
}

begin();
