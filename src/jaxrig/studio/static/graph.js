// A causal graph on a 2-D canvas: causes left of effects, likelier edges wider.
import { figure, ticks } from "/static/shell.js";

const INK = "#dfe8f5", SOFT = "#8fa1bb", TARGET = "#ffdc00", KNOWN = "#6fd898", FORBIDDEN = "#ff9d94";

// On an oval from causes at the left to effects at the right, so that no three lie in line.
export function places(canvas, graph) {
  const wide = canvas.clientWidth, tall = canvas.clientHeight, count = graph.names.length;
  const order = graph.names.map((_, k) => k).sort((a, b) => graph.columns[a] - graph.columns[b] || graph.heights[a] - graph.heights[b]);
  const found = [];
  order.forEach((node, k) => {
    const angle = (Math.PI * k) / Math.max(1, count - 1), side = k % 2 ? 1 : -1;
    found[node] = [wide / 2 - (wide / 2 - Math.min(80, wide * 0.14)) * Math.cos(angle), tall / 2 + side * (tall / 2 - 44) * Math.sin(angle)];
  });
  return found;
}
const has = (list, cause, effect) => (list ?? []).some(([a, b]) => a === cause && b === effect);

// Where an edge leaves and ends, and the point it bends through.
function arc([x, y], [p, q], both) {
  // To the left of its direction, so that there and back are two curves.
  const away = Math.hypot(p - x, q - y) || 1, ends = 26, bend = both ? 24 : 10;
  const middle = [(x + p) / 2 - ((q - y) / away) * bend, (y + q) / 2 + ((p - x) / away) * bend];
  const cut = (from, to) => { const far = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1; return [from[0] + ((to[0] - from[0]) * ends) / far, from[1] + ((to[1] - from[1]) * ends) / far]; };
  return { start: cut([x, y], middle), middle, stop: cut([p, q], middle) };
}

export function drawGraph(canvas, graph, more = {}) {
  const sharp = devicePixelRatio || 1, least = more.least ?? 0.25;
  Object.assign(canvas, { width: canvas.clientWidth * sharp, height: canvas.clientHeight * sharp });
  const ink = canvas.getContext("2d"), at = places(canvas, graph);
  ink.scale(sharp, sharp);
  ink.font = "12px system-ui";
  ink.textAlign = "center";
  const labels = [];
  graph.names.forEach((cause, i) => graph.names.forEach((effect, j) => {
    const known = has(graph.know, cause, effect), closed = has(graph.forbid, cause, effect), share = graph.probs[i][j];
    if (i === j || (share < least && !known && !closed)) return;
    const { start, middle, stop } = arc(at[i], at[j], graph.probs[j][i] >= least);
    ink.globalAlpha = known || closed ? 1 : 0.25 + 0.75 * share;
    ink.strokeStyle = ink.fillStyle = known ? KNOWN : closed ? FORBIDDEN : INK;
    ink.lineWidth = known ? 3 : closed ? 1.5 : 0.8 + 4 * share;
    ink.setLineDash(closed ? [4, 5] : []);
    ink.beginPath();
    ink.moveTo(...start);
    ink.quadraticCurveTo(...middle, ...stop);
    ink.stroke();
    ink.setLineDash([]);
    head(ink, middle, stop, closed);
    const spot = [(start[0] + 2 * middle[0] + stop[0]) / 4, (start[1] + 2 * middle[1] + stop[1]) / 4];
    if (known || closed || share >= least) labels.push([known ? "known" : closed ? "forbidden" : `${Math.round(100 * share)}%`, ...spot, ink.fillStyle]);
  }));
  ink.globalAlpha = 1;
  for (const [words, x, y, color] of labels) {
    const wide = ink.measureText(words).width + 6;
    ink.fillStyle = "#0a1322d0";
    ink.fillRect(x - wide / 2, y - 9, wide, 15);
    ink.fillStyle = color;
    ink.fillText(words, x, y + 3);
  }
  if (more.pull) { ink.strokeStyle = more.forbid ? FORBIDDEN : KNOWN; ink.lineWidth = 2; ink.beginPath(); ink.moveTo(...at[more.pull.from]); ink.lineTo(...more.pull.to); ink.stroke(); }
  graph.names.forEach((name, k) => {
    const [x, y] = at[k], target = name === graph.target;
    ink.beginPath();
    ink.arc(x, y, target ? 17 : 14, 0, 7);
    ink.fillStyle = target ? TARGET : "#1d2d49";
    ink.fill();
    ink.lineWidth = more.focus === k ? 4 : 2;
    ink.strokeStyle = more.focus === k ? "#7ab8ff" : target ? TARGET : SOFT;
    ink.stroke();
    if (target) { ink.fillStyle = "#17202e"; ink.fillText("target", x, y + 4, 32); }
    ink.fillStyle = INK;
    ink.font = "13px system-ui";
    // Away from the middle, where most edges run.
    ink.fillText(name.length > 18 ? `${name.slice(0, 17)}…` : name, x, y < canvas.clientHeight / 3 ? y - 22 : y + 33);
    ink.font = "12px system-ui";
  });
}
function head(ink, from, to, closed) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]), size = 9;
  ink.beginPath();
  if (closed) {
    for (const turn of [0.8, -0.8]) { ink.moveTo(to[0] - size * Math.cos(angle + turn), to[1] - size * Math.sin(angle + turn)); ink.lineTo(to[0] + size * Math.cos(angle + turn), to[1] + size * Math.sin(angle + turn)); }
    ink.stroke();
    return;
  }
  ink.moveTo(...to);
  for (const turn of [0.45, -0.45]) ink.lineTo(to[0] - size * Math.cos(angle + turn), to[1] - size * Math.sin(angle + turn));
  ink.fill();
}

