// Charts by keyboard and by touch; the mouse is uPlot's.

// The keyboard does what the mouse does: the arrows read the values, + and - zoom, Escape shows everything.
export function chartKey(u, event, view, zoomTo) {
  const xs = u.data[0];
  const { min, max } = u.scales.x;
  const there = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : (min + max) / 2;
  const zoom = (factor) => zoomTo(Math.max(there - (there - min) * factor, 0), Math.min(there + (max - there) * factor, Math.max(...xs)));
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step) {
    const visible = xs.filter((x) => x >= min && x <= max);
    const now = u.cursor.left >= 0 ? visible.findIndex((x) => x >= there - (max - min) * 1e-6) : step > 0 ? -1 : visible.length;
    const next = visible[Math.max(0, Math.min(visible.length - 1, (now < 0 && step < 0 ? visible.length : now) + step * (event.shiftKey ? 10 : 1)))];
    if (next !== undefined) u.setCursor({ left: u.valToPos(next, "x"), top: 20 });
  } else if (event.key === "+" || event.key === "=") zoom(0.5);
  else if (event.key === "-") { if (view.zoom) zoom(2); } else if (event.key === "Escape") zoomTo(null);
  else return;
  event.preventDefault();
}

// A finger that is drawn across a chart zooms; up and down it scrolls the page.
export function chartTouch(u, zoomTo) {
  let from = null;
  const at = (event) => Math.max(0, Math.min(u.over.clientWidth, event.clientX - u.over.getBoundingClientRect().left));
  const over = (act) => (event) => { if (event.pointerType === "touch") act(event); };
  u.over.addEventListener("pointerdown", over((event) => { from = at(event); }));
  u.over.addEventListener("pointermove", over((event) => {
    if (from === null) return;
    u.setCursor({ left: at(event), top: 20 });
    u.setSelect({ left: Math.min(from, at(event)), width: Math.abs(at(event) - from), top: 0, height: u.over.clientHeight }, false);
  }));
  u.over.addEventListener("pointerup", over((event) => {
    const [low, high] = [Math.min(from ?? at(event), at(event)), Math.max(from ?? at(event), at(event))];
    from = null;
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (high - low > 12) zoomTo(u.posToVal(low, "x"), u.posToVal(high, "x"));
  }));
  u.over.addEventListener("pointercancel", over(() => { from = null; u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false); }));
}
