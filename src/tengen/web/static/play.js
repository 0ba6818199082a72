// Playing against a network and analysing positions, on the live page.
import { h, percent, pointer, renew, save, short } from "dom.js";
import { drawBoard, positionAt } from "boards.js";
import { drawChances, moveText, resultWords, variationButtons } from "viewer.js";

const STRENGTHS = [[1, "1 visit: the bare network"], [16, "16 visits: quick"], [100, "100 visits"], [400, "400 visits"], [800, "800 visits: as in tengen play"], [3000, "3,000 visits: slow"]];

export class PlayTab {
  constructor(host, source) {
    this.source = source;
    this.game = null;
    this.seen = null; // the newest analysis
    this.line = []; // all moves of the game as it was pasted or played, as actions
    const button = (label, act, more = {}) => h("button", { type: "button", onclick: () => this.guarded(act), ...more }, label);
    this.network = h("select", { id: "play-network" });
    this.seat = h("select", { id: "play-seat" }, h("option", { value: "0" }, "you move first"), h("option", { value: "1" }, "you move second"), h("option", { value: "" }, "you move for both"));
    this.visits = h("select", { id: "play-visits" }, STRENGTHS.map(([value, text]) => h("option", { value, selected: value === 100 }, text)));
    this.text = h("textarea", { rows: 4, id: "pasted", placeholder: "SGF, PGN, FEN, a record of Tengen, or moves such as 4 4 3", "aria-label": "game or position to analyse" });
    this.status = h("p", { class: "status-line", "aria-live": "polite" }, "Choose a network and begin.");
    this.board = h("div", { class: "board-host", id: "play-board" });
    this.choices = h("div", { class: "row" });
    this.bar = h("div", { class: "bar-win", hidden: true });
    this.chances = h("div", { class: "chance-host" });
    this.moves = h("ol", { class: "moves", "aria-label": "moves" });
    this.others = h("div", { class: "row variations" });
    this.comment = h("p", { class: "comment", hidden: true });
    this.table = h("div", { class: "scroll" });
    const toggle = (id, text, on) => { const box = h("input", { type: "checkbox", id, checked: on, onchange: () => { this.draw(); if (id === "always" && box.checked) this.guarded(() => this.analyse()); } }); return [box, h("label", {}, box, ` ${text}`)]; };
    let labels;
    [this.heat, labels] = toggle("heat", "policy", true);
    const switches = [labels];
    [this.owner, labels] = toggle("owner", "ownership", true);
    this.ownerLabel = labels;
    switches.push(labels);
    [this.always, labels] = toggle("always", "analyse every position", false);
    switches.push(labels);
    this.acts = [
      button("undo", () => this.act("undo"), { id: "undo" }), button("hint", () => this.analyse(), { id: "hint" }), button("stop", () => this.post("stop"), { id: "stop" }),
      button("let the engine move", () => this.act("answer"), { id: "answer" }), button("◀", () => this.step(-1), { "aria-label": "one move back" }), button("▶", () => this.step(1), { "aria-label": "one move on" }),
      button("download", async () => { const file = await this.post("export"); save(file.name, file.content); }, { id: "export" })];
    host.replaceChildren(h("div", { class: "card" },
      h("div", { class: "play-form" }, h("label", {}, "network", this.network), h("label", {}, "seat", this.seat), h("label", {}, "strength", this.visits), button("new game", () => this.begin(), { class: "primary", id: "begin" })),
      h("details", {}, h("summary", {}, "Analyse a game or a position"), this.text, h("div", { class: "row" }, button("analyse", () => this.begin(this.text.value), { id: "analyse" }))),
      h("div", { class: "play-grid", tabindex: "-1", onkeydown: (event) => this.key(event) },
        h("div", {}, this.board, this.choices), h("div", {}, this.status, this.comment, this.bar, this.chances, h("div", { class: "row" }, this.acts), h("div", { class: "switches" }, switches), this.table, this.moves, this.others))));
    this.acts.forEach((act) => { act.disabled = true; });
    // After a click, the arrow keys walk through the game; after the tab key, over the board.
    this.board.addEventListener("mousedown", (event) => { event.preventDefault(); this.board.closest(".play-grid").focus({ preventScroll: true }); });
    window.addEventListener("pointerup", () => setTimeout(() => { if (this.seen) this.draw(); }));
  }

