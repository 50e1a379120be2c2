// Talking to the server. A request that writes has a name of its own, so that it can be repeated until it is answered
// and is still done once: an answer that was lost is asked for again.

import { $ } from "./dom.js";

export const tab = tabName();
let log = 0; // number of the last line of the log this tab knows of
const listeners = [];
const other = new BroadcastChannel("labelmend");

export class Gone extends Error {}

export const onChange = (listener) => listeners.push(listener);
other.onmessage = () => refresh();
document.addEventListener("visibilitychange", () => document.hidden || refresh());
setInterval(() => document.hidden || refresh(), 15000);

let filter = new URLSearchParams();
export const setFilter = (chosen) => { filter = chosen; };
export const getFilter = () => filter;

function address(path, more = {}) {
  const query = new URLSearchParams(filter);
  for (const [name, value] of Object.entries({ ...more, tab, since: log })) {
    if (value !== undefined && value !== null) query.set(name, value);
  }
  return `/api/${path}?${query}`;
}

async function answered(response) {
  if (response.status === 403) throw new Gone("This review was restarted. Open the link that labelmend review printed last; no decision is lost.");
  const value = await response.json();
  if (!response.ok) throw new Error(value.error);
  return value;
}

export async function read(path, more) {
  try {
    const value = await answered(await fetch(address(path, more)));
    trouble(null);
    take(value);
    return value;
  } catch (error) {
    trouble(error);
    throw error;
  }
}

export async function write(path, body) {
  const text = JSON.stringify({ ...body, request: crypto.randomUUID() });
  for (;;) {
    try {
      const headers = { "Content-Type": "application/json" };
      const value = await answered(await fetch(address(path), { method: "POST", headers, body: text }));
      trouble(null);
      take(value);
      other.postMessage("written");
      return value;
    } catch (error) {
      trouble(error, true);
      if (!(error instanceof TypeError)) throw error; // an answer, if not a good one
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
  }
}

async function refresh() {
  try { await read("state"); } catch { /* said already */ }
}

// What an answer says about the review as a whole.
function take(value) {
  if (value.log === undefined) return;
  log = Math.max(log, value.log);
  for (const listener of listeners) listener(value);
}

function trouble(error, unsaved = false) {
  const place = $("trouble");
  place.hidden = error === null;
  if (error === null) return;
  const silent = error instanceof TypeError;
  const words = silent ? "The server is not responding. Start labelmend review again; no decision is lost." : error.message;
  place.textContent = silent && unsaved ? `Not saved yet, trying again. ${words}` : words;
}

// A tab keeps its name when it is reloaded; a copy of it gets its own.
function tabName() {
  const reloaded = performance.getEntriesByType("navigation")[0]?.type === "reload";
  const name = (reloaded && sessionStorage.getItem("tab")) || crypto.randomUUID();
  sessionStorage.setItem("tab", name);
  return name;
}
