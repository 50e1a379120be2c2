// How one sample looks: the picture or the row, the labels, the votes, the neighbours, the reasons. Decides nothing.

import { count, el, percent, picture } from "./dom.js";

export function portrait(item, run, zoom) {
  if (run.kind === "pictures") {
    const image = picture(item.sample, "large", `Sample ${item.id}`);
    return el("figure", { class: "portrait" },
      el("button", { type: "button", class: "frame", onclick: zoom, "aria-label": `Zoom into sample ${item.id}`, "aria-keyshortcuts": "z" }, image),
      caption(item));
  }
  if (run.kind === "rows") return el("figure", { class: "portrait rows" }, caption(item), rowTable(item, run));
  return el("figure", { class: "portrait" }, el("p", { class: "nothing" }, `The sample itself cannot be shown: ${run.reason}.`), caption(item));
}

const caption = (item) => el("figcaption", { class: "small quiet" }, item.id);

// The row, and those of the nearest samples beside it; what differs from the row is easy to see by eye.
function rowTable(item, run) {
  const near = item.neighbor_rows.map((row) => new Map(row));
  const head = el("tr", {}, el("th", { scope: "col" }, "column"), el("th", { scope: "col", class: "number" }, "this row"),
    item.neighbors.slice(0, near.length).map((one) => el("th", { scope: "col", class: "number near" }, run.classes[one.label])));
  const body = item.row.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "number" }, value),
    near.map((row) => el("td", { class: "number near" }, row.get(name) ?? ""))));
  if (!body.length) return el("p", { class: "nothing" }, "This row is no longer in the table.");
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The row and its nearest rows" },
    el("table", {}, el("caption", { class: "unseen" }, `Sample ${item.id} and the labels and values of its nearest samples`), el("thead", {}, head), el("tbody", {}, body)));
}

export function labels(item, run) {
  const given = item.given === null ? "none" : run.classes[item.given];
  const same = item.given === item.suggestion;
  return el("dl", { class: "labels" },
    el("dt", {}, "Given"), el("dd", { class: same ? "" : "old" }, given),
    el("dt", {}, "Suggestion"), el("dd", { class: "new" }, run.classes[item.suggestion], " ", el("span", { class: "sure" }, percent(item.probability))),
    item.runner_up !== null && [el("dt", {}, "Runner-up"), el("dd", {}, run.classes[item.runner_up])]);
}

export function votes(item, run) {
  if (!item.votes.length) return null;
  const rows = item.votes.map(({ label, share }) => {
    const bar = el("span", { class: `bar ${label === item.suggestion ? "new" : ""}` });
    bar.style.inlineSize = `${100 * share}%`;
    return el("li", {}, el("span", { class: "name" }, run.classes[label]), el("span", { class: "track", "aria-hidden": "true" }, bar), el("span", { class: "number" }, percent(share)));
  });
  return el("section", {}, el("h3", {}, "How the branches voted"), el("ul", { class: "votes" }, rows));
}

export function reasons(item) {
  return el("section", {}, el("h3", {}, "Why it is here"), el("ul", { class: "reasons" }, item.reasons.map((reason) => el("li", {}, reason))));
}

export function neighbors(item, run) {
  if (!item.neighbors.length) return null;
  const cards = item.neighbors.map((one) => el("li", { class: one.label === item.suggestion ? "agrees" : "" },
    run.kind === "pictures" && el("span", { class: "frame" }, picture(one.sample, "small", "")),
    el("span", { class: "label" },
      one.given !== null && one.given !== one.label && [el("s", {}, el("span", { class: "unseen" }, "given "), run.classes[one.given]), " "],
      one.given !== null && one.given !== one.label && el("span", { class: "unseen" }, "now "),
      run.classes[one.label], one.decided && el("span", { class: "quiet", title: "decided by you" }, " ✓"))));
  return el("section", { class: "near" }, el("h3", {}, `Its ${count(item.neighbors.length)} nearest samples`),
    el("ul", { class: `neighbors ${run.kind}` }, cards));
}

export function words(stands, run) {
  return { label: () => run.classes[stands.label], unsure: () => "cannot tell", skip: () => "skipped" }[stands.kind]?.() ?? "open";
}

// Fetch the pictures of a sample that will be shown soon.
export function prefetch(item, run, near) {
  if (run.kind !== "pictures") return;
  picture(item.sample, "large", "");
  if (near) for (const one of item.neighbors) picture(one.sample, "small", "");
}
