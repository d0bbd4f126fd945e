"use strict";
const data = document.getElementById("charts").textContent;
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)").matches;  // there a finger scrolls the page, until "zoom" is pressed
const config = {
  responsive: true,
  displaylogo: false,
  displayModeBar: touch ? false : "hover",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};

// The charts, with the colours that the page has now.
function charts() {
  const style = getComputedStyle(document.documentElement);
  return JSON.parse(data, (_, value) =>
    typeof value === "string" && value.startsWith("--") ? style.getPropertyValue(value).trim() : value);
}

const printing = () => document.documentElement.classList.contains("print");

function draw() {
  for (const { name, data, layout } of charts()) {
    const at = document.getElementById(name);
    if (printing()) Object.assign(layout, { width: 640, height: 280 });  // paper is no window that could be measured
    layout.dragmode = at.layout ? at.layout.dragmode : touch ? false : "zoom";
    for (const axis of ["xaxis", "yaxis"]) {  // what the reader has set stays
      const before = at.layout && at.layout[axis];
      if (before) for (const key of ["type", "nticks", "autorange", "range"]) layout[axis][key] = before[key];
    }
    Plotly.react(at, data, layout, config);
  }
}

// Zooming one chart in time zooms all.
function follow(from, change) {
  const whole = change["xaxis.autorange"];
  if (!whole && !("xaxis.range[0]" in change)) return;
  for (const at of document.querySelectorAll(".chart")) {
    if (at === from || (whole && at.layout.xaxis.autorange)) continue;
    const range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    Plotly.relayout(at, whole ? { "xaxis.autorange": true } : { "xaxis.range": range });
  }
}

// The arrow keys go from step to step, as the mouse does.
function walk(at, event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const curve = at.data.findLastIndex((trace) => trace.customdata && trace.customdata.length);
  const last = at.data[curve].x.length - 1;
  at.point = Math.min(Math.max((at.point ?? -by) + by, 0), last);
  Plotly.Fx.hover(at, [{ curveNumber: curve, pointNumber: at.point }]);
}

draw();
dark.addEventListener("change", draw);
for (const at of document.querySelectorAll(".chart")) {
  at.on("plotly_relayout", (change) => follow(at, change));
  at.addEventListener("keydown", (event) => walk(at, event));
}

function press(kind, change) {
  for (const button of document.querySelectorAll(`button.${kind}`)) {
    button.addEventListener("click", () => {
      const pressed = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", pressed);
      Plotly.relayout(button.closest("section").querySelector(".chart"), change(pressed));
    });
  }
}
press("log", (pressed) => ({ "yaxis.type": pressed ? "log" : "linear", "yaxis.nticks": pressed ? 3 : 6, "yaxis.autorange": true }));
press("zoom", (pressed) =>
  pressed ? { dragmode: "zoom" } : { dragmode: false, "xaxis.autorange": true, "yaxis.autorange": true });

document.getElementById("copy").addEventListener("click", async (event) => {
  const command = document.getElementById("command");
  getSelection().selectAllChildren(command);  // where the clipboard is refused, one key is left to press
  await navigator.clipboard.writeText(command.textContent);
  event.target.textContent = "Copied";
});

// On paper the page is light, whatever it is on the screen, and nothing is folded away.
for (const kind of ["beforeprint", "afterprint"]) {
  addEventListener(kind, () => {
    document.documentElement.classList.toggle("print", kind === "beforeprint");
    for (const details of document.querySelectorAll("details")) details.open = printing();
    draw();
  });
}
