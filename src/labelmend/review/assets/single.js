// One sample at a time: what is shown now, what comes next, and what was looked at before.

import { $, button, el, percent, plural, say } from "./dom.js";
import { choose } from "./picker.js";
import { labels, neighbors, portrait, prefetch, reasons, votes, words } from "./sample.js";
import { read, write } from "./server.js";
import { zoom } from "./zoom.js";

const AHEAD = 8, FEW = 5;
let run, current = null, ahead = [], trail = [], busy = false, finished = false, filling = null, opening = 0, undoable = null;
const mine = new Set(); // numbers of the decisions made in this tab

export function start(about) { run = about; }
export const shown = () => current;

// From the beginning of the queue, or with a certain sample first.
export async function open(sample = null) {
  [ahead, trail, current, filling, finished] = [[], [], null, null, false];
  opening += 1;
  if (sample !== null) {
    try { show(await read(`sample/${sample}`)); } catch { /* an old address: begin at the beginning */ }
  }
  if (current) await fill();
  else await next();
}

export const forward = () => (busy ? null : next());

async function next() {
  if (!ahead.length && !(await fill())) return;
  const item = ahead.shift();
  if (current && item) trail.push(current.sample);
  if (item) show(item);
  else if (!current || settled(current)) finish();
  else say("This is the last open sample.");
  if (ahead.length < FEW) fill();
}

export async function back() {
  if (busy) return;
  const sample = trail.pop();
  if (sample === undefined) return say("This is the first sample you looked at.");
  if (current) ahead.unshift(current);
  show(await read(`sample/${sample}`));
}

export async function decide(kind, label = null) {
  if (!current || busy) return;
  busy = true;
  const item = current;
  try {
    const seen = item.stands.number;
    const answer = await write("decide", { choices: [{ sample: item.sample, kind, label: label ?? undefined, seen }] });
    if (answer.refused.length) return overtaken(answer.refused[0]);
    Object.assign(item.stands, answer.made[0]);
    mine.add(item.stands.number);
    say(told(item), " ", el("button", { type: "button", onclick: undo }, "Undo ", el("kbd", { "aria-hidden": "true" }, "u")));
    await next();
  } catch { /* said already */ } finally { busy = false; }
}

export async function undo() {
  if (busy) return;
  if (!undoable) return say("There is nothing to undo.");
  busy = true;
  try {
    const { sample, step } = undoable;
    const answer = await write("undo", { step });
    if (!answer.made.length) say("Not undone: it was decided again in another tab.");
    else {
      say(answer.made.length === 1 ? "Undone." : `Undone: ${plural(answer.made.length, "decision")}.`);
      if (current && current.sample !== sample) ahead.unshift(current);
      ahead = ahead.filter((item) => item.sample !== sample);
      trail = trail.filter((other) => other !== sample); // or looking back would show it once more
      show(await read(`sample/${sample}`));
    }
  } catch { /* said already */ } finally { busy = false; }
}

export const accept = () => current && decide("label", current.suggestion);
export const keep = () => current && (current.given === null ? say("This sample came without a label.") : decide("label", current.given));
export const runnerUp = () => current && (current.runner_up === null ? say("There is no runner-up.") : decide("label", current.runner_up));
export const unsure = () => decide("unsure");
export const skip = () => decide("skip");
export const enlarge = () => current && run.kind === "pictures" && zoom(current);

export async function another() {
  if (!current || busy) return;
  const first = [current.suggestion, current.runner_up, current.given, ...current.votes.map((vote) => vote.label), ...current.neighbors.map((one) => one.label)];
  const label = await choose(run.classes, first);
  if (label !== null) decide("label", label);
}

// What other tabs decided meanwhile.
export function changed(state) {
  undoable = state.undo;
  const back = $("single").querySelector("[data-action=undo]");
  if (back) back.disabled = !undoable;
  for (const change of state.changes) {
    const ours = change.number !== 0 && mine.has(change.number);
    for (const item of [current, ...ahead]) {
      if (item?.sample !== change.sample || item.stands.number === change.number) continue;
      Object.assign(item.stands, change);
      if (item === current && !busy && !ours) { show(item); say(`In another tab: ${words(change, run)}.`); }
    }
  }
  const told = new Set(state.changes.map((change) => change.sample));
  ahead = ahead.filter((item) => !(told.has(item.sample) && settled(item)));
  if (finished && !busy && state.progress.open + state.progress.skipped > 0) { finished = false; next(); }
}

