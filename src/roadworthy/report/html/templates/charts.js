"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const tip = document.getElementById("tip"), live = document.getElementById("live");
  const number = (element, name) => Number(element.dataset[name]);

  // SVG titles serve browsers without scripts; here the crosshair shows the same values.
  for (const title of all(".point > title")) title.remove();

  const lines = (svg) => all(".line:not(.off)", svg);
  const columns = (svg) => [...new Map(lines(svg).flatMap((line) => all(".point", line))
    .map((point) => [number(point, "x"), point.dataset.f])).entries()].sort((a, b) => a[0] - b[0]);

  const leave = (svg) => {
    svg.classList.remove("aim");
    delete svg.dataset.column;
    delete svg.dataset.near;
    for (const line of all(".near", svg)) line.classList.remove("near");
    tip.replaceChildren();
  };

  const element = (name, text, kind = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  // All methods at one fraction, the best on top as in the chart; `near` is the name of one of them.
  const show = (svg, column, near, at) => {
    const places = columns(svg);
    if (!places.length) return leave(svg);
    const [x, fraction] = places[Math.max(0, Math.min(places.length - 1, column))];
    const found = lines(svg).map((line) => [line, all(".point", line).find((point) => number(point, "x") === x)])
      .filter(([, point]) => point).sort((a, b) => number(a[1], "y") - number(b[1], "y"));
    svg.classList.add("aim");
    svg.dataset.column = String(places.findIndex((place) => place[0] === x));
    svg.dataset.near = near || "";
    const cross = svg.querySelector(".cross");
    cross.setAttribute("x1", x);
    cross.setAttribute("x2", x);
    const list = element("ol", "", found.length > 36 ? "three" : found.length > 18 ? "two" : "");
    for (const [line, point] of found) {
      const chosen = line.dataset.name === near;
      line.classList.toggle("near", chosen);
      const row = element("li", "", chosen ? "near" : "");
      const swatch = document.querySelector('.key[data-m="' + line.dataset.m + '"] .swatch');
      if (swatch) row.append(swatch.cloneNode(true));
      row.append(element("span", line.dataset.name), element("b", point.dataset.v));
      list.append(row);
    }
    if (!near) for (const line of lines(svg)) line.classList.toggle("near", line.classList.contains("strong"));
    tip.replaceChildren(element("h4", fraction + " removed"), list);
    const texts = found.map(([line, point]) => line.dataset.name + " " + point.dataset.v);
    const named = found.findIndex(([line]) => line.dataset.name === near);
    live.textContent = fraction + " removed: " + (named < 0 ? texts.join(", ") : texts[named]);
    place(svg, x, at);
  };

  // Beside the crosshair, on a phone below or above the chart; never outside of the window.
  const place = (svg, x, at) => {
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    const line = box.left + x * scale, gap = 14;
    const right = line + gap, left = line - gap - tip.offsetWidth;
    const fits = right + tip.offsetWidth < window.innerWidth - 8;
    const below = box.bottom + 4, narrow = window.innerWidth < 640;
    const outside = below + tip.offsetHeight < window.innerHeight ? below : box.top - tip.offsetHeight - 4;
    const top = narrow ? outside : (at === undefined ? box.top + box.height / 2 : at) - tip.offsetHeight / 2;
    tip.style.left = Math.max(8, fits ? right : left > 8 ? left : window.innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.max(8, Math.min(window.innerHeight - tip.offsetHeight - 8, top)) + "px";
  };

  const pointed = (svg, event) => {
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    const x = (event.clientX - box.left) / scale, y = (event.clientY - box.top) / scale;
    const places = columns(svg);
    if (!places.length) return;
    const distance = (place) => Math.abs(place[0] - x);
    const column = places.reduce((best, place, k) => (distance(place) < distance(places[best]) ? k : best), 0);
    const close = lines(svg).map((line) => [line, all(".point", line).find((point) => number(point, "x") === places[column][0])])
      .filter(([, point]) => point && Math.abs(number(point, "y") - y) < 8)
      .sort((a, b) => Math.abs(number(a[1], "y") - y) - Math.abs(number(b[1], "y") - y))[0];
    show(svg, column, close && distance(places[column]) < 12 ? close[0].dataset.name : "", event.clientY);
  };

  // Left and right move along the fractions, up and down through the methods at one of them.
  const step = (svg, key) => {
    const column = svg.dataset.column === undefined ? -1 : Number(svg.dataset.column);
    if (key === "Home" || key === "End") return show(svg, key === "Home" ? 0 : columns(svg).length - 1, svg.dataset.near);
    if (key === "ArrowLeft" || key === "ArrowRight" || column < 0) {
      const next = column < 0 ? 0 : Math.max(0, column + (key === "ArrowRight") - (key === "ArrowLeft"));
      return show(svg, next, svg.dataset.near);
    }
    const names = all("li span", tip).map((span) => span.textContent), now = names.indexOf(svg.dataset.near);
    const next = now < 0 ? (key === "ArrowUp" ? names.length - 1 : 0) : now + (key === "ArrowDown") - (key === "ArrowUp");
    show(svg, column, names[Math.max(0, Math.min(names.length - 1, next))]);
  };

  for (const svg of all(".chart")) {
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointerdown", (event) => pointed(svg, event));
    svg.addEventListener("pointermove", (event) => pointed(svg, event));
    // A finger that is lifted leaves the values on the screen; the next touch elsewhere removes them.
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") leave(svg); });
    svg.addEventListener("blur", () => leave(svg));
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave(svg);
      if (!event.key.startsWith("Arrow") && event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      step(svg, event.key);
    });
  }
  const others = (event) => { for (const svg of all(".chart.aim")) if (!svg.contains(event.target)) leave(svg); };
  document.addEventListener("pointerdown", others);
  const follow = (svg) => {
    const box = svg.getBoundingClientRect(), seen = box.bottom > 0 && box.top < window.innerHeight;
    // Focusing a chart may scroll it into view slowly.
    if (seen || document.activeElement === svg) place(svg, Number(svg.querySelector(".cross").getAttribute("x1")));
    else leave(svg);
  };
  window.addEventListener("scroll", () => all(".chart.aim").forEach(follow), { passive: true });

  const press = (key, on) => {
    key.setAttribute("aria-pressed", String(on));
    for (const line of all('.line[data-m="' + key.dataset.m + '"]')) line.classList.toggle("off", !on);
  };
  const keys = all(".key");
  for (const key of keys) {
    key.disabled = false;
    key.addEventListener("click", () => press(key, key.getAttribute("aria-pressed") !== "true"));
  }
  const shown = {
    all: () => true, none: () => false,
    methods: (key) => !("control" in key.dataset), strong: (key) => "strong" in key.dataset,
  };
  for (const item of all(".toggle-all")) {
    item.hidden = false;
    item.querySelector("button").addEventListener("click", () => keys.forEach((key) => press(key, shown[item.dataset.show](key))));
  }

  // Charts hold their light colors as attributes: without the style sheet they are complete.
  const standalone = (svg) => {
    const copy = svg.cloneNode(true), { width, height } = svg.viewBox.baseVal;
    for (const line of all(".off, .cross", copy)) line.remove();
    for (const node of [copy, ...all("*", copy)]) for (const name of ["class", "tabindex", "data-column", "data-near"]) node.removeAttribute(name);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const ground = document.createElementNS(svg.namespaceURI, "rect");
    for (const [name, value] of [["width", width], ["height", height], ["fill", "#ffffff"]]) ground.setAttribute(name, value);
    copy.prepend(ground);
    return new XMLSerializer().serializeToString(copy);
  };
  for (const button of all(".save-svg")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const svg = button.closest(".saveable").querySelector("svg");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
      link.download = button.dataset.file.replace(/[^\w.-]+/g, "-") + ".svg";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
})();
