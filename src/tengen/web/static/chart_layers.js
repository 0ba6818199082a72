// What is drawn into a chart besides its lines.
import { colour } from "dom.js";

// The values themselves, faint, below their mean.
export function drawUnsmoothed(u, series, log) {
  const { ctx } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  ctx.globalAlpha = 0.25;
  ctx.lineWidth = devicePixelRatio;
  series.forEach((one, at) => {
    if (one.errors || !u.series[at + 1].show) return;
    ctx.strokeStyle = colour(one.colour);
    ctx.beginPath();
    one.xs.forEach((x, place) => {
      const y = one.ys[place];
      if (x !== null && y !== null && y !== undefined && !(log && y <= 0)) ctx.lineTo(u.valToPos(x, "x", true), u.valToPos(y, "y", true));
    });
    ctx.stroke();
  });
  ctx.restore();
}

// Bars around values that have errors.
export function drawErrors(u, series) {
  const { ctx } = u;
  series.forEach((one, at) => {
    if (!one.errors || !u.series[at + 1].show) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    ctx.strokeStyle = colour(one.colour);
    ctx.globalAlpha = 0.55;
    ctx.lineWidth = 1.25 * devicePixelRatio;
    one.xs.forEach((x, place) => {
      if (x === null || one.ys[place] === null || !one.errors[place]) return;
      const across = u.valToPos(x, "x", true);
      const [top, bottom] = [1, -1].map((sign) => u.valToPos(one.ys[place] + sign * one.errors[place], "y", true));
      const cap = 3 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(across, top); ctx.lineTo(across, bottom);
      for (const y of [top, bottom]) { ctx.moveTo(across - cap, y); ctx.lineTo(across + cap, y); }
      ctx.stroke();
    });
    ctx.restore();
  });
}
