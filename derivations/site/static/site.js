// Where an equation is cited, show it: under the mouse, and for the keyboard's focus. Escape puts it away.
(() => {
  const box = document.createElement("div");
  box.id = "equation-shown";
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  let cited = null;
  let waiting = 0;

  const hide = () => {
    clearTimeout(waiting);
    box.hidden = true;
    if (cited) cited.removeAttribute("aria-describedby");
    cited = null;
  };

  const show = async (link, number) => {
    cited = link;
    const shown = await MathJax.tex2svgPromise(EQUATIONS[number], { display: true });
    if (cited !== link) return;
    box.replaceChildren(shown);
    link.setAttribute("aria-describedby", box.id);
    box.hidden = false;
    const at = link.getBoundingClientRect();
    const left = Math.min(Math.max(at.left - 20, 8), document.documentElement.clientWidth - box.offsetWidth - 8);
    const above = at.top > box.offsetHeight + 8;
    box.style.left = `${left + scrollX}px`;
    box.style.top = `${(above ? at.top - box.offsetHeight - 4 : at.bottom + 4) + scrollY}px`;
  };

  const citation = (element) => {
    const link = element.closest?.('a[href*="#eq-"]');
    return link && link.hash.slice(4) in EQUATIONS ? link : null;
  };

  // From the link to the box the mouse crosses a gap: wait a moment before putting the box away.
  const meet = (event) => {
    const link = citation(event.target);
    clearTimeout(waiting);
    if (link && link !== cited) waiting = setTimeout(() => (hide(), show(link, link.hash.slice(4))), 150);
    else if (!link && cited && !box.contains(event.target)) waiting = setTimeout(hide, 250);
  };

  addEventListener("DOMContentLoaded", () => {
    document.body.append(box);
    document.addEventListener("mouseover", meet);
    document.addEventListener("focusin", meet);
    document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  });

  const fit = () => fitEquations(0.7);
  addEventListener("resize", fit);
  document.addEventListener("toggle", fit, true);

  // A link to what stands inside a folded answer unfolds it.
  const arrive = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    return target;
  };
  addEventListener("hashchange", arrive);

  // Drawn, the equations take another height than as text: go once more to where the link led.
  addEventListener("DOMContentLoaded", async () => {
    const target = arrive();
    await MathJax.startup.promise;
    fit();
    if (target) target.scrollIntoView({ behavior: "instant" });
  });
})();
