// The sections of a report: frames, worst frames, pictures, encodes, pairs, and how it was made.
const groupOf = (name, measures) => measures.filter(m => name === m || name.startsWith(m + "-")).sort((a, b) => b.length - a.length)[0] ?? name;
const heading = (text, level = "h2") => make(level, {}, text);
const faint = text => make("p", {class: "faint"}, text);
function framesOf({series, document: scores}, section) {
  if (!series?.length) return;
  section.append(heading("Frame by frame"), series[0].note ? faint(series[0].note) : "");
  const names = [...new Set(series.flatMap(s => Object.keys(s.data)))], holder = make("div"), measures = Object.keys(scores.settings?.metrics ?? {}), file = namesOf(series.map(s => s.label));
  // One clip has a chart for each metric; several have one for the score that is picked.
  function fill(picked) {
    const groups = new Map();
    for (const name of picked) for (const s of series.filter(each => name in each.data)) {
      const group = series.length > 1 ? name : groupOf(name, measures);
      groups.set(group, [...groups.get(group) ?? [], {label: series.length > 1 ? file(s.label).text : name, series: s, name}]);
    }
    const grid = make("div", {class: "grid"});
    holder.replaceChildren();
    frameCharts([...groups].map(([label, lines]) => ({label, lines})), holder);
    holder.append(heading("Distribution"), grid);
    for (const [label, lines] of groups) distribution(label, lines, grid.appendChild(make("div")));
  }
  if (series.length > 1) section.append(choice("score", names, name => fill([name])) ?? "");
  section.append(holder);
  fill(series.length > 1 ? names.slice(0, 1) : names);
}
function worstOf({document: {worst = []}, worst: pictured = []}, section) {
  if (worst.length === 0) return;
  section.append(heading("Worst frames"), table("The worst frames of each score", ["score", "frame", "time", "value"], worst.map(({frame, time: seconds, ...score}) =>
    [Object.keys(score)[0], frame, time(seconds), Object.values(score)[0]])));
  for (const {name, frame, value, reference, distorted, map, map_name} of pictured) {
    const thumbs = [[reference, "reference"], [distorted, "distorted"], [map, `map of ${map_name}`]].map(([src, words]) => picture(src, words, `${words}, frame ${frame}`));
    section.append(heading(`Frame ${frame}: worst ${name}, ${number(value)}`, "h3"), make("div", {class: "thumbs"}, ...thumbs));
  }
}
function picturesOf({images}, section) {
  if (!images) return;
  section.append(heading("Pictures"), slider(images), images.maps.length > 0 ? heading("Where the loss is") : "");
  for (const map of images.maps) {
    const part = make("div"), grid = make("div", {class: "grid"}, picture(map.src, `${map.name}; brighter is worse`, `heat map of ${map.name}; brighter is worse`), part);
    section.append(grid);
    histogram(map, part);
  }
}
function encodesOf({document: {encodes, curves = []}}, section) {
  const names = [...new Set(encodes.flatMap(encode => Object.keys(encode.metrics)))], file = namesOf(encodes.map(encode => encode.distorted));
  const rate = encode => encode.bits_per_second != null ? encode.bits_per_second / 1000 : encode.bits_per_pixel;
  const unit = encodes.some(encode => encode.bits_per_second != null) ? "kbit/s" : "bits per pixel";
  section.append(heading("Encodes"), table("Mean of each score; the headings sort", ["encode", "bytes", unit, ...names],
    encodes.map(encode => [file(encode.distorted), encode.bytes, rate(encode), ...names.map(name => encode.metrics[name]?.mean)]), true));
  for (const encode of encodes) if (encode.error) section.append(make("p", {class: "error"}, `${encode.distorted}: ${encode.error}`));
  if (encodes.some(encode => rate(encode) != null)) {
    const inCurve = new Set(curves.flatMap(curve => curve.files)), rest = encodes.filter(encode => !inCurve.has(encode.distorted));
    const sets = [...curves.map(curve => [curve.name, encodes.filter(encode => curve.files.includes(encode.distorted))]), [curves.length > 0 ? "others" : "encodes", rest]];
    const point = (encode, name) => ({x: rate(encode), y: encode.metrics[name]?.mean ?? NaN, file: file(encode.distorted).text});
    section.append(heading("Quality by rate"));
    scatter("quality by rate of the encodes", [[unit], names], (_, name) =>
      sets.filter(([, members]) => members.length > 0).map(([label, members]) => ({label, data: members.map(encode => point(encode, name)).sort((a, b) => a.x - b.x)})), true, section);
  }
  const rows = curves.flatMap(curve => Object.entries(curve.metrics ?? {}).map(([name, bd]) => [`${curve.name} against ${curve.against}`, name, bd.bd_rate, bd.bd_quality, bd.note ?? ""]));
  if (rows.length > 0) {
    section.append(heading("Bjøntegaard differences"), table("BD-rate (%) is the mean difference of bitrate at equal quality; BD-quality at equal rate; by PCHIP",
      ["curves", "score", "BD-rate %", "BD-quality", "note"], rows));
  }
}
function pairsOf({document: {pairs, unmatched = [], metrics_by_pair: byPair}, notes = []}, section) {
  const names = [...new Set(pairs.flatMap(pair => Object.keys(pair.metrics ?? {})))], failed = pairs.filter(pair => pair.error);
  const mean = (pair, name) => pair.metrics?.[name]?.mean, file = namesOf(pairs.map(pair => pair.distorted));
  if (byPair) section.append(statisticsTable("Over the pairs, each once", byPair));
  section.append(...notes.map(faint), heading("Pairs"),
    table("Mean of each score; the headings sort", ["pair", ...names], pairs.map(pair => [file(pair.distorted), ...names.map(name => mean(pair, name))]), true));
  if (failed.length > 0) section.append(table("Pairs that could not be scored", ["pair", "error"], failed.map(pair => [file(pair.distorted), pair.error])));
  function worst(name) {
    const scored = pairs.filter(pair => mean(pair, name) != null), sign = scored.some(pair => "harmonic_mean" in pair.metrics[name]) ? -1 : 1;
    return scored.sort((a, b) => sign * (mean(b, name) - mean(a, name))).slice(0, 3).map(pair => [name, file(pair.distorted), mean(pair, name)]);
  }
  section.append(heading("Worst pairs"), table("The three worst of each score", ["score", "pair", "mean"], names.flatMap(worst)));
  if (names.length > 1) {
    const second = names.find(name => groupOf(name, [names[0].split("-")[0]]) === name && name !== names[0]) ?? names[1];
    section.append(heading("Two scores"));
    scatter("two scores of each pair", [names, [second, ...names.filter(name => name !== second)]], (x, y) =>
      [{label: "pairs", data: pairs.map(pair => ({x: mean(pair, x) ?? NaN, y: mean(pair, y) ?? NaN, file: file(pair.distorted).text}))}], false, section);
  }
  if (unmatched.length > 0) section.append(table("Files without a match", ["file", "side"], unmatched.map(file => [file.path, file.side])));
}
function provenanceOf({document: scores, files = [], command, settings}, section) {
  const rows = files.map(file => [file.path, file.bytes ?? "–", file.sha256 ?? "–"]);
  section.append(heading("How this was made"), rows.length > 0 ? table("Files", ["file", "bytes", "SHA-256"], rows) : "");
  if (command) section.append(make("p", {}, "Command: ", make("code", {}, command)));
  section.append(make("p", {}, `similis ${scores.similis}${scores.device ? ` on ${scores.device}` : ""}; charts by Chart.js ${Chart.version}.`));
  if (settings.length > 0) section.append(table("Settings", ["setting", "value"], settings));
}
function show(content, index) {
  const scores = content.document, section = make("section", {"aria-label": content.title});
  document.getElementById("page").append(section);
  section.append(heading(content.title, index === 0 ? "h1" : "h2"));
  if (scores.error) section.append(make("p", {class: "error"}, `Incomplete: ${scores.error}`));
  if (content.registration) registrationOf(content, section);
  else if (scores.encodes) encodesOf(content, section);
  else if (scores.pairs) pairsOf(content, section);
  else section.append(scores.frames_scored > 1 ? statisticsTable(`Over ${scores.frames_scored} frames`, scores.metrics) : statisticsTable("Scores", scores.metrics, ["mean"]));
  picturesOf(content, section);
  framesOf(content, section);
  worstOf(content, section);
  provenanceOf(content, section);
}
data.sections.forEach(show);
document.title = data.sections[0].title;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(draw => draw()));
addEventListener("beforeprint", () => charts.forEach(draw => draw()));
document.documentElement.dataset.ready = Math.round(performance.now());
