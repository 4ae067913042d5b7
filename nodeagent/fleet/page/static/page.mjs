// Draws the nodes and follows the stream. All texts of nodes are hostile: they become text nodes, never markup.

import {
  Fleet, GROUPS, announcement, age, cause, chips, contact, faultOf, fragment, freshness, grouped, localTime, named, pieces,
  since, title, visible, whySections,
} from "./model.mjs";

const ROWS_AT_ONCE = 200;
const DRAW_AFTER_MS = 50;
const AGES_EVERY_MS = 5_000;
const RECONNECT_MS = 5_000;
const ASK_AGAIN_MS = 3_000;

const fleet = new Fleet();
const link = { source: null, connected: false, heardAt: null, lostAt: 0, refusal: "" };
const view = { filter: "", node: "", device: "", groups: new Map(), opened: null };
const byId = (id) => document.getElementById(id);
const serverNow = () => fleet.now(Date.now());

// -- Elements --------------------------------------------------------------------------------------------------

/** An element with attributes and children; a child that is a string becomes a text, made visible. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

function say(id, text) {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text;
}

/** A time of this time zone with its age, which is counted on. */
function time(at) {
  if (at === null || at === undefined) return element("span", { class: "faint" }, "–");
  const made = plainTime(at);
  made.dataset.at = at;
  showAge(made);
  return made;
}

function plainTime(at) {
  const utc = new Date(at).toISOString();
  return element("time", { datetime: utc, title: utc }, localTime(at, serverNow()));
}

function showAge(made) {
  const [at, now] = [Number(made.dataset.at), serverNow()];
  const text = `${localTime(at, now)} (${age(now - at)})`;
  if (made.textContent !== text) made.textContent = text;
}

function verdictMark(verdict) {
  return element("span", { class: `verdict ${verdict.replace(/[^A-Z_]/g, "")}` }, verdict);
}

// -- The list --------------------------------------------------------------------------------------------------

class Group {
  constructor(verdict, meaning) {
    this.verdict = verdict;
    this.limit = ROWS_AT_ONCE;
    this.rows = new Map();
    this.count = element("span", { class: "count" });
    this.body = element("tbody");
    this.more = element("button", { type: "button", class: "more", hidden: "" });
    this.more.addEventListener("click", () => {
      this.limit += ROWS_AT_ONCE;
      draw();
    });
    const head = ["Node", "Handling", "Chips well", "Cause", "Since"];
    const table = element(
      "table", {},
      element("caption", { class: "unseen" }, `Nodes with verdict ${verdict}`),
      element("thead", {}, element("tr", {}, ...head.map((each) => element("th", { scope: "col" }, each)))),
      this.body,
    );
    const heading = element("h2", {}, this.count, " ", verdictMark(verdict), ` ${meaning}`);
    this.element = element(
      "details", { class: "group", id: `group-${verdict}` }, element("summary", {}, heading), table, this.more,
    );
    this.element.open = verdict !== "ALLOW";
    this.element.addEventListener("toggle", () => draw());
  }

  draw(nodes) {
    this.count.textContent = String(nodes.length);
    this.element.hidden = nodes.length === 0;
    const shown = this.element.open ? nodes.slice(0, this.limit) : [];
    const wanted = new Set(shown.map((node) => node.name));
    for (const [name, row] of this.rows) {
      if (!wanted.has(name)) {
        row.element.remove();
        this.rows.delete(name);
      }
    }
    let place = this.body.firstElementChild;
    for (const node of shown) {
      const row = this.row(node);
      if (row === place) place = place.nextElementSibling;
      else this.body.insertBefore(row, place);
    }
    const left = this.element.open ? nodes.length - shown.length : 0;
    this.more.hidden = left === 0;
    this.more.textContent = `Show ${Math.min(left, ROWS_AT_ONCE)} more of ${left}`;
  }

  row(node) {
    const quiet = fleet.quietSince(node);
    const known = this.rows.get(node.name);
    if (known && known.node === node && known.quiet === quiet) return known.element;
    const made = known?.element ?? element("tr");
    const anchor = known?.anchor ?? element("a", { href: fragment(node.name), class: "node" });
    anchor.textContent = visible(node.label);
    const why = element("td", { class: "cause", "data-head": "Cause" }, element("span", {}, cause(node) || "–"));
    if (quiet !== null) why.append(" ", element("strong", {}, "no message since "), time(quiet));
    made.replaceChildren(
      element("th", { scope: "row" }, anchor),
      element("td", { "data-head": "Handling" }, node.handling === "NONE" ? "–" : node.handling),
      element("td", { "data-head": "Chips well" }, chips(node)),
      why,
      element("td", { "data-head": "Since", class: "since" }, time(since(node))),
    );
    this.rows.set(node.name, { element: made, anchor, node, quiet });
    return made;
  }
}

