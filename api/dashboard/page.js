// The dashboard: one module without a build step. It follows /api/v1/live,
// keeps what it has heard, and draws what has changed with the next frame of
// the screen.
const by = id => document.getElementById(id);
const steps = ["wake", "queue", "start", "probe", "ready", "release"];
const kinds = ["woken", "started", "ready", "released", "failed", "slept", "adopted"];
const rank = {failed: 0, waking: 1, draining: 2, ready: 3, asleep: 4};
const keep = {wakes: 500, events: 500, shown: 100};

const workloads = new Map(), wakes = new Map(), rows = new Map();
let linked = false, events = [], problems = [], findings = [], days = null, token = "", said = "";
const dirty = {names: new Set(), all: false, wakes: false, events: false, problems: false};

// --- small things

function make(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") e.className = value; else e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

function set(e, text) { if (e.textContent !== text) e.textContent = text; }

function brief(seconds) {
  if (!isFinite(seconds)) return "-";
  if (seconds < 0.001) return Math.round(seconds * 1e6) + " µs";
  if (seconds < 0.995) return (seconds * 1e3).toFixed(seconds < 0.01 ? 1 : 0) + " ms";
  if (seconds < 9.95) return seconds.toFixed(1) + " s";
  if (seconds < 99.5) return Math.round(seconds) + " s";
  if (seconds < 5400) return Math.round(seconds / 60) + " min";
  if (seconds < 172800) return Math.round(seconds / 3600) + " h";
  return Math.round(seconds / 86400) + " d";
}

const since = (a, b) => (new Date(b) - new Date(a)) / 1000;
const clock = at => new Date(at).toLocaleTimeString([], {hour12: false});
const several = (n, thing) => n + " " + thing + (n === 1 ? "" : "s");

function quantile(sorted, q) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] : NaN;
}

function announce(text) { said = text; set(by("said"), text); }

// --- the server

function ask(path, options = {}) {
  const headers = token ? {Authorization: "Bearer " + token} : {};
  return fetch(path, {cache: "no-store", ...options, headers});
}

async function get(path) {
  const answer = await ask(path);
  if (!answer.ok) throw new Error((await answer.json()).detail || answer.statusText);
  return answer.json();
}

async function follow() {
  for (let pause = 500; ; pause = Math.min(10000, 2 * pause)) {
    try {
      const answer = await ask("/api/v1/live");
      if (answer.status === 401) return login(token ? "That is not the token." : "");
      if (answer.ok) {
        remember();
        shown();
        set(by("link"), "live");
        pause = 500;
        await read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
      }
    } catch { /* looked for again below */ }
    set(by("link"), "The server is away; looking for it.");
    await new Promise(done => setTimeout(done, pause));
  }
}

async function read(reader) {
  for (let rest = ""; ;) {
    const {value, done} = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const at = part.indexOf("data: ");
      if (at >= 0) take(JSON.parse(part.slice(at + 6)));
    }
  }
}

// --- the token: for this tab, never in an address

function login(wrong) {
  token = "";
  forget();
  set(by("link"), "");
  by("all").hidden = true;
  by("login").hidden = false;
  set(by("wrong"), wrong);
  by("token").focus();
}

function remember() { try { if (token) sessionStorage.setItem("rouse-token", token); } catch { /* asked for again */ } }
function forget() { try { sessionStorage.removeItem("rouse-token"); } catch { /* it was not kept */ } }
function recall() { try { return sessionStorage.getItem("rouse-token") || ""; } catch { return ""; } }

function shown() {
  by("login").hidden = true;
  for (const part of [by("all"), by("summary"), by("past"), ...document.querySelectorAll(".tools")]) part.hidden = false;
}

// --- what is heard

