// Make an equation that is wider than its column smaller, down to a part of its size; below that it scrolls.
const fitEquations = (least) => {
  const boxes = [...document.querySelectorAll("div.math:has(> mjx-container)")];
  for (const box of boxes) box.firstElementChild.style.fontSize = "";
  const parts = boxes.map((box) => (box.clientWidth - 1) / box.scrollWidth);
  boxes.forEach((box, i) => {
    if (box.scrollWidth > box.clientWidth) box.firstElementChild.style.fontSize = `${100 * Math.max(least, parts[i])}%`;
  });
};
