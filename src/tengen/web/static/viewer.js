// Games to click through.
import { h, percent, renew, s, save } from "dom.js";
import { drawBoard, positionAt } from "boards.js";

const FRESH = 15000; // milliseconds after which a list of games is read again if the run has played more

export function resultWords(game) {
  if (game.result === null || game.result === undefined) return "no result";
  if (game.result === 0) return "draw";
  if (Math.abs(game.result) !== 1) return `${game.seats[0]} gets ${game.result > 0 ? "+" : "−"}${Math.abs(game.result).toFixed(2)}`; // as in Hironaka's game, by its length
  const winner = game.seats[game.result > 0 ? 0 : 1];
  const points = game.score !== null && game.score !== undefined ? ` by ${Math.abs(game.score)}` : "";
  const how = { resigned: " by resignation", time: " on time", forfeit: " by forfeit" }[game.ending] || "";
  return `${winner} wins${how || points}`;
}

// The name of a move; in chess with its number, as in "1. e4 e5".
export function moveText(game, moves, at, first = at === 0) {
  const { name } = moves[at];
  if (!game.start.fen) return name;
  const [, turn, , , , number] = game.start.fen.split(" ");
  const ply = 2 * ((Number(number) || 1) - 1) + (turn === "b") + at;
  return ply % 2 === 0 ? `${ply / 2 + 1}. ${name}` : first ? `${(ply + 1) / 2}… ${name}` : name;
}

// The chances of player 0 along a game, by the searches in its record and, dashed, by the network that was asked about
// every position; and the score if the network knows it. `views` are its answers by position.
export function drawChances(moves, ply, go, seats, views = []) {
  const share = (value) => (value === undefined || value === null ? null : (value + 1) / 2);
  const asked = moves.map((_, at) => views[at] || {});
  const scores = asked.map((one) => one.score ?? null);
  const most = Math.max(5, ...scores.map(Math.abs));
  return h("div", {},
    drawLines([moves.map((move) => share(move.value)), asked.map((one) => share(one.value))], ply, go, `Chances of ${seats[0]}`, percent),
    drawLines([[], scores.map((score) => (score === null ? null : 0.5 + score / most / 2))], ply, go, `Score of ${seats[0]}, up to ${Math.round(most)} points`, (y) => ((2 * y - 1) * most).toFixed(1)));
}

// Lines along a game, with values from 0 to 1, as an SVG that can be clicked.
function drawLines(lines, ply, go, title, words) {
  const count = Math.max(...lines.map((values) => values.length));
  const [w, t] = [600, 90];
  const x = (at) => (count > 1 ? (at / (count - 1)) * w : 0);
  const known = lines.map((values) => values.map((value, at) => [at, value]).filter(([, value]) => value !== null));
  if (known.every((points) => points.length < 2)) return h("div", { class: "chances empty" });
  const path = (points) => points.map(([at, value]) => `${x(at).toFixed(1)},${(t - value * t).toFixed(1)}`).join(" ");
  const told = known.find((points) => points.length > 1);
  const [main, asked] = known;
  const picture = s("svg", { viewBox: `0 0 ${w} ${t}`, preserveAspectRatio: "none", class: "chances", role: "img",
    "aria-label": `${title}: ${told.filter((_, at) => at % Math.ceil(told.length / 8) === 0).map(([at, value]) => `move ${at + 1} ${words(value)}`).join(", ")}` },
  main.length > 1 && s("polygon", { points: `${x(main[0][0])},${t} ${path(main)} ${x(main[main.length - 1][0])},${t}`, class: "chance-area" }), s("line", { x1: 0, x2: w, y1: t / 2, y2: t / 2, class: "gridline" }),
  s("polyline", { points: path(main), class: "chance-line" }), s("polyline", { points: path(asked), class: "chance-line asked" }),
  s("line", { x1: x(ply - 1), x2: x(ply - 1), y1: 0, y2: t, class: "now" }));
  if (go) {
    const to = (event) => {
      const box = picture.getBoundingClientRect();
      go(1 + Math.round(((event.clientX - box.left) / box.width) * (count - 1)));
    };
    picture.addEventListener("pointerdown", to);
    picture.addEventListener("pointermove", (event) => event.buttons && to(event));
  }
  return h("div", {}, h("div", { class: "faint" }, title), picture);
}

