// Make an equation that is wider than its column smaller, down to a part of its size; below that it scrolls.
const fitEquations = (least) => {
  const all = [...document.querySelectorAll("mjx-container[display]")];
  for (const equation of all) equation.style.fontSize = "";
  const needed = all.map((e) => Math.max(e.scrollWidth, e.firstElementChild.getBoundingClientRect().width));
  const parts = all.map((e, i) => Math.max(least, (e.clientWidth - 1) / needed[i]));
  all.forEach((e, i) => e.clientWidth && parts[i] < 1 && (e.style.fontSize = `${100 * parts[i]}%`));
};
