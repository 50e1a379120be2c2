// The page: which view is open, what the keys do, how far the review is.

import * as batch from "./batch.js";
import { $, count, el, say } from "./dom.js";
import * as filters from "./filters.js";
import { onChange, read } from "./server.js";
import * as single from "./single.js";

const DECIDE = { a: single.accept, k: single.keep, r: single.runnerUp, t: single.unsure, s: single.skip };
const SINGLE = { ...DECIDE, c: single.another, "/": single.another, u: single.undo, z: single.enlarge, ArrowLeft: single.back, ArrowRight: single.forward };
const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
let inBatch = false, keysOn = localStorage.getItem("keys") !== "off";

async function begin() {
  const run = await read("run");
  document.title = `Review ${run.run} · labelmend`;
  $("run").textContent = run.run;
  if (run.note) { $("note").textContent = run.note; $("note").hidden = false; }
  onChange(tell);
  onChange(single.changed);
  onChange((state) => inBatch && batch.changed(state));
  for (const part of [single, batch]) part.start(run);
  filters.start(run, () => (inBatch ? batch.open() : single.open()));
  connect();
  if (run.reason) say(`Note: ${run.reason}.`);
  const sample = /^#\d+$/.test(location.hash) ? Number(location.hash.slice(1)) : null;
  await single.open(sample);
}

function connect() {
  $("show-single").addEventListener("click", () => view(false));
  $("show-batch").addEventListener("click", () => view(true));
  $("show-filters").addEventListener("click", filters.toggle);
  $("show-help").addEventListener("click", () => $("help").showModal());
  $("keys-on").checked = keysOn;
  $("keys-on").addEventListener("change", (event) => {
    keysOn = event.target.checked;
    localStorage.setItem("keys", keysOn ? "on" : "off");
  });
  document.addEventListener("keydown", key);
  document.addEventListener("submit", (event) => event.target.method !== "dialog" && event.preventDefault());
}

async function view(many) {
  inBatch = many;
  $("said").replaceChildren();
  $("single").hidden = many;
  $("batch").hidden = !many;
  $("show-batch").setAttribute("aria-pressed", many);
  $("show-single").setAttribute("aria-pressed", !many);
  if (many) await batch.open();
  else { await single.open(single.shown()?.sample ?? null); $("main").focus({ preventScroll: true }); }
}

function key(event) {
  if (document.querySelector("dialog[open]") || event.altKey) return;
  const target = event.target, typed = target.closest("input, select, textarea");
  if (event.key === "Escape") return escape();
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typed) return act(event, inBatch ? batch.undo : single.undo);
  if (typed || event.ctrlKey || event.metaKey) return;
  if (inBatch && batchKey(event, target)) return;
  if (!keysOn && event.key.length === 1) return;
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const general = { b: () => view(!inBatch), f: filters.toggle, "?": () => $("help").showModal() }[name];
  if (general) return act(event, general);
  if (inBatch) return name === "u" ? act(event, batch.undo) : undefined;
  if (name === "Enter" && !target.closest("button, a, [tabindex='0']")) return act(event, single.accept);
  if (SINGLE[name]) act(event, SINGLE[name]);
}

function batchKey(event, target) {
  const onTile = target.closest(".tile");
  if (event.key === "Enter" && (onTile || !target.closest("button, a"))) act(event, batch.acceptAll);
  else if (ARROWS.includes(event.key) && (onTile || target === document.body)) act(event, () => batch.move(event.key), true);
  else return false; // Space presses the tile, as it does any button
  return true;
}

// A key that is held down decides once.
function act(event, does, repeats = false) {
  event.preventDefault();
  if (!event.repeat || repeats) does();
}

function escape() {
  if (!$("filters").hidden) filters.toggle();
  else if (inBatch) view(false);
}

function tell({ progress, per_minute: speed }) {
  const done = progress.decided + progress.unsure, left = progress.open + progress.skipped;
  const share = progress.total ? (100 * done) / progress.total : 100;
  $("meter").setAttribute("aria-valuenow", Math.floor(share));
  $("meter").firstElementChild.style.inlineSize = `${share}%`;
  const gain = progress.gain_left < 9.5 ? progress.gain_left.toFixed(1) : count(Math.round(progress.gain_left));
  $("counts").replaceChildren(el("strong", { id: "done" }, count(done)), ` of ${count(progress.total)} decided`,
    progress.gained ? ` · ${count(progress.gained)} corrected` : "",
    speed ? ` · ${Math.round(speed)} a minute` : "",
    el("span", { id: "gain", title: "wrong labels that reviewing the open samples should correct" }, ` · ${left ? gain : "0"} left to gain`),
    speed && left ? ` · ${minutes(left / speed)}` : "");
}

const minutes = (number) => (number < 1.5 ? "about a minute to go" : number < 90 ? `about ${Math.round(number)} min to go` : `about ${Math.round(number / 60)} h to go`);

begin();
