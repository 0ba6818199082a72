// Elements and words. Text from records only ever becomes text: nothing here parses markup.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function s(tag, properties, ...children) {
  return fill(document.createElementNS(SVG_NAMESPACE, tag), properties, children);
}

// Whether a button of the mouse or a finger is down: what is replaced then loses its click.
export const pointer = { down: false };
for (const [type, down] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]]) {
  window.addEventListener(type, () => (down ? (pointer.down = true) : setTimeout(() => { pointer.down = false; })), true);
}

const FOCUSABLE = "a, button, input, select, textarea, summary, [tabindex]";

// Put these children into `host`, unless they are there, and keep what a person did: focus, scrolling, what is folded out.
export function renew(host, ...children) {
  const made = h("div", {}, ...children);
  const state = (root, selector) => [...root.querySelectorAll(selector)];
  const [old, now] = [state(host, "details"), state(made, "details")];
  if (old.length === now.length) now.forEach((one, at) => { one.open = old[at].open; });
  const [before, after] = [[...host.childNodes], [...made.childNodes]];
  if (before.length === after.length && before.every((one, at) => one.isEqualNode(after[at]))) return;
  const active = host.contains(document.activeElement) ? document.activeElement : null;
  const index = active ? state(host, FOCUSABLE).indexOf(active) : -1;
  const scrolled = state(host, ".scroll").map((one) => [one.scrollLeft, one.scrollTop]);
  host.replaceChildren(...after);
  state(host, ".scroll").forEach((one, at) => { if (scrolled[at]) [one.scrollLeft, one.scrollTop] = scrolled[at]; });
  if (!active) return;
  const those = state(host, FOCUSABLE);
  const same = those.find((one) => active.dataset.cell !== undefined && one.dataset.cell === active.dataset.cell) || those[Math.min(index, those.length - 1)];
  if (same) same.focus({ preventScroll: true });
}

export function clock(seconds) {
  if (!(seconds >= 0)) return "–";
  const days = Math.floor(seconds / 86400);
  const rest = Math.floor(seconds % 86400);
  const pad = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(rest / 3600);
  const tail = `${pad(Math.floor(rest / 60) % 60)}:${pad(rest % 60)}`;
  return (days ? `${days}d ` : "") + (days || hours ? `${hours}:` : "") + tail;
}

export function short(number) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "–";
  const size = Math.abs(number);
  for (const [least, unit, letter] of [[1e12, 1e12, "T"], [1e9, 1e9, "G"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]]) {
    if (size >= least) return `${(number / unit).toPrecision(3)}${letter}`;
  }
  if (size === 0) return "0";
  if (Number.isInteger(number)) return number.toLocaleString("en");
  if (size >= 100) return Math.round(number).toLocaleString("en");
  if (size >= 0.001) return String(Number(number.toPrecision(3)));
  return number.toExponential(1);
}

export function percent(share) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}\u00a0%`;
}

export function bytes(count) {
  for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (count >= size) return `${(count / size).toFixed(1)} ${unit}`;
  }
  return `${count} bytes`;
}

export function withUnit(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "%") return percent(value);
  return short(value) + (unit || "");
}

// The range of numbers with their errors. Of an error that is far larger than most, only a part is in it.
export function spanned(numbers, errors) {
  const sorted = errors.filter((error) => error > 0).sort((a, b) => a - b);
  const most = Math.max(50, 0.2 * (Math.max(...numbers) - Math.min(...numbers)), 2 * (sorted[Math.floor(sorted.length / 2)] || 0));
  const part = (at) => Math.min(errors[at] || 0, most);
  return [Math.min(...numbers.map((x, at) => x - part(at))), Math.max(...numbers.map((x, at) => x + part(at)))];
}

export function save(name, content) {
  const link = h("a", { href: URL.createObjectURL(new Blob([content], { type: "text/plain" })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function remembered(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(`tengen.${key}`);
    localStorage.setItem(`tengen.${key}`, value);
  } catch (error) { /* a page from the disk may not remember anything */ }
  return value ?? null;
}
