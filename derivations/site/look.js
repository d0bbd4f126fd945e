// What check.py asks of a page in the browser.
window.look = {
  async mathematics() {
    await MathJax.startup.promise;
    const text = (element) => (element.dataset.mjxError ?? element.textContent).trim().slice(0, 80);
    const all = (selector) => [...document.querySelectorAll(selector)];
    return {
      missing: all("article .math").filter((e) => !e.querySelector("mjx-container svg")).map(text),
      errors: all("mjx-merror, [data-mml-node=merror]").map(text),
      tags: all("article div.math [id^='mjx-eqn:']").map((e) => e.id.slice("mjx-eqn:".length)),
    };
  },

  // Make all of the page visible, as a reader may.
  unfold() {
    for (const details of document.querySelectorAll("details")) details.open = true;
  },

  // What sticks out to the right and is in no box of its own that scrolls.
  tooWide() {
    const width = document.documentElement.clientWidth;
    const scrolls = (e) => ["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX);
    const boxed = (e) => e.tagName !== "ARTICLE" && (scrolls(e) || boxed(e.parentElement));
    const out = [...document.querySelectorAll("article *:not(mjx-assistive-mml, mjx-assistive-mml *)")]  // for the ear
      .filter((e) => e.getBoundingClientRect().right > width + 1 && !boxed(e.parentElement))
      .map((e) => `${e.tagName.toLowerCase()} ${e.textContent.trim().slice(0, 60)}`);
    return document.documentElement.scrollWidth > width ? ["the page", ...out] : out;
  },

  // The luminance of the background, and the worst contrast, 1 to 21, of each kind of text with what lies behind it.
  contrast() {
    const rgba = (colour) => {
      const [r, g, b, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
      return [r, g, b, alpha];
    };
    const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const luminance = ([r, g, b]) =>
      0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
    const behind = (element) => {
      if (!element) return [255, 255, 255, 1];
      const colour = rgba(getComputedStyle(element).backgroundColor);
      return colour[3] > 0.5 ? colour : behind(element.parentElement);
    };
    const worst = {};
    const read = ["p", "li", "td", "h1", "h2", "code", "pre span", "mjx-container", "a"];
    for (const element of document.querySelectorAll(read.map((kind) => `article ${kind}`).join())) {
      if (!element.textContent.trim() && !element.querySelector("svg")) continue;
      const kind = [element.tagName.toLowerCase(), ...element.classList].join(".");
      const [dark, light] = [luminance(rgba(getComputedStyle(element).color)), luminance(behind(element))].sort((a, b) => a - b);
      worst[kind] = Math.min(worst[kind] ?? 21, (light + 0.05) / (dark + 0.05));
    }
    return { worst, background: luminance(behind(document.querySelector("article"))) };
  },
};
