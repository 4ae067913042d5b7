// What the page decides without a browser: names in links, ages, order, filter, and whether its data is old.
// No DOM, no clock and no network here: what a function needs is an argument.

export const GROUPS = [
  ["ISOLATE", "take no work"],
  ["UNKNOWN", "not known whether they take work"],
  ["NO_NEW_JOBS", "take no new jobs"],
  ["ALLOW", "take work"],
];
// UNKNOWN before NO_NEW_JOBS: the daemon ends the latter by itself, but a node that does not answer needs a person.

const CONTACTS = {
  new: "not asked yet",
  away: "does not answer",
  refuses: "refuses our certificate or its role",
  answers: "answers",
};
const MOST_URGENT_FIRST = [
  "RESCHEDULE", "STOP_RESET_RESTART", "RESET_WHEN_IDLE", "RESTART_JOB", "RERUN_REQUEST", "JOB_STRATEGY", "NONE",
];
const FAULTS_SHOWN = 3;
const NAMES_SHOWN = 4;
const CONTACTS_FIRST = ["refuses", "away", "answers", "new"];

const collator = new Intl.Collator("en", { numeric: true });

// Characters that a browser obeys or does not show: control characters, marks of direction, widths of zero.
const UNSHOWABLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** The text with an escape in place of each character that would hide or reorder what is next to it. */
export function visible(text) {
  return String(text ?? "").replace(UNSHOWABLE, (each) => {
    const digits = each.codePointAt(0).toString(16);
    return digits.length > 4 ? `\\u{${digits}}` : `\\u${digits.padStart(4, "0")}`;
  });
}

/** The part of an address after "#": a node, or a device of it. */
export function fragment(node, device = "") {
  const parts = device ? [node, device] : [node];
  return `#${parts.map(encodeURIComponent).join("/")}`;
}

/** What such a part names; "" for what it does not. */
export function named(text) {
  const [node = "", device = ""] = text.replace(/^#/, "").split("/");
  try {
    return { node: decodeURIComponent(node), device: decodeURIComponent(device) };
  } catch {
    return { node: "", device: "" };
  }
}

/** How long it is, in whole units of the largest that fits: as `nodeagent status` shows it. */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${seconds} s`;
}

/** The time of day of this time zone, with the date where that is not today. */
export function localTime(at, now) {
  const [then, today] = [new Date(at), new Date(now)];
  const two = (number) => String(number).padStart(2, "0");
  const time = [then.getHours(), then.getMinutes(), then.getSeconds()].map(two).join(":");
  if (then.toDateString() === today.toDateString()) return time;
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${time}`;
}

/** What keeps it from taking work: devices with their codes, or why it does not answer. */
export function cause(node) {
  if (node.contact !== "answers") {
    return node.reason ? `${contact(node)}: ${inShort(node.reason)}` : contact(node);
  }
  const faults = new Map();
  for (const device of node.devices) {
    const fault = faultOf(device);
    faults.set(fault, [...(faults.get(fault) ?? []), device]);
  }
  const texts = [...faults].slice(0, FAULTS_SHOWN).map(([fault, devices]) => {
    const names = devices.slice(0, NAMES_SHOWN).map((device) => device.name).join(", ");
    const more = devices.length > NAMES_SHOWN ? ` and ${devices.length - NAMES_SHOWN} more` : "";
    return `${names}${more}: ${[fault, devices[0].cause].filter(Boolean).join(" ")}`;
  });
  if (faults.size > FAULTS_SHOWN) texts.push(`and ${faults.size - FAULTS_SHOWN} more faults`);
  if (node.devices_left_out) texts.push(`and ${node.devices_left_out} more devices`);
  return texts.join("; ");
}

/** Of gRPC's "failed to connect to all addresses; last error: ..." what the last address answered. */
function inShort(reason) {
  const [, last] = reason.split("; last error: ");
  return last ? last.split(": ").at(-1) : reason;
}

/** How many chips take work; what was known before is not shown as if it were so now. */
export function chips(node) {
  if (!node.chips || node.contact !== "answers") return "–";
  return `${node.chips_well} of ${node.chips}`;
}

/** The codes of a device, else its verdict. */
export function faultOf(device) {
  const more = device.codes_left_out ? ` and ${device.codes_left_out} more` : "";
  return device.codes.length ? device.codes.join(" ") + more : device.verdict;
}

/** Since when its verdict is what it is; null where that is not known. */
export function since(node) {
  if (node.contact !== "answers") return node.contact_since;
  return node.devices.length ? node.devices[0].since : null;
}

export function contact(node) {
  return CONTACTS[node.contact] ?? node.contact;
}

/** Whether all words are in what the list shows of it. */
export function matches(node, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const devices = node.devices.flatMap((device) => [device.name, device.verdict, device.cause, ...device.codes]);
  const all = [node.name, node.label, node.verdict, node.handling, contact(node), node.reason, ...devices];
  const shown = all.join("\n").toLowerCase();
  return words.every((word) => shown.includes(word));
}

