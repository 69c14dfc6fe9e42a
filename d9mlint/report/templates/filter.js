"use strict";
(() => {
  const form = document.getElementById("filter");
  const sections = [...document.querySelectorAll("section.finding")];
  const apply = () => {
    const text = form.elements.text.value.trim().toLowerCase();
    const code = form.elements.code.value;
    const boxes = [...form.querySelectorAll("input[type=checkbox]")];
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    let shown = 0;
    for (const section of sections) {
      section.hidden =
        hidden.has(section.dataset.severity) ||
        (code !== "" && section.dataset.code !== code) ||
        (text !== "" && !section.textContent.toLowerCase().includes(text));
      shown += section.hidden ? 0 : 1;
    }
    form.querySelector("output").textContent = `${shown} of ${sections.length} shown`;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  // A link to a finding shows it even if it is filtered out.
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.hidden) {
      form.reset();
      apply();
      target.scrollIntoView();
    }
  });
  apply();
})();