  show(run) {
    const names = run.networks.map((one) => one.name);
    const key = [run.id, ...names].join("\n");
    if (this.known === key) return;
    const before = this.network.value;
    this.known = key;
    this.run = run;
    this.network.replaceChildren(h("option", { value: "" }, names.length ? "the newest" : "no network yet"), ...run.networks.map((one) => h("option", { value: one.name }, `${one.name}${one.elo === null || one.elo === undefined ? "" : ` (Elo ${Math.round(one.elo)})`}`)));
    if (names.includes(before)) this.network.value = before;
  }

  async guarded(act) {
    this.status.classList.remove("error");
    try {
      await act();
    } catch (error) {
      this.status.textContent = error.message;
      this.status.classList.add("error");
    }
  }

  post(what, body = {}) {
    return this.source.ask(`/api/play/${encodeURIComponent(this.game.id)}/${what}`, body);
  }

  async begin(text) {
    this.status.textContent = "Loading the network; the first move takes a while, because it is compiled …";
    const seat = text !== undefined || this.seat.value === "" ? null : Number(this.seat.value);
    if (text !== undefined && !text.trim()) throw new Error("Paste a game or a position first.");
    const path = `/api/runs/${encodeURIComponent(this.run.id)}/play`;
    const game = await this.source.ask(path, { network: this.network.value, seat, visits: Number(this.visits.value), text });
    this.line = this.pasted = game.record.moves.map((move) => move.action);
    this.take(game);
    if (text !== undefined) await this.analyse();
  }

  async act(what, body) {
    if (this.busy) return;
    this.busy = true;
    this.stopAnalysis();
    if (what !== "undo" && this.game.seat !== null) this.status.textContent = `${this.game.network} is thinking …`;
    try {
      this.take(await this.post(what, body));
    } finally {
      this.busy = false;
    }
    const now = this.actions();
    if (!this.line.slice(0, now.length).every((action, at) => action === now[at]) || now.length > this.line.length) this.line = now;
    if (this.always.checked && !this.game.over) await this.analyse();
  }

  actions() {
    return this.game.record.moves.map((move) => move.action);
  }

  // Go into a variation of the pasted game.
  async follow(variation) {
    const line = [...this.pasted.slice(0, variation.ply), ...variation.moves.map((move) => move.action)];
    this.line = line;
    await this.act("goto", { actions: line.slice(0, variation.ply + 1) });
  }

  step(by) {
    const to = this.actions().length + by;
    if (to < 0 || to > this.line.length) return undefined;
    return this.act("goto", { actions: this.line.slice(0, to) });
  }

  take(game) {
    this.game = game;
    this.seen = null;
    this.from = null;
    this.draw();
  }

