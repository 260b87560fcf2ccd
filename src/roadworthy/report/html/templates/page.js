"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const tip = document.getElementById("tip");

  // SVG titles serve browsers without scripts; here one tooltip shows the same text, for pointer and keyboard.
  const points = (svg) => all(".line:not(.off) circle", svg);
  for (const title of all(".line title")) {
    title.parentNode.dataset.text = title.textContent;
    title.remove();
  }

  const leave = (svg) => {
    svg.classList.remove("aim");
    for (const element of all(".now, .near", svg)) element.classList.remove("now", "near");
    tip.textContent = "";
  };

  const show = (svg, point) => {
    leave(svg);
    if (!point) return;
    svg.classList.add("aim");
    point.classList.add("now");
    point.parentNode.classList.add("near");
    tip.textContent = point.dataset.text;
    const at = point.getBoundingClientRect();
    const left = Math.min(at.right + 10, window.innerWidth - tip.offsetWidth - 8);
    const above = at.top - tip.offsetHeight - 8;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (above > 4 ? above : at.bottom + 8) + "px";
  };

  const nearest = (svg, event) => {
    let best = null, least = 40 * 40;
    for (const point of points(svg)) {
      const at = point.getBoundingClientRect();
      const x = at.x + at.width / 2 - event.clientX, y = at.y + at.height / 2 - event.clientY;
      if (x * x + y * y < least) { least = x * x + y * y; best = point; }
    }
    return best;
  };

  // Left and right move along a curve, up and down to the next curve at the same fraction.
  const step = (svg, key) => {
    const visible = all(".line:not(.off)", svg);
    if (!visible.length) return null;
    const now = svg.querySelector(".now");
    if (!now) return visible[visible.length - 1].querySelector("circle");
    const line = now.parentNode, along = all("circle", line);
    const place = along.indexOf(now) + (key === "ArrowRight") - (key === "ArrowLeft");
    const column = Math.max(0, Math.min(along.length - 1, place));
    if (key === "ArrowLeft" || key === "ArrowRight") return along[column];
    const height = (other) => Number((all("circle", other)[column] || now).getAttribute("cy"));
    const order = visible.sort((a, b) => height(a) - height(b));
    const next = order.indexOf(line) + (key === "ArrowDown") - (key === "ArrowUp");
    return all("circle", order[Math.max(0, Math.min(order.length - 1, next))])[column] || now;
  };

  for (const svg of all(".chart")) {
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", (event) => show(svg, nearest(svg, event)));
    svg.addEventListener("pointerleave", () => leave(svg));
    svg.addEventListener("blur", () => leave(svg));
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave(svg);
      if (!event.key.startsWith("Arrow")) return;
      event.preventDefault();
      show(svg, step(svg, event.key));
    });
  }

  const press = (key, on) => {
    key.setAttribute("aria-pressed", String(on));
    for (const line of all('.line[data-m="' + key.dataset.m + '"]')) line.classList.toggle("off", !on);
  };
  const keys = all(".key");
  for (const key of keys) {
    key.disabled = false;
    key.addEventListener("click", () => press(key, key.getAttribute("aria-pressed") !== "true"));
  }
  for (const item of all(".toggle-all")) {
    item.hidden = false;
    const visible = { all: () => true, none: () => false, methods: (key) => !("control" in key.dataset) }[item.dataset.show];
    item.querySelector("button").addEventListener("click", () => keys.forEach((key) => press(key, visible(key))));
  }

  // Printed pages cannot be unfolded.
  window.addEventListener("beforeprint", () => all("details").forEach((element) => { element.open = true; }));
})();