function take(frame) {
  if (frame.whole) {
    workloads.clear(); wakes.clear(); events = [];
    dirty.all = true;
    refresh();
    if (!linked) { linked = true; fromAddress(); }
  }
  for (const w of frame.workloads || []) {
    const before = workloads.get(w.name);
    if (before && before.phase !== w.phase && asked.has(w.name)) {
      announce(w.name + " is " + w.phase + ".");
      if (w.phase === "ready" || w.phase === "asleep" || w.phase === "failed") asked.delete(w.name);
    }
    workloads.set(w.name, w);
    dirty.names.add(w.name);
    if (!before) dirty.all = true;
  }
  for (const name of frame.gone || []) { workloads.delete(name); dirty.all = true; }
  if (frame.problems) { problems = frame.problems; dirty.problems = true; }
  for (const w of frame.wakes || []) {
    wakes.delete(w.id); // the newest are last
    wakes.set(w.id, w);
    dirty.names.add(w.workload);
    dirty.wakes = true;
  }
  for (const id of wakes.keys()) { if (wakes.size <= keep.wakes) break; wakes.delete(id); }
  if (frame.missed) events.push({kind: "", at: frame.at, workload: "", text: several(frame.missed, "event") + " came too fast to be shown"});
  if (frame.events) { events.push(...frame.events); dirty.events = true; }
  if (events.length > keep.events) events = events.slice(-keep.events);
  schedule();
}

let scheduled = false;
function schedule() {
  if (scheduled) return;
  scheduled = true;
  const draw = () => { scheduled = false; paint(); };
  if (document.hidden) setTimeout(draw, 1000); else requestAnimationFrame(draw);
}

function paint() {
  if (dirty.names.size || dirty.all) { paintRows(); paintTiles(); }
  if (dirty.wakes || dirty.all) paintWakes();
  if (dirty.events || dirty.all) paintEvents();
  if (dirty.problems || dirty.names.size || dirty.all) paintProblems();
  dirty.names.clear();
  dirty.all = dirty.wakes = dirty.events = dirty.problems = false;
}

// --- summary

function paintTiles() {
  const count = {}, took = [...wakes.values()].filter(w => w.result === "ready").map(total).sort((a, b) => a - b);
  let flight = 0, queued = 0, slept = 0, freed = 0;
  for (const w of workloads.values()) {
    count[w.phase] = (count[w.phase] || 0) + 1;
    flight += w.in_flight;
    queued += w.queued;
  }
  for (const strip of Object.values(days?.workloads || {})) { slept += strip.asleep_seconds; freed += strip.freed_gib_seconds; }
  const tiles = [
    ["Asleep", count.asleep || 0, "of " + workloads.size], ["Awake", (count.ready || 0) + (count.draining || 0), ""],
    ["Waking", count.waking || 0, ""], ["Failed", count.failed || 0, ""],
    ["In flight", flight, ""], ["Queued", queued, ""],
    ["Slept, last 24 h", days ? Math.round(slept / 3600) : "-", freed ? "h, " + (freed / 3600).toPrecision(2) + " GiB·h" : "hours"],
    ["Median cold start", brief(quantile(took, .5)), ""],
  ];
  const list = by("tiles");
  while (list.children.length < tiles.length) list.append(make("div", {}, make("dt"), make("dd", {}, make("span"), " ", make("small"))));
  tiles.forEach(([name, value, unit], i) => {
    const tile = list.children[i];
    set(tile.firstChild, name);
    set(tile.querySelector("span"), String(value));
    set(tile.querySelector("small"), unit);
  });
}

// --- problems

function paintProblems() {
  const all = problems.map(p => [p.workload, p.message + (p.place ? " (" + p.place + ")" : "") + (p.fix ? ". " + p.fix : "")]);
  for (const w of workloads.values()) if (w.phase === "failed") all.push([w.name, reasonOf(w) || "could not be started"]);
  for (const f of findings) if (f.code !== "start_failed") all.push([f.place, f.what + ". " + f.why + ". " + f.fix + "."]);
  by("problems").hidden = all.length === 0;
  by("wrongs").replaceChildren(...all.slice(0, keep.shown).map(([who, what]) =>
    make("li", {}, ...(who ? [make("strong", {}, who), ": "] : []), what)));
}

function reasonOf(w) {
  const r = w.reason;
  if (!r) return "";
  return [r.code, r.exit_code ? "with code " + r.exit_code : "", r.detail ? "(" + r.detail + ")" : ""].filter(Boolean).join(" ");
}

// --- workloads

const asked = new Set(); // those that this page has asked something of

function paintRows() {
  by("table").hidden = workloads.size === 0;
  by("none").hidden = workloads.size > 0;
  if (dirty.all) {
    for (const [name, row] of rows) if (!workloads.has(name)) { row.remove(); rows.delete(name); }
  }
  const took = tookBy();
  for (const name of dirty.all ? workloads.keys() : dirty.names) if (workloads.has(name)) paintRow(workloads.get(name), took.get(name) ?? []);
  if (dirty.all || by("order").value === "phase") arrange();
}