// Lines of probabilities over experiments; safe colors (Okabe and Ito, 2008), and names at the ends.
export const SAFE = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00"];
export function drawBeliefs(canvas, beliefs, names) {
  const sharp = devicePixelRatio || 1, wide = canvas.clientWidth, tall = canvas.clientHeight;
  Object.assign(canvas, { width: wide * sharp, height: tall * sharp });
  const ink = canvas.getContext("2d"), box = { left: 52, right: wide - 120, top: 12, bottom: tall - 38 };
  ink.scale(sharp, sharp);
  ink.font = "12px system-ui";
  ink.fillStyle = ink.strokeStyle = SOFT;
  for (const share of [0, 0.5, 1]) { const y = box.bottom - share * (box.bottom - box.top); ink.globalAlpha = 0.4; ink.fillRect(box.left, y, box.right - box.left, 1); ink.globalAlpha = 1; ink.textAlign = "right"; ink.fillText(`${100 * share}%`, box.left - 6, y + 4); }
  const to = (k, share) => [box.left + ((box.right - box.left) * k) / Math.max(1, beliefs.length - 1), box.bottom - share * (box.bottom - box.top)];
  ink.textAlign = "center";
  beliefs.forEach(({ rows }, k) => { if (beliefs.length < 12 || k % Math.ceil(beliefs.length / 8) === 0) ink.fillText(rows, to(k, 0)[0], box.bottom + 15); });
  ink.fillText("rows", (box.left + box.right) / 2, tall - 7);
  const taken = [];
  names.slice(0, 6).forEach((name, n) => {
    ink.strokeStyle = ink.fillStyle = SAFE[n];
    ink.lineWidth = 2;
    ink.beginPath();
    beliefs.forEach(({ causes }, k) => ink[k ? "lineTo" : "moveTo"](...to(k, causes[name] ?? 0)));
    ink.stroke();
    beliefs.forEach(({ causes }, k) => { ink.beginPath(); ink.arc(...to(k, causes[name] ?? 0), 3, 0, 7); ink.fill(); });
    let y = to(0, beliefs.at(-1).causes[name] ?? 0)[1];
    while (taken.some((other) => Math.abs(other - y) < 13)) y += 13;
    taken.push(y);
    ink.textAlign = "left";
    ink.fillText(name.slice(0, 16), box.right + 8, Math.min(y, tall - 4) + 4);
  });
}

// Expected outcomes over the range of each variable, with 95 % bands, side by side.
export function drawEffects(canvas, curves, target, settings) {
  const sharp = devicePixelRatio || 1, wide = canvas.clientWidth, tall = canvas.clientHeight, ink = canvas.getContext("2d");
  Object.assign(canvas, { width: wide * sharp, height: tall * sharp });
  ink.scale(sharp, sharp);
  ink.font = "12px system-ui";
  const across = Math.min(curves.length, effectsAcross(wide)), high = tall / Math.ceil(curves.length / across);
  const ends = curves.map(({ expected, std, tried }) => [expected.map((e, k) => e - 1.96 * std[k]), expected.map((e, k) => e + 1.96 * std[k]), tried.map((t) => t[1])]).flat(2);
  const [low, top] = [Math.min(...ends), Math.max(...ends)];
  curves.forEach(({ name, values, expected, std, tried }, n) => {
    const left = ((n % across) * wide) / across + 48, right = ((n % across) + 1) * (wide / across) - 12;
    const up = Math.floor(n / across) * high + 24, down = Math.floor(n / across) * high + high - 34;
    const to = (x, y) => [left + ((right - left) * (x - values[0])) / (values.at(-1) - values[0] || 1), down - ((down - up) * (y - low)) / (top - low || 1)];
    ink.fillStyle = SOFT;
    for (const y of ticks(low, top, 4)) { const at = to(values[0], y)[1]; ink.globalAlpha = 0.35; ink.fillRect(left, at, right - left, 1); ink.globalAlpha = 1; ink.textAlign = "right"; ink.fillText(figure(y), left - 6, at + 4); }
    [["left", 0], ["right", values.length - 1]].forEach(([side, k]) => { ink.textAlign = side; ink.fillText(figure(values[k]), to(values[k], low)[0], down + 15); });
    ink.textAlign = "center";
    ink.fillText(name.slice(0, 24), (left + right) / 2, down + 28);
    if (n % across === 0) { ink.textAlign = "left"; ink.fillText(`expected ${target}`.slice(0, 30), left, up - 10); }
    ink.fillStyle = "#56b4e9";
    ink.globalAlpha = 0.25;
    ink.beginPath();
    values.forEach((x, k) => ink.lineTo(...to(x, expected[k] - 1.96 * std[k])));
    for (let k = values.length - 1; k >= 0; k -= 1) ink.lineTo(...to(values[k], expected[k] + 1.96 * std[k]));
    ink.fill();
    ink.globalAlpha = 1;
    ink.strokeStyle = "#56b4e9";
    ink.lineWidth = 2;
    ink.beginPath();
    values.forEach((x, k) => ink.lineTo(...to(x, expected[k])));
    ink.stroke();
    ink.fillStyle = INK;
    for (const [x, y] of tried) { ink.beginPath(); ink.arc(...to(x, y), 2.5, 0, 7); ink.fill(); }
    if (!(name in settings)) return;
    const k = values.reduce((best, x, at) => (Math.abs(x - settings[name]) < Math.abs(values[best] - settings[name]) ? at : best), 0);
    ink.fillStyle = TARGET;
    ink.beginPath();
    ink.arc(...to(settings[name], expected[k]), 5, 0, 7);
    ink.fill();
  });
}
export const effectsAcross = (wide) => Math.max(1, Math.min(3, Math.floor(wide / 210)));