const groups = GROUPS.map(([verdict, meaning]) => new Group(verdict, meaning));

function drawCounts(all) {
  const items = groups.map(({ verdict, element: group }) => {
    const known = byId(`count-${verdict}`);
    const made = known ?? element("button", { type: "button", id: `count-${verdict}` });
    if (!known) {
      made.addEventListener("click", () => {
        group.open = true;
        draw();
        group.scrollIntoView();
        group.querySelector("summary").focus();
      });
    }
    const number = all.get(verdict).length;
    made.replaceChildren(element("b", {}, String(number)), " ", verdictMark(verdict));
    made.disabled = number === 0;
    return known ? known.parentElement : element("li", {}, made);
  });
  if (!byId("counts").childElementCount) byId("counts").append(...items);
}

let drawing = 0;

/** Soon, and once for all that happens until then. Not by frames: a tab in the background has none. */
function draw() {
  if (!drawing) drawing = setTimeout(drawNow, DRAW_AFTER_MS);
}

function drawNow() {
  drawing = 0;
  const focused = document.activeElement;
  const all = grouped(fleet.nodes.values());
  const shown = view.filter ? grouped(fleet.nodes.values(), view.filter) : all;
  drawCounts(all);
  for (const group of groups) group.draw(shown.get(group.verdict));
  const matching = [...shown.values()].reduce((sum, nodes) => sum + nodes.length, 0);
  say("filtered", view.filter ? `${matching} of ${fleet.nodes.size} nodes` : "");
  document.title = title(all);
  drawDetail();
  markCurrent();
  if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
}

function markCurrent() {
  for (const anchor of document.querySelectorAll("a.node[aria-current]")) anchor.removeAttribute("aria-current");
  for (const group of groups) group.rows.get(view.node)?.anchor.setAttribute("aria-current", "true");
}

// -- One node --------------------------------------------------------------------------------------------------

/** A node that is opened: what it was asked, and what came. */
class Opened {
  constructor(name) {
    this.name = name;
    this.details = null;
    this.row = undefined;
    this.why = { device: "", lines: null, error: "", at: 0, asked: 0, underWay: false };
    this.drawn = "";
    this.othersOpen = false;
    this.timer = 0;
  }

  /** The node has changed, or was just opened: its devices are read, and the device in view is asked again. */
  async refresh() {
    this.row = fleet.nodes.get(this.name);
    this.details = (await asked(`node?node=${encodeURIComponent(this.name)}`)).answer ?? this.details;
    drawDetail();
  }

  async ask(device) {
    const why = this.why;
    if (why.underWay && why.device === device) return;
    this.why = {
      device, lines: why.device === device ? why.lines : null, error: "", at: why.at, asked: Date.now(), underWay: true,
    };
    const current = this.why;
    drawDetail();
    const query = `why?node=${encodeURIComponent(this.name)}&device=${encodeURIComponent(device)}`;
    const { answer, error } = await asked(query);
    current.underWay = false;
    current.error = error;
    if (answer) [current.lines, current.at] = [answer.lines, answer.at];
    drawDetail();
  }

  /** Not more often than each few seconds, however often the node changes. */
  changed() {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      if (view.opened !== this) return;
      this.refresh();
      if (view.device) this.ask(view.device);
    }, Math.max(DRAW_AFTER_MS, this.why.asked + ASK_AGAIN_MS - Date.now()));
  }
}

/** The answer to a question, or why there is none. */
async function asked(query) {
  try {
    const response = await fetch(query, { cache: "no-store" });
    const text = await response.text();
    const form = (response.headers.get("Content-Type") ?? "").startsWith("application/json") ? JSON.parse(text) : {};
    if (response.ok) return { answer: form, error: "" };
    return { answer: null, error: form.error ?? text.trim() };
  } catch (error) {
    return { answer: null, error: `the server of this page gives no answer: ${error.message}` };
  }
}