// tookBy gives how long the cold starts of each workload took, the shortest first.
function tookBy() {
  const took = new Map();
  for (const w of wakes.values()) {
    if (w.result !== "ready") continue;
    if (!took.has(w.workload)) took.set(w.workload, []);
    took.get(w.workload).push(total(w));
  }
  for (const list of took.values()) list.sort((a, b) => a - b);
  return took;
}

function arrange() {
  const phase = by("order").value === "phase", wanted = by("filter").value.toLowerCase();
  const sorted = [...workloads.values()].sort((a, b) => (phase ? rank[a.phase] - rank[b.phase] : 0) || (a.name < b.name ? -1 : 1));
  const body = by("rows");
  if (rows.size !== body.children.length) body.replaceChildren();
  let at = body.firstChild;
  for (const w of sorted) {
    const row = rows.get(w.name);
    row.hidden = wanted !== "" && !(w.name + " " + w.phase + " " + w.hosts.join(" ")).toLowerCase().includes(wanted);
    if (row === at) at = at.nextSibling; else body.insertBefore(row, at);
  }
}

function newRow(name) {
  const button = (text, act) => {
    const b = make("button", {type: "button"}, text);
    b.addEventListener("click", () => act(name, b));
    return b;
  };
  const wake = button("Wake", tell), stay = button("Keep 1 h", tell), title = button(name, describe);
  return make("tr", {},
    make("th", {scope: "row"}, title), make("td", {}, make("span", {class: "phase"})), make("td", {}, make("span", {class: "strip", role: "img"})),
    make("td", {class: "number"}), make("td", {class: "number"}), make("td", {class: "number"}), make("td", {class: "number"}),
    make("td", {class: "number"}), make("td", {class: "number"}), make("td", {class: "acts"}, wake, " ", stay));
}

function paintRow(w, took) {
  let row = rows.get(w.name);
  if (!row) rows.set(w.name, row = newRow(w.name));
  const cells = row.children, phase = cells[1].firstChild;
  phase.className = "phase " + w.phase;
  set(phase, w.phase + (w.phase === "failed" && w.reason?.code ? ": " + w.reason.code : ""));
  paintStrip(cells[2].firstChild, w);
  set(cells[3], sleepsIn(w));
  set(cells[4], String(w.in_flight));
  set(cells[5], String(w.queued));
  set(cells[6], String(w.cold_starts));
  set(cells[7], brief(quantile(took, .5)));
  set(cells[8], brief(quantile(took, .95)));
  const [wake, stay] = cells[9].querySelectorAll("button"), up = w.phase === "ready";
  set(wake, up ? "Sleep" : "Wake");
  wake.dataset.path = up ? "sleep" : "wake";
  wake.setAttribute("aria-label", (up ? "Put to sleep: " : "Wake: ") + w.name);
  set(stay, w.kept_until ? "Let sleep" : "Keep 1 h");
  stay.dataset.path = w.kept_until ? "keep?for=0" : "keep?for=1h";
  stay.setAttribute("aria-label", (w.kept_until ? "Do not keep awake: " : "Keep awake for an hour: ") + w.name);
}

function sleepsIn(w) {
  if (w.phase !== "ready") return "-";
  if (w.in_flight + w.queued > 0) return "in use";
  return w.sleeps_at ? brief(Math.max(0, since(Date.now(), w.sleeps_at))) : "never";
}

function paintStrip(e, w) {
  const strip = days?.workloads[w.name];
  if (!strip) return;
  const n = strip.awake.length, stops = [];
  for (let i = 0, from = 0; i < n; i++) {
    const color = i2 => strip.failed?.includes(i2) ? "var(--bad)" : strip.awake[i2] ? "color-mix(in srgb, var(--good) " + Math.max(25, strip.awake[i2]) + "%, var(--line))" : "var(--line)";
    if (i + 1 === n || color(i + 1) !== color(i)) {
      stops.push(color(i) + " " + 100 * from / n + "% " + 100 * (i + 1) / n + "%");
      from = i + 1;
    }
  }
  const background = "linear-gradient(to right, " + stops.join(", ") + ")";
  if (e.dataset.drawn !== background) { e.style.background = background; e.dataset.drawn = background; }
  const label = "awake " + brief(86400 - strip.asleep_seconds) + " of 24 h, " + several(strip.cold_starts, "cold start");
  if (e.title !== label) { e.title = label; e.setAttribute("aria-label", label); }
}