// Buttons for variations, each with its first moves.
export function variationButtons(game, list, open) {
  const names = (one) => one.moves.slice(0, 6).map((_, at) => moveText(game, [...Array(one.ply), ...one.moves], one.ply + at, at === 0));
  return list.map((one) => h("button", { type: "button", class: "small variation", title: "show this variation", onclick: () => open(one) },
    `${game.start.fen ? "" : `${one.ply + 1}: `}${names(one).join(" ")}${one.moves.length > 6 ? " …" : ""}`));
}

export class GameViewer {
  constructor(host) {
    this.host = host;
    this.host.tabIndex = 0;
    this.host.addEventListener("keydown", (event) => this.key(event));
    this.game = null;
    this.ask = null; // asks the network about a position, on the live page
  }

  show(game) {
    this.game = game;
    this.views = []; // what the network said about the positions of the game
    this.branch = null; // the variation that is shown instead of the rest of the game
    this.ply = 0;
    this.view = null;
    this.stop();
    const button = (label, title, act) => h("button", { type: "button", title, "aria-label": title, onclick: act }, label);
    this.boardHost = h("div", { class: "board-host" });
    this.chanceHost = h("div", { class: "chance-host" });
    this.words = h("p", { class: "now-words", "aria-live": "polite" });
    this.comment = h("p", { class: "comment", hidden: true });
    this.slider = h("input", { type: "range", min: 0, max: game.moves.length, value: 0, "aria-label": "move", oninput: () => this.go(Number(this.slider.value)) });
    this.list = h("ol", { class: "moves", "aria-label": "moves" });
    this.others = h("div", { class: "row variations" });
    this.playing = button("play", "play on", () => (this.timer ? this.stop() : this.start()));
    this.asking = this.ask ? button("ask the network", "policy and value of the network here", () => this.question()) : null;
    this.through = this.ask ? button("ask about every move", "chances and score by the network along the game", () => this.along()) : null;
    const notes = Object.entries(game.notes || {}).map(([key, value]) => h("div", { class: "faint" }, `${key}: ${value}`));
    this.host.replaceChildren(
      h("div", { class: "viewer" },
        h("div", { class: "viewer-board" }, this.boardHost,
          h("div", { class: "controls" }, button("|◀", "to the start", () => this.go(0)), button("◀", "one move back", () => this.go(this.ply - 1)), this.playing,
            button("▶", "one move on", () => this.go(this.ply + 1)), button("▶|", "to the end", () => this.go(this.moves().length)), this.slider)),
        h("div", { class: "viewer-side" },
          h("h3", {}, h("span", { class: "seat p0" }), game.players[0] || game.seats[0], " – ", h("span", { class: "seat p1" }), game.players[1] || game.seats[1]),
          h("p", { class: "faint" }, [resultWords(game), `${game.moves.length} moves`, game.opening ? `${game.opening} random at first` : "", game.date].filter(Boolean).join(" · ")),
          notes, this.words, this.comment, this.chanceHost, this.list, this.others,
          h("div", { class: "row" }, game.text && button(`download ${game.text.name.split(".").pop().toUpperCase()}`, "save the game", () => save(game.text.name, game.text.content)), this.asking, this.through),
          h("p", { class: "faint hint" }, "Arrow keys step, Home and End jump, space plays."))));
    this.host.dataset.kind = game.start.kind;
    this.enter(null, 0);
  }

  moves() {
    return this.branch ? [...this.game.moves.slice(0, this.branch.ply), ...this.branch.moves] : this.game.moves;
  }

  // Show a variation, or with null the game itself.
  enter(branch, ply) {
    this.branch = branch;
    const moves = this.moves();
    this.slider.max = String(moves.length);
    this.host.dataset.length = String(moves.length);
    this.host.dataset.branch = branch ? String(this.game.variations.indexOf(branch)) : "";
    this.list.replaceChildren(...moves.map((move, at) => h("li", {},
      h("button", { type: "button", class: `p${move.player}${branch && at >= branch.ply ? " branch" : ""}`, onclick: () => this.go(at + 1) }, moveText(this.game, moves, at)))));
    this.go(ply);
  }

