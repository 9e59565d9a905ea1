// The sections of a report: frames, worst frames, pictures, encodes, pairs, and how it was made.
const groupOf = (name, measures) => measures.filter(m => name === m || name.startsWith(m + "-")).sort((a, b) => b.length - a.length)[0] ?? name;
function framesOf(content, section) {
  const {series, document: scores} = content;
  if (!series?.length) return;
  section.append(make("h2", {}, "Frame by frame"));
  if (series[0].note) section.append(make("p", {class: "faint"}, series[0].note));
  const names = Object.keys(series[0].data);
  if (series.length === 1) {
    const groups = new Map();
    for (const name of names) {
      const group = groupOf(name, Object.keys(scores.settings?.metrics ?? {}));
      groups.set(group, [...groups.get(group) ?? [], {label: name, series: series[0], name}]);
    }
    frameCharts([...groups].map(([label, lines]) => ({label, lines})), section);
    section.append(make("h2", {}, "Distribution"));
    const grid = make("div", {class: "grid"});
    section.append(grid);
    for (const [label, lines] of groups) distribution(label, lines, grid.appendChild(make("div")));
    return;
  }
  const holder = make("div"), pick = choice("score", names, fill);
  section.append(pick.node, holder);
  function fill(name) {
    holder.replaceChildren();
    const lines = series.filter(s => name in s.data).map(s => ({label: baseName(s.label), series: s, name}));
    frameCharts([{label: name, lines}], holder);
    distribution(name, lines, holder);
  }
  fill(names[0]);
}
function worstOf(content, section) {
  const worst = content.document.worst ?? [];
  if (worst.length === 0) return;
  section.append(make("h2", {}, "Worst frames"), table("The worst frames of each score", ["score", "frame", "time", "value"], worst.map(entry => {
    const name = Object.keys(entry).find(key => key !== "frame" && key !== "time");
    return [name, entry.frame, time(entry.time), entry[name]];
  })));
  for (const shown of content.worst ?? []) {
    const picture = (src, words) => src ? make("figure", {}, make("img", {src, alt: `${words}, frame ${shown.frame}`}), make("figcaption", {}, words)) : null;
    section.append(make("h3", {}, `Frame ${shown.frame}: worst ${shown.name}, ${number(shown.value)}`),
      make("div", {class: "thumbs"}, picture(shown.reference, "reference"), picture(shown.distorted, "distorted"), picture(shown.map, `map of ${shown.map_name}`)));
  }
}
function picturesOf(content, section) {
  const images = content.images;
  if (!images) return;
  section.append(make("h2", {}, "Pictures"), slider(images));
  if (images.maps.length > 0) section.append(make("h2", {}, "Where the loss is"));
  for (const map of images.maps) {
    const grid = make("div", {class: "grid"}), chartPart = make("div");
    grid.append(make("figure", {}, make("img", {src: map.src, alt: `heat map of ${map.name}; brighter is worse`}), make("figcaption", {}, `${map.name}; brighter is worse`)), chartPart);
    section.append(grid);
    histogram(map, chartPart);
  }
}
function encodesOf(content, section) {
  const {encodes, curves = []} = content.document;
  const names = [...new Set(encodes.flatMap(encode => Object.keys(encode.metrics)))];
  const rate = encode => encode.bits_per_second != null ? encode.bits_per_second / 1000 : encode.bits_per_pixel;
  const unit = encodes.some(encode => encode.bits_per_second != null) ? "kbit/s" : "bits per pixel";
  const file = namesOf(encodes.map(encode => encode.distorted));
  section.append(make("h2", {}, "Encodes"), table("Mean of each score; the headings sort", ["encode", "bytes", unit, ...names],
    encodes.map(encode => [file(encode.distorted), encode.bytes, rate(encode), ...names.map(name => encode.metrics[name]?.mean)]), true));
  for (const encode of encodes) if (encode.error) section.append(make("p", {class: "error"}, `${encode.distorted}: ${encode.error}`));
  if (encodes.some(encode => rate(encode) != null)) {
    section.append(make("h2", {}, "Quality by rate"));
    let name = names[0];
    const pick = choice("score", names, value => { name = value; view(); });
    section.append(pick.node);
    const inCurve = new Set(curves.flatMap(curve => curve.files)), rest = encodes.filter(encode => !inCurve.has(encode.distorted));
    const sets = () => [...curves.map(curve => [curve.name, encodes.filter(e => curve.files.includes(e.distorted))]), ...rest.length ? [[curves.length ? "others" : "encodes", rest]] : []]
      .map(([label, files]) => ({label, data: files.map(e => ({x: rate(e), y: e.metrics[name]?.mean ?? NaN, file: baseName(e.distorted)})).sort((a, b) => a.x - b.x)}));
    scatter("quality by rate of the encodes", sets, () => unit, () => name, section, true);
    const view = charts[charts.length - 1];
  }
  const compared = curves.filter(curve => curve.metrics);
  if (compared.length > 0) {
    const rows = compared.flatMap(curve => Object.entries(curve.metrics).map(([name, bd]) => [`${curve.name} against ${curve.against}`, name, bd.bd_rate, bd.bd_quality, bd.note ?? ""]));
    section.append(make("h2", {}, "Bjøntegaard differences"), table("BD-rate (%) is the mean difference of bitrate at equal quality; BD-quality at equal rate; by PCHIP",
      ["curves", "score", "BD-rate %", "BD-quality", "note"], rows));
  }
}
function pairsOf(content, section) {
  const {pairs, unmatched = [], metrics_by_pair: byPair} = content.document;
  const names = [...new Set(pairs.flatMap(pair => Object.keys(pair.metrics ?? {})))];
  const directions = Object.fromEntries(names.map(name => [name, isError(pairs.find(p => p.metrics?.[name]).metrics[name]) ? 1 : -1]));
  const mean = (pair, name) => pair.metrics?.[name]?.mean, file = namesOf(pairs.map(pair => pair.distorted));
  if (byPair) section.append(statisticsTable("Over the pairs, each once", byPair));
  for (const note of content.notes ?? []) section.append(make("p", {class: "faint"}, note));
  section.append(make("h2", {}, "Pairs"), table("Mean of each score; the headings sort", ["pair", ...names], pairs.map(pair => [file(pair.distorted), ...names.map(name => mean(pair, name))]), true));
  const failed = pairs.filter(pair => pair.error);
  if (failed.length > 0) section.append(table("Pairs that could not be scored", ["pair", "error"], failed.map(pair => [file(pair.distorted), pair.error])));
  section.append(make("h2", {}, "Worst pairs"), table("The three worst of each score", ["score", "pair", "mean"], names.flatMap(name =>
    pairs.filter(pair => mean(pair, name) != null).sort((a, b) => directions[name] * (mean(b, name) - mean(a, name))).slice(0, 3).map(pair => [name, file(pair.distorted), mean(pair, name)]))));
  if (names.length > 1) {
    let [x, y] = [names[0], names.find(name => groupOf(name, [names[0].split("-")[0]]) === name && name !== names[0]) ?? names[1]];
    const change = set => value => { set(value); view(); };
    const picks = [choice("across", names, change(value => { x = value; })), choice("up", names, change(value => { y = value; }))];
    picks[1].select.value = y;
    section.append(make("h2", {}, "Two scores"), make("div", {class: "row"}, picks[0].node, picks[1].node));
    scatter("two scores of each pair", () => [{label: "pairs", data: pairs.map(pair => ({x: mean(pair, x) ?? NaN, y: mean(pair, y) ?? NaN, file: baseName(pair.distorted)}))}], () => x, () => y, section, false);
    const view = charts[charts.length - 1];
  }
  if (unmatched.length > 0) section.append(table("Files without a match", ["file", "side"], unmatched.map(file => [file.path, file.side])));
}
function provenanceOf(content, section) {
  const {document: scores, files = [], command} = content;
  section.append(make("h2", {}, "How this was made"));
  if (files.length > 0) section.append(table("Files", ["file", "bytes", "SHA-256"], files.map(file => [file.path, file.bytes ?? "–", file.sha256 ?? "–"])));
  if (command) section.append(make("p", {}, "Command: ", make("code", {}, command)));
  section.append(make("p", {}, `similis ${scores.similis}` + (scores.device ? ` on ${scores.device}` : "") + "; charts by Chart.js " + Chart.version + "."));
  const settings = [];
  const isNested = value => value !== null && typeof value === "object" && !(Array.isArray(value) && value.every(each => typeof each !== "object"));
  const walk = (value, path) => isNested(value)
    ? Object.entries(value).forEach(([key, child]) => walk(child, path ? `${path} · ${key}` : key)) : settings.push([path, Array.isArray(value) ? value.join(/(voxels|size)$/.test(path) ? " × " : ", ") : value === null ? "none" : String(value)]);
  walk(scores.settings ?? {}, "");
  if (settings.length > 0) section.append(table("Settings", ["setting", "value"], settings));
}
function show(content, index) {
  const scores = content.document, section = make("section", {"aria-label": content.title});
  if (content.images) content.images.id = index;
  document.getElementById("page").append(section);
  section.append(make(index === 0 ? "h1" : "h2", {}, content.title));
  if (scores.error) section.append(make("p", {class: "error"}, `Incomplete: ${scores.error}`));
  if (content.registration) registrationOf(content, section);
  else if (scores.encodes) encodesOf(content, section);
  else if (scores.pairs) pairsOf(content, section);
  else section.append(scores.frames_scored > 1 ? statisticsTable(`Over ${scores.frames_scored} frames`, scores.metrics) : singleTable(scores.metrics));
  picturesOf(content, section);
  framesOf(content, section);
  worstOf(content, section);
  provenanceOf(content, section);
}
const page = document.getElementById("page");
page.replaceChildren();
data.sections.forEach(show);
document.title = data.sections[0].title;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(draw => draw()));
addEventListener("beforeprint", () => charts.forEach(draw => draw()));
document.documentElement.dataset.ready = Math.round(performance.now());