function deviceItem(device) {
  const anchor = element("a", { href: fragment(view.node, device.name), class: "device" }, device.name);
  if (device.name === view.device) anchor.setAttribute("aria-current", "true");
  const handling = device.handling === "NONE" ? "" : ` ${device.handling}`;
  const fault = device.codes.length ? `${faultOf(device)} ` : "";
  return element(
    "li", {}, element("div", {}, anchor, " ", verdictMark(device.verdict), handling, " ", time(device.since)),
    element("div", { class: "faint" }, `${fault}${device.cause}`),
  );
}

function drawDetail() {
  const [place, opened] = [byId("detail"), view.opened];
  place.hidden = opened === null;
  document.body.classList.toggle("has-detail", opened !== null);
  if (opened === null) return;
  const node = fleet.nodes.get(opened.name);
  if (opened.row === undefined) opened.row = node;
  else if (node && node !== opened.row) opened.changed();
  const state = JSON.stringify([node, opened.details, opened.why, view.device, node && fleet.quietSince(node)]);
  if (state === opened.drawn) return;
  opened.drawn = state;
  const focused = place.contains(document.activeElement) ? document.activeElement.id || document.activeElement.hash : "";
  place.replaceChildren(...detailOf(opened, node));
  if (focused) {
    [...place.querySelectorAll("a, button, h2, h3, summary")]
      .find((each) => each.id === focused || each.hash === focused)?.focus({ preventScroll: true });
  }
}

function detailOf(opened, node) {
  const close = element("a", { href: "#", class: "close", id: "close" }, "Close");
  const heading = element("h2", { id: "detail-heading", tabindex: "-1" }, node ? node.label : opened.name);
  if (!node) {
    const known = fleet.nodes.size ? "No node of this name is followed." : "Nothing is known of it yet.";
    return [close, heading, element("p", {}, known)];
  }
  const details = opened.details?.name === node.name ? opened.details : null;
  const facts = [
    ["Verdict", element("span", {}, verdictMark(node.verdict), node.handling === "NONE" ? "" : ` ${node.handling}`)],
    ["Contact", element("span", {}, `${contact(node)} since `, time(node.contact_since))],
    ...(node.reason ? [["Reason", node.reason]] : []),
    ["Last message", time(fleet.quietSince(node) ?? details?.heard_at ?? node.heard_at)],
    ["Chips well", chips(node)],
    ...(details ? [["Address", details.address]] : []),
  ];
  const unwell = node.devices;
  const names = new Set(unwell.map((device) => device.name));
  const others = (details?.devices ?? []).filter((device) => !names.has(device.name));
  const parts = [
    close, heading,
    element("dl", {}, ...facts.flatMap(([key, value]) => [element("dt", {}, key), element("dd", {}, value)])),
    ...(view.device ? [whyOf(opened)] : []),
  ];
  if (node.contact !== "answers" && node.devices.length + others.length) {
    parts.push(element("p", { class: "note" }, "It does not answer now: its devices are those last known."));
  }
  parts.push(element("h3", {}, "Devices that are not well"));
  const none = node.contact === "answers" ? "None." : "Not known.";
  parts.push(unwell.length ? element("ul", { class: "devices" }, ...unwell.map(deviceItem)) : element("p", {}, none));
  if (others.length) parts.push(otherDevices(opened, others));
  return parts;
}

function otherDevices(opened, others) {
  const made = element("details", {}, element("summary", { id: "others" }, `${others.length} other devices`));
  made.open = opened.othersOpen;
  made.addEventListener("toggle", () => {
    opened.othersOpen = made.open;
  });
  made.append(element("ul", { class: "names" }, ...others.map((device) => {
    const anchor = element("a", { href: fragment(view.node, device.name), class: "device" }, device.name);
    if (device.name === view.device) anchor.setAttribute("aria-current", "true");
    return element("li", {}, anchor);
  })));
  return made;
}

function whyOf(opened) {
  const { device, lines, error, at, underWay } = opened.why;
  const again = element("button", { type: "button", id: "again" }, "Ask again");
  again.disabled = underWay;
  again.addEventListener("click", () => opened.ask(view.device));
  const made = element(
    "section", { class: "why", "aria-labelledby": "why-heading" },
    element("h3", { id: "why-heading", tabindex: "-1" }, `Why ${view.device}`), again,
  );
  const of_it = device === view.device;
  if (underWay) made.append(element("p", { role: "status" }, "The node is asked."));
  if (of_it && error) made.append(element("p", { class: "error", role: "alert" }, error));
  if (of_it && lines) {
    made.append(element("p", { class: "faint" }, "Answered at ", time(at)), ...whySections(lines).map(whySection));
  }
  return made;
}

