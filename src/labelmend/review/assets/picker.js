// Another class: type to search, arrows to choose. A combobox as screen readers know it.

import { $, el } from "./dom.js";

const SHOWN = 50;

// The code of the class chosen, or null. `first` come first while nothing is typed.
export function choose(classes, first) {
  const dialog = $("picker");
  const codes = [...new Set([...first.filter((code) => code !== null), ...classes.keys()])];
  let found = [], place = 0;
  const list = el("ul", { id: "choices", role: "listbox", "aria-label": "Classes" });
  const input = el("input", {
    type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", "aria-expanded": "true",
    "aria-controls": "choices", "aria-labelledby": "picker-title", placeholder: "Type to search",
  });
  const none = el("p", { class: "quiet", role: "status" });

  const search = () => {
    const wanted = input.value.trim().toLowerCase();
    const rank = (code) => { const at = classes[code].toLowerCase().indexOf(wanted); return at < 0 ? null : Math.min(at, 1); };
    found = codes.map((code) => [rank(code), code]).filter(([at]) => at !== null)
      .sort((one, two) => one[0] - two[0]).slice(0, SHOWN).map(([, code]) => code);
    place = 0;
    list.replaceChildren(...found.map((code, at) => el("li", { id: `choice-${at}`, role: "option", "data-code": code }, classes[code])));
    none.textContent = found.length ? "" : "No class has that name.";
    mark();
  };
  const mark = () => {
    [...list.children].forEach((entry, at) => entry.setAttribute("aria-selected", at === place));
    list.children[place]?.scrollIntoView({ block: "nearest" });
    if (found.length) input.setAttribute("aria-activedescendant", `choice-${place}`);
    else input.removeAttribute("aria-activedescendant");
  };

  return new Promise((resolve) => {
    const end = (code) => { dialog.close(); resolve(code); };
    input.addEventListener("input", search);
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && found.length) { place = (place + step + found.length) % found.length; mark(); event.preventDefault(); }
      if (event.key === "Enter" && found.length) { event.preventDefault(); event.stopPropagation(); end(found[place]); }
    });
    list.addEventListener("click", (event) => {
      const entry = event.target.closest("[data-code]");
      if (entry) end(Number(entry.dataset.code));
    });
    dialog.onclose = () => resolve(null);
    dialog.replaceChildren(el("h2", { id: "picker-title" }, "Another class"), input, none, list,
      el("form", { method: "dialog" }, el("button", {}, "Close ", el("kbd", { "aria-hidden": "true" }, "Esc"))));
    dialog.showModal();
    search();
    input.focus();
  });
}
