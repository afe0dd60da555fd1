// The cause room: a table checked, a graph of causes, a suggestion, its outcome.
import { $, asked, call, el, figure, listen, onTheme, save, say, stay, studio, upload } from "/static/shell.js";
import { drawBeliefs, drawEffects, drawGraph, effectsAcross, places } from "/static/graph.js";

const ROLES = { target: "target", set: "can be set", measured: "measured only", ignored: "ignored" };

export async function enter(room, parts, query) {
  const list = await call("causal", "sources");
  let source = query.get("file") ? { file: query.get("file") } : { example: query.get("example") ?? list.examples[0].example };
  let setup = null, table = null, facts = null, graph = null, job = null, pull = null, focus = null, kind = "know";

  // Left: where data come from, and what its columns are for.
  const examples = el("div", { className: "row" }), files = el("div", { className: "stack" }), kept = el("div", { className: "row" });
  const picker = el("input", { type: "file", hidden: true, accept: list.suffixes.join(","), onchange: () => take(picker.files) });
  const drop = el("button", { type: "button", className: "drop", onclick: () => picker.click() }, "Drop a CSV table here, or choose one", el("small", { text: "one row per experiment, one column per variable" }));
  const columns = el("tbody"), notes = el("ul", { className: "notes small" }), summary = el("p", { className: "small" });
  const direction = el("select", {}, el("option", { value: "", text: "choose" }), el("option", { value: "raise", text: "raise it" }), el("option", { value: "lower", text: "lower it" }));
  const target = el("select", { onchange: () => { showColumns(); show(); } });
  const begin = el("button", { type: "button", id: "start", className: "main", text: "Find causes and suggest", onclick: asked(() => start()) });
  // Middle: the graph.
  const canvas = el("canvas", { className: "layer", role: "img", tabIndex: 0, "aria-label": "Causal graph; drag from a cause to an effect to state an edge" });
  const stage = el("div", { className: "stage graph" }, canvas);
  const known = el("div", { className: "row" });
  const cause = el("select", { "aria-label": "Cause" }), effect = el("select", { "aria-label": "Effect" });
  const kinds = [["know", "Known"], ["forbid", "Forbidden"]].map(([name, title]) => {
    const button = el("button", { type: "button", text: title, "aria-pressed": String(name === kind), onclick: () => { kind = name; kinds.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.kind === kind))); } });
    button.dataset.kind = name;
    return button;
  });
  let least = 0.25;
  const cut = el("input", { type: "range", min: 0.05, max: 0.95, step: 0.05, value: least, "aria-label": "Least probability of an edge to show", oninput: () => { least = Number(cut.value); shownFrom.textContent = `from ${Math.round(100 * least)}%`; redraw(); } });
  const shownFrom = el("span", { className: "small", text: "from 25%" });
  const edgeBar = el("div", { className: "row", hidden: true }, el("b", { text: "Edges" }), kinds, cause, "→", effect, el("button", { type: "button", text: "Add", onclick: asked(() => state([cause.value, effect.value])) }));
  const beliefs = el("canvas", { className: "layer", role: "img", "aria-label": "Probability of being a cause, over the experiments" });
  const history = el("div", { hidden: true }, el("h2", { text: "Probability that each variable is a cause, by number of rows" }), el("div", { className: "stage beliefs" }, beliefs));
  const effects = el("canvas", { className: "layer", role: "img", "aria-label": "Expected outcome over the range of each variable" });
  const effectStage = el("div", { className: "stage effects" }, effects), effectWords = el("p", { className: "small" });
  const promise = el("div", { hidden: true }, el("h2", { text: "Expected outcome if one variable is set" }), effectStage, effectWords);
  // Right: the suggestion.
  const shell = el("code"), status = el("p", { className: "small", role: "status", id: "cause-status" });
  const meter = el("progress", { hidden: true });
  const words = el("div", { className: "stack", id: "suggestion" });
  const form = el("form", { className: "stack", hidden: true, onsubmit: (event) => { event.preventDefault(); asked(() => tell())(); } });
  const told = el("ol", { className: "history" });
  const saving = el("div", { className: "row", hidden: true },
    el("button", { type: "button", text: "Take back the last", onclick: asked(async () => follow(await call("causal", "undo", { campaign: facts.campaign }))) }),
    el("button", { type: "button", text: "Report page", onclick: asked(() => save("causal", "report", { campaign: facts.campaign })) }),
    el("button", { type: "button", text: "Campaign folder", onclick: asked(() => save("causal", "download", { campaign: facts.campaign })) }));

  const outcomes = el("div", { className: "card stack" }, el("h2", { text: "Outcomes so far" }), told, saving);

  const take = asked(async (given) => {
    if (!given.length) return;
    const made = await upload("causal", given[0]);
    Object.assign(list, await call("causal", "sources"));
    await open({ file: made.name });
  });
  for (const name of ["dragover", "dragleave", "drop"]) room.addEventListener(name, (event) => { event.preventDefault(); drop.classList.toggle("over", name === "dragover"); if (name === "drop") take(event.dataTransfer.files); });

  async function open(wanted) {
    table = await call("causal", "table", { source: wanted });
    source = wanted;
    facts = null;
    stay(["causal"], source);
    const numbers = table.columns.filter((column) => column.kind === "number");
    target.replaceChildren(...numbers.map(({ name }) => el("option", { value: name, text: name, selected: name === (table.target ?? numbers.at(-1).name) })));
    direction.value = table.maximize === null ? "" : table.maximize ? "raise" : "lower";
    summary.textContent = `${table.rows} rows, ${numbers.length} usable columns, ${table.interventions ? `${table.interventions} rows in which something was set` : "no variable was set in any row"}`;
    notes.replaceChildren(...table.notes.map((text) => el("li", { text })));
    graph = null;
    showColumns();
    showSources();
    show();
    if (source.example !== list.examples[0].example) return;
    asked(async () => { // the network is loaded for it, and nobody has to wait
      const found = await call("causal", "preview");
      if (source === wanted && !facts) { graph = found; redraw(); }
    })();
  }
  function showColumns() {
    columns.replaceChildren(...table.columns.map((column) => {
      const isTarget = column.name === target.value;
      const role = el("select", { "aria-label": `Role of ${column.name}`, disabled: isTarget || column.kind !== "number", onchange: () => { column.role = role.value; } },
        Object.entries(ROLES).filter(([name]) => isTarget === (name === "target")).map(([name, title]) => el("option", { value: name, text: title, selected: name === column.role })));
      const holds = column.labels.length ? column.labels.join(", ") : column.range ? `${figure(column.range[0])} to ${figure(column.range[1])}` : column.kind;
      return el("tr", {}, el("td", {}, el("div", { text: column.name }), el("small", { text: `${holds}${column.missing ? `, ${column.missing} missing` : ""}` })), el("td", { className: "n" }, role));
    }));
  }
  function showSources() {
    const chosen = (one) => String(JSON.stringify(one) === JSON.stringify(source) && !facts);
    examples.replaceChildren(...list.examples.map(({ example, title }) => el("button", { type: "button", text: title, "aria-pressed": chosen({ example }), onclick: asked(() => open({ example })) })));
    files.replaceChildren(...list.files.slice(0, 30).map((file) => el("button", { type: "button", className: "file", text: file, "aria-pressed": chosen({ file }), onclick: asked(() => open({ file })) })));
    kept.replaceChildren(...list.campaigns.slice(0, 20).map((name) => el("button", { type: "button", text: name, "aria-pressed": String(facts?.campaign === name), onclick: asked(() => load(name)) })));
    kept.previousElementSibling.hidden = !list.campaigns.length;
  }
  async function start() {
    if (!direction.value) throw new Error(`choose whether ${target.value} should be raised or lowered`);
    const roles = Object.fromEntries(table.columns.map(({ name, role }) => [name, name === target.value ? "target" : role === "target" ? "measured" : role]));
    follow(await call("causal", "start", { source, roles, maximize: direction.value === "raise" }));
  }
  function follow(begun) {
    job = begun;
    for (const warning of begun.warnings ?? []) say(warning);
    status.className = "small";
    watch(studio.jobs.get(job.id) ?? begun);
  }
  const watch = asked(async (event) => {
    if (!job || event.id !== job.id) return;
    const running = event.state === "running";
    meter.hidden = !running;
    status.textContent = running ? event.label : event.message;
    if (event.state === "failed") status.className = "bad";
    if (event.state === "done") { const name = event.about.campaign; job = null; await load(name); }
  });
  async function load(name) {
    facts = graph = await call("causal", "state", { campaign: name });
    stay(["causal"], { campaign: name });
    if (!list.campaigns.includes(name)) list.campaigns.unshift(name);
    showSources();
    show();
  }
  // Add an edge of the kind chosen, or take it away again.
  async function state(edge, remove = false) {
    if (!facts) throw new Error("start first: edges belong to a campaign");
    follow(await call("causal", "edges", { campaign: facts.campaign, edge, kind: remove ? "" : kind }));
  }
  function show() {
    edgeBar.hidden = form.hidden = saving.hidden = history.hidden = promise.hidden = outcomes.hidden = !facts;
    setup.hidden = Boolean(facts);
    $(".cause", room)?.classList.toggle("fresh", !facts);
    shell.textContent = facts ? `jaxrig causal ask ${studio.folder}/campaigns/${facts.campaign}` : source.file ? `jaxrig causal suggest ${studio.folder}/${source.file} --target ${target.value}` : `jaxrig causal optimize ${source.example}`;
    redraw();
    if (!facts) {
      words.replaceChildren(el("p", { className: "say", text: "Choose the target, whether to raise or lower it, and the columns that can be set. Then press Find causes and suggest." }));
      told.replaceChildren();
      known.replaceChildren();
      return;
    }
    const named = facts.names.map((name) => el("option", { value: name, text: name }));
    cause.replaceChildren(...named);
    effect.replaceChildren(...named.map((option) => option.cloneNode(true)));
    effect.value = facts.target;
    known.replaceChildren(...["know", "forbid"].flatMap((which) => facts[which].map((edge) => el("button", { type: "button", className: which === "know" ? "good" : "bad", title: "Remove", onclick: asked(() => state(edge, true)) }, `${which === "know" ? "known" : "forbidden"}: ${edge[0]} → ${edge[1]} ✕`))));
    words.replaceChildren(
      el("p", { className: "big", text: `${facts.worthwhile ? "" : "There is little left to gain. "}${facts.sentence.split(". ")[0].replace(/^./, (c) => c.toUpperCase())}.` }),
      el("ul", { className: "notes" }, [...facts.reasons, ...facts.notes].map((text) => el("li", { text }))),
      el("details", {}, el("summary", { text: "Alternatives" }), el("div", { className: "scrolls", tabIndex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, ["set", "to", "expected", "cause"].map((title, k) => el("th", { text: title, className: k ? "n" : "" })))), el("tbody", {}, facts.candidates.map((one) =>
        el("tr", {}, el("td", { text: one.variable }), el("td", { className: "n", text: facts.labels[one.variable]?.[Math.round(one.value)] ?? figure(one.value) }), el("td", { className: "n", text: `${figure(one.expected)} ± ${figure(one.std)}` }), el("td", { className: "n", text: `${Math.round(100 * one.ancestor_probability)}%` }))))))));
    showForm();
    told.replaceChildren(...facts.told.map((text) => el("li", { text })));
    $("button", saving).disabled = !facts.told.length;
  }
  function showForm() {
    const { trial } = facts;
    form.hidden = !trial;
    if (!trial) return;
    const field = (name) => {
      const set = name in trial.settings, labels = facts.labels[name];
      const value = set ? (labels ? labels[Math.round(trial.settings[name])] : Number(trial.settings[name].toPrecision(6))) : "";
      return el("label", {}, set ? `${name} (set)` : name === facts.target ? `${name} (outcome)` : name, el("input", { name, value, type: labels ? "text" : "number", step: "any", required: name === facts.target || set }));
    };
    const order = [facts.target, ...Object.keys(trial.settings), ...facts.names.filter((name) => name !== facts.target && !(name in trial.settings))];
    form.replaceChildren(el("h2", { text: `Outcome of experiment ${trial.number}` }), el("div", { className: "halves" }, order.map(field)),
      el("div", { className: "row" }, el("button", { type: "submit", className: "main", id: "tell", text: "Enter outcome" }),
        facts.example ? el("button", { type: "button", id: "simulate", text: "Simulate it", onclick: asked(async () => {
          const drawn = await call("causal", "simulate", { campaign: facts.campaign });
          for (const input of form.querySelectorAll("input")) input.value = Number(drawn[input.name].toPrecision(6));
        }) }) : null));
  }
  async function tell() {
    const values = {};
    for (const input of form.querySelectorAll("input")) if (input.value !== "") values[input.name] = input.type === "number" ? Number(input.value) : input.value;
    follow(await call("causal", "tell", { campaign: facts.campaign, values, number: facts.trial.number }));
  }
  function redraw() {
    if (graph && canvas.clientWidth) drawGraph(canvas, graph, { pull, focus, least, forbid: kind === "forbid" });
    else canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
    if (facts?.beliefs.length && beliefs.clientWidth) {
      const last = facts.beliefs.at(-1).causes;
      drawBeliefs(beliefs, facts.beliefs, Object.keys(last).sort((a, b) => last[b] - last[a]));
    }
    if (facts?.curves.length && effectStage.clientWidth) {
      effectStage.style.setProperty("--rows", Math.ceil(facts.curves.length / effectsAcross(effectStage.clientWidth)));
      drawEffects(effects, facts.curves, facts.target, facts.trial?.settings ?? {});
      effectWords.textContent = `The line is the expected ${facts.target}, the band its 95% interval. Dots are rows in which the variable was set${facts.trial ? "; the yellow dot is the next experiment" : ""}.`;
    }
  }
  const near = (event) => {
    const area = canvas.getBoundingClientRect(), spot = [event.clientX - area.left, event.clientY - area.top];
    const found = graph ? places(canvas, graph).findIndex(([x, y]) => Math.hypot(x - spot[0], y - spot[1]) < 26) : -1;
    return { spot, found };
  };
  canvas.addEventListener("pointerdown", (event) => { const { spot, found } = near(event); if (facts && found >= 0) { pull = { from: found, to: spot }; canvas.setPointerCapture(event.pointerId); } });
  canvas.addEventListener("pointermove", (event) => { const { spot, found } = near(event); focus = found >= 0 ? found : null; if (pull) pull.to = spot; if (graph) redraw(); });
  canvas.addEventListener("pointerup", (event) => { const { found } = near(event); const from = pull?.from; pull = null; redraw(); if (from !== undefined && found >= 0 && found !== from) asked(() => state([graph.names[from], graph.names[found]]))(); });

  room.append(el("div", { className: "room flow cause fresh" },
    el("aside", { className: "left stack" }, el("h2", { text: "Examples" }), examples, el("h2", { text: "Your table" }), drop, picker, files, el("h2", { text: "Campaigns" }), kept,
      setup = el("div", { className: "card stack" }, summary, el("div", { className: "halves" }, el("label", {}, "Target", target), el("label", {}, "I want to", direction)), begin,
        el("details", { open: true }, el("summary", { text: "Columns" }), el("div", { className: "scrolls", tabIndex: 0 }, el("table", { className: "columns" }, columns))), notes)),
    el("section", { className: "stack" }, edgeBar, stage, el("div", { className: "row cut" }, el("span", { className: "small", text: "Show edges" }), cut, shownFrom), known, el("p", { className: "small" }, "An arrow points from a direct cause to its effect; a wider arrow is more likely. In a terminal: ", shell), promise, history),
    el("aside", { className: "stack" }, el("div", { className: "card stack" }, el("h2", { text: "Next experiment" }), meter, status, words, form), outcomes)));
  const resized = new ResizeObserver(redraw);
  resized.observe(stage);
  const stops = [listen("job", (event) => {
    watch(event);
    // Another tab told an outcome of the campaign in view.
    if (!job && facts && event.state === "done" && event.about.campaign === facts.campaign) asked(() => load(facts.campaign))();
  }), onTheme(redraw)];
  await open(source);
  if (query.get("campaign") && list.campaigns.includes(query.get("campaign"))) await load(query.get("campaign"));
  return () => { resized.disconnect(); stops.forEach((stop) => stop()); };
}
