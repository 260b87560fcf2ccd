(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Only what can be scrolled needs a tab stop.
  const stops = () => {
    for (const box of all(".wide, pre")) {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      if (!scrolls) {
        for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
        continue;
      }
      box.setAttribute("tabindex", "0");
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", box.dataset.label || "plan");
    }
  };
  stops();
  window.addEventListener("resize", stops);
  document.addEventListener("toggle", stops, true);

  const filter = document.getElementById("filter");
  if (filter) {
    const [ofClass, ofAnswer, count] = ["filter-class", "filter-answer", "filter-count"].map((id) => document.getElementById(id));
    const examples = all(".example");
    const apply = () => {
      for (const example of examples) {
        const wanted = (!ofClass.value || example.dataset.class === ofClass.value) && (!ofAnswer.value || example.dataset.answer === ofAnswer.value);
        example.hidden = !wanted;
      }
      count.textContent = examples.filter((example) => !example.hidden).length + " of " + examples.length + " shown";
    };
    filter.hidden = false;
    filter.addEventListener("change", apply);
    filter.addEventListener("submit", (event) => event.preventDefault());
    filter.reset();
    apply();
  }

  // Printed pages cannot be unfolded.
  window.addEventListener("beforeprint", () => all("details").forEach((element) => { element.open = true; }));
})();
