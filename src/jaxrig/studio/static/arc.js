// The ARC room: a gallery of tasks, and a bench to solve one by hand.
import { $, address, asked, call, el, go, jobEnd, listen, onTheme, save, say, stay, still, studio } from "/static/shell.js";
import { COLORS, NAMES, cellSize, drawGrid, drawPair, shape } from "/static/grid.js";

// The numbers of the environment's operations.
const OP = { fill: 0, flood: 10, up: 20, down: 21, left: 22, right: 23, cw: 24, ccw: 25, flipH: 26, flipV: 27, copy: 28, paste: 29, cut: 30, clear: 31, input: 32, resize: 33, submit: 34 };
const remembered = { dataset: "AGI1", filters: {} };
let lists = {};

export async function enter(room, parts, query) {
  const sets = await call("arc", "datasets");
  const dataset = sets.some((set) => set.name === parts[0]) ? parts[0] : remembered.dataset;
  remembered.dataset = dataset;
  call("arc", "warm", { dataset }).catch(() => {}); // a first step that is slow is no failure
  lists = { ...lists, [dataset]: await call("arc", "tasks", { dataset }) };
  if (parts[1]) return play(room, sets, dataset, parts[1], query);
  return browse(room, sets, dataset, query);
}

// The gallery -------------------------------------------------------------------
const LIMITS = { "": 99, "up to 5": 5, "up to 10": 10, "up to 20": 20 };
const COUNTS = { "": 99, "0 to 2": 3, "0 to 4": 5 };
function matches(task, filters) {
  const wanted = (filters.search ?? "").toLowerCase();
  return (!wanted || task.id.toLowerCase().includes(wanted))
    && task.side <= LIMITS[filters.size ?? ""] && task.colors <= COUNTS[filters.colors ?? ""]
    && (!filters.change || task.change === filters.change)
    && (!filters.concept || task.concept === filters.concept)
    && (!filters.solved || task.solved === (filters.solved === "solved"));
}
function choice(label, name, options, filters, changed) {
  const select = el("select", { onchange: () => { filters[name] = select.value; changed(); } },
    options.map((option) => el("option", { value: option, text: option || "any", selected: option === (filters[name] ?? "") })));
  return el("label", {}, label, select);
}
function filterBar(dataset, filters, changed) {
  const concepts = [...new Set(lists[dataset].map((task) => task.concept))].filter(Boolean);
  const search = el("input", { type: "search", placeholder: "task id", value: filters.search ?? "", oninput: () => { filters.search = search.value; changed(); } });
  return el("div", { className: "filters", role: "search" },
    el("label", {}, "Search", search),
    choice("Largest grid", "size", Object.keys(LIMITS), filters, changed),
    choice("Color numbers", "colors", Object.keys(COUNTS), filters, changed),
    choice("Output", "change", ["", "same size", "shrinks", "grows", "changes size"], filters, changed),
    concepts.length ? choice("Concept", "concept", ["", ...concepts], filters, changed) : null,
    choice("Solved", "solved", ["", "solved", "not yet"], filters, changed));
}
function setPicker(sets, dataset, then) {
  return el("div", { className: "row", role: "group", "aria-label": "Data set" }, sets.map((set) =>
    el("button", { type: "button", "aria-pressed": String(set.name === dataset), onclick: () => then(set.name) }, set.title, el("small", { text: ` ${set.tasks}` }))));
}
// Thumbnails are fetched in groups when they come into view.
function gallery(dataset, current) {
  const box = el("div", { className: "gallery", role: "list" });
  let waiting = [];
  const fetchThem = asked(async () => {
    const cards = waiting.splice(0, 60);
    const pictures = await call("arc", "thumbnails", { dataset, ids: cards.map((card) => card.dataset.task) });
    for (const card of cards) {
      const pair = pictures[card.dataset.task], size = $(".size", card);
      drawPair($("canvas", card), pair);
      if (size) size.textContent = shape(pair[0]).join("×");
    }
    if (waiting.length) fetchThem();
  });
  const seen = new IntersectionObserver((entries) => {
    const fresh = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
    fresh.forEach((card) => seen.unobserve(card));
    if (!waiting.length && fresh.length) setTimeout(fetchThem, 30);
    waiting.push(...fresh);
  }, { rootMargin: "300px" });
  box.show = (tasks) => {
    seen.disconnect();
    waiting = [];
    box.replaceChildren(...tasks.map((task) => {
      const card = el("button", { type: "button", className: "thumb", "aria-label": `Task ${task.id}${task.solved ? ", solved" : ""}`, onclick: () => go(["arc", dataset, task.id]) },
        el("canvas", { "aria-hidden": "true" }),
        el("span", {}, task.id, task.solved ? el("b", { className: "solved", text: "✓ solved" }) : el("span", { className: "size" })));
      card.dataset.task = task.id;
      if (task.id === current) card.setAttribute("aria-pressed", "true");
      seen.observe(card);
      return card;
    }));
  };
  return box;
}
function browse(room, sets, dataset, query) {
  const filters = Object.fromEntries(query);
  const cards = gallery(dataset);
  const count = el("p", { className: "small", role: "status" });
  const changed = () => {
    remembered.filters = filters;
    stay(["arc", dataset], filters);
    const found = lists[dataset].filter((task) => matches(task, filters));
    count.textContent = `${found.length} of ${lists[dataset].length} tasks`;
    cards.show(found);
  };
  room.append(el("div", { className: "browse" },
    el("div", { className: "row" }, el("h1", { className: "grow", text: "Find the rule, draw the output" }),
      el("button", { type: "button", text: "Play a random task", className: "main", onclick: () => {
        const found = lists[dataset].filter((task) => matches(task, filters));
        if (found.length) go(["arc", dataset, found[Math.floor(Math.random() * found.length)].id]);
      } }),
      el("button", { type: "button", text: "Export all games", onclick: asked(() => save("arc", "export")) })),
    setPicker(sets, dataset, (name) => go(["arc", name])),
    filterBar(dataset, filters, changed), count, cards));
  changed();
}

