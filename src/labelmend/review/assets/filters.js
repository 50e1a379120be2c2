// Which samples are in the queue. The filter is part of the address, so a reload keeps it.

import { $, count, el } from "./dom.js";
import { getFilter, read, setFilter } from "./server.js";

const NAMES = ["status", "state", "label", "given", "suggested", "probability", "certainty"];
const STATUSES = { review: "doubtful", corrected: "corrected without review", filled: "filled in", kept: "kept", unreadable: "could not be read" };
const STATES = { open: "still open", decided: "decided", unsure: "could not tell", skipped: "skipped", all: "any" };
const RANGES = { "0-0.5": "under 50 %", "0.5-0.8": "50 to 80 %", "0.8-0.95": "80 to 95 %", "0.95-1": "over 95 %" };
let run, changed;

export function start(about, onchange) {
  run = about;
  changed = onchange;
  const chosen = new URLSearchParams();
  for (const [name, value] of new URLSearchParams(location.search)) if (NAMES.includes(name)) chosen.set(name, value);
  put(chosen);
}

export function set(values) {
  const chosen = new URLSearchParams(getFilter());
  for (const [name, value] of Object.entries(values)) {
    if (value === "" || value === null) chosen.delete(name);
    else chosen.set(name, value);
  }
  put(chosen);
  changed();
}

function put(chosen) {
  setFilter(chosen);
  const text = chosen.toString();
  history.replaceState(null, "", `${location.pathname}${text ? `?${text}` : ""}${location.hash}`);
  $("show-filters").classList.toggle("active", text !== "");
}

export async function toggle() {
  const form = $("filters"), button = $("show-filters");
  form.hidden = !form.hidden;
  button.setAttribute("aria-expanded", !form.hidden);
  if (form.hidden) return button.focus();
  await draw();
  form.querySelector("select").focus();
}

export async function draw() {
  const { pairs } = await read("pairs");
  const chosen = getFilter();
  const pair = chosen.has("given") ? `${chosen.get("given")},${chosen.get("suggested")}` : "";
  const classes = Object.fromEntries([...run.classes.entries()].map(([code, name]) => [`c${code}`, name]));
  const statuses = Object.fromEntries(Object.entries(run.statuses).map(([name, number]) => [name, `${STATUSES[name]} (${count(number)})`]));
  $("filters").replaceChildren(
    pick("Status", { ...statuses, [Object.keys(run.statuses).join(",")]: "all" }, chosen.get("status") ?? "review", (value) => set({ status: value })),
    pick("Decided?", STATES, chosen.get("state") ?? "open", (value) => set({ state: value })),
    pick("Class", { "": "any", ...classes }, chosen.has("label") ? `c${chosen.get("label")}` : "", (value) => set({ label: value.slice(1) })),
    pick("Pair", { "": "any", ...Object.fromEntries(pairs.map((one) => [`${one.given},${one.suggested}`, pairName(one)])) }, pair,
      (value) => { const [given, suggested] = value ? value.split(",") : ["", ""]; set({ given, suggested }); }),
    pick("Probability", { "": "any", ...RANGES }, chosen.get("probability") ?? "", (value) => set({ probability: value })),
    pick("Certainty of the vote", { "": "any", ...RANGES }, chosen.get("certainty") ?? "", (value) => set({ certainty: value })),
    el("button", { type: "button", onclick: () => { set(Object.fromEntries(NAMES.map((name) => [name, ""]))); draw(); } }, "Reset"));
}

export function pairName({ given, suggested, open }) {
  const name = given === suggested ? `${run.classes[given]}, doubted` : `${given < 0 ? "none" : run.classes[given]} → ${run.classes[suggested]}`;
  return `${name} (${count(open)})`;
}

function pick(label, options, value, onchange) {
  const select = el("select", { onchange: () => onchange(select.value) },
    Object.entries(options).map(([key, name]) => el("option", { value: key, selected: key === value }, name)));
  return el("label", {}, el("span", { class: "small quiet" }, label), select);
}
