// The page of `similis compare --report`: tables, charts by Chart.js and a slider, from the data
// that stands in the page. Names are set as text, never as markup.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const charts = [];  // functions that draw a chart anew, as when the theme changes
const COLORS = 8, MOST_ROWS = 200;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const color = i => css("--c" + (i % COLORS));
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child != null));
  return element;
}
const number = (value, digits = 6) => value == null || Number.isNaN(value) ? "–"
  : Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits)));
function time(seconds) {
  if (seconds == null) return "–";
  const tenths = Math.round(seconds * 100) / 100, minutes = Math.floor(tenths / 60);
  const text = (tenths - minutes * 60).toFixed(2).padStart(5, "0");
  return minutes < 60 ? `${minutes}:${text}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${text}`;
}
const isError = statistics => !("harmonic_mean" in statistics);  // better when lower
const baseName = path => path.split("/").pop() || path;
// Gives each path as a table shows it: the file's name, with as many folders as tell it from the others; all on hovering.
function namesOf(paths) {
  const texts = new Map();
  for (let parts = 1, left = new Set(paths); left.size > 0; ++parts) {
    const ends = [...left].map(path => [path, path.split("/").filter(part => part).slice(-parts).join("/")]), counts = new Map();
    for (const [, end] of ends) counts.set(end, (counts.get(end) ?? 0) + 1);
    for (const [path, end] of ends) {
      const isWhole = path.split("/").filter(part => part).length <= parts;
      if (counts.get(end) > 1 && !isWhole) continue;
      texts.set(path, isWhole ? path : end);
      left.delete(path);
    }
  }
  return path => ({text: texts.get(path), title: path});
}
// ---- tables ----
const plain = value => value?.text ?? value;  // of a name its text
const isWords = value => typeof plain(value) === "string" && !/^[\d:.–]+$/.test(plain(value));
const cell = (tag, value, attributes) => make(tag, {...attributes, title: value?.title}, typeof value === "number" ? number(value) : plain(value) ?? "–");
function table(caption, headers, rows, sorts = false) {
  const body = make("tbody"), status = make("span", {role: "status", class: "faint"});
  const hasText = headers.map((_, i) => rows.some(row => isWords(row[i])));
  const heads = headers.map((name, i) => make("th", {scope: "col", class: hasText[i] ? "text" : null}, sorts ? make("button", {type: "button", onclick: () => sort(i)}, name) : name));
  let most = MOST_ROWS, order = 0, by = -1;
  const more = make("button", {type: "button", onclick: () => { most = Infinity; show(); }}, `Show all ${rows.length} rows`);
  function show() {
    body.replaceChildren(...rows.slice(0, most).map(row => make("tr", {}, cell("th", row[0], {scope: "row"}), ...row.slice(1).map((value, i) => cell("td", value, {class: hasText[i + 1] ? "text" : null})))));
    more.hidden = rows.length <= most;
  }
  function sort(column) {
    order = by === column ? -order : 1;
    by = column;
    const rank = value => value == null ? Infinity : value;
    rows.sort((a, b) => typeof plain(a[column]) === "string" ? order * plain(a[column]).localeCompare(plain(b[column])) : order * (rank(a[column]) - rank(b[column]) || 0));
    heads.forEach((head, i) => i === column ? head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending") : head.removeAttribute("aria-sort"));
    status.textContent = `sorted by ${headers[column]}, ${order > 0 ? "ascending" : "descending"}`;
    show();
  }
  show();
  return make("div", {}, make("div", {class: "wide", tabindex: 0, role: "region", "aria-label": caption},
    make("table", {}, make("caption", {}, make("span", {}, caption)), make("thead", {}, make("tr", {}, ...heads)), body)), more, sorts ? status : null);
}
const statisticNames = ["mean", "min", "p1", "p5", "median", "p95", "max", "stdev", "harmonic_mean"];
function statisticsTable(caption, metrics) {
  return table(caption, ["score", ...statisticNames.map(name => name.replace("_", " "))],
    Object.entries(metrics).map(([name, values]) => [name, ...statisticNames.map(key => values[key])]));
}
function singleTable(metrics) {
  return table("Scores", ["score", "value"], Object.entries(metrics).map(([name, values]) => [name, values.mean]));
}
// ---- charts ----
function chart(label, config, parent) {
  const canvas = make("canvas", {role: "img", "aria-label": label});
  parent.append(make("div", {class: "chart"}, canvas));
  let drawn = null;
  const draw = () => {
    drawn?.destroy();
    Object.assign(Chart.defaults, {color: css("--ink"), borderColor: css("--line"), animation: false, maintainAspectRatio: false});
    drawn = new Chart(canvas, config());
  };
  charts.push(draw);
  draw();
  return {canvas, get drawn() { return drawn; }};
}
const axis = (text, more = {}) => ({type: "linear", title: {display: true, text}, ...more});
function choice(label, names, change) {
  const select = make("select", {onchange: () => change(select.value)}, ...names.map(name => make("option", {value: name}, name)));
  return {node: names.length > 1 ? make("label", {}, label, select) : "", select};
}
// The values of a series: f32, or u16 between min and max; two for each point that stands for several frames.
function values(series, name) {
  const packed = series.data[name];
  if (packed.values instanceof Float32Array) return packed.values;
  const text = atob(packed.values), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  if (series.bits === 32) return packed.values = new Float32Array(bytes.buffer);
  const steps = new Uint16Array(bytes.buffer), scale = (packed.max - packed.min) / 65534;
  const scores = new Float32Array(steps.length);
  for (let i = 0; i < steps.length; ++i) scores[i] = steps[i] === 65535 ? NaN : packed.min + steps[i] * scale;
  return packed.values = scores;
}
const pointFrame = (series, point) => series.frames ? series.frames[point] : series.first + series.step * point;
const pointCount = series => series.count;
// The points between two frames: all of them, or the least and the largest of each pixel column.
function points(series, name, from, to, columns) {
  const all = values(series, name), per = series.per > 1 ? 2 : 1, count = pointCount(series), result = [];
  let first = 0, last = count;
  if (!series.frames) {
    first = Math.max(0, Math.floor((from - series.first) / series.step));
    last = Math.min(count, Math.ceil((to - series.first) / series.step) + 1);
  }
  while (first < count && pointFrame(series, first) < from) ++first;
  while (last > first && pointFrame(series, last - 1) > to) --last;
  first = Math.max(0, first - 1);
  last = Math.min(count, last + 1);
  const wide = Math.max(1, Math.ceil((last - first) / columns));
  for (let point = first; point < last; point += wide) {
    let least = Infinity, largest = -Infinity;
    for (let i = point * per; i < Math.min(last, point + wide) * per; ++i) {
      if (all[i] < least) least = all[i];
      if (all[i] > largest) largest = all[i];
    }
    const x = pointFrame(series, point);
    if (least > largest) result.push({x, y: NaN});
    else if (wide === 1 && per === 1) result.push({x, y: least});
    else result.push({x, y: least}, {x, y: largest});
  }
  return result;
}
// lines(choice): [{label, series, name}]; all charts of a section share the zoom.
function frameCharts(groups, section) {
  const every = groups.flatMap(group => group.lines.map(line => line.series));
  const first = Math.min(...every.map(s => pointFrame(s, 0))), last = Math.max(...every.map(s => pointFrame(s, pointCount(s) - 1)));
  const rate = every[0].seconds;
  let from = first, to = Math.max(last, first + 1);
  const views = [], status = make("span", {role: "status"});
  const say = () => { status.textContent = `frames ${Math.ceil(from)} to ${Math.floor(to)}` + (rate ? ` (${time(Math.ceil(from) * rate)} to ${time(Math.floor(to) * rate)})` : ""); };
  function zoom(a, b) {
    const span = Math.min(Math.max(b - a, 4), Math.max(last - first, 1));
    from = Math.max(first, Math.min((a + b) / 2 - span / 2, Math.max(last, first + 1) - span));
    to = from + span;
    say();
    views.forEach(view => view());
  }
  const scale = (factor, at = (from + to) / 2) => zoom(at - (at - from) * factor, at + (to - at) * factor);
  const move = share => zoom(from + (to - from) * share, to + (to - from) * share);
  const button = (text, action, label) => make("button", {type: "button", onclick: action, "aria-label": label}, text);
  section.append(make("div", {class: "row", role: "group", "aria-label": "zoom"}, button("+", () => scale(0.5), "zoom in"), button("−", () => scale(2), "zoom out"),
    button("◀", () => move(-0.5), "earlier"), button("▶", () => move(0.5), "later"), button("all", () => zoom(first, last), "show all frames"), status),
    make("p", {class: "faint hint"}, "Drag across a chart to zoom in, or turn the wheel on it; on a focused chart, keys + and − zoom, arrows move, 0 shows all."));
  say();
  for (const {label, lines} of groups) {
    const isLong = () => to - from > 200;
    const view = chart(`${label} of each frame`, () => {
      const columns = Math.max(100, Math.floor((section.clientWidth || 800) * 0.9));
      return {type: "line", data: {datasets: lines.map((line, i) => ({label: line.label, data: points(line.series, line.name, from, to, columns),
          borderColor: color(i), backgroundColor: color(i), borderWidth: 1.5, pointRadius: isLong() ? 0 : 2}))},
        options: {parsing: false, normalized: true, interaction: {mode: "nearest", axis: "x", intersect: false},
          scales: {x: axis("frame", {min: from, max: to, ticks: {precision: 0, maxRotation: 0}}), y: axis(label)},
          plugins: {legend: {position: "top"}, tooltip: {callbacks: {title: items => `frame ${items[0].parsed.x}` + (rate ? ` (${time(items[0].parsed.x * rate)})` : "")}}}}};
    }, section);
    views.push(charts[charts.length - 1]);
    const {canvas} = view, frameAt = event => view.drawn.scales.x.getValueForPixel(event.offsetX);
    canvas.tabIndex = 0;
    let start = null;
    canvas.addEventListener("wheel", event => { event.preventDefault(); scale(event.deltaY < 0 ? 0.7 : 1.4, frameAt(event)); }, {passive: false});
    canvas.addEventListener("pointerdown", event => { start = frameAt(event); });
    canvas.addEventListener("pointerup", event => {
      const end = frameAt(event);
      if (start !== null && Math.abs(end - start) > (to - from) / 100) zoom(Math.min(start, end), Math.max(start, end));
      start = null;
    });
    canvas.addEventListener("dblclick", () => zoom(first, last));
    canvas.addEventListener("keydown", event => {
      const action = {"+": () => scale(0.5), "=": () => scale(0.5), "-": () => scale(2), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), 0: () => zoom(first, last)}[event.key];
      if (action) { event.preventDefault(); action(); }
    });
  }
}
// The share of frames that score at most so much.
function distribution(label, lines, section) {
  chart(`cumulative distribution of ${label}`, () => ({type: "line", data: {datasets: lines.map((line, i) => {
    const sorted = values(line.series, line.name).filter(value => !Number.isNaN(value)).sort(), steps = Math.min(200, sorted.length - 1);
    return {label: line.label, borderColor: color(i), backgroundColor: color(i), borderWidth: 1.5, pointRadius: 0,
      data: Array.from({length: steps + 1}, (_, k) => ({x: sorted[Math.round(k / Math.max(steps, 1) * (sorted.length - 1))], y: 100 * k / Math.max(steps, 1)}))};
  })}, options: {parsing: false, scales: {x: axis(label), y: axis("% of frames at most so high", {min: 0, max: 100})}}}), section);
}
function scatter(label, sets, x, y, section, draws_lines) {
  return chart(label, () => ({type: "scatter", data: {datasets: sets().map((set, i) => ({...set, showLine: draws_lines, borderColor: color(i), backgroundColor: color(i), pointRadius: 4, borderWidth: 1.5}))},
    options: {scales: {x: axis(x()), y: axis(y())}, plugins: {legend: {display: draws_lines},
      tooltip: {callbacks: {label: item => `${item.raw.file}: ${number(item.raw.x)}, ${number(item.raw.y)}`}}}}}), section);
}
// ---- pictures ----
function slider(images) {
  const over = make("img", {src: images.distorted, alt: "", class: "over"});
  const under = make("img", {src: images.reference, alt: `The reference and, to the right of the edge, the distorted picture (${images.width}×${images.height})`});
  const edge = make("div", {class: "edge"}), box = make("div", {class: "compare"}, under, over, edge);
  const place = make("input", {type: "range", min: 0, max: 100, step: 0.5, value: 50, "aria-label": "edge between reference (left) and distorted (right), in % of the width", oninput: show});
  const gain = make("input", {type: "range", min: 1, max: 32, value: 4, "aria-label": "amplification of the difference", oninput: show});
  const gainLabel = make("label", {}, "amplified", gain), placeLabel = make("label", {}, "edge", place);
  const modes = ["slider", "reference", "distorted", "difference"].map((name, i) => make("label", {}, make("input", {type: "radio", name: "mode" + charts.length + images.id, value: name, checked: i === 0, onchange: show}), name));
  const actual = make("input", {type: "checkbox", onchange: show});
  function show() {
    const mode = modes.find(label => label.firstChild.checked).firstChild.value, x = Number(place.value);
    box.classList.toggle("actual", actual.checked);
    over.style.clipPath = mode === "slider" ? `inset(0 0 0 ${x}%)` : mode === "reference" ? "inset(0 0 0 100%)" : "none";
    over.style.mixBlendMode = mode === "difference" ? "difference" : "normal";
    box.style.filter = mode === "difference" ? `brightness(${gain.value})` : "none";
    edge.hidden = mode !== "slider";
    edge.style.left = `${under.clientWidth * x / 100}px`;
    edge.style.height = `${under.clientHeight}px`;
    gainLabel.hidden = mode !== "difference";
    placeLabel.hidden = mode !== "slider";
    place.setAttribute("aria-valuetext", `${number(x)} % of the width`);
    gainLabel.lastChild.setAttribute("aria-valuetext", `${gain.value} times`);
  }
  const drag = event => { if (event.buttons) { place.value = 100 * (event.offsetX + (event.target === box ? box.scrollLeft : 0)) / under.clientWidth; show(); } };
  box.addEventListener("pointermove", drag);
  box.addEventListener("pointerdown", drag);
  box.addEventListener("dragstart", event => event.preventDefault());
  under.addEventListener("load", show);
  addEventListener("resize", show);
  show();
  const shrunk = images.shrunk > 1 ? `Shown at 1/${images.shrunk} of its size, so that this page stays small; scores are of the whole.` : "";
  return make("figure", {}, make("fieldset", {}, make("legend", {}, "Show"), ...modes, make("label", {}, actual, "actual pixels")),
    box, make("fieldset", {}, placeLabel, gainLabel), make("figcaption", {}, `${images.words ?? ""} ${shrunk}`));
}
function histogram(map, section) {
  const {best, worst, shares} = map.histogram, label = i => number(best + (worst - best) * i / shares.length, 3);
  const names = shares.map((_, i) => `${label(i)} to ${label(i + 1)}`);
  chart(`histogram of the map of ${map.name}`, () => ({type: "bar", data: {labels: shares.map((_, i) => label(i)), datasets: [{label: `% of pixels, by ${map.name}`, data: shares.map(share => share * 100), backgroundColor: color(0)}]},
    options: {scales: {x: {title: {display: true, text: `${map.name}, best on the left`}, ticks: {maxTicksLimit: 8, maxRotation: 0}}, y: axis("% of pixels")},
      plugins: {legend: {display: false}, tooltip: {callbacks: {title: items => names[items[0].dataIndex]}}}}}), section);
  section.append(make("details", {}, make("summary", {}, "As a table"), table(`Histogram of ${map.name}`, [map.name, "% of pixels"], shares.map((share, i) => [names[i], share * 100]))));
}