// The bench -----------------------------------------------------------------------
class Bench {
  constructor(facts, task) {
    Object.assign(this, { facts, task, tool: "paint", ink: 1, box: [0, 0, 0, 0], dragging: false, queue: Promise.resolve() });
    this.canvas = el("canvas", { id: "work", tabIndex: 0, role: "application", "aria-label": "Working grid: arrows move, digits paint, Enter submits" });
    this.verdict = el("div", { className: "verdict", role: "status" });
    this.history = el("ol", { className: "history" });
    this.count = el("p", { className: "small" });
    this.buttons = {};
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.drag(event));
    this.canvas.addEventListener("pointerup", () => this.end());
    this.canvas.addEventListener("pointercancel", () => { this.dragging = false; });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.draw());
    this.canvas.addEventListener("blur", () => this.draw());
  }
  // Steps follow each other, however fast someone types.
  queued(work) {
    this.queue = this.queue.then(async () => {
      try {
        await work();
      } catch (error) {
        say(error.message);
      }
    });
    return this.queue;
  }
  async tell(name, more) {
    this.show(await call("arc", name, { game: this.facts.game, ...more }));
  }
  ask(name, more = {}) {
    return this.queued(() => this.tell(name, more));
  }
  step(operation, box = this.sorted()) {
    return this.queued(async () => {
      if (this.facts.solved) throw new Error("this test is solved: undo to change the grid, or go on to the next task");
      if (this.facts.done) await this.tell("undo"); // a wrong answer is taken back, then edited
      await this.tell("step", { operation, box });
    });
  }
  // What a planner would still do; a wrong answer is taken back first.
  async left() {
    if (this.facts.solved) throw new Error("this test is solved: undo, or reset, to see it done another way");
    if (this.facts.done) await this.ask("undo");
    return call("arc", "steps_left", { game: this.facts.game });
  }
  sorted() {
    const [top, left, bottom, right] = this.box;
    return [Math.min(top, bottom), Math.min(left, right), Math.max(top, bottom), Math.max(left, right)];
  }
  show(facts) {
    this.facts = facts;
    const [tall, wide] = shape(facts.grid);
    this.box = this.box.map((value, at) => Math.min(value, (at % 2 ? wide : tall) - 1));
    this.count.textContent = `${facts.steps} ${facts.steps === 1 ? "step" : "steps"}${studio.read_only || !facts.steps ? "" : ` · saved as games/${facts.game}.json`}`;
    this.history.replaceChildren(...facts.history.slice(-200).map(([name, number, box]) => el("li", { text: described(name, number, box) })));
    this.history.scrollTop = this.history.scrollHeight;
    if (this.buttons.undo) {
      this.buttons.undo.disabled = this.buttons.reset.disabled = !facts.steps;
      this.buttons.redo.disabled = !facts.redo;
      this.buttons.paste.disabled = !facts.clipboard;
      this.buttons.height.value = tall;
      this.buttons.width.value = wide;
    }
    this.judge();
    this.draw();
  }
  judge() {
    const { solved, done, wrong } = this.facts;
    const words = [];
    if (solved) words.push(el("span", { className: "good", text: `✓ Solved in ${this.facts.steps} steps. ` }), this.next ? el("a", { href: this.next, text: "Next task" }) : "");
    else if (done && wrong?.size) words.push(el("span", { className: "bad", text: "✗ Not the answer: the size differs. Edit the grid and submit again." }));
    else if (done && wrong) words.push(el("span", { className: "bad", text: `✗ Not the answer: ${wrong.cells.length} ${wrong.cells.length === 1 ? "cell is" : "cells are"} wrong. Edit the grid and submit again.` }));
    else if (done) words.push(el("span", { text: "Submitted. This test has no known answer." }));
    this.verdict.replaceChildren(...words);
  }
  draw() {
    const room = this.canvas.parentElement?.clientWidth || 300;
    this.cell = cellSize(this.facts.grid, room, benchHeight(), 56);
    drawGrid(this.canvas, this.facts.grid, this.cell, { box: this.sorted(), cursor: document.activeElement === this.canvas ? this.box.slice(2) : null, wrong: this.facts.wrong?.cells });
  }
  at(event) {
    const area = this.canvas.getBoundingClientRect();
    const [tall, wide] = shape(this.facts.grid);
    const inside = (value, size) => Math.max(0, Math.min(size - 1, Math.floor(value)));
    return [inside((event.clientY - area.top) / this.cell, tall), inside((event.clientX - area.left) / this.cell, wide)];
  }
  begin(event) {
    if (event.button) return;
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.dragging = true;
    this.box = [...this.at(event), ...this.at(event)];
    this.draw();
  }
  drag(event) {
    if (!this.dragging) return;
    this.box = [...this.box.slice(0, 2), ...this.at(event)];
    this.draw();
  }
  end() {
    if (!this.dragging) return;
    this.dragging = false;
    if (this.tool === "paint") this.step(OP.fill + this.ink);
    if (this.tool === "flood") this.step(OP.flood + this.ink, [...this.box.slice(2), ...this.box.slice(2)]);
  }
  move(rows, columns, extend) {
    const [tall, wide] = shape(this.facts.grid);
    const [, , row, column] = this.box;
    const next = [Math.max(0, Math.min(tall - 1, row + rows)), Math.max(0, Math.min(wide - 1, column + columns))];
    this.box = extend ? [...this.box.slice(0, 2), ...next] : [...next, ...next];
    this.draw();
  }
  key(event) {
    const arrows = { ArrowUp: [-1, 0, OP.up], ArrowDown: [1, 0, OP.down], ArrowLeft: [0, -1, OP.left], ArrowRight: [0, 1, OP.right] };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const command = event.ctrlKey || event.metaKey;
    const act = (work) => { event.preventDefault(); work(); };
    if (arrows[key]) return act(() => (event.altKey ? this.step(arrows[key][2]) : this.move(arrows[key][0], arrows[key][1], event.shiftKey)));
    if (command && key === "z") return act(() => this.ask(event.shiftKey ? "redo" : "undo"));
    if (command && key === "y") return act(() => this.ask("redo"));
    if (command && key === "a") return act(() => this.all());
    if (command && !["c", "x", "v"].includes(key)) return undefined;
    if (/^[0-9]$/.test(key)) return act(() => { this.choose(Number(key)); this.step(OP.fill + Number(key)); });
    const [, , row, column] = this.box;
    const keys = {
      Enter: () => this.step(OP.submit, null), " ": () => this.step(OP.fill + this.ink), f: () => this.step(OP.flood + this.ink, [row, column, row, column]),
      r: () => this.step(event.shiftKey ? OP.ccw : OP.cw), h: () => this.step(OP.flipH), v: () => (command ? this.paste() : this.step(OP.flipV)),
      c: () => this.step(OP.copy), x: () => this.step(OP.cut), p: () => this.paste(), Delete: () => this.step(OP.clear), Backspace: () => this.step(OP.clear),
      i: () => this.step(OP.input, null), u: () => this.ask("undo"), y: () => this.ask("redo"), a: () => this.all(), g: () => this.buttons.height.focus(),
    };
    return keys[key] ? act(keys[key]) : undefined;
  }
  all() {
    const [tall, wide] = shape(this.facts.grid);
    this.box = [0, 0, tall - 1, wide - 1];
    this.draw();
  }
  paste() {
    const [top, left] = this.sorted();
    this.step(OP.paste, [top, left, top, left]);
  }
  choose(ink) {
    this.ink = ink;
    for (const swatch of this.swatches) swatch.setAttribute("aria-pressed", String(Number(swatch.dataset.ink) === ink));
  }
  pick(tool) {
    this.tool = tool;
    for (const button of this.modes) button.setAttribute("aria-pressed", String(button.dataset.tool === tool));
  }
  tools() {
    this.swatches = COLORS.map((paint, ink) => {
      const swatch = el("button", { type: "button", className: "swatch", title: `${NAMES[ink]} (${ink})`, "aria-label": NAMES[ink], "aria-pressed": String(ink === this.ink), onclick: () => {
        this.choose(ink);
        if (this.tool === "select") this.step(OP.fill + ink);
      } }, el("kbd", { text: ink }));
      swatch.style.background = paint;
      swatch.dataset.ink = ink;
      return swatch;
    });
    this.modes = [["paint", "Paint", "Drag a box or tap a cell to paint it"], ["flood", "Flood", "Tap an area to paint all of it (F)"], ["select", "Select", "Drag a box, then choose what to do with it"]].map(([tool, name, title]) => {
      const button = el("button", { type: "button", text: name, title, "aria-pressed": String(tool === this.tool), onclick: () => this.pick(tool) });
      button.dataset.tool = tool;
      return button;
    });
    const act = (name, key, work, title = name) => el("button", { type: "button", title: `${title} (${key})`, "aria-label": title, onclick: work }, name, el("kbd", { text: key }));
    const on = (operation) => () => this.step(operation);
    const b = this.buttons;
    b.paste = act("Paste", "P", () => this.paste());
    b.undo = act("Undo", "U", () => this.ask("undo"));
    b.redo = act("Redo", "Y", () => this.ask("redo"));
    b.reset = el("button", { type: "button", text: "Reset", title: "Take back all steps", onclick: () => this.ask("undo", { all: true }) });
    b.submit = el("button", { type: "button", id: "submit", className: "main", onclick: () => this.step(OP.submit, null) }, "Submit", el("kbd", { text: "Enter" }));
    b.height = el("input", { type: "number", min: 1, max: 30, "aria-label": "Height" });
    b.width = el("input", { type: "number", min: 1, max: 30, "aria-label": "Width" });
    const resize = () => {
      const [tall, wide] = [b.height, b.width].map((input) => Math.max(1, Math.min(30, Number(input.value) || 1)));
      this.step(OP.resize, [0, 0, tall - 1, wide - 1]);
    };
    return el("div", { className: "tools" },
      el("div", { className: "palette", role: "group", "aria-label": "Colors" }, this.swatches),
      el("div", { className: "row", role: "group", "aria-label": "Pointer" }, this.modes, b.undo, b.redo, b.reset, b.submit),
      el("div", { className: "row", role: "group", "aria-label": "Operations on the selection" },
        act("←", "Alt ←", on(OP.left), "Move left"), act("↑", "Alt ↑", on(OP.up), "Move up"), act("↓", "Alt ↓", on(OP.down), "Move down"), act("→", "Alt →", on(OP.right), "Move right"),
        act("↻", "R", on(OP.cw), "Rotate clockwise"), act("↺", "⇧R", on(OP.ccw), "Rotate counterclockwise"), act("⇋", "H", on(OP.flipH), "Flip left and right"), act("⇵", "V", on(OP.flipV), "Flip top and bottom")),
      el("div", { className: "row size", role: "group", "aria-label": "Clipboard and size" }, act("Copy", "C", on(OP.copy)), act("Cut", "X", on(OP.cut)), b.paste, act("Clear", "Del", on(OP.clear)),
        act("Start from input", "I", () => this.step(OP.input, null)), b.height, "×", b.width, el("button", { type: "button", text: "Resize", onclick: resize })));
  }
}
// On a wide screen the tools below the grid stay in view.
const benchHeight = () => (innerWidth >= 1100 ? Math.max(240, innerHeight - 605) : Math.max(240, innerHeight * 0.5));
function where([top, left, bottom, right]) {
  if (top === bottom && left === right) return `at (${top}, ${left})`;
  return `(${top}, ${left}) to (${bottom}, ${right})`;
}
// A step in words: colors by name, cells as (row, column).
function described(name, number, box) {
  if ([OP.input, OP.submit].includes(number)) return name;
  const painted = number < OP.up ? `${number < OP.flood ? "Fill" : "Flood"} ${NAMES[number % 10]}` : name;
  return `${painted} ${where(box)}`;
}