  draw() {
    const { game } = this;
    if (!game) return;
    const { record } = game;
    const ply = record.moves.length;
    const position = positionAt(record, ply);
    const mine = !game.over && (game.seat === null || game.player === game.seat);
    const last = ply ? record.moves[ply - 1] : null;
    const options = { last: (last && last.place) || [], chosen: this.from, flip: position.kind === "chess" && game.seat === 1 };
    if (this.seen && this.heat.checked) {
      options.heat = this.seen.heat;
      options.labels = Object.fromEntries(Object.entries(this.seen.heat).filter(([, share]) => share >= 0.05).map(([cell, share]) => [cell, `${Math.round(100 * share)}`]));
    }
    if (this.seen && this.owner.checked && this.seen.ownership) options.ownership = this.seen.ownership;
    this.ownerLabel.hidden = !(this.seen && this.seen.ownership);
    if (mine && position.cells) {
      options.click = (cell) => this.guarded(() => this.clicked(cell));
      options.legal = this.targets(position);
      if (this.from !== null) options.goals = new Set(game.legal.filter(({ place }) => place && place[0] === this.from).map(({ place }) => place[1]));
    }
    renew(this.board, drawBoard(position, options));
    this.board.closest(".card").dataset.kind = position.kind;
    this.board.dataset.ply = String(ply);
    this.board.dataset.over = String(game.over);
    const named = mine ? game.legal.filter((move) => !move.place) : [];
    const priors = new Map(((this.seen && this.seen.moves) || []).map((move) => [move.action, move.prior]));
    const share = (move) => (priors.has(move.action) ? ` ${percent(priors.get(move.action))}` : "");
    if (!this.promoting) {
      renew(this.choices, named.slice(0, 120).map((move) => h("button", { type: "button", class: "choice", "data-action": move.action, onclick: () => this.guarded(() => this.act("move", { action: move.action })) }, move.name, this.heat.checked && h("span", { class: "faint" }, share(move)))));
    }
    const chance = game.over && record.result !== null ? record.result : this.seen ? (this.seen.searched ? this.seen.searched.value : this.seen.value) : last && last.value !== undefined ? last.value : null;
    this.drawBar(chance);
    this.chances.replaceChildren(drawChances(record.moves, ply, null, record.seats));
    renew(this.moves, record.moves.map((move, at) => h("li", {}, h("button", { type: "button", class: `p${move.player}`, "aria-current": at === ply - 1 ? "step" : null, onclick: () => this.guarded(() => this.act("goto", { actions: this.actions().slice(0, at + 1) })) }, moveText(record, record.moves, at)))));
    this.moves.scrollTop = this.moves.scrollHeight;
    renew(this.others, game.variations.length > 0 && h("span", { class: "faint" }, "variations:"), variationButtons(record, game.variations.slice(0, 40), (one) => this.guarded(() => this.follow(one))));
    const now = this.actions();
    const told = ply && now.every((action, at) => action === (this.pasted || [])[at]) ? game.comments[ply - 1] : "";
    this.comment.textContent = told || "";
    this.comment.hidden = !told;
    if (this.status.dataset.thinking !== "yes" && !this.status.classList.contains("error")) this.status.textContent = this.words(mine);
    this.acts.forEach((act) => { act.disabled = game.over && act.id !== "export" && act.id !== "undo" && !act.getAttribute("aria-label"); });
    this.drawTable();
  }

  words(mine) {
    const { game } = this;
    const remarks = game.remarks.length ? ` (${game.remarks.join("; ")})` : "";
    if (game.over) {
      if (game.seat === null || Math.abs(game.record.result) !== 1) return `The game is over: ${resultWords(game.record)}.`;
      return (game.record.result > 0) === (game.seat === 0) ? `You win! ${resultWords(game.record)}.` : `${game.network} wins: ${resultWords(game.record)}.`;
    }
    return mine ? `${game.record.seats[game.player]} to move${game.seat === null ? "" : ": your turn"}${remarks}` : `${game.network} is thinking …`;
  }

  drawBar(value) {
    this.bar.hidden = value === null;
    if (value === null) return;
    const share = (value + 1) / 2;
    const [first, second] = this.game.record.seats;
    const filled = h("div", { class: "bar-p0" });
    filled.style.width = `${100 * share}%`;
    this.bar.setAttribute("role", "img");
    this.bar.setAttribute("aria-label", `${first} ${percent(share)}, ${second} ${percent(1 - share)}`);
    this.bar.replaceChildren(filled, h("span", { class: "bar-text p0" }, `${first} ${percent(share)}`), h("span", { class: "bar-text p1" }, `${percent(1 - share)} ${second}`));
  }