async function tell(name, button) {
  const action = button.dataset.path;
  if (button.getAttribute("aria-disabled")) return;
  asked.add(name);
  button.setAttribute("aria-disabled", "true");
  announce({wake: "Waking ", sleep: "Putting to sleep ", "keep?for=1h": "Keeping awake "}[action] ?? "Letting sleep ") + name + ".";
  try {
    const answer = await ask("/api/v1/workloads/" + encodeURIComponent(name) + "/" + action, {method: "POST"});
    if (!answer.ok) {
      const problem = await answer.json();
      announce(name + ": " + (problem.detail || problem.title));
      set(by("link"), said);
    }
  } catch { announce(name + ": the server is away."); }
  button.removeAttribute("aria-disabled");
}

// --- cold starts

function total(w) { return since(w.requested_at || w.received_at, w.ready_at || w.failed_at || Date.now()); }

function barOf(w) {
  const sum = w.phases.reduce((s, p) => s + p.duration_seconds, 0) || 1;
  const bar = make("div", {class: "bar", role: "img", "aria-label": w.phases.map(p => p.phase + " " + brief(p.duration_seconds)).join(", ") || "just asked for"});
  for (const p of w.phases) {
    const part = make("i", {class: p.phase === "ready" ? "open" : p.phase, title: p.phase + " " + brief(p.duration_seconds)});
    part.style.width = 100 * p.duration_seconds / sum + "%";
    bar.append(part);
  }
  return bar;
}

function paintWakes() {
  const newest = [...wakes.values()].sort((a, b) => new Date(b.requested_at || b.received_at) - new Date(a.requested_at || a.received_at)).slice(0, 25);
  by("waterfall").replaceChildren(...newest.map(w => make("li", {},
    make("div", {class: "line"},
      make("span", {}, make("a", {href: "#wake=" + encodeURIComponent(w.id)}, w.workload), " ", make("span", {class: "soft"}, clock(w.requested_at || w.received_at) + ", by " + (w.trigger || "?"))),
      make("span", {class: "number" + (w.result === "failed" ? " failed" : "")}, w.result === "waking" ? "waking" : (w.result === "failed" ? "failed after " : "") + brief(total(w)))),
    barOf(w))));
}

// --- added latency

function quantileOf(h, q) {
  let below = 0;
  const rank = q * h.total;
  for (let i = 0; i < h.counts.length; i++) {
    if (below + h.counts[i] >= rank && h.counts[i]) {
      const low = i ? h.bounds_seconds[i - 1] : 0, high = h.bounds_seconds[i] ?? low;
      return low + (high - low) * (rank - below) / h.counts[i];
    }
    below += h.counts[i];
  }
  return NaN;
}

const svg = (name, attributes, ...children) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
};

function paintAdded(added) {
  const paths = ["warm", "cold"].filter(p => added[p].total);
  if (!paths.length) { by("histogram").replaceChildren(make("p", {class: "soft"}, "No request has been forwarded yet.")); by("counts").replaceChildren(); return; }
  const bounds = added[paths[0]].bounds_seconds, labels = [...bounds.map(brief), "more"];
  const width = 640, height = 190, step = (width - 40) / labels.length, base = height - 28;
  const words = paths.map(p => p + ": " + several(added[p].total, "request") + ", p50 " + brief(quantileOf(added[p], .5)) + ", p95 " + brief(quantileOf(added[p], .95)) + ", p99 " + brief(quantileOf(added[p], .99)));
  const plot = svg("svg", {class: "plot", viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": words.join("; ")});
  plot.append(svg("line", {x1: 20, x2: width - 20, y1: base, y2: base}));
  paths.forEach((path, k) => {
    const most = Math.max(...added[path].counts);
    added[path].counts.forEach((count, i) => {
      const tall = count && Math.max(1.5, (base - 12) * count / most), wide = step / paths.length - 1;
      if (count) plot.append(svg("rect", {class: path, x: 20 + i * step + k * (wide + 1), y: base - tall, width: wide, height: tall},
        svg("title", {}, path + " up to " + labels[i] + ": " + count)));
    });
  });
  labels.forEach((label, i) => {
    if (i % 3 === 0) plot.append(svg("text", {x: 20 + (i + 1) * step, y: height - 10, "text-anchor": "middle"}, label));
  });
  by("histogram").replaceChildren(plot, ...words.map((text, i) => make("p", {class: "soft"}, colored(paths[i]), text)));
  by("counts").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "Up to"), ...paths.map(p => make("th", {scope: "col", class: "number"}, p)))),
    make("tbody", {}, ...labels.map((label, i) => make("tr", {}, make("th", {scope: "row"}, label), ...paths.map(p => make("td", {class: "number"}, String(added[p].counts[i]))))))));
}

