// The map: what each point is, on hover, tap or by arrow keys; colours by class; one class at a time.
// All text from the data is set as text, never as HTML.
"use strict";
(() => {
  const source = document.getElementById("map-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const plane = document.getElementById("plane");
  const svg = plane.querySelector("svg");
  const points = Array.from(svg.querySelectorAll("circle"));
  const at = points.map((point) => [point.cx.baseVal.value, point.cy.baseVal.value]);
  const card = document.getElementById("card");
  const told = document.getElementById("told");
  const canvas = document.getElementById("thumbnail");
  const sheet = document.getElementById("sheet");
  const only = document.getElementById("only");
  const legend = document.getElementById("legend");
  const COLOURS = 12, REACH = 14, SHOWN = 96;
  let current = -1, colour = "status";

  const className = (code) => (code < 0 ? "no label" : data.classes[code]);
  const make = (name, text, classes) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (classes) made.className = classes;
    return made;
  };

  function paint() {
    const codes = colour === "status" ? null : data[colour];
    const wanted = Number(only.value);
    points.forEach((point, i) => {
      const own = wanted < 0 || data.given[i] === wanted || data.corrected[i] === wanted;
      const classes = [];
      if (codes) classes.push(codes[i] < 0 ? "c-none" : `c${codes[i] % COLOURS}`);
      if (!own) classes.push("faint");
      point.setAttribute("class", classes.join(" "));
    });
    list(codes);
  }

  function list(codes) {
    legend.replaceChildren();
    if (!codes || data.classes.length > COLOURS) {
      legend.hidden = true;
      return;
    }
    legend.hidden = false;
    data.classes.forEach((name, code) => {
      const item = make("li");
      item.append(make("span", undefined, `dot c${code}`), ` ${name}`);
      legend.append(item);
    });
  }

  function draw(i) {
    const cell = data.cells ? data.cells[i] : -1;
    canvas.hidden = cell < 0 || !sheet.complete;
    if (canvas.hidden) return;
    canvas.width = canvas.height = SHOWN;
    const pen = canvas.getContext("2d");
    pen.imageSmoothingEnabled = data.side > 32;
    const x = (cell % data.columns) * data.side, y = Math.floor(cell / data.columns) * data.side;
    pen.drawImage(sheet, x, y, data.side, data.side, 0, 0, SHOWN, SHOWN);
    canvas.setAttribute("aria-label", `sample ${data.ids[i]}`);
  }

  function show(i) {
    if (current >= 0) points[current].classList.remove("here");
    current = i;
    card.hidden = i < 0;
    if (i < 0) return;
    points[i].classList.add("here");
    draw(i);
    const given = className(data.given[i]), corrected = className(data.corrected[i]);
    const status = data.statuses[data.status[i]];
    const labels = make("p", given === corrected ? given : `${given} → ${corrected}`, "labels");
    const facts = make("p");
    facts.append(make("span", status, `status status-${status}`), `, ${data.confidence[i]}%`);
    told.replaceChildren(labels, facts, make("p", data.ids[i], "name"));
    if (data.rows.length) told.append(make("p", data.rows[i], "small quiet"));
    place(i);
  }

  function place(i) {
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    const x = at[i][0] * scale, y = at[i][1] * scale;
    const left = x + 14 + card.offsetWidth > plane.clientWidth ? x - 14 - card.offsetWidth : x + 14;
    card.style.left = `${Math.max(0, Math.min(left, plane.clientWidth - card.offsetWidth))}px`;
    card.style.top = `${Math.max(0, Math.min(y - 20, box.height - card.offsetHeight))}px`;
  }

  function near(event) {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    let best = -1, least = (REACH * scale) ** 2;
    for (let i = 0; i < at.length; i++) {
      const gap = (at[i][0] - x) ** 2 + (at[i][1] - y) ** 2;
      // Later points are drawn on top and are the rarer ones.
      if (gap <= least && !points[i].classList.contains("faint")) { least = gap; best = i; }
    }
    return best;
  }

  function walk(step) {
    // Backwards from the last: corrected first, then doubtful, then the rest.
    const n = points.length;
    let i = current < 0 ? (step > 0 ? n : -1) : current;
    for (let tries = 0; tries < n; tries++) {
      i = (i - step + n) % n;
      if (!points[i].classList.contains("faint")) return i;
    }
    return -1;
  }

  plane.addEventListener("pointermove", (event) => show(near(event)));
  plane.addEventListener("pointerdown", (event) => show(near(event)));
  plane.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") show(-1); });
  plane.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") show(-1);
    else if (step) {
      event.preventDefault();
      show(walk(step));
      card.scrollIntoView({ block: "nearest" });
    }
  });
  document.querySelectorAll("input[name=colour]").forEach((choice) =>
    choice.addEventListener("change", () => { colour = choice.value; paint(); }));
  only.addEventListener("change", paint);

  data.classes.forEach((name, code) => {
    const option = make("option", name);
    option.value = code;
    only.append(option);
  });
  plane.tabIndex = 0;
  plane.setAttribute("role", "group");
  plane.setAttribute("aria-label", "Map of the samples: the arrow keys move through the points");
  document.getElementById("map-controls").hidden = false;
  document.getElementById("map-keys").hidden = false;
  paint();
})();
