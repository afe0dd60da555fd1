// The flow room: a domain, seeds drawn on it, and particles that move through it.
import { $, asked, axisUnit, bytes, call, callBytes, el, figure, frames, go, jobEnd, listen, onTheme, place, save, say, stay, still, stopJob, studio, ticks, upload } from "/static/shell.js";
import { CIVIDIS, VIRIDIS, particles, ramp } from "/static/particles.js";

const FLAT = [1, 0, 0, 0, 1, 0, 0, 0, 1];
const MOST_CORNERS = 500;
const PADDING = { left: 52, right: 16, top: 14, bottom: 36 };
const START = { source: { flow: "double_gyre" }, seeds: [{ kind: "all" }], particles: 10000, tool: "box" };

class Stage {
  constructor(changed) {
    this.picture = el("canvas", { className: "layer" });
    this.gl = el("canvas", { className: "layer" });
    this.marks = el("canvas", { className: "layer", tabIndex: 0, role: "application", "aria-label": "Domain: draw seeds with the pointer; space plays, arrows step, Home and End jump" });
    this.corner = el("div", { className: "corner", role: "status" });
    this.box = el("div", { className: "stage" }, this.picture, this.gl, this.marks, this.corner);
    Object.assign(this, { changed, seeds: [], tool: "box", angle: [0.6, -1.0], time: 0, playing: false, forward: true, rate: 1, layer: null, look: null, total: 0, margin: 0.02 });
    try {
      this.dots = particles(this.gl);
    } catch (error) {
      this.dots = particles(this.gl, true);
    }
    this.marks.addEventListener("pointerdown", (event) => this.down(event));
    this.marks.addEventListener("pointermove", (event) => this.move(event));
    this.marks.addEventListener("pointerup", (event) => this.up(event));
    this.marks.addEventListener("keydown", (event) => this.key(event));
  }
  get solid() { return this.look?.axes.length === 3; }
  get turning() { return this.solid && this.tool === "turn"; }
  setLook(look) {
    this.look = look;
    if (!this.solid && this.tool === "turn") this.tool = "box";
    this.layer = null;
    const [wide, tall] = this.sizes(); // a narrow window has no room for empty bands
    this.box.style.setProperty("--shape", this.solid ? 1 : Math.max(0.8, Math.min(1.6, wide / tall)).toFixed(2));
    this.start(0, 1);
    this.redraw();
  }
  // From the domain to the window, in pixels; the flat view fits its sides.
  frame() {
    const wide = this.box.clientWidth - PADDING.left - PADDING.right, tall = this.box.clientHeight - PADDING.top - PADDING.bottom;
    const [a, b] = this.look.axes, sizes = this.sizes();
    const scale = Math.min(wide / sizes[0], tall / sizes[1]);
    const left = PADDING.left + (wide - sizes[0] * scale) / 2, bottom = PADDING.top + (tall + sizes[1] * scale) / 2;
    const { lo } = this.look;
    return { scale, left, bottom, to: (x, y) => [left + (x - lo[a]) * scale, bottom - (y - lo[b]) * scale], from: (px, py) => [lo[a] + (px - left) / scale, lo[b] + (bottom - py) / scale] };
  }
  sizes() { return this.look.axes.map((axis) => this.look.hi[axis] - this.look.lo[axis] || 1); }
  view() {
    const sizes = this.sizes(), { clientWidth: wide, clientHeight: tall } = this.box, flat = this.frame();
    const spread = 1 + 2 * this.margin;
    // Lengths per unit of time, as a share of the fastest; degrees on a sphere become meters.
    const fast = this.look.picture.range[1] || 1, every = Math.abs((this.times?.[1] ?? 1) - (this.times?.[0] ?? 0)) || 1;
    const meters = this.look.sphere ? (this.look.sphere * Math.PI) / 180 : 1;
    const tilt = this.look.sphere ? Math.cos((((this.look.lo[1] + this.look.hi[1]) / 2) * Math.PI) / 180) : 1;
    const metric = [0, 1, 2].map((k) => ((sizes[k] ?? 0) * spread * meters * (k === 0 ? tilt : 1)) / (every * fast));
    const dot = this.dots.count > 30000 ? 1.6 : this.dots.count > 5000 ? 2.2 : 3.2;
    if (!this.turning) {
      const fit = [(2 * sizes[0] * spread * flat.scale) / wide, (2 * sizes[1] * spread * flat.scale) / tall];
      const middle = [flat.left + (sizes[0] * flat.scale) / 2, flat.bottom - (sizes[1] * flat.scale) / 2];
      return { dot, metric, turn: FLAT, center: [0.5, 0.5, 0], fit, shift: [(2 * middle[0]) / wide - 1, 1 - (2 * middle[1]) / tall], plain: Boolean(this.layer) };
    }
    const longest = Math.max(...sizes), scale = (Math.min(wide, tall) * 0.62) / longest;
    const turn = this.turned(sizes.map((size) => size * spread));
    return { dot, metric, turn, center: [0.5, 0.5, 0.5], fit: [(2 * scale) / wide, (2 * scale) / tall], shift: [0, 0], plain: false };
  }
  turned(sizes) {
    const [yaw, pitch] = this.angle, [c, s, p, q] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
    const rows = [[c, -s, 0], [s * p, c * p, -q], [s * q, c * q, p]];
    return [0, 1, 2].flatMap((column) => rows.map((row) => row[column] * sizes[column]));
  }
  start(count, total, times = null, tinted = false) {
    this.total = total;
    this.times = times;
    this.time = 0;
    this.dots.start(count, this.look ? Math.max(2, this.look.axes.length) : 2, total, tinted);
  }
  add(frame) { this.dots.add(frame); }
  get end() { return Math.max(0, this.dots.frames - 1); }
  seek(time, trails = true) {
    this.time = Math.max(0, Math.min(this.end, time));
    if (!this.look) return;
    const view = this.view();
    this.dots.clear();
    for (let back = trails ? 24 : 0; back > 0; back -= 1) this.dots.draw(Math.max(0, this.time - (this.forward ? 1 : -1) * back * 0.2), view, true, false);
    this.dots.draw(this.time, view);
    this.changed();
  }
  play(on = !this.playing) {
    this.playing = on && this.dots.frames > 1;
    if (this.playing && this.forward && this.time >= this.end && this.end >= this.total - 1) this.seek(0, false);
    if (this.playing && !this.forward && this.time <= 0) this.seek(this.end, false);
    this.last = null;
    if (this.playing) requestAnimationFrame((now) => this.tick(now));
    this.changed();
  }
  tick(now) {
    if (!this.playing || !this.box.isConnected) return;
    const passed = this.last === null ? 0 : Math.min(100, now - this.last);
    this.last = now;
    const step = ((passed / 1000) * this.rate * Math.max(10, this.total) / 12) * (this.forward ? 1 : -1);
    this.time = Math.max(0, Math.min(this.end, this.time + step));
    const began = performance.now();
    this.dots.draw(this.time, this.view());
    this.cost = 0.9 * (this.cost ?? 0) + 0.1 * (performance.now() - began);
    this.pace = 0.9 * (this.pace ?? 60) + 0.1 * (1000 / Math.max(1, passed || 16));
    const ended = this.forward ? this.time >= this.end && this.end >= this.total - 1 : this.time <= 0;
    if (ended) {
      this.playing = false;
      if (this.loops) { this.seek(0, false); this.play(true); return; }
    }
    this.changed();
    requestAnimationFrame((next) => this.tick(next));
  }
  redraw() {
    if (!this.look || !this.box.clientWidth) return;
    this.paint();
    this.overlay();
    this.seek(this.time);
  }
  // The picture under the particles: speed, FTLE or density.
  paint() {
    const canvas = this.picture, sharp = devicePixelRatio || 1;
    Object.assign(canvas, { width: this.box.clientWidth * sharp, height: this.box.clientHeight * sharp });
    const shown = this.layer ?? { ...this.look.picture, faint: true, map: VIRIDIS };
    if (this.turning) return;
    const pixels = atob(shown.data), image = new ImageData(shown.columns, shown.rows);
    for (let y = 0; y < shown.rows; y += 1) for (let x = 0; x < shown.columns; x += 1) {
      const value = pixels.charCodeAt((shown.rows - 1 - y) * shown.columns + x), at = 4 * (y * shown.columns + x);
      const color = value === 255 ? [52, 60, 70] : ramp(shown.map, value / 254);
      image.data.set([...color, shown.faint ? (value === 255 ? 255 : 60) : 255], at);
    }
    const small = new OffscreenCanvas(shown.columns, shown.rows);
    small.getContext("2d").putImageData(image, 0, 0);
    const ink = canvas.getContext("2d"), flat = this.frame(), sizes = this.sizes();
    ink.scale(sharp, sharp);
    ink.imageSmoothingEnabled = true;
    ink.drawImage(small, flat.left, flat.bottom - sizes[1] * flat.scale, sizes[0] * flat.scale, sizes[1] * flat.scale);
  }
  overlay() {
    const canvas = this.marks, sharp = devicePixelRatio || 1, ink = canvas.getContext("2d");
    Object.assign(canvas, { width: this.box.clientWidth * sharp, height: this.box.clientHeight * sharp });
    ink.scale(sharp, sharp);
    ink.font = "12px system-ui";
    ink.strokeStyle = ink.fillStyle = "#a3b1c6";
    if (this.turning) return this.cube(ink);
    const flat = this.frame(), { lo, hi, axes, names } = this.look, [a, b] = axes;
    const [left, bottom] = flat.to(lo[a], lo[b]), [right, top] = flat.to(hi[a], hi[b]);
    ink.strokeRect(left, top, right - left, bottom - top);
    ink.textAlign = "center";
    const [wide, tall] = [a, b].map((axis) => axisUnit(lo[axis], hi[axis]));
    for (const at of ticks(lo[a], hi[a], right - left < 300 ? 4 : 8)) { const [x] = flat.to(at, lo[b]); ink.fillRect(x, bottom, 1, 4); ink.fillText(figure(at / wide.unit), x, bottom + 17); }
    ink.textAlign = "right";
    for (const at of ticks(lo[b], hi[b])) { const [, y] = flat.to(lo[a], at); ink.fillRect(left - 4, y, 4, 1); ink.fillText(figure(at / tall.unit), left - 7, y + 4); }
    ink.textAlign = "center";
    ink.fillText(names[a] + wide.words, (left + right) / 2, bottom + 31);
    ink.save();
    ink.translate(left - 38, (top + bottom) / 2);
    ink.rotate(-Math.PI / 2);
    ink.fillText(names[b] + tall.words, 0, 0);
    ink.restore();
    ink.lineWidth = 2;
    for (const seed of [...this.seeds, this.drawing].filter(Boolean)) this.seed(ink, flat, seed);
    return undefined;
  }
  seed(ink, flat, { kind, from, to, points }) {
    if (kind === "all") return;
    const [x, y] = flat.to(...(from ?? points[0]));
    ink.strokeStyle = "#ffffff";
    ink.setLineDash(kind === "box" || kind === "polygon" ? [5, 4] : []);
    ink.beginPath();
    if (kind === "polygon") {
      points.forEach((point, k) => ink[k ? "lineTo" : "moveTo"](...flat.to(...point)));
      ink.closePath();
    } else if (kind === "point") ink.arc(x, y, 6, 0, 7);
    else {
      const [p, q] = flat.to(...to);
      if (kind === "line") { ink.moveTo(x, y); ink.lineTo(p, q); } else ink.rect(Math.min(x, p), Math.min(y, q), Math.abs(p - x), Math.abs(q - y));
    }
    ink.stroke();
    ink.setLineDash([]);
  }
  cube(ink) {
    const sizes = this.sizes(), scale = (Math.min(this.box.clientWidth, this.box.clientHeight) * 0.31) / Math.max(...sizes), turn = this.turned(sizes.map((s) => s * 2));
    const corner = (k) => { const at = [k & 1, (k >> 1) & 1, (k >> 2) & 1].map((v) => v - 0.5); return [0, 1].map((row) => turn[row] * at[0] + turn[3 + row] * at[1] + turn[6 + row] * at[2]); };
    const to = ([x, y]) => [this.box.clientWidth / 2 + x * scale, this.box.clientHeight / 2 - y * scale];
    ink.beginPath();
    for (let k = 0; k < 8; k += 1) for (const bit of [1, 2, 4]) if (!(k & bit)) { ink.moveTo(...to(corner(k))); ink.lineTo(...to(corner(k | bit))); }
    ink.stroke();
    [1, 2, 4].forEach((k, axis) => { const [x, y] = to(corner(k)); ink.fillText(this.look.names[axis], x + 6, y - 6); });
  }
  spot(event) {
    const area = this.marks.getBoundingClientRect(), { lo, hi, axes } = this.look;
    const found = this.frame().from(event.clientX - area.left, event.clientY - area.top);
    return found.map((value, k) => Math.max(lo[axes[k]], Math.min(hi[axes[k]], value)));
  }
  down(event) {
    if (!this.look || event.button) return;
    this.marks.setPointerCapture(event.pointerId);
    if (this.turning) { this.grip = [event.clientX, event.clientY]; return; }
    const at = this.spot(event);
    this.drawing = this.tool === "polygon" ? { kind: "polygon", points: [at], from: at, to: at } : { kind: this.tool, from: at, to: at };
  }
  move(event) {
    if (this.grip) {
      this.angle = [this.angle[0] + (event.clientX - this.grip[0]) / 150, this.angle[1] + (event.clientY - this.grip[1]) / 150];
      this.grip = [event.clientX, event.clientY];
      this.overlay();
      if (!this.playing) this.seek(this.time); else this.dots.clear();
    } else if (this.drawing) {
      const at = this.spot(event), last = this.drawing.points?.at(-1);
      this.drawing.to = at;
      if (last && this.apart(at, last) > 0.005 && this.drawing.points.length < MOST_CORNERS) this.drawing.points.push(at);
      this.overlay();
    }
  }
  // The distance of two places as a share of the domain.
  apart(one, other) { return Math.hypot(one[0] - other[0], one[1] - other[1]) / Math.max(...this.sizes().slice(0, 2)); }
  up() {
    this.grip = null;
    if (!this.drawing) return;
    const { kind, from, to, points } = this.drawing;
    this.drawing = null;
    const drawn = kind === "polygon" ? points.length > 2 : kind !== "point" && this.apart(from, to) > 1e-3;
    const made = !drawn ? { kind: "point", from } : kind === "polygon" ? { kind, points } : { kind, from, to };
    this.seeds = [...this.seeds.filter((seed) => seed.kind !== "all"), made];
    this.overlay();
    this.changed(true);
  }
  key(event) {
    const act = { " ": () => this.play(), ArrowRight: () => this.seek(Math.floor(this.time) + 1), ArrowLeft: () => this.seek(Math.ceil(this.time) - 1), Home: () => this.seek(0), End: () => this.seek(this.end) }[event.key];
    if (!act) return;
    event.preventDefault();
    if (event.key !== " ") this.playing = false;
    act();
  }
}

