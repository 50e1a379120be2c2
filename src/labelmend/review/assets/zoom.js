// The picture, enlarged: + and - and 0, arrows move it, Esc closes.

import { $, button, el, picture } from "./dom.js";

const STEP = 1.5, MOVE = 80, LARGEST = 16;

export function zoom(item) {
  const dialog = $("zoom");
  const image = picture(item.sample, "large", `Sample ${item.id}, enlarged`);
  const stage = el("div", { class: "stage", tabindex: "0", role: "region", "aria-label": "Picture; arrows move it" }, image);
  let factor = 1;
  const fit = () => {
    const room = Math.min(stage.clientWidth / (image.naturalWidth || 1), stage.clientHeight / (image.naturalHeight || 1));
    image.style.inlineSize = `${Math.max(1, room * factor * (image.naturalWidth || 1))}px`;
  };
  const scale = (by) => {
    factor = by === 0 ? 1 : Math.min(LARGEST, Math.max(1, factor * by));
    const across = (stage.scrollLeft + stage.clientWidth / 2) / stage.scrollWidth, down = (stage.scrollTop + stage.clientHeight / 2) / stage.scrollHeight;
    fit();
    stage.scrollTo(across * stage.scrollWidth - stage.clientWidth / 2, down * stage.scrollHeight - stage.clientHeight / 2);
  };
  dialog.onkeydown = (event) => {
    const by = { "+": STEP, "=": STEP, "-": 1 / STEP, 0: 0 }[event.key];
    const move = { ArrowLeft: [-MOVE, 0], ArrowRight: [MOVE, 0], ArrowUp: [0, -MOVE], ArrowDown: [0, MOVE] }[event.key];
    if (by !== undefined) scale(by);
    else if (move) stage.scrollBy(...move);
    else if (event.key === "z") dialog.close();
    else return;
    event.preventDefault();
  };
  dialog.replaceChildren(stage, el("div", { class: "tools" },
    button("Larger", "+", () => scale(STEP)), button("Smaller", "-", () => scale(1 / STEP)), button("Whole", "0", () => scale(0)),
    button("Close", "Esc", () => dialog.close(), { "aria-keyshortcuts": "Escape" })));
  dialog.onclose = () => dialog.replaceChildren();
  dialog.showModal();
  if (image.complete) fit();
  else image.addEventListener("load", fit, { once: true });
  stage.focus();
}
