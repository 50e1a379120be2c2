// Many samples of one pair at once: mark the exceptions, accept the rest.

import { $, button, count, el, percent, picture, plural, say } from "./dom.js";
import { pairName } from "./filters.js";
import { read, write } from "./server.js";
import { undo as undoStep } from "./single.js";

const PAGE = 60;
let run, pairs = [], pair = null, items = [], except = new Set(), busy = false, place = 0;

export function start(about) { run = about; }

export async function open() {
  ({ pairs } = await read("pairs"));
  pairs = pairs.filter((one) => one.open > 0);
  pair = pairs.find((one) => one.given === pair?.given && one.suggested === pair?.suggested) ?? pairs[0] ?? null;
  await load();
}

async function load() {
  except = new Set();
  place = 0;
  items = [];
  if (pair) ({ items } = await read("grid", { pair: `${pair.given},${pair.suggested}`, count: PAGE }));
  draw();
  focus();
}

async function choose(key) {
  pair = pairs.find((one) => `${one.given},${one.suggested}` === key);
  await load();
}

export async function acceptAll() {
  if (!pair || busy || !items.length) return;
  const later = $("exceptions").value === "later";
  const kept = items.filter((item) => except.has(item.sample));
  const choices = items.filter((item) => !except.has(item.sample)).map((item) => choice(item, item.suggestion));
  if (!later) choices.push(...kept.map((item) => choice(item, item.given)));
  if (!choices.length) return say("All are marked as exceptions: nothing to accept.");
  busy = true;
  try {
    const { made, refused } = await write("decide", { choices });
    say(`Saved: ${plural(made.length, "decision")}${refused.length ? `; ${count(refused.length)} were decided in another tab meanwhile` : ""}. `,
      el("button", { type: "button", onclick: undo }, "Undo all ", el("kbd", { "aria-hidden": "true" }, "u")));
    await open();
  } catch { /* said already */ } finally { busy = false; }
}

export async function undo() {
  await undoStep();
  await open();
}

export function changed(state) {
  const gone = new Set(state.changes.filter((change) => change.kind === "label" || change.kind === "unsure").map((change) => change.sample));
  if (busy || !items.some((item) => gone.has(item.sample))) return;
  items = items.filter((item) => !gone.has(item.sample));
  draw();
}

export function move(key) {
  const across = getComputedStyle($("grid")).gridTemplateColumns.split(" ").length;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across, Home: -items.length, End: items.length }[key];
  place = Math.min(items.length - 1, Math.max(0, place + step));
  focus();
}

export function toggle(at = place) {
  const item = items[at];
  if (!item) return;
  place = at;
  if (!except.delete(item.sample)) except.add(item.sample);
  const tile = $("grid").children[at];
  tile.setAttribute("aria-pressed", except.has(item.sample));
  head();
}

const choice = (item, label) => ({ sample: item.sample, kind: "label", label, seen: item.stands.number });

function draw() {
  if (!pair) {
    $("batch").replaceChildren(el("div", { class: "done" }, el("h2", {}, "Nothing left to review here."), el("p", {}, "All samples that match this filter are decided.")));
    return;
  }
  const select = el("select", { id: "pair", onchange: () => choose(select.value) },
    pairs.map((one) => el("option", { value: `${one.given},${one.suggested}`, selected: one === pair }, pairName(one))));
  const keeps = pair.given >= 0 && pair.given !== pair.suggested;
  $("batch").replaceChildren(
    el("div", { class: "batch-head" },
      el("label", {}, el("span", { class: "small quiet" }, "Given → suggestion"), select),
      el("p", { id: "batch-says" }),
      el("label", {}, el("span", { class: "small quiet" }, "Exceptions"), el("select", { id: "exceptions" },
        el("option", { value: "later" }, "stay open"), keeps && el("option", { value: "keep" }, `keep ${run.classes[pair.given]}`))),
      button("", "⏎", acceptAll, { class: "primary", id: "accept-all", "aria-keyshortcuts": "Enter" })),
    el("div", { id: "grid", class: run.kind, role: "group", "aria-label": "Samples; press to mark as an exception" }, items.map(tile)));
  head();
}

function head() {
  const rest = items.length - except.size;
  const name = run.classes[pair.suggested];
  const verb = pair.given === pair.suggested ? "Keep" : "Accept";
  $("accept-all").lastChild.textContent = `${verb} ${count(rest)} as ${name}`;
  const more = pair.open - items.length;
  const marked = except.size ? `${plural(except.size, "exception")} marked` : "press or click those that are not";
  $("batch-says").replaceChildren("All ", el("strong", {}, name), `? ${marked}${more > 0 ? `; ${count(more)} more to come` : ""}.`);
}

function tile(item, at) {
  const face = run.kind === "pictures" ? picture(item.sample, "small", "") : el("span", { class: "cells" },
    item.row.length ? item.row.slice(0, 6).map(([name, value]) => el("span", {}, el("span", { class: "quiet" }, `${name} `), value)) : item.id);
  return el("button", { type: "button", class: "tile", "aria-pressed": except.has(item.sample), tabindex: at === place ? "0" : "-1",
    "aria-label": `${item.id}, ${percent(item.probability)}`, title: item.id, onclick: () => toggle(at) }, face,
    el("span", { class: "small quiet" }, percent(item.probability)));
}

function focus() {
  const tiles = [...($("grid")?.children ?? [])];
  tiles.forEach((one, at) => { one.tabIndex = at === place ? 0 : -1; });
  tiles[place]?.focus();
}