/** The order within a verdict: what a person has to do something about comes first. */
export function compared(one, other) {
  return (
    CONTACTS_FIRST.indexOf(one.contact) - CONTACTS_FIRST.indexOf(other.contact) ||
    MOST_URGENT_FIRST.indexOf(one.handling) - MOST_URGENT_FIRST.indexOf(other.handling) ||
    collator.compare(one.label, other.label)
  );
}

/** The nodes of each verdict, in order. A verdict of a newer daemon counts as UNKNOWN. */
export function grouped(nodes, text = "") {
  const groups = new Map(GROUPS.map(([verdict]) => [verdict, []]));
  for (const node of nodes) {
    if (matches(node, text)) (groups.get(node.verdict) ?? groups.get("UNKNOWN")).push(node);
  }
  for (const each of groups.values()) each.sort(compared);
  return groups;
}

/** The title of the page: what is not well comes first, for a narrow tab. */
export function title(groups) {
  const unwell = GROUPS.filter(([verdict]) => verdict !== "ALLOW" && groups.get(verdict).length)
    .map(([verdict]) => `${groups.get(verdict).length} ${verdict}`);
  return `${unwell.join(", ") || "all well"} – nodeagent fleet`;
}

/** What a screen reader announces about nodes whose verdict changed; "" for none. */
export function announcement(changes) {
  if (!changes.length) return "";
  if (changes.length > 3) return `${changes.length} nodes changed their verdict`;
  return changes.map((node) => `${visible(node.label)} is ${node.verdict}`).join(", ");
}

/** The lines of `nodeagent why` in sections: a heading, fields with a label, and other lines. */
export function whySections(lines) {
  const sections = [];
  for (const line of lines) {
    if (!line.trim()) continue;
    const isHeading = !line.startsWith(" ") && !/^\d{4}-\d\d-\d\dT/.test(line);
    if (isHeading || !sections.length) sections.push({ heading: isHeading ? line : "", rows: [] });
    if (!isHeading) sections.at(-1).rows.push(split(line.trim()));
  }
  return sections;
}

function split(line) {
  const match = /^([A-Za-z_][\w ./-]{0,40}): +(.*)$/.exec(line);
  return match ? [match[1], match[2]] : ["", line];
}

/** The pieces of a text: times, which have a number, and what is between them. */
export function pieces(text) {
  const found = [];
  let end = 0;
  for (const match of text.matchAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g)) {
    if (match.index > end) found.push({ text: text.slice(end, match.index) });
    const at = Date.parse(match[0]);
    found.push(Number.isNaN(at) ? { text: match[0] } : { text: match[0], at });
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end) });
  return found;
}

export const ALIVE_EVERY_MS = 10_000; // as often as the server sends something, whatever happens
const OLD_AFTER_MS = 2.5 * ALIVE_EVERY_MS;

/** How far the data can be believed: what to show for it, and whether that is bad. The banner has times and no
 * ages: a screen reader reads it out each time that it changes. */
export function freshness({ connected, heardAt, lostAt, refusal, now }) {
  if (connected && heardAt !== null && now - heardAt > OLD_AFTER_MS) {
    const from = `Nothing has come from the server since ${localTime(heardAt, now)}`;
    return { text: "Old data", isBad: true, banner: `${from}; what is shown is of that time.` };
  }
  if (connected) return { text: "Live", isBad: false, banner: "" };
  if (heardAt === null && !refusal) return { text: "Connecting", isBad: false, banner: "" };
  const why = refusal || `The connection was lost at ${localTime(lostAt, now)}.`;
  const old = heardAt === null ? "Nothing is known yet." : `What is shown is of ${localTime(heardAt, now)}.`;
  return { text: "Not connected", isBad: true, banner: `${why} ${old} It is tried again.` };
}

/** The nodes as far as they are known, and the clock of the server. */
export class Fleet {
  constructor() {
    this.nodes = new Map();
    this.quiet = {};
    this.version = "";
    this.isUpdated = false;
    this.ahead = 0;
  }

  /** The server's time, by the browser's clock: the two may differ. */
  now(own) {
    return own + this.ahead;
  }

  /** An event of the stream; the nodes whose verdict changed with it. */
  apply(kind, data, own) {
    this.ahead = data.at - own;
    if (kind === "alive") {
      this.quiet = data.quiet;
      return [];
    }
    if (this.version && this.version !== data.version) this.isUpdated = true;
    this.version = data.version;
    const before = this.nodes;
    if (kind === "all") this.nodes = new Map();
    const changed = [];
    for (const node of data.nodes) {
      const known = before.get(node.name);
      if (known && known.verdict !== node.verdict) changed.push(node);
      this.nodes.set(node.name, node);
    }
    for (const name of data.removed) this.nodes.delete(name);
    return changed;
  }

  /** When an answering node was heard last where that is unusually long ago, else null. */
  quietSince(node) {
    return node.contact === "answers" ? this.quiet[node.name] ?? null : null;
  }
}