  async question() {
    this.asking.disabled = true;
    const { game, ply } = this;
    try {
      this.views[ply] = await this.ask(game, ply);
    } finally {
      this.asking.disabled = false;
    }
    if (this.game === game) this.go(this.ply);
  }

  // All positions one after the other, until another game is opened.
  async along() {
    const { game, views, through } = this;
    through.disabled = true;
    try {
      for (let ply = 0; ply < game.moves.length && this.game === game; ply += 1) {
        views[ply] = views[ply] || await this.ask(game, ply);
        if (this.game === game) this.go(this.ply);
      }
    } catch (error) {
      if (this.game === game) this.words.textContent = error.message;
      through.disabled = false;
    }
  }

  go(ply) {
    this.ply = Math.max(0, Math.min(this.moves().length, ply));
    this.view = this.branch && this.ply > this.branch.ply ? null : this.views[this.ply] || null;
    this.draw();
  }

  draw() {
    const { game, ply, branch } = this;
    const moves = this.moves();
    const move = ply ? moves[ply - 1] : null;
    const options = { last: (move && move.place) || [] };
    if (this.view) Object.assign(options, { heat: this.view.heat, ownership: this.view.ownership, labels: this.view.labels });
    this.boardHost.replaceChildren(drawBoard(positionAt({ ...game, moves }, ply), options));
    this.slider.value = String(ply);
    this.host.dataset.ply = String(ply);
    const chance = move && move.value !== undefined ? `; ${game.seats[0]} ${percent((move.value + 1) / 2)}` : "";
    this.words.textContent = (move ? `Move ${ply} of ${moves.length}${branch && ply > branch.ply ? " of a variation" : ""}: ${game.seats[move.player]} ${move.name}${chance}` : "Start") + (this.view ? ` · ${this.view.words}` : "")
      + (ply === moves.length && !branch ? ` · ${resultWords(game)}` : "");
    this.comment.textContent = (move && move.comment) || "";
    this.comment.hidden = !this.comment.textContent;
    this.chanceHost.replaceChildren(drawChances(moves, ply, (to) => this.go(to), game.seats, branch ? [] : this.views));
    // Variations that begin here or later; the first of them is how this position could have gone on.
    const others = (game.variations || []).filter((one) => one.ply >= ply && !branch).slice(0, 12);
    this.others.replaceChildren(...(branch ? [h("button", { type: "button", class: "small", onclick: () => this.enter(null, branch.ply) }, "back to the game")] : []),
      ...(others.length ? [h("span", { class: "faint" }, "variations:"), ...variationButtons(game, others, (one) => this.enter(one, one.ply + 1))] : []));
    if (this.asking) this.asking.hidden = Boolean(branch && ply > branch.ply);
    this.list.querySelectorAll("[aria-current]").forEach((one) => one.removeAttribute("aria-current"));
    const now = ply && this.list.children[ply - 1].firstChild;
    if (now) {
      now.setAttribute("aria-current", "step");
      this.list.scrollTop = Math.max(0, now.offsetTop - this.list.offsetTop - this.list.clientHeight / 2);
    }
  }

  start() {
    if (this.ply >= this.moves().length) this.go(0);
    this.playing.textContent = "pause";
    this.timer = setInterval(() => (this.ply < this.moves().length ? this.go(this.ply + 1) : this.stop()), 700);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    if (this.playing) this.playing.textContent = "play";
  }

  key(event) {
    if (!this.game || event.target.tagName === "INPUT" && event.key !== " ") return;
    const steps = { ArrowRight: this.ply + 1, ArrowLeft: this.ply - 1, Home: 0, End: this.moves().length, PageDown: this.ply + 10, PageUp: this.ply - 10 };
    if (event.key in steps) this.go(steps[event.key]);
    else if (event.key === " " && event.target.tagName !== "BUTTON") { if (this.timer) this.stop(); else this.start(); }
    else return;
    event.preventDefault();
  }
}