// The date of a time that is counted from one, as in "seconds since 2024-01-01".
function dated(time, units) {
  const found = /^(second|minute|hour|day)s? since (\d{4}-\d\d-\d\d)[T ]?([\d:]*)/.exec(units ?? "");
  if (!found) return null;
  const start = Date.parse(`${found[2]}T${(found[3] || "00:00").slice(0, 5)}Z`);
  const moment = start + 1000 * time * { second: 1, minute: 60, hour: 3600, day: 86400 }[found[1]];
  return new Date(moment).toISOString().slice(0, 16).replace("T", " ");
}

function bar(range, title, map = VIRIDIS) {
  const steps = el("div", { className: "bar" });
  steps.style.background = `linear-gradient(to right, ${map.join(", ")})`;
  const { unit, words } = axisUnit(...range);
  const marks = ticks(range[0], range[1], 5).map((at) => {
    const mark = el("span", { text: figure(at / unit) });
    mark.style.left = `${(100 * (at - range[0])) / (range[1] - range[0] || 1)}%`;
    return mark;
  });
  return el("div", { className: "colorbar", role: "img", "aria-label": `${title} from ${figure(range[0])} to ${figure(range[1])}` }, el("small", { text: title + words }), steps, el("div", { className: "ticks" }, marks));
}

