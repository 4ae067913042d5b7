// What the page decides without a browser. Run by test_model.py with the time zone Asia/Kolkata (UTC+05:30).

import assert from "node:assert/strict";
import { test } from "node:test";

import * as model from "../../../nodeagent/fleet/page/static/model.mjs";

const NOW = Date.parse("2026-11-28T12:00:00Z");

function device(name, fields = {}) {
  return {
    name, kind: "chip", verdict: "ISOLATE", handling: "RESCHEDULE", codes: ["XID_79"], codes_left_out: 0,
    cause: "fallen off the bus", since: NOW, ...fields,
  };
}

function node(name, fields = {}) {
  return {
    name, label: name, contact: "answers", reason: "", contact_since: NOW, heard_at: NOW, verdict: "ALLOW",
    handling: "NONE", chips: 8, chips_well: 8, devices: [], devices_left_out: 0, ...fields,
  };
}

test("a link names a node and a device with any characters, and is read back", () => {
  for (const [name, part] of [["gpu-17", ""], ["gpu-17", "npu3"], ["a/b#c", "ub0/9"], ["ü %2F", "<b>"], ["x", "50%"]]) {
    assert.deepEqual(model.named(model.fragment(name, part)), { node: name, device: part });
  }
  assert.equal(model.fragment("gpu-17", "ub0/9"), "#gpu-17/ub0%2F9");
  for (const nothing of ["", "#", "#%", "#%ff"]) assert.deepEqual(model.named(nothing), { node: "", device: "" });
});

test("what would hide or reorder a text is shown as an escape, and all else is left", () => {
  for (const [text, shown] of [
    ["plain é 漢字 שלום", "plain é 漢字 שלום"],
    ["gpu\u202e<img>", "gpu\\u202e<img>"],
    ["a\u0000\n\u001b\u00ad\u200b\ufe0f", "a\\u0000\\u000a\\u001b\\u00ad\\u200b\\ufe0f"],
    ["\u{e0041}", "\\u{e0041}"],
    ["\ud800", "\\ud800"],
    [undefined, ""],
  ]) assert.equal(model.visible(text), shown);
});

test("an age is in whole units of the largest that fits, and never negative", () => {
  assert.deepEqual([-5, 999, 59_999, 60_000, 7_200_000, 200_000_000].map(model.age), ["0 s", "0 s", "59 s", "1 min", "2 h", "2 d"]);
});

test("a time is that of the time zone, with the date where that is another day", () => {
  assert.equal(model.localTime(NOW, NOW), "17:30:00");
  assert.equal(model.localTime(Date.parse("2026-11-27T18:31:00Z"), NOW), "00:01:00");
  assert.equal(model.localTime(Date.parse("2026-11-27T18:29:00Z"), NOW), "2026-11-27 23:59:00");
});

test("the cause names each fault with its devices once", () => {
  const devices = [..."01234"].map((number) => device(`gpu${number}`));
  const other = device("gpu7", { codes: [], cause: "", verdict: "UNKNOWN" });
  assert.equal(
    model.cause(node("a", { devices: [...devices, other], devices_left_out: 2 })),
    "gpu0, gpu1, gpu2, gpu3 and 1 more: XID_79 fallen off the bus; gpu7: UNKNOWN; and 2 more devices",
  );
  assert.equal(model.cause(node("a")), "");
});

test("of a node that does not answer the cause is why, and its chips are not shown as if it did", () => {
  const reason = "UNAVAILABLE: failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:9443: Connection refused";
  const away = node("a", { contact: "away", reason, contact_since: 7, devices: [device("gpu0")] });
  assert.equal(model.cause(away), "does not answer: Connection refused");
  assert.deepEqual([model.chips(away), model.since(away)], ["–", 7]);
  assert.equal(model.cause(node("a", { contact: "refuses", reason: "no role" })), "refuses our certificate or its role: no role");
  assert.equal(model.cause(node("a", { contact: "new" })), "not asked yet");
});

test("nodes are grouped by verdict, those that need a person first", () => {
  const nodes = [
    node("n10"), node("n9"),
    node("a", { verdict: "UNKNOWN", contact: "away" }), node("b", { verdict: "UNKNOWN", contact: "refuses" }),
    node("c", { verdict: "ISOLATE", handling: "NONE" }), node("d", { verdict: "ISOLATE", handling: "RESCHEDULE" }),
    node("e", { verdict: "A_NEWER_VERDICT" }),
  ];
  const groups = [...model.grouped(nodes)].map(([verdict, each]) => [verdict, each.map(({ name }) => name)]);
  assert.deepEqual(groups, [["ISOLATE", ["d", "c"]], ["UNKNOWN", ["b", "a", "e"]], ["NO_NEW_JOBS", []], ["ALLOW", ["n9", "n10"]]]);
  assert.equal(model.title(model.grouped(nodes)), "2 ISOLATE, 3 UNKNOWN – nodeagent fleet");
  assert.equal(model.title(model.grouped([node("a")])), "all well – nodeagent fleet");
});

