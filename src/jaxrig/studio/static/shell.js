// The frame around the rooms: routes, calls to the server, events for all tabs.

const modules = {
  arc: { title: "ARC", load: () => import("/static/arc.js") },
  trace: { title: "Flow", load: () => import("/static/flow.js") },
  causal: { title: "Cause", load: () => import("/static/cause.js") },
};
export const studio = { rooms: {}, jobs: new Map(), read_only: false };

// Elements ------------------------------------------------------------------
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "text") made.textContent = value;
    else if (name in made && name !== "list" && name !== "form") made[name] = value;
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}
export const $ = (selector, within = document) => within.querySelector(selector);

export const raised = (power) => [...String(power)].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? "⁻").join("");
// Very large or small numbers on an axis share a power of a thousand.
export function axisUnit(low, high) {
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (!size || (size < 1e5 && size >= 1e-2)) return { unit: 1, words: "" };
  const power = 3 * Math.floor(Math.log10(size) / 3);
  return { unit: 10 ** power, words: ` · 10${raised(power)}` };
}
// Three significant digits, thin spaces in thousands.
export function figure(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) {
    const [digits, power] = value.toExponential(2).split("e");
    return `${digits.replace("-", "\u2212")} × 10${raised(Number(power))}`;
  }
  const shown = size >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString();
  return shown.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "\u2009").replace("-", "\u2212");
}
export function bytes(count) {
  const step = Math.max(0, Math.min(3, Math.floor(Math.log2(Math.max(count, 1)) / 10)));
  return `${figure(count / 1024 ** step)}\u00a0${["B", "KiB", "MiB", "GiB"][step]}`;
}

// Ticks at 1, 2 or 5 times a power of ten.
export function ticks(low, high, most = 6) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(Math.abs(at) < step * 1e-6 ? 0 : Number(at.toPrecision(12)));
  return found;
}

// The server ----------------------------------------------------------------
async function answer(response) {
  if (response.ok) return response;
  let words = `the studio answered ${response.status}`;
  if ((response.headers.get("content-type") ?? "").includes("json")) words = (await response.json()).error;
  else if (response.status === 403) words = "this page has expired: open the address that the terminal shows";
  throw new Error(words);
}
async function send(url, body) {
  try {
    return await answer(await fetch(url, { method: "POST", body }));
  } catch (error) {
    if (error instanceof TypeError) throw new Error("the studio does not answer: is it still running in the terminal?");
    throw error;
  }
}
export const call = async (room, name, request = {}) => (await send(`/api/call/${room}/${name}`, JSON.stringify(request))).json();
export const callBytes = async (room, name, request = {}) => (await send(`/api/call/${room}/${name}`, JSON.stringify(request))).arrayBuffer();
export const stopJob = async (id) => (await send(`/api/stop/${id}`)).json();
export async function upload(room, file) {
  if (file.size > studio.upload_bytes) throw new Error(`${file.name} has ${bytes(file.size)}, more than ${bytes(studio.upload_bytes)}: put it in ${studio.folder}`);
  return (await send(`/api/upload/${room}?name=${encodeURIComponent(file.name)}`, file)).json();
}
export async function save(room, name, request = {}) {
  const response = await send(`/api/call/${room}/${name}`, JSON.stringify(request));
  const title = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? name;
  const link = el("a", { href: URL.createObjectURL(await response.blob()), download: title });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
export const saveFile = (name) => el("a", { href: `/api/file?name=${encodeURIComponent(name)}`, download: "" }).click();

let saying;
export function say(words) {
  const box = $("#said");
  box.replaceChildren(el("p", { text: words, onclick: () => box.replaceChildren() }));
  clearTimeout(saying);
  saying = setTimeout(() => box.replaceChildren(), 9000);
}
// Run what a person asked for; what goes wrong is said, not swallowed.
export const asked = (work) => async (...given) => {
  try {
    $("#said").replaceChildren();
    return await work(...given);
  } catch (error) {
    say(error.message);
  }
};

// Events --------------------------------------------------------------------
const listeners = new Set();
export function listen(kind, react) {
  const entry = { kind, react };
  listeners.add(entry);
  return () => listeners.delete(entry);
}
function follow() {
  const socket = new WebSocket(`ws://${location.host}/api/events`);
  socket.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    if (event.kind === "job") studio.jobs.set(event.id, event), showRunning();
    for (const { kind, react } of listeners) if (kind === event.kind) react(event);
  };
  socket.onclose = () => setTimeout(follow, 2000);
}
function showRunning() {
  const running = [...studio.jobs.values()].filter((job) => job.state === "running");
  $(".running").textContent = running.map((job) => `${job.title}: ${job.label}${job.total ? ` ${Math.floor((100 * job.done) / job.total)}%` : ""}`).join(" · ");
}

export const jobEnd = (id) => new Promise((done) => {
  const now = studio.jobs.get(id);
  if (now && now.state !== "running") return done(now);
  const stop = listen("job", (event) => { if (event.id === id && event.state !== "running") { stop(); done(event); } });
  return stop;
});

// Frames of a job: each is handed over as it comes; the end is the job's facts.
export function frames(id, take, ended) {
  const socket = new WebSocket(`ws://${location.host}/api/frames/${id}`);
  socket.binaryType = "arraybuffer";
  let finished = false;
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return take(data);
    finished = true;
    ended(JSON.parse(data));
  };
  socket.onclose = () => { if (!finished) ended(null); };
  return () => { finished = true; socket.close(); };
}

// Routes: #/room/part/part?key=value ------------------------------------------
export function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query ?? "") };
}
export function address(parts, query = {}) {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined)).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${words ? `?${words}` : ""}`;
}
export const go = (parts, query) => { location.hash = address(parts, query); };
export const stay = (parts, query) => history.replaceState(null, "", address(parts, query));

let leave = () => {};
async function route() {
  const { parts, query } = place();
  const name = parts[0] ?? "";
  leave();
  leave = () => {};
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.room === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const room = $("#room");
  room.replaceChildren();
  document.title = `${modules[name]?.title ?? "Home"} · jaxrig studio`;
  try {
    const loaded = await (modules[name]?.load() ?? import("/static/home.js"));
    leave = (await loaded.enter(room, parts.slice(1), query)) ?? leave;
  } catch (error) {
    room.replaceChildren(el("div", { className: "home" }, el("p", { className: "bad", text: error.message })));
  }
}

// Theme -----------------------------------------------------------------------
const dark = matchMedia("(prefers-color-scheme: dark)");
export const still = matchMedia("(prefers-reduced-motion: reduce)");
const themed = new Set();
export const onTheme = (react) => { themed.add(react); return () => themed.delete(react); };
function setTheme() {
  document.documentElement.dataset.theme = localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light");
  for (const react of themed) react();
}
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

setTheme();
dark.addEventListener("change", setTheme);
$("#theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  setTheme();
});
$(".skip").addEventListener("click", (event) => { event.preventDefault(); $("#room").focus(); });
Object.assign(studio, await (await answer(await fetch("/api/studio"))).json());
studio.jobs = new Map(studio.jobs.map((job) => [job.id, job]));
studio.shown = Object.keys(modules).filter((name) => name in studio.rooms);
$("nav").append(...studio.shown.map((name) => {
  const link = el("a", { href: `#/${name}`, text: modules[name].title });
  link.dataset.room = name;
  return link;
}));
addEventListener("hashchange", route);
showRunning();
follow();
route();
