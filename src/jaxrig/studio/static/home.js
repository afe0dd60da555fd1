// Home: three live tiles, each a door to a room.
import { address, call, callBytes, el, onTheme, still, studio } from "/static/shell.js";
import { COLORS, shape } from "/static/grid.js";
import { drawGraph } from "/static/graph.js";
import { particles } from "/static/particles.js";

export async function enter(room) {
  const tiles = [];
  const stops = [];
  if (studio.shown.includes("arc")) tiles.push(tile("arc", "ARC", "Puzzles of colored grids", "Find the rule from a few examples and draw the output, with the same operations that agents use.", stops, puzzle));
  if (studio.shown.includes("trace")) tiles.push(tile("trace", "Flow", "Particles in a double gyre", "Drop your own data or choose an analytic flow, draw seeds, and watch where particles go.", stops, gyre));
  if (studio.shown.includes("causal")) tiles.push(tile("causal", "Cause", "A graph of causes", "Drop a table of experiments: see what causes what, and which experiment to run next.", stops, causes));
  room.append(el("div", { className: "home" },
    el("div", {}, el("h1", { text: "Play a puzzle, follow a flow, find a cause" }),
      el("p", { className: "say", text: "Three research systems on one compiled core. Everything runs on this machine." })),
    el("div", { className: "tiles" }, tiles),
    el("p", { className: "small" }, studio.read_only ? "Read-only: nothing is saved. " : "Games, runs and uploads are kept in the folder ", studio.read_only ? "" : el("code", { text: studio.folder }))));
  return () => stops.forEach((stop) => stop());
}
export function tile(name, title, short, words, stops, start) {
  const picture = el("canvas", { role: "img", "aria-label": short });
  start(picture, stops).catch(() => { picture.setAttribute("aria-label", `${short} (no picture)`); });
  return el("a", { className: "card tile", href: address([name]) }, el("div", { className: "picture" }, picture),
    el("div", { className: "words" }, el("h2", { text: title }), el("div", { text: words }), el("span", { className: "go", text: "Open →" })));
}

// Particles of a double gyre, tracked by the server a moment ago.
async function gyre(canvas, stops) {
  const data = await callBytes("trace", "preview"), each = 2000 * 4, total = data.byteLength / each;
  const dots = particles(canvas);
  dots.start(2000, 2, total);
  for (let at = 0; at < data.byteLength; at += each) dots.add(data.slice(at, at + each));
  let time = 0, timer = 0;
  const draw = () => {
    const shape = canvas.clientWidth / Math.max(1, canvas.clientHeight), fit = shape > 2 ? [3.6 / shape, 1.8] : [1.8, 0.9 * shape];
    dots.draw(time, { dot: 2.4, metric: [2 / 0.2 / 0.31, 1 / 0.2 / 0.31, 0], turn: [1, 0, 0, 0, 1, 0, 0, 0, 1], center: [0.5, 0.5, 0], fit, shift: [0, 0], plain: false });
  };
  const tick = () => {
    time = (time + 0.12) % (total - 1);
    if (canvas.isConnected) draw();
    timer = requestAnimationFrame(tick);
  };
  if (still.matches) for (time = total - 4; time < total - 1; time += 0.12) draw(); else tick();
  stops.push(() => cancelAnimationFrame(timer));
}

// The graph of an example, as the trained network sees it.
async function causes(canvas, stops) {
  const graph = await call("causal", "preview");
  const draw = () => drawGraph(canvas, graph);
  draw();
  addEventListener("resize", draw);
  stops.push(() => removeEventListener("resize", draw));
}

// Inputs turn into their outputs, cell by cell, one puzzle after the other.
async function puzzle(canvas, stops) {
  const list = await call("arc", "tasks", { dataset: "AGI1" });
  const some = list.filter((task) => task.change === "same size" && task.side <= 16).slice(0, 60);
  const pictures = Object.values(await call("arc", "thumbnails", { dataset: "AGI1", ids: some.map((task) => task.id) }));
  let frame = 0, at = 0, timer = 0;
  const draw = () => {
    const [given, wanted] = pictures[at];
    const sharp = devicePixelRatio || 1, [tall, wide] = shape(wanted);
    canvas.width = canvas.clientWidth * sharp;
    canvas.height = canvas.clientHeight * sharp;
    const cell = Math.floor(Math.min(canvas.width / (wide + 2), canvas.height / (tall + 2)));
    const left = (canvas.width - wide * cell) / 2, top = (canvas.height - tall * cell) / 2;
    const ink = canvas.getContext("2d");
    wanted.forEach((row, y) => [...row].forEach((digit, x) => {
      const turned = (x + y) / (wide + tall) < (frame - 15) / 35;
      ink.fillStyle = "#33435e";
      ink.fillRect(left + x * cell, top + y * cell, cell, cell);
      ink.fillStyle = COLORS[turned ? digit : given[y][x]];
      ink.fillRect(left + x * cell + 1, top + y * cell + 1, cell - 1, cell - 1);
    }));
  };
  const tick = () => {
    frame += 1;
    if (frame > 85) { frame = 0; at = (at + 1) % pictures.length; }
    draw();
    timer = setTimeout(tick, 40);
  };
  if (still.matches) { frame = 80; draw(); } else tick();
  stops.push(() => clearTimeout(timer), onTheme(draw));
}
