// The page of `similis compare --report`: tables, charts by Chart.js and a slider, from the data
// that stands in the page. Names are set as text, never as markup; templates stand in page.html.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const charts = [];  // functions that draw a chart anew, as when the theme changes
const COLORS = 8, MOST_ROWS = 200;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const color = i => css("--c" + (i % COLORS));
const template = id => document.getElementById(id).content.firstElementChild.cloneNode(true);
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (["function", "boolean"].includes(typeof value)) element[name] = value;
    else if (value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child != null));
  return element;
}
const number = (value, digits = 6) => value == null || Number.isNaN(value) ? "–"
  : Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits)));
function time(seconds) {
  if (seconds == null) return "–";
  const rounded = Math.round(seconds * 100) / 100, minutes = Math.floor(rounded / 60);
  const text = (rounded - minutes * 60).toFixed(2).padStart(5, "0");
  return minutes < 60 ? `${minutes}:${text}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${text}`;
}
// Gives each path as a table shows it: the file's name, with as many folders as tell it from the others; all on hovering.
function namesOf(paths) {
  const counts = new Map(), endsOf = path => path.split("/").map((_, i, parts) => parts.slice(-1 - i).join("/")).filter(end => end);
  for (const end of [...new Set(paths)].flatMap(endsOf)) counts.set(end, (counts.get(end) ?? 0) + 1);
  return path => ({text: endsOf(path).find(end => counts.get(end) === 1) ?? path, title: path});
}
// ---- tables ----
const shown = value => typeof value === "string" ? value : value?.text ?? number(value);
const isNumeric = value => value == null || typeof value === "number";
const isWords = value => !isNumeric(value) && !/^[\d:.–]+$/.test(shown(value));
const compare = (a, b) => isNumeric(a) ? (a ?? Infinity) - (b ?? Infinity) || 0 : shown(a).localeCompare(shown(b));
function table(caption, headers, rows, sorts = false) {
  const body = make("tbody"), status = make("span", {role: "status", class: "faint"});
  const kinds = headers.map((_, i) => rows.some(row => isWords(row[i])) ? "text" : null);
  const heads = headers.map((name, i) => make("th", {scope: "col", class: kinds[i]}, sorts ? make("button", {type: "button", onclick: () => sort(i)}, name) : name));
  const cell = (value, i) => make(i ? "td" : "th", {scope: i ? null : "row", class: kinds[i], title: value?.title}, shown(value));
  const show = most => body.replaceChildren(...rows.slice(0, most).map(row => make("tr", {}, ...row.map(cell))));
  const more = make("button", {type: "button", hidden: rows.length <= MOST_ROWS, onclick: () => { more.hidden = true; show(); }}, `Show all ${rows.length} rows`);
  function sort(column) {
    const order = heads[column].getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    rows.sort((a, b) => (order === "ascending" ? 1 : -1) * compare(a[column], b[column]));
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === column ? order : "none"));
    status.textContent = `sorted by ${headers[column]}, ${order}`;
    show(more.hidden ? undefined : MOST_ROWS);
  }
  show(MOST_ROWS);
  return make("div", {}, make("div", {class: "wide", tabindex: 0, role: "region", "aria-label": caption},
    make("table", {}, make("caption", {}, make("span", {}, caption)), make("thead", {}, make("tr", {}, ...heads)), body)), more, sorts ? status : null);
}
const statisticNames = ["mean", "min", "p1", "p5", "median", "p95", "max", "stdev", "harmonic_mean"];
const statisticsTable = (caption, metrics, keys = statisticNames) => table(caption, ["score", ...keys.map(key => key.replace("_", " "))],
  Object.entries(metrics).map(([name, values]) => [name, ...keys.map(key => values[key])]));