async function play(room, sets, dataset, id, query) {
  const task = await call("arc", "task", { dataset, task: id });
  const given = query.get("game");
  const pair = Number(query.get("test") ?? 1) - 1;
  const facts = await call("arc", "open_game", given ? { game: given } : { dataset, task: id, pair });
  stay(["arc", dataset, id], { test: facts.pair + 1, game: facts.game });
  const bench = new Bench(facts, task);
  const found = lists[dataset].filter((one) => matches(one, remembered.filters));
  const after = found[found.findIndex((one) => one.id === id) + 1];
  bench.next = after ? address(["arc", dataset, after.id]) : null;
  const demos = el("div", { className: "demos", tabIndex: 0, role: "region", "aria-label": "Demonstrations" });
  const input = el("canvas", { role: "img", "aria-label": "Test input" });
  const cards = gallery(dataset, id), guesses = el("div", { className: "row guesses", role: "status" });
  const left = el("aside", { className: "left stack only-wide" }, el("a", { href: address(["arc", dataset], remembered.filters), text: "← All tasks" }), cards);
  const tests = task.tests.length < 2 ? null : el("div", { className: "row" }, task.tests.map((_, at) => el("button", { type: "button", text: `Test ${at + 1}`, "aria-pressed": String(at === facts.pair), onclick: () => go(["arc", dataset, id], { test: at + 1 }) })));
  room.append(el("div", { className: "room" }, left,
    el("section", { className: "stack" },
      el("div", { className: "row" }, el("h1", { className: "grow", text: `Task ${id}` }), tests, el("a", { className: "only-narrow", href: address(["arc", dataset], remembered.filters), text: "All tasks" })),
      el("div", {}, el("h2", { text: "One rule turns each input into its output" }), demos),
      el("div", { className: "bench" },
        el("figure", {}, el("h2", { text: task.tests.length > 1 ? `Input of test ${facts.pair + 1}` : "Test input" }), input),
        el("figure", {}, el("h2", { text: "Your output" }), bench.canvas, bench.verdict)),
      bench.tools()),
    el("aside", { className: "stack" },
      el("div", { className: "card stack" }, el("h2", { text: "Your steps" }), bench.count, bench.history,
        el("div", { className: "row" },
          el("button", { type: "button", text: "Export trajectory", onclick: asked(() => save("arc", "export", { game: bench.facts.game })) }),
          el("button", { type: "button", id: "guess", text: "Ask the solver", title: "Two answers of the included network, which does not see the right one", onclick: asked(async (event) => {
            event.target.disabled = true;
            try {
              const ended = await jobEnd((await call("arc", "guess", { game: bench.facts.game })).id);
              if (ended.state !== "done") return say(ended.message);
              guesses.replaceChildren(...ended.about.answers.map(({ grid, confidence }) => el("figure", {}, drawGrid(el("canvas", { role: "img", "aria-label": "Answer of the solver" }), grid, cellSize(grid, 120, 120)), el("small", { text: `${Math.round(100 * confidence)}% of its votes` }))));
            } finally {
              event.target.disabled = false;
            }
            return undefined;
          }) }),
          el("button", { type: "button", text: "Hint", title: "The next step a planner would take", onclick: asked(async () => {
            const [next] = await bench.left();
            bench.box = next.operation === OP.submit ? bench.box : next.box;
            bench.draw();
            say(next.operation === OP.submit ? "the grid is right: submit it" : `next step of a planner that knows the answer: ${described(next.name, next.operation, next.box)}`);
          }) }),
          el("button", { type: "button", id: "watch", text: "Watch it solved", title: "A planner that knows the answer plays the rest", onclick: asked(async () => {
            for (const { operation, box } of await bench.left()) {
              if (!bench.canvas.isConnected) return;
              if (operation !== OP.submit) bench.box = [...box];
              await bench.step(operation, operation === OP.submit ? null : box);
              if (!still.matches) await new Promise((done) => setTimeout(done, 350));
            }
          }) }),
          el("button", { type: "button", text: "Show answer", onclick: asked(async (event) => {
            const { answer } = await call("arc", "answer", { game: bench.facts.game });
            if (!answer) return say("the answer to this test is not known");
            const canvas = el("canvas", { role: "img", "aria-label": "Answer" });
            drawGrid(canvas, answer, cellSize(answer, 240, 240));
            event.target.replaceWith(canvas);
            return undefined;
          }) })), guesses),
      el("details", { className: "card" }, el("summary", { text: "Keys" }), el("table", {}, [
        ["arrows", "move the cursor"], ["Shift + arrows", "select a box"], ["0 to 9", "paint the selection"], ["F", "flood with the color"], ["Alt + arrows", "move the selection"],
        ["R, Shift R", "rotate"], ["H, V", "flip"], ["C, X, P", "copy, cut, paste"], ["A", "select all"], ["I", "start from the input"], ["G", "change the size"], ["U, Y", "undo, redo"], ["Enter", "submit"],
      ].map(([key, does]) => el("tr", {}, el("td", {}, el("kbd", { text: key })), el("td", { text: does }))))),
      el("p", { className: "small" }, "Agents learn in the same environment, with the same steps. In a terminal: ", el("code", { text: `jaxrig arc play ${id} --dataset ${dataset} --test` })))));
  const redraw = () => {
    // All beside each other where they stay readable; a narrow window scrolls.
    const each = Math.max(100, Math.min(170, (demos.clientWidth / task.demonstrations.length - 64) / 2));
    demos.replaceChildren(...task.demonstrations.map((grids, at) => {
      const size = Math.min(...grids.filter(Boolean).map((rows) => cellSize(rows, each, 130, 20)));
      return el("figure", {}, el("div", { className: "pair", role: "img", "aria-label": `Demonstration ${at + 1}` }, drawGrid(el("canvas"), grids[0], size), "→", drawGrid(el("canvas"), grids[1], size)), el("small", { text: `${shape(grids[0]).join(" × ")} → ${shape(grids[1]).join(" × ")}` }));
    }));
    const rows = task.tests[facts.pair];
    drawGrid(input, rows, cellSize(rows, input.parentElement.clientWidth || 300, innerWidth < 620 ? 190 : benchHeight() * 0.8, 36));
    bench.draw();
  };
  cards.show(found.slice(Math.max(0, found.findIndex((one) => one.id === id) - 20)).slice(0, 120));
  bench.show(facts);
  redraw();
  bench.canvas.focus({ preventScroll: true });
  const stops = [onTheme(redraw), listen("arc", asked(async (event) => {
    if (event.game === bench.facts.game && event.steps !== bench.facts.steps) bench.queue.then(async () => bench.show(await call("arc", "open_game", { game: event.game })));
  }))];
  addEventListener("resize", redraw);
  return () => { removeEventListener("resize", redraw); stops.forEach((stop) => stop()); };
}