function whySection({ heading, rows }) {
  const texts = (text) => pieces(text).map((piece) => (piece.at === undefined ? piece.text : plainTime(piece.at)));
  return element(
    "div", { class: "section" }, element("h4", {}, ...texts(heading)),
    element("dl", {}, ...rows.flatMap(([label, text]) =>
      label
        ? [element("dt", {}, label), element("dd", {}, ...texts(text))]
        : [element("dd", { class: "whole" }, ...texts(text))])),
  );
}

// -- Where the reader is ---------------------------------------------------------------------------------------

function arrive() {
  const { node, device } = named(location.hash);
  const before = view.node;
  [view.node, view.device] = [node, device];
  if (!node) {
    view.opened = null;
  } else if (view.opened?.name !== node) {
    view.opened = new Opened(node);
    view.opened.refresh();
  }
  if (device) view.opened.ask(device);
  drawNow();
  if (!node) document.querySelector(`a.node[href="${CSS.escape(fragment(before))}"]`)?.focus();
  else byId(device ? "why-heading" : "detail-heading")?.focus();
}

function close() {
  if (!view.node) return;
  const before = view.node;
  location.hash = "";
  for (const group of groups) group.rows.get(before)?.anchor.focus();
}

addEventListener("hashchange", arrive);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const filter = byId("filter");
  if (event.key === "Escape" && document.activeElement === filter && filter.value) {
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
  } else if (event.key === "Escape") {
    close();
  } else if (event.key === "/" && document.activeElement !== filter) {
    filter.focus();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const anchors = [...document.querySelectorAll("a.node")];
    const at = anchors.indexOf(document.activeElement);
    if (at < 0 && document.activeElement !== filter) return;
    anchors[at < 0 ? 0 : at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  } else {
    return;
  }
  event.preventDefault();
});
byId("filter").addEventListener("input", () => {
  view.filter = byId("filter").value;
  draw();
});
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("list").focus();
});

// -- The stream ------------------------------------------------------------------------------------------------

function connect() {
  const source = new EventSource("events");
  link.source = source;
  for (const kind of ["all", "changes", "alive"]) {
    source.addEventListener(kind, (event) => {
      const changed = fleet.apply(kind, JSON.parse(event.data), Date.now());
      if (kind === "alive") view.opened?.refresh();
      Object.assign(link, { connected: true, heardAt: Date.now(), refusal: "" });
      if (changed.length) say("news", announcement(changed));
      showFreshness();
      draw();
    });
  }
  source.addEventListener("error", () => {
    if (link.connected || !link.lostAt) link.lostAt = Date.now();
    link.connected = false;
    if (source.readyState === EventSource.CLOSED) reconnect();
    showFreshness();
  });
}

/** A browser tries by itself where a connection breaks, and never again where the server refuses. */
async function reconnect() {
  try {
    const response = await fetch("events", { method: "HEAD", cache: "no-store" });
    if (!response.ok) link.refusal = `The server refuses the connection (${response.status} ${response.statusText}).`;
  } catch {
    link.refusal = "";
  }
  showFreshness();
  setTimeout(connect, RECONNECT_MS);
}

function showFreshness() {
  const { text, isBad, banner } = freshness({ ...link, now: Date.now() });
  say("connection", text);
  byId("connection").className = isBad ? "bad" : "";
  say("as-of", link.heardAt === null ? "" : `as of ${localTime(fleet.now(link.heardAt), serverNow())}`);
  const updated = fleet.isUpdated ? "nodeagent was updated; reload this page." : "";
  const shown = [banner, updated].filter(Boolean).join(" ");
  byId("banner").hidden = !shown;
  say("banner", shown);
  document.body.classList.toggle("is-old", isBad);
}

byId("list").append(...groups.map((group) => group.element));
setInterval(showFreshness, 1_000);
setInterval(() => document.querySelectorAll("time[data-at]").forEach(showAge), AGES_EVERY_MS);
connect();
arrive();
