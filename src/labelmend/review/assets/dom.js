// Building elements without HTML text: whatever a label or a file name holds, it stays text.

export const $ = (id) => document.getElementById(id);

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const percent = (share) => (share >= 0.995 && share < 1 ? ">99 %" : `${Math.round(100 * share)} %`);
export const count = (number) => number.toLocaleString("en");
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

// Said where it is seen, and read out by screen readers. The same words twice are read twice.
export function say(...words) {
  const place = $("said");
  place.replaceChildren();
  place.classList.remove("old");
  clearTimeout(fading);
  requestAnimationFrame(() => place.replaceChildren(...words));
  fading = setTimeout(() => place.classList.add("old"), 4000);
}
let fading;

export function button(label, key, onclick, more = {}) {
  const cap = key ? el("kbd", { "aria-hidden": "true" }, key) : null;
  return el("button", { type: "button", onclick, "aria-keyshortcuts": key?.toLowerCase(), ...more }, cap, el("span", {}, label));
}

// Pictures that were fetched ahead are kept as elements: showing one is putting it in its place.
const pictures = new Map();
const KEPT = 300, ABSENT = "no picture to show";

export function picture(sample, size, alt) {
  const key = `${size}/${sample}`;
  let image = pictures.get(key);
  if (!image || image.isConnected) {
    image = new Image();
    image.decoding = "async";
    image.addEventListener("load", () => image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) <= 64));
    image.addEventListener("error", () => { image.dataset.absent = ""; image.alt = ABSENT; });
    image.src = `/picture/${key}`;
  }
  pictures.delete(key);
  pictures.set(key, image);
  for (const old of [...pictures.keys()].slice(0, Math.max(0, pictures.size - KEPT))) pictures.delete(old);
  image.alt = "absent" in image.dataset ? ABSENT : alt;
  return image;
}