const settled = (item) => item.stands.kind === "label" || item.stands.kind === "unsure";

async function fill() {
  const asked = opening;
  filling ??= (async () => {
    try {
      const last = ahead.at(-1) ?? current;
      const { items } = await read("queue", { after: last?.sample, count: AHEAD });
      if (asked !== opening) return false; // the filter was changed meanwhile
      const known = new Set([current?.sample, ...ahead.map((item) => item.sample)]);
      ahead.push(...items.filter((item) => !known.has(item.sample)));
      ahead.slice(0, 4).forEach((item, place) => prefetch(item, run, place < 2));
      return true;
    } catch { return false; /* said already */ } finally { if (asked === opening) filling = null; }
  })();
  return filling;
}

function show(item) {
  current = item;
  history.replaceState(null, "", `${location.pathname}${location.search}#${item.sample}`);
  const focused = $("single").contains(document.activeElement) ? document.activeElement.dataset.action : null;
  $("single").replaceChildren(
    el("div", { class: "sheet" }, portrait(item, run, enlarge),
      el("div", { class: "facts" }, el("h2", { class: "unseen" }, `Sample ${item.id}`), banner(item), labels(item, run), actions(item), reasons(item), votes(item, run))),
    neighbors(item, run) ?? "");
  if (focused) $("single").querySelector(`[data-action="${focused}"]`)?.focus();
  ahead.slice(0, 4).forEach((other, place) => prefetch(other, run, place < 2));
  $("read").textContent = `Given ${item.given === null ? "none" : run.classes[item.given]}, suggestion ${run.classes[item.suggestion]}, ${percent(item.probability)}.`;
  document.dispatchEvent(new CustomEvent("shown", { detail: item.sample }));
}

function banner(item) {
  if (!item.stands.number) return null;
  const who = mine.has(item.stands.number) ? "You decided" : "Decided already";
  return el("p", { class: "banner" }, `${who}: `, el("strong", {}, words(item.stands, run)), ". Deciding again replaces it.");
}

function actions(item) {
  const same = item.given === item.suggestion;
  const mark = (name) => ({ "data-action": name });
  return el("div", { class: "actions", role: "group", "aria-label": "Decide" },
    button(same ? `Keep ${run.classes[item.given]}` : `Accept ${run.classes[item.suggestion]}`, "a", accept, { class: "primary", ...mark("accept") }),
    !same && item.given !== null && button(`Keep ${run.classes[item.given]}`, "k", keep, mark("keep")),
    item.runner_up !== null && item.runner_up !== item.given && button(`Take ${run.classes[item.runner_up]}`, "r", runnerUp, mark("runner-up")),
    button("Another class", "c", another, mark("another")),
    button("Cannot tell", "t", unsure, mark("unsure")),
    button("Skip", "s", skip, mark("skip")),
    button("Undo", "u", undo, { ...mark("undo"), disabled: !undoable }));
}

// Another tab was quicker. What it decided is shown, and deciding now replaces it knowingly.
function overtaken(item) {
  show(item);
  say(`Not saved: another tab decided ${words(item.stands, run)} meanwhile. Decide again to replace it.`);
}

function told(item) {
  const { kind } = item.stands;
  if (kind === "label") return item.stands.label === item.given ? `Saved: ${run.classes[item.given]} kept.` : `Saved: ${run.classes[item.stands.label]}.`;
  return kind === "skip" ? "Skipped: it comes back at the end." : "Saved: cannot tell.";
}

function finish() {
  [current, finished] = [null, true];
  history.replaceState(null, "", location.pathname + location.search);
  $("single").replaceChildren(el("div", { class: "done" },
    el("h2", {}, "Nothing left to review here."),
    el("p", {}, "All samples that match this filter are decided. Choose another filter, or merge your decisions into the labels with ",
      el("code", {}, `labelmend apply ${run.run}`), "."),
    undoable && button("Undo the last one", "u", undo)));
  document.dispatchEvent(new CustomEvent("shown", { detail: null }));
}
