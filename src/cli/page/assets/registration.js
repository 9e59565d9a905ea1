// The results of `similis register`: both images in one view, the warp, curves, numbers, commands.
const sliceAxes = {z: "x to the right, y", y: "x to the right, z", x: "y to the right, z"};
const sliceName = slice => `across ${slice.across} (${sliceAxes[slice.across]} ${slice.down ? "downwards" : "upwards"})`;
// The pictures of a mode: the lower one, the one over it, and how that is cut.
const registrationModes = {
  "slider": {under: "fixed", over: "warped", words: "left of the edge the fixed image, right of it the warped one"},
  "checkerboard": {under: "fixed", over: "warped", words: "squares of the fixed and of the warped image in turn"},
  "edges": {under: "warped", over: "edges", words: "edges of the fixed image over the warped one"},
  "warped grid": {under: "warped", over: "grid", words: "lines of the moving space where the warp puts them, over the warped image"},
  "log-Jacobian": {under: "jacobian", over: null, words: "logarithm of the warp's determinant: blue shrinks, white keeps and red expands volumes"},
};
function overlayOf({slices, jacobian_limit: limit, grid_step: step}) {
  const under = make("img", {alt: ""}), over = make("img", {alt: "", class: "over"}), edge = make("div", {class: "edge"});
  const box = make("div", {class: "compare fitted"}, under, over, edge);
  const range = (name, attributes) => make("input", {type: "range", "aria-label": name, oninput: show, ...attributes});
  const place = range("edge between the fixed (left) and the warped image (right), in % of the width", {min: 0, max: 100, step: 0.5, value: 50});
  const checks = range("squares along the width", {min: 2, max: 24, value: 8});
  const radios = (group, values) => values.map((value, i) => make("label", {}, make("input", {type: "radio", name: group, value, checked: i === 0, onchange: show}), value));
  const modes = radios("registration-mode", Object.keys(registrationModes).filter(mode => [registrationModes[mode].under, registrationModes[mode].over].every(name => name === null || name in slices[0])));
  const planes = radios("registration-plane", slices.map(slice => slice.across));
  const chosen = labels => labels.find(label => label.firstChild.checked).firstChild.value;
  const placeLabel = make("label", {}, "edge", place), checksLabel = make("label", {}, "squares", checks), words = make("figcaption");
  const scale = make("div", {class: "scale", role: "img", "aria-label": `colours of log-determinants from ${number(-limit, 3)} to ${number(limit, 3)}`}, make("div", {class: "bar"}),
    make("div", {class: "ticks"}, ...[-1, -0.5, 0, 0.5, 1].map(share => make("span", {}, number(share * limit, 3)))),
    make("div", {class: "ticks faint"}, ...[-1, 0, 1].map(share => make("span", {}, `det ${number(Math.exp(share * limit), 3)}`))));
  function show() {
    const mode = chosen(modes), slice = slices.find(each => each.across === chosen(planes)), {under: lower, over: upper, words: text} = registrationModes[mode];
    box.style.setProperty("--shape", slice.width / slice.height);
    under.src = slice[lower];
    under.width = slice.width;
    under.height = slice.height;
    over.hidden = upper === null;
    if (upper !== null) over.src = slice[upper];
    under.alt = `${mode}, slice ${sliceName(slice)}: ${text}`;
    over.style.clipPath = mode === "slider" ? `inset(0 0 0 ${place.value}%)` : "none";
    over.classList.toggle("checks", mode === "checkerboard");
    box.style.setProperty("--check", `${2 * under.clientWidth / checks.value}px`);
    edge.hidden = mode !== "slider";
    edge.style.left = `${under.clientWidth * place.value / 100}px`;
    edge.style.height = `${under.clientHeight}px`;
    placeLabel.hidden = mode !== "slider";
    checksLabel.hidden = mode !== "checkerboard";
    scale.hidden = mode !== "log-Jacobian";
    place.setAttribute("aria-valuetext", `${number(Number(place.value))} % of the width`);
    words.textContent = `Middle slice ${sliceName(slice)}: ${text}.` + (mode === "warped grid" ? ` The lines are ${step} voxels apart.` : "");
  }
  const drag = event => { if (event.buttons && !placeLabel.hidden) { place.value = 100 * event.offsetX / under.clientWidth; show(); } };
  box.addEventListener("pointermove", drag);
  box.addEventListener("pointerdown", drag);
  box.addEventListener("dragstart", event => event.preventDefault());
  under.addEventListener("load", show, {once: true});
  addEventListener("resize", show);
  show();
  return make("figure", {}, make("fieldset", {}, make("legend", {}, "Show"), ...modes), slices.length > 1 ? make("fieldset", {}, make("legend", {}, "Slice across"), ...planes) : null,
    box, make("fieldset", {}, placeLabel, checksLabel), scale, words);
}
function planesOf({slices}, section, hasWarp) {
  const columns = [["fixed", "fixed"], ["moving, before", "before"], ["moving, after the linear stages", "affine"], ...hasWarp ? [["moving, warped", "warped"]] : []];
  for (const slice of slices) {
    section.append(make("div", {class: "slices"}, ...columns.map(([words, name]) =>
      make("figure", {}, make("img", {src: slice[name], width: slice.width, height: slice.height, alt: `${words}, slice ${sliceName(slice)}`}), make("figcaption", {}, `${words}, across ${slice.across}`)))));
  }
}
function lossesOf(stages, title, section) {
  const sets = [];
  for (const stage of stages) {
    let first = 0;
    stage.levels.forEach((level, i) => {
      const begin = first;
      sets.push({label: level.shrink > 0 ? `${stage.name}, 1/${level.shrink}` : stage.levels.length > 1 ? `${stage.name}, ${i ? "fine" : "coarse"}` : stage.name,
        data: level.loss.map((y, k) => ({x: begin + k, y}))});
      first += level.loss.length;
    });
  }
  if (sets.length === 0) return;
  chart(`${title} of each iteration`, () => ({type: "line", data: {datasets: sets.map(set => ({...set, pointRadius: 0}))},
    options: {parsing: false, interaction: {mode: "nearest", axis: "x", intersect: false}, scales: {x: axis("iteration of the stage", {ticks: {precision: 0, maxRotation: 0}}), y: axis(title)}, plugins: {legend: {position: "top"}}}}), section);
}
// Four digits are what a reader compares; report.json has them all.
const brief = value => typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
const briefTable = (caption, headers, rows) => table(caption, headers, rows.map(row => row.map(brief)));
function numbersOf(report, section) {
  section.append(briefTable("Similarity on the grid of the fixed image", ["measure", "before", "linear", "after"],
    Object.entries(report.similarity).map(([name, values]) => [{ncc: "correlation (NCC)", mi: "mutual information", lncc: "local correlation (LNCC)"}[name] ?? name, values.before, values.affine, values.after])));
  const rows = [["overlap of the images, %", 100 * report.overlap]];
  if (report.jacobian) {
    const {min, p1, p99, max, log_sd: deviation} = report.jacobian, {mean, max: most} = report.displacement_mm, inverse = report.inverse_consistency_mm;
    rows.push(["folds", report.folds], ["smallest corner determinant", report.corner_jacobian_min], ["determinants, smallest", min], ["determinants, 1 %", p1], ["determinants, 99 %", p99], ["determinants, largest", max],
      ["standard deviation of their logarithms", deviation], ["displacement, mean (mm)", mean], ["displacement, largest (mm)", most],
      ["error of the inverse, mean (mm)", inverse.mean], ["error of the inverse, 99 % (mm)", inverse.p99], ["iterations that the guard repaired", report.repairs]);
  }
  section.append(briefTable("The map", ["number", "value"], rows));
  section.append(briefTable("Stages", ["stage", "seconds", "iterations", "last loss", "ended by"], report.stages.map(stage =>
    [stage.name, stage.seconds, stage.levels.reduce((sum, level) => sum + level.iterations, 0), stage.levels.at(-1)?.loss.at(-1), [...new Set(stage.levels.map(level => level.stopped))].join(", ")])));
  if (report.dice) section.append(briefTable("Dice overlap of each label", ["label", "before", "after"], Object.entries(report.dice).map(([label, values]) => [label, values.before, values.after])));
}
function registrationOf(content, section) {
  const {registration, commands, document: report} = content;
  for (const warning of report.warnings) section.append(make("p", {class: "error"}, `Warning: ${warning}`));
  section.append(overlayOf(registration), make("h2", {}, "Numbers"));
  numbersOf(report, section);
  section.append(make("h2", {}, "Before and after"));
  planesOf(registration, section, "jacobian" in report);
  section.append(make("h2", {}, "Loss"), make("p", {class: "faint"}, "The negative of the weighted metrics. A stage's levels follow one another, coarse to fine; each has a loss of its own grid."));
  const grid = make("div", {class: "grid"}), isDeformable = stage => stage.levels.some(level => level.shrink > 0);
  section.append(grid);
  lossesOf(report.stages.filter(stage => !isDeformable(stage)), "loss of linear stages", grid.appendChild(make("div")));
  lossesOf(report.stages.filter(isDeformable), "loss of the deformable stage", grid.appendChild(make("div")));
  section.append(make("h2", {}, "Commands"));
  for (const {words, text} of commands) section.append(make("p", {}, words), make("pre", {tabindex: 0}, make("code", {}, text)));
}