// The list of games of a run beside the viewer.
export class GamesTab {
  constructor(host, source) {
    this.source = source;
    this.network = h("select", { "aria-label": "network", onchange: () => this.list() });
    this.order = h("select", { "aria-label": "order", onchange: () => this.fill() },
      h("option", { value: "new" }, "newest first"), h("option", { value: "swing" }, "biggest comebacks"), h("option", { value: "long" }, "longest"), h("option", { value: "short" }, "shortest"));
    this.listHost = h("div", { class: "game-list scroll", role: "group", "aria-label": "games" });
    this.viewerHost = h("div", { class: "viewer-host", role: "group", "aria-label": "game" });
    this.viewer = new GameViewer(this.viewerHost);
    this.empty = h("p", { class: "empty" }, "No games were recorded yet: a share of the games of self-play is (data.record_share).");
    this.body = h("div", { class: "games" }, h("div", { class: "card game-picker" }, h("div", { class: "row" }, this.network, this.order), this.listHost), h("div", { class: "card" }, this.viewerHost));
    host.replaceChildren(this.empty, this.body);
  }

  async show(run) {
    const names = run.games_of;
    this.empty.hidden = names.length > 0;
    this.body.hidden = !names.length;
    const same = this.run === run.id && names.join() === this.names;
    this.run = run.id;
    this.names = names.join();
    if (same && names.length && this.count !== run.games && Date.now() > this.read + FRESH) await this.again();
    this.count = run.games;
    if (same || !names.length) return;
    const before = this.network.value;
    this.network.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    if (names.includes(before)) this.network.value = before;
    else await this.list();
  }

  // What a promise gives; meanwhile and after an error there are words instead of what was shown. Null: another was asked for.
  async waited(host, words, promise) {
    host.replaceChildren(h("p", { class: "faint" }, words));
    this.newest = promise;
    try {
      const found = await promise;
      return this.newest === promise ? found : null;
    } catch (error) {
      if (this.newest === promise) host.replaceChildren(h("p", { class: "error" }, error.message));
      return null;
    }
  }

  // The newest games of the network, while the one that is open stays.
  async again() {
    this.read = Date.now();
    try {
      const [network, found] = [this.network.value, await this.source.games(this.run, this.network.value)];
      if (network !== this.network.value || !found.length || !this.games.length) return;
      this.games = found;
      this.fill();
    } catch (error) { /* the next time */ }
  }

  async list() {
    this.read = Date.now();
    const found = await this.waited(this.listHost, "Reading the games …", this.source.games(this.run, this.network.value));
    this.games = found || [];
    if (found && !found.length) {
      this.listHost.replaceChildren(h("p", { class: "faint" }, "None of the games can be read."));
      this.viewerHost.replaceChildren();
    }
    if (!this.games.length) return;
    this.fill();
    await this.open(this.sorted()[0]);
  }

  sorted() {
    const by = { new: () => 0, swing: (a, b) => b.swing - a.swing, long: (a, b) => b.length - a.length, short: (a, b) => a.length - b.length }[this.order.value];
    return [...this.games].sort(by);
  }

  fill() {
    renew(this.listHost, this.sorted().map((game) => h("button", { type: "button", "data-key": game.key, "aria-current": game.key === this.opened ? "true" : null, onclick: () => this.open(game) },
      h("span", {}, resultWords(game)), h("span", { class: "faint" }, `${game.length} moves${game.swing > 0.3 ? ` · comeback from ${percent((1 - game.swing) / 2)}` : ""}`))));
  }

  async open(game) {
    this.listHost.querySelectorAll("[aria-current]").forEach((one) => one.removeAttribute("aria-current"));
    const entry = [...this.listHost.children].find((one) => one.dataset.key === game.key);
    if (entry) entry.setAttribute("aria-current", "true");
    this.opened = game.key;
    const found = await this.waited(this.viewerHost, "Opening the game …", this.source.game(this.run, this.network.value, game.key));
    if (found) this.viewer.show(found);
  }
}