test("the filter wants all words, in names, devices, codes and causes", () => {
  const one = node("gpu-17", { verdict: "ISOLATE", devices: [device("gpu3")] });
  for (const text of ["", "  ", "17", "GPU-17 xid_79", "gpu3 bus", "isolate"]) assert.ok(model.matches(one, text), text);
  for (const text of ["18", "gpu-17 XID_48"]) assert.ok(!model.matches(one, text), text);
});

test("the lines of why become sections, fields and times", () => {
  const lines = [
    "npu3: ISOLATE, handling RESCHEDULE", "  cause: Multi-bit errors (80E01801)", "",
    "condition: 80E01801 Multi-bit errors", "  from ascend, 1 signal, 2026-11-28T12:00:00.123Z to 2026-11-28T12:00:01.000Z",
    "    event_name: deviceid=3, fault: 7", "2026-11-28T12:00:00.123Z raised npu3 80E01801",
  ];
  assert.deepEqual(model.whySections(lines), [
    { heading: lines[0], rows: [["cause", "Multi-bit errors (80E01801)"]] },
    { heading: lines[3], rows: [["", lines[4].trim()], ["event_name", "deviceid=3, fault: 7"], ["", lines[6]]] },
  ]);
  assert.deepEqual(model.pieces("at 2026-11-28T12:00:00.000Z."), [{ text: "at " }, { text: "2026-11-28T12:00:00.000Z", at: NOW }, { text: "." }]);
  assert.deepEqual(model.pieces("2026-99-99T12:00:00Z"), [{ text: "2026-99-99T12:00:00Z" }]);
});

test("the page shows when its data is old and when the connection is lost", () => {
  const seen = (fields) => model.freshness({ connected: true, heardAt: NOW, lostAt: 0, refusal: "", now: NOW, ...fields });
  assert.deepEqual(seen({}), { text: "Live", isBad: false, banner: "" });
  assert.equal(seen({ now: NOW + 20_000 }).text, "Live");
  const old = seen({ now: NOW + 30_000 });
  assert.deepEqual([old.text, old.isBad], ["Old data", true]);
  assert.equal(old.banner, seen({ now: NOW + 40_000 }).banner);
  const lost = seen({ connected: false, lostAt: NOW + 1000, now: NOW + 9000 });
  assert.equal(lost.banner, "The connection was lost at 17:30:01. What is shown is of 17:30:00. It is tried again.");
  assert.equal(seen({ connected: false, heardAt: null }).text, "Connecting");
  assert.match(seen({ connected: false, heardAt: null, refusal: "It refuses (503)." }).banner, /^It refuses \(503\)\. Nothing is known yet\./);
});

test("all nodes replace what was known, changes add to it, and the server's clock counts", () => {
  const fleet = new model.Fleet();
  const all = { at: NOW + 5000, version: "1", removed: [], nodes: [node("a"), node("b")] };
  assert.deepEqual(fleet.apply("all", all, NOW), []);
  assert.equal(fleet.now(NOW), NOW + 5000);
  const isolated = node("b", { verdict: "ISOLATE" });
  const changes = { at: NOW, version: "1", removed: ["a"], nodes: [isolated, node("c")] };
  assert.deepEqual(fleet.apply("changes", changes, NOW), [isolated]);
  assert.deepEqual([...fleet.nodes.keys()], ["b", "c"]);
  fleet.apply("alive", { at: NOW, quiet: { b: 7 } }, NOW);
  assert.deepEqual([fleet.quietSince(isolated), fleet.quietSince(node("c"))], [7, null]);
  assert.deepEqual([fleet.isUpdated, fleet.apply("all", { ...all, version: "2" }, NOW).length, fleet.isUpdated], [false, 1, true]);
  assert.deepEqual([...fleet.nodes.keys()], ["a", "b"]);
});

test("a screen reader announces which nodes changed their verdict, or how many", () => {
  const changed = ["a", "b", "c", "d"].map((name) => node(name, { verdict: "ISOLATE" }));
  assert.equal(model.announcement([]), "");
  assert.equal(model.announcement(changed.slice(0, 2)), "a is ISOLATE, b is ISOLATE");
  assert.equal(model.announcement(changed), "4 nodes changed their verdict");
});