// ---- charts ----
Chart.defaults.set({animation: false, maintainAspectRatio: false, elements: {line: {borderWidth: 1.5}}});
const axis = (text, more = {}) => ({type: "linear", title: {display: true, text}, ...more});
// config() gives the chart's settings anew; each dataset gets the next colour.
function chart(label, config, parent, tabindex) {
  const view = {canvas: make("canvas", {role: "img", "aria-label": label, tabindex}), draw};
  function draw() {
    view.drawn?.destroy();
    Object.assign(Chart.defaults, {color: css("--ink"), borderColor: css("--line")});
    const settings = config();
    settings.data.datasets.forEach((set, i) => Object.assign(set, {borderColor: color(i), backgroundColor: color(i)}));
    view.drawn = new Chart(view.canvas, settings);
  }
  parent.append(make("div", {class: "chart"}, view.canvas));
  charts.push(draw);
  draw();
  return view;
}
function choice(label, names, change) {
  const select = make("select", {onchange: () => change(select.value)}, ...names.map(name => make("option", {value: name}, name)));
  return names.length > 1 ? make("label", {}, label, select) : null;
}
// The values of a series: f32, or u16 between min and max; two for each point that stands for several frames.
function values({series, name}) {
  const packed = series.data[name];
  if (packed.values instanceof Float32Array) return packed.values;
  const {buffer} = Uint8Array.from(atob(packed.values), byte => byte.charCodeAt(0)), scale = (packed.max - packed.min) / 65534;
  packed.values = series.bits === 32 ? new Float32Array(buffer)
    : Float32Array.from(new Uint16Array(buffer), step => step === 65535 ? NaN : packed.min + step * scale);
  return packed.values;
}
const pointFrame = (series, point) => series.frames ? series.frames[point] : series.first + series.step * point;
// The points between two frames and one beyond each: all of them, or the least and the largest of each pixel column.
function points(line, from, to, columns) {
  const {series} = line, all = values(line), per = series.per > 1 ? 2 : 1, result = [];
  let first = 0, last = series.count;
  while (first + 1 < last && pointFrame(series, first + 1) <= from) ++first;
  while (last - 2 > first && pointFrame(series, last - 2) >= to) --last;
  const wide = Math.max(1, Math.ceil((last - first) / columns));
  for (let point = first; point < last; point += wide) {
    const x = pointFrame(series, point), scores = all.subarray(point * per, Math.min(last, point + wide) * per).filter(score => !Number.isNaN(score));
    result.push({x, y: scores.length > 0 ? Math.min(...scores) : NaN});
    if (scores.length > 1) result.push({x, y: Math.max(...scores)});
  }
  return result;
}
// groups: [{label, lines: [{label, series, name}]}], a chart each; all share the zoom.
function frameCharts(groups, section) {
  const every = groups.flatMap(group => group.lines.map(line => line.series)), seconds = every[0].seconds;
  const first = Math.min(...every.map(s => pointFrame(s, 0))), last = Math.max(...every.map(s => pointFrame(s, s.count - 1)), first + 1);
  const timeOf = frame => time(frame * seconds), bar = template("zoom"), views = [];
  let from = first, to = last;
  function zoom(a, b) {
    const span = Math.min(Math.max(b - a, 4), last - first);
    from = Math.max(first, Math.min((a + b) / 2 - span / 2, last - span));
    to = from + span;
    const [begin, end] = [Math.ceil(from), Math.floor(to)];
    bar.querySelector("[role=status]").textContent = `frames ${begin} to ${end}` + (seconds ? ` (${timeOf(begin)} to ${timeOf(end)})` : "");
    views.forEach(view => view.draw());
  }
  const scale = (factor, at = (from + to) / 2) => zoom(at - (at - from) * factor, at + (to - at) * factor);
  const move = share => zoom(from + (to - from) * share, to + (to - from) * share);
  const actions = {"+": () => scale(0.5), "=": () => scale(0.5), "-": () => scale(2), ArrowLeft: () => move(-0.5), ArrowRight: () => move(0.5), 0: () => zoom(first, last)};
  bar.onclick = event => actions[event.target.value]?.();
  section.append(bar);
  zoom(first, last);
  for (const {label, lines} of groups) {
    const view = chart(`${label} of each frame`, () => ({type: "line",
      data: {datasets: lines.map(line => ({label: line.label, pointRadius: to - from > 200 ? 0 : 2, data: points(line, from, to, Math.max(100, Math.floor((section.clientWidth || 800) * 0.9)))}))},
      options: {parsing: false, normalized: true, interaction: {mode: "nearest", axis: "x", intersect: false},
        scales: {x: axis("frame", {min: from, max: to, ticks: {precision: 0, maxRotation: 0}}), y: axis(label)},
        plugins: {tooltip: {callbacks: {title: ([{parsed}]) => `frame ${parsed.x}` + (seconds ? ` (${timeOf(parsed.x)})` : "")}}}}}), section, 0);
    views.push(view);
    let start = null;
    const frameAt = event => view.drawn.scales.x.getValueForPixel(event.offsetX), {canvas} = view;
    canvas.addEventListener("wheel", event => { event.preventDefault(); scale(event.deltaY < 0 ? 0.7 : 1.4, frameAt(event)); }, {passive: false});
    canvas.addEventListener("pointerdown", event => { start = frameAt(event); });
    canvas.addEventListener("pointerup", event => {
      const end = frameAt(event);
      if (start !== null && Math.abs(end - start) > (to - from) / 100) zoom(Math.min(start, end), Math.max(start, end));
      start = null;
    });
    canvas.addEventListener("keydown", event => event.ctrlKey || event.metaKey || actions[event.key]?.());
  }
}
// The share of frames that score at most so much.
function distribution(label, lines, section) {
  chart(`cumulative distribution of ${label}`, () => ({type: "line", data: {datasets: lines.map(line => {
    const sorted = values(line).filter(value => !Number.isNaN(value)).sort(), steps = Math.min(200, sorted.length - 1), shares = Array.from({length: steps + 1}, (_, k) => k / Math.max(steps, 1));
    return {label: line.label, pointRadius: 0, data: shares.map(share => ({x: sorted[Math.round(share * (sorted.length - 1))], y: 100 * share}))};
  })}, options: {parsing: false, scales: {x: axis(label), y: axis("% of frames at most so high", {min: 0, max: 100})}}}), section);
}
// sets(x, y): the datasets of two scores, each picked among its choices.
function scatter(label, choices, sets, showLine, section) {
  const picked = choices.map(names => names[0]);
  const picks = choices.map((names, i) => choice(choices[0].length > 1 ? ["across", "up"][i] : "score", names, name => { picked[i] = name; view.draw(); }));
  section.append(make("div", {class: "row"}, ...picks));
  const view = chart(label, () => ({type: "scatter", data: {datasets: sets(...picked).map(set => ({...set, showLine, pointRadius: 4}))},
    options: {scales: {x: axis(picked[0]), y: axis(picked[1])}, plugins: {legend: {display: showLine},
      tooltip: {callbacks: {label: ({raw}) => `${raw.file}: ${number(raw.x)}, ${number(raw.y)}`}}}}}), section);
}
function histogram(map, section) {
  const {best, worst, shares} = map.histogram, label = i => number(best + (worst - best) * i / shares.length, 3);
  const names = shares.map((_, i) => `${label(i)} to ${label(i + 1)}`);
  chart(`histogram of the map of ${map.name}`, () => ({type: "bar", data: {labels: shares.map((_, i) => label(i)), datasets: [{label: `% of pixels, by ${map.name}`, data: shares.map(share => share * 100)}]},
    options: {scales: {x: {title: {display: true, text: `${map.name}, best on the left`}, ticks: {maxTicksLimit: 8, maxRotation: 0}}, y: axis("% of pixels")},
      plugins: {legend: {display: false}, tooltip: {callbacks: {title: items => names[items[0].dataIndex]}}}}}), section);
  section.append(make("details", {}, make("summary", {}, "As a table"), table(`Histogram of ${map.name}`, [map.name, "% of pixels"], shares.map((share, i) => [names[i], share * 100]))));
}
// ---- pictures ----
const picture = (src, words, alt = words) => src ? make("figure", {}, make("img", {src, alt}), make("figcaption", {}, words)) : null;
function slider({reference, distorted, width, height, words}) {
  const figure = template("slider"), form = figure.firstElementChild, {edge, gain, mode, actual} = form.elements;
  const [under, over] = form.querySelectorAll("img");
  [under.src, over.src] = [reference, distorted];
  under.alt += ` (${width}×${height})`;
  figure.lastElementChild.textContent = words;
  function show() {
    Object.assign(form.dataset, {mode: mode.value, actual: actual.checked});
    form.style.setProperty("--edge", `${edge.value}%`);
    form.style.setProperty("--gain", gain.value);
    edge.setAttribute("aria-valuetext", `${number(Number(edge.value))} % of the width`);
    gain.setAttribute("aria-valuetext", `${gain.value} times`);
  }
  const drag = event => { if (event.buttons) { edge.value = 100 * event.offsetX / under.clientWidth; show(); } };
  for (const image of [under, over]) Object.assign(image, {onpointermove: drag, onpointerdown: drag});
  form.oninput = show;
  show();
  return figure;
}