function colored(path) {
  const key = make("span", {class: "key"});
  key.style.background = path === "warm" ? "var(--mark)" : "var(--glow)";
  return key;
}

// --- NATS

function size(bytes) {
  if (!(bytes >= 1024)) return bytes + " B";
  const i = Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return (bytes / 1024 ** i).toPrecision(3) + " " + ["", "KiB", "MiB", "GiB", "TiB"][i];
}

function grid(caption, head, lines) {
  return make("table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...head.map((h, i) => make("th", i ? {scope: "col", class: "number"} : {scope: "col"}, h)))),
    make("tbody", {}, ...lines.map(line => make("tr", {}, ...line.map((v, i) => i ? make("td", {class: "number"}, v) : make("th", {scope: "row"}, v))))));
}

function paintNATS(n) {
  set(by("nats-text"), [n.connected ? "Connected" : "Not connected", size(n.store_bytes) + " stored" + (n.free_bytes ? ", " + size(n.free_bytes) + " free on its disk" : ""),
    several(n.reconnects, "reconnect"), several(n.dropped, "message") + " dropped here", several(n.slow_consumers, "slow client") + " cut off"].join("; ") + ".");
  if (!n.streams.length) { by("nats-tables").replaceChildren(make("p", {class: "soft"}, "This process has no numbers of the streams: a scaler has, or the server.")); return; }
  by("nats-tables").replaceChildren(
    grid("Streams", ["Stream", "Messages", "Size", "Last message", "Leader"], n.streams.map(s => [s.name + (s.silent ? " (does not answer)" : ""), String(s.messages), size(s.bytes), s.messages ? brief(s.last_age_seconds) + " ago" : "-", s.leader || "-"])),
    grid("Consumers", ["Consumer", "Waiting to be taken", "In work", "Taken again", "Asks for more"], n.consumers.map(c => [c.stream + ", " + c.name, String(c.pending), String(c.ack_pending), String(c.redelivered), String(c.waiting)])));
}

// --- events

function paintEvents() {
  const only = by("only").value.toLowerCase(), kind = by("kind").value, list = by("tail");
  const wanted = events.filter(e => (!kind || e.kind === kind) && (!only || e.workload.toLowerCase().includes(only))).slice(-keep.shown).reverse();
  list.replaceChildren(...wanted.map(e => make("li", {},
    make("time", {datetime: e.at}, clock(e.at)), make("strong", {}, e.workload), make("span", {class: e.kind === "failed" ? "failed" : ""}, e.text || e.kind),
    make("span", {class: "soft"}, reasonOf(e) || (e.wake?.trigger ? "by " + e.wake.trigger : "")))));
}

// --- one workload, one cold start

function why(w) {
  if (w.kept_until) return "It is kept awake until " + clock(w.kept_until) + " because somebody asked for that.";
  if (w.phase === "ready" && w.in_flight) return several(w.in_flight, "request") + " in flight keep it awake.";
  if (w.phase === "ready" && w.sleeps_at) return "Nothing uses it; it sleeps in " + sleepsIn(w) + " if that stays so.";
  if (w.phase === "ready") return "It has no idle timeout, so that it never sleeps.";
  if (w.phase === "waking") return several(w.queued, "request") + " wait for it.";
  if (w.phase === "failed") return "It could not be started: " + (reasonOf(w) || "no reason is known") + "." + (w.retry_at ? " It may be tried again at " + clock(w.retry_at) + "." : "");
  return "It sleeps. The next request wakes it.";
}