export async function enter(room, parts, query) {
  const list = await call("trace", "sources");
  const state = structuredClone(START);
  if (query.get("flow")) state.source = { flow: query.get("flow") };
  if (query.get("file")) state.source = { file: query.get("file") };
  let shellWords = null, job = null, leaveFrames = () => {}, look = null, preview = false;

  // Middle: the stage and its player.
  const scrub = el("input", { type: "range", min: 0, max: 1, step: 0.01, value: 0, "aria-label": "Time", oninput: () => { stage.playing = false; stage.seek(Number(scrub.value)); } });
  const playing = el("button", { type: "button", text: "▶", "aria-label": "Play or pause", onclick: () => stage.play() });
  const reverse = el("button", { type: "button", text: "⇄", title: "Reverse", "aria-label": "Play backward", "aria-pressed": "false", onclick: () => { stage.forward = !stage.forward; reverse.setAttribute("aria-pressed", String(!stage.forward)); } });
  const clock = el("span", { className: "clock" });
  const speed = el("select", { "aria-label": "Speed", onchange: () => { stage.rate = Number(speed.value); } }, [0.25, 0.5, 1, 2, 4].map((value) => el("option", { value, text: `${value}×`, selected: value === 1 })));
  const legend = el("div", { className: "legend" });
  const caption = el("p", { className: "small" }), shown = el("span");
  const changed = (drawn) => {
    if (drawn) estimate();
    scrub.max = Math.max(1, stage.total - 1);
    scrub.value = stage.time;
    playing.textContent = stage.playing ? "❚❚" : "▶";
    const at = stage.times?.length > 1 ? stage.times[0] + (stage.time / (stage.times.length - 1)) * (stage.times.at(-1) - stage.times[0]) : null;
    clock.textContent = at === null ? "" : dated(at, look?.time_units) ?? `t = ${figure(at)}`;
    const shown = Math.min(stage.dots.count, stage.dots.most ?? Infinity);
    stage.corner.textContent = stage.dots.count ? `${figure(shown)}${shown < stage.dots.count ? ` of ${figure(stage.dots.count)}` : ""} particles${stage.playing ? ` · ${Math.round(Math.min(60, stage.pace ?? 60))} frames/s` : ""}` : "";
    stage.box.dataset.cost = (stage.cost ?? 0).toFixed(2);
  };
  const stage = new Stage(changed);
  stage.seeds = state.seeds;
  const tools = ["box", "polygon", "line", "point", "turn"].map((tool) => {
    const button = el("button", { type: "button", text: { box: "Box", polygon: "Polygon", line: "Line", point: "Point", turn: "Turn" }[tool], title: { box: "Drag a box of seeds", polygon: "Drag around an area of seeds", line: "Drag a line of seeds", point: "Tap for a small cloud of seeds", turn: "Drag to turn the domain" }[tool], onclick: () => pick(tool) });
    button.dataset.tool = tool;
    return button;
  });
  const pick = (tool) => {
    stage.tool = tool;
    for (const button of tools) button.setAttribute("aria-pressed", String(button.dataset.tool === stage.tool));
    stage.redraw();
  };
  const seedWords = el("span", { className: "small" });
  const whole = el("button", { type: "button", text: "Whole domain", onclick: () => { stage.seeds = [{ kind: "all" }]; stage.overlay(); estimate(); } });
  const clear = el("button", { type: "button", id: "clear-seeds", text: "Clear", onclick: () => { stage.seeds = []; stage.overlay(); estimate(); } });

  // Right: settings.
  const input = (type, more) => el("input", { type, ...more, oninput: () => estimate() });
  const count = el("select", { onchange: () => estimate() }, [100, 1000, 5000, 10000, 20000, 50000, 100000].map((value) => el("option", { value, text: figure(value), selected: value === state.particles })));
  const begin = input("number", { step: "any" }), end = input("number", { step: "any" });
  const integrator = el("select", {}, list.integrators.map((name) => el("option", { value: name, text: name, selected: name === "rk4" })));
  const boundary = el("select"), tint = el("select", { id: "color", onchange: () => estimate() });
  const mixing = input("number", { step: "any", min: 0, placeholder: "0" });
  const tintBox = el("label", { hidden: true }, "Color by", tint), guess = el("p", { className: "small" });
  const runButton = el("button", { type: "button", id: "run", className: "main", text: "Track particles", onclick: asked(() => track()) });
  const stopButton = el("button", { type: "button", text: "Stop", hidden: true, onclick: asked(() => stopJob(job.id)) });
  const meter = el("progress", { max: 1, value: 0, hidden: true });
  const status = el("p", { className: "small", role: "status", id: "flow-status" });
  const saving = el("div", { className: "row", hidden: true });
  const layers = el("div", { className: "row", role: "group", "aria-label": "Layer" });
  const dims = () => (look?.axes.length ?? 2) + (tint.value ? 1 : 0);
  const frameCount = () => Math.max(20, Math.min(241, Math.floor(24e6 / (Number(count.value) * dims() * 2))));
  const estimate = () => {
    const n = Number(count.value), total = n * dims() * 2 * frameCount();
    guess.textContent = `${figure(n)} particles × ${frameCount()} frames: ${bytes(total)}`;
    const kinds = stage.seeds.map((seed) => seed.kind);
    seedWords.textContent = kinds.includes("all") ? "seeds over the whole domain" : kinds.length ? `${kinds.length} ${kinds.length === 1 ? "shape" : "shapes"} of seeds` : "no seeds: drag on the domain";
    runButton.disabled = !kinds.length || !look || job?.state === "running";
  };

  // Left: sources.
  const flows = el("div", { className: "row" }), files = el("div", { className: "stack" }), kept = el("div", { className: "row" });
  const notes = el("ul", { className: "notes small" });
  const picker = el("input", { type: "file", multiple: true, hidden: true, accept: list.suffixes.join(","), onchange: () => take(picker.files) });
  const drop = el("button", { type: "button", className: "drop", onclick: () => picker.click() }, "Drop files here, or choose them", el("small", { text: list.suffixes.join(" ") }));
  const take = asked(async (given) => {
    let last = null;
    for (const file of given) {
      status.textContent = `reading ${file.name}`;
      last = await upload("trace", file);
    }
    status.textContent = "";
    if (!last) return;
    Object.assign(list, await call("trace", "sources"));
    const series = list.files.find((one) => one.files > 1 && matchesPattern(last.name, one.file));
    showSources();
    await open({ file: series?.file ?? last.name });
  });
  for (const kind of ["dragover", "dragleave", "drop"]) room.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.toggle("over", kind === "dragover"); if (kind === "drop") take(event.dataTransfer.files); });
  const chosen = (source) => JSON.stringify(source) === JSON.stringify(state.source);
  const showSources = () => {
    flows.replaceChildren(...list.flows.map(({ flow, title }) => el("button", { type: "button", text: title, "aria-pressed": String(chosen({ flow })), onclick: asked(() => open({ flow })) })));
    files.replaceChildren(...list.files.slice(0, 40).map(({ file, files: many }) => el("button", { type: "button", className: "file", "aria-pressed": String(chosen({ file })), onclick: asked(() => open({ file })) }, file, many > 1 ? el("small", { text: ` ${many} files` }) : "")));
    kept.replaceChildren(...list.runs.slice(0, 30).map((name) => el("button", { type: "button", text: name, onclick: asked(async () => attach(await call("trace", "resume", { run: name }))) })));
    kept.previousElementSibling.hidden = !list.runs.length;
  };

  async function open(source, then = null) {
    leaveFrames();
    look = null;
    estimate();
    status.textContent = "reading the flow";
    try {
      look = await call("trace", "look", { source });
    } finally {
      status.textContent = "";
    }
    state.source = source;
    job = null;
    stay(["trace"], source);
    stage.loops = preview = false;
    stage.tool = look.axes.length === 3 ? "turn" : "box";
    stage.seeds = [{ kind: "all" }];
    stage.setLook(look);
    tools.at(-1).hidden = look.axes.length < 3;
    pick(stage.tool);
    [begin.value, end.value] = look.span.map((t) => Number(t.toPrecision(6)));
    tint.replaceChildren(el("option", { value: "", text: "speed" }), ...look.variables.map((name) => el("option", { value: name, text: name })));
    tintBox.hidden = !look.variables.length;
    boundary.replaceChildren(...look.boundaries.map((name) => el("option", { value: name, text: name })));
    notes.replaceChildren(...look.notes.map((text) => el("li", { text })), look.time_units ? el("li", { text: `time in ${look.time_units}` }) : "");
    showScale();
    caption.replaceChildren(shown, "In a terminal: ", el("code", { text: source.flow ? `jaxrig trace new case.toml${source.flow === "double_gyre" ? "" : `  # then set name = "${source.flow}" under [flow]`}` : `jaxrig trace new case.toml ${source.file}` }));
    shellWords = $("code", caption);
    saving.hidden = true;
    setLayers();
    showSources();
    estimate();
    await then?.();
  }
  // The scale of what particles are colored by.
  function showScale() {
    const by = job?.about.color, ends = by ? job.about.ends : look.picture.range;
    legend.replaceChildren(...(ends ? [bar(ends, by ?? `Speed${look.sphere ? ", m/s" : ""}`)] : []));
  }
  function setLayers() {
    shown.textContent = { ftle: "Color shows how fast neighbors part: particles on the two sides of a bright line end far from each other. ", density: "Color shows where the particles gather. " }[stage.layer?.kind] ?? (job?.about?.color ? `Color shows ${job.about.color} where a particle is, gray where it is not known. ` : "Color shows how fast a particle moves. ");
    const some = [["speed", "None"], ["ftle", "FTLE"], ...(job?.about?.run ? [["density", "Density"]] : [])];
    layers.replaceChildren(...some.map(([kind, title]) => el("button", { type: "button", text: title, "aria-pressed": String((stage.layer?.kind ?? "speed") === kind), disabled: look?.axes.length === 3 && kind === "ftle", onclick: asked(() => showLayer(kind, title)) })));
  }
  async function showLayer(kind, title) {
    if (kind === "speed") {
      stage.layer = null;
      showScale();
    } else {
      const made = await call("trace", "layer", { kind, source: state.source, span: [Number(begin.value), Number(end.value)], run: job?.about?.run });
      status.textContent = `computing ${title}`;
      const ended = await jobEnd(made.id);
      status.textContent = ended.message;
      if (ended.state !== "done") return;
      const map = kind === "density" ? CIVIDIS : VIRIDIS;
      stage.layer = { ...(await call("trace", "layer_values", { job: made.id })), map, kind };
      const name = kind === "ftle" ? `FTLE, per unit of time, from t = ${figure(Number(begin.value))} to ${figure(Number(end.value))}` : "Density of particles in the last frame";
      legend.replaceChildren(bar(stage.layer.range, name, map));
    }
    if (job) showJob(); else setLayers();
    stage.redraw();
  }
  async function track() {
    const request = {
      source: state.source, seeds: stage.seeds, particles: Number(count.value), frames: frameCount(),
      span: [Number(begin.value), Number(end.value)], integrator: integrator.value, boundary: boundary.value, diffusivity: Number(mixing.value) || null, color: tint.value || null,
    };
    attach(await call("trace", "run", request));
  }
  function attach(begun) {
    leaveFrames();
    job = begun;
    preview = stage.loops = false;
    stay(["trace"], { ...state.source, job: job.id });
    let ready = false;
    const describe = async () => {
      if (ready || !job.about.times) return;
      ready = true;
      stage.start(job.about.count, job.about.times.length, job.about.times, Boolean(job.about.color));
      if (!stage.layer) showScale();
      stay(["trace"], { ...state.source, job: job.id, run: job.about.run });
    };
    leaveFrames = frames(job.id, (frame) => {
      Object.assign(job, studio.jobs.get(job.id) ?? {});
      describe();
      if (!ready) return;
      stage.add(frame);
      if (stage.dots.frames === 2) still.matches ? stage.seek(0) : stage.play(true);
    }, (facts) => {
      if (facts) Object.assign(job, facts);
      if (still.matches) stage.seek(stage.end);
      showJob();
      asked(async () => { Object.assign(list, await call("trace", "sources")); showSources(); })();
    });
    showJob();
  }
  function showJob() {
    if (!job) return;
    const running = job.state === "running";
    stopButton.hidden = meter.hidden = !running;
    meter.max = job.total || 1;
    if (job.total) meter.value = job.done; else meter.removeAttribute("value");
    status.textContent = running ? job.label : job.state === "failed" ? job.message : `${job.state}: ${job.frames} frames${job.about.run && !studio.read_only ? ` in runs/${job.about.run}` : ""}`;
    status.className = job.state === "failed" ? "bad" : "small";
    saving.hidden = running || !job.about.run;
    if (job.about.run && shellWords) shellWords.textContent = `jaxrig trace run ${studio.folder}/runs/${job.about.run}`;
    setLayers();
    if (job.about.color && !stage.layer) showScale();
    estimate();
  }
  const format = el("select", { "aria-label": "Format of the trajectories" }, ["csv", "nc", "vtp", "npz"].map((kind) => el("option", { value: kind, text: `.${kind}` })));
  saving.append(el("button", { type: "button", text: "Case file", onclick: asked(() => save("trace", "case", { run: job.about.run })) }), el("button", { type: "button", text: "Trajectories", onclick: asked(() => save("trace", "trajectories", { run: job.about.run, format: format.value })) }), format);

  room.append(el("div", { className: "room flow" },
    el("aside", { className: "left stack" }, el("h2", { text: "Analytic flows" }), flows, el("h2", { text: "Your files" }), drop, picker, files, el("h2", { text: "Runs" }), kept, notes),
    el("section", { className: "stack" }, el("div", { className: "row", role: "toolbar", "aria-label": "Seeds" }, el("b", { text: "Seeds" }), tools, whole, clear, seedWords), stage.box,
      el("div", { className: "row player" }, playing, reverse, el("div", { className: "grow" }, scrub), clock, speed), legend, caption),
    el("aside", { className: "stack" }, el("div", { className: "card stack" },
      el("label", {}, "Particles", count), el("div", { className: "halves" }, el("label", {}, "From time", begin), el("label", {}, "To time", end)),
      el("label", {}, "Boundary", boundary), el("label", {}, "Integrator", integrator), el("label", {}, "Diffusivity", mixing), tintBox, guess,
      el("div", { className: "row" }, runButton, stopButton), meter, status, saving), el("div", { className: "card stack" }, el("h2", { text: "Layer under the particles" }), layers))));
  showSources();
  const resized = new ResizeObserver(() => stage.redraw());
  resized.observe(stage.box);
  const stops = [listen("job", (event) => { if (job && event.id === job.id) { Object.assign(job, event); showJob(); } }), onTheme(() => stage.redraw())];

  await open(state.source, asked(async () => {
    const known = studio.jobs.get(query.get("job"));
    if (known) return attach({ ...known });
    if (query.get("run") && list.runs.includes(query.get("run"))) return attach(await call("trace", "resume", { run: query.get("run") }));
    if (state.source.flow === "double_gyre") return showPreview();
    status.textContent = "Draw seeds, or keep the whole domain, and track them.";
    return undefined;
  }));
  async function showPreview() {
    preview = true;
    const data = await callBytes("trace", "preview"), each = 2000 * 4;
    if (!preview) return;
    stage.start(2000, data.byteLength / each, Array.from({ length: data.byteLength / each }, (_, k) => 0.2 * k));
    for (let at = 0; at < data.byteLength; at += each) stage.add(data.slice(at, at + each));
    status.textContent = "This is a preview. Draw seeds, or keep the whole domain, and track them.";
    stage.loops = true;
    if (still.matches) stage.seek(stage.end); else stage.play(true);
  }
  return () => { stage.playing = false; leaveFrames(); resized.disconnect(); stops.forEach((stop) => stop()); };
}
const matchesPattern = (name, pattern) => new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace("*", "\\d+")}$`).test(name);