  drawTable() {
    const found = this.seen && this.seen.searched;
    if (!found) {
      const words = this.seen ? this.seen.words : this.reading ? "Analysing …; the first time takes a while, because the search is compiled." : "";
      this.table.replaceChildren(h("p", { class: "faint" }, words));
      return;
    }
    const side = this.seen.player === 0 ? 1 : -1;
    renew(this.table, h("p", { class: "faint" }, `${this.seen.words}; searched ${short(found.visits)} visits in ${found.seconds} s`),
      h("table", { class: "candidates" }, h("thead", {}, h("tr", {}, ["move", "visits", "wins", "policy", "expected"].map((text, at) => h("th", { scope: "col", class: at % 4 ? "number" : null }, text)))),
        h("tbody", {}, found.candidates.map((one) => h("tr", { title: "click to play this line", "data-actions": one.actions.join(" "), onclick: () => this.guarded(() => this.act("goto", { actions: [...this.actions(), ...one.actions] })) },
          h("td", {}, h("button", { type: "button", class: "link" }, one.name)), h("td", { class: "number" }, short(one.visits)), h("td", { class: "number" }, percent((one.value * side + 1) / 2)), h("td", { class: "number" }, percent(one.prior)), h("td", {}, one.line.slice(1, 8).join(" ")))))));
  }

  // The cells that can be clicked: where a piece may go, or which may move.
  targets(position) {
    const cells = new Set();
    for (const { place } of this.game.legal) {
      if (!place) continue;
      if (place.length === 2) cells.add(this.from === null || place[0] !== this.from ? place[0] : place[1]);
      else if (position.kind === "holes") for (let row = 0; row < position.height; row += 1) cells.add(row * position.width + (place[0] % position.width));
      else cells.add(place[0]);
    }
    return cells;
  }

  async clicked(cell) {
    const position = positionAt(this.game.record, this.game.record.moves.length);
    const two = this.game.legal.some((move) => move.place && move.place.length === 2);
    const fits = this.game.legal.filter(({ place }) => place && (two ? place[0] === this.from && place[1] === cell
      : position.kind === "holes" ? place[0] % position.width === cell % position.width : place[0] === cell));
    if (two && !fits.length) {
      this.from = this.game.legal.some(({ place }) => place && place[0] === cell) ? cell : null;
      this.draw();
      return;
    }
    this.from = null;
    if (fits.length > 1) { // a pawn becomes one of several pieces
      this.promoting = true;
      this.choices.replaceChildren(...fits.map((move) => h("button", { type: "button", onclick: () => { this.promoting = false; this.guarded(() => this.act("move", { action: move.action })); } }, move.name)));
      return;
    }
    if (fits.length) await this.act("move", { action: fits[0].action });
  }

  // Draw, but not between pressing and releasing a button of the mouse: the click would be lost with its element.
  later() {
    if (!pointer.down) this.draw();
  }

  stopAnalysis() {
    if (this.reading) this.reading.abort();
    this.reading = null;
  }

  async analyse() {
    if (!this.game) return;
    this.stopAnalysis();
    const reading = new AbortController();
    this.reading = reading;
    const visits = Math.max(Number(this.visits.value), 100);
    this.drawTable();
    try {
      for await (const line of this.source.stream(`/api/play/${encodeURIComponent(this.game.id)}/analysis`, { visits }, reading.signal)) {
        if (this.reading !== reading) return;
        if (line.error) throw new Error(line.error);
        this.table.dataset.done = String(line.done);
        if (!line.over) { this.seen = line; this.later(); }
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      if (this.reading === reading) this.reading = null;
      if (!this.seen) this.drawTable();
    }
  }

  key(event) {
    if (!this.game || !["ArrowLeft", "ArrowRight"].includes(event.key) || ["TEXTAREA", "INPUT", "SELECT"].includes(event.target.tagName)) return;
    event.preventDefault();
    this.guarded(() => this.step(event.key === "ArrowLeft" ? -1 : 1));
  }

  // What the network thinks of a position of a recorded game.
  async look(run, game, ply) {
    const seen = await this.source.ask(`/api/runs/${encodeURIComponent(run.id)}/look`, { network: game.network, key: game.key, ply });
    const labels = Object.fromEntries(Object.entries(seen.heat).filter(([, share]) => share >= 0.05).map(([cell, share]) => [cell, `${Math.round(100 * share)}`]));
    const named = seen.moves.filter((move) => !move.place).slice(0, 4).map((move) => `${move.name} ${percent(move.prior)}`); // as a pass
    return { heat: seen.heat, ownership: seen.ownership, labels, value: seen.value, score: seen.score, words: [`${seen.network}: ${seen.words}`, ...named].join(", ") };
  }
}