function facts(list) {
  return make("table", {}, make("tbody", {}, ...list.filter(([, v]) => v).map(([k, v]) => make("tr", {}, make("th", {scope: "row"}, k), make("td", {}, v)))));
}

function open(title, ...content) {
  set(by("more-title"), title);
  by("more-text").replaceChildren(...content);
  if (!by("more").open) by("more").showModal();
}

function describe(name) {
  const w = workloads.get(name), last = [...wakes.values()].filter(k => k.workload === name).at(-1);
  if (!w) return;
  const log = make("pre", {tabindex: "0", "aria-label": "Last lines of its log"}, "…");
  open(name, make("p", {}, why(w)), facts([
    ["Hosts", w.hosts.join(", ") + (w.path && w.path !== "/" ? " " + w.path : "")], ["Phase", w.phase + " since " + new Date(w.since).toLocaleString()],
    ["Replicas", w.replicas.map(r => r.address + " (" + r.in_flight + " in flight)").join(", ")],
    ["Last request", w.last_request_at && new Date(w.last_request_at).toLocaleString()],
    ["Last woken", last && "by " + last.trigger + " at " + clock(last.requested_at || last.received_at) + (last.gateway ? ", asked for by " + last.gateway : "")],
    ["Runs on", [w.node, w.runtime].filter(Boolean).join(", ")], ["Described in", w.origin],
  ]), last ? barOf(last) : "", make("h3", {}, "Log"), log);
  get("/api/v1/workloads/" + encodeURIComponent(name) + "/logs?lines=50").then(l => set(log, l.lines.join("\n") || "It has written nothing."), e => set(log, e.message));
}

function fromAddress() {
  const id = new URLSearchParams(location.hash.slice(1)).get("wake");
  if (!id) return;
  get("/api/v1/wakes/" + encodeURIComponent(id)).then(w => open("Cold start of " + w.workload, facts([
    ["Asked for", new Date(w.requested_at || w.received_at).toLocaleString()], ["By", [w.trigger, w.gateway].filter(Boolean).join(", ")],
    ["Took", brief(total(w))], ["Result", w.result + (reasonOf(w) ? ": " + reasonOf(w) : "")], ["Generation", String(w.generation)], ["Trace", w.traceparent],
    ...w.phases.map(p => [p.phase, brief(p.duration_seconds)]),
  ]), barOf(w)), e => open("Cold start " + id, make("p", {}, e.message)));
}

// --- what is asked for now and then

async function refresh() {
  const [day, added, found, nats] = await Promise.allSettled([get("/api/v1/days"), get("/api/v1/added"), get("/api/v1/findings"), get("/api/v1/nats")]);
  if (day.value) { days = day.value; dirty.all = true; }
  if (added.value) paintAdded(added.value);
  if (nats.value) paintNATS(nats.value);
  if (found.value) { findings = found.value.findings; dirty.problems = true; }
  schedule();
}

setInterval(() => { if (!document.hidden && workloads.size) for (const w of workloads.values()) if (w.sleeps_at && rows.has(w.name)) set(rows.get(w.name).children[3], sleepsIn(w)); }, 1000);
setInterval(() => { if (!document.hidden && !by("all").hidden) { get("/api/v1/added").then(paintAdded, () => {}); get("/api/v1/nats").then(paintNATS, () => {}); } }, 5000);
setInterval(() => { if (!document.hidden && !by("all").hidden) refresh(); }, 60000);

by("legend").append(...steps.flatMap(s => [make("span", {class: "key " + (s === "ready" ? "open" : s)}), s]));
by("kind").append(...kinds.map(k => make("option", {}, k)));
by("filter").addEventListener("input", arrange);
by("order").addEventListener("change", arrange);
by("only").addEventListener("input", paintEvents);
by("kind").addEventListener("change", paintEvents);
by("close").addEventListener("click", () => by("more").close());
by("more").addEventListener("close", () => { if (location.hash.startsWith("#wake=")) history.replaceState(null, "", location.pathname); });
by("login").addEventListener("submit", e => { e.preventDefault(); token = by("token").value.trim(); by("token").value = ""; follow(); });
addEventListener("hashchange", fromAddress);

by("rows").replaceChildren();
token = recall();
follow();
