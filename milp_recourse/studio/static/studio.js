"use strict";
// What a person's limits are is kept in the page's address (?p=...), as preferences in the files' format. Every
// move makes a new address, so that undo, reload and bookmarks are the browser's own.

const body = document.body, root = body.dataset.root, language = body.dataset.language, index = body.dataset.index;
const one = (query, inside = document) => inside.querySelector(query);
const all = (query, inside = document) => [...inside.querySelectorAll(query)];
const tab = crypto.randomUUID();

const post = (path, content = {}) => send(path, { tab, ...content });

async function send(path, content) {
  const answer = await fetch(`${root}/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(content),
  });
  const text = await answer.text();
  if (answer.ok) return text;
  const said = (() => { try { return JSON.parse(text).error; } catch { return text; } })();
  throw Object.assign(new Error(said), { status: answer.status });
}

const part = (task, content) => post(`${language}/part/${task}/${index}`, content);

function fault(error) {
  const place = one("#fault");
  place.hidden = !error || error.status === 409;
  place.textContent = error ? `${body.dataset.failed} ${error.message}` : "";
}

/** Fill a place with a part of the page. */
async function fill(place, task, content) {
  place.setAttribute("aria-busy", "true");
  try {
    place.innerHTML = await part(task, content);
    fault(null);
    return true;
  } catch (error) {
    fault(error);
    return false;
  } finally {
    place.removeAttribute("aria-busy");
  }
}

const address = (page, state, more = "") => `${root}/${language}/${page}/${index}?p=${encodeURIComponent(JSON.stringify(state))}${more}`;

/** Let every link to another page about this person hold what is set now. */
function relink(state, more = "") {
  for (const link of all("[data-page]")) link.href = address(link.dataset.page, state);
  for (const [id, page] of [["letter", "letter"], ["save", "preferences"], ["save-answers", "saved"]]) {
    const link = one(`#${id}`);
    if (link) link.href = address(page, state, more);
  }
  const other = one("[data-other]");
  other.href = location.href.replace(`${root}/${language}/`, `${root}/${other.dataset.other}/`);
}

async function reopen(input, then) {
  try {
    then(JSON.parse(await send(`data/open/${index}`, JSON.parse(await input.files[0].text()))));
  } catch (error) {
    fault(error);
  }
  input.value = "";
}

// ---- A person's limits

function limits(form) {
  let state = JSON.parse(form.dataset.state), number = 0, busy = false, waiting = false, asked = 0, timer = null;

  const fields = all("fieldset", form).map((field) => ({ field, name: field.dataset.feature, kind: field.dataset.kind }));

  const ranges = fields.filter(({ kind }) => kind === "range");
  const scales = new Map(ranges.map(({ field }) => [field, scale(one(".track", field))]));

  function read() {
    const own = { ...state, weights: { ...state.weights }, ranges: { ...state.ranges } };
    own.actionable = fields.filter(({ field }) => one(".lock", field).checked).map(({ name }) => name);
    let conditions = [...(state.conditions || [])];
    for (const { field, name, kind } of fields) {
      if (kind === "range" || kind === "order") {
        const [low, high] = [".low", ".high"].map((end) => one(`.number${end}`, field));
        const ends = kind === "order" ? [low.options[0].value, low.options[low.options.length - 1].value]
          : [one(".track", field).dataset.least, one(".track", field).dataset.most];
        const open = Number(low.value) <= Number(ends[0]) && Number(high.value) >= Number(ends[1]);
        if (open) delete own.ranges[name];
        else own.ranges[name] = [Number(low.value), Number(high.value)];
      }
      if (kind === "labels") {
        const boxes = all(".box", field), kept = boxes.filter((box) => box.checked).map((box) => box.value);
        conditions = conditions.filter((c) => !(c.feature === name && c.of === "counterfactual" && c.in));
        if (kept.length < boxes.length) conditions.push({ feature: name, of: "counterfactual", in: kept });
      }
      const stop = one(".stop", field), weight = field.dataset.moved ? Number(field.dataset.usual) * Number(stop.dataset.stops.split(" ")[stop.value]) : Number(field.dataset.weight);
      if (weight === 1) delete own.weights[name];
      else own.weights[name] = weight;
    }
    if (conditions.length) own.conditions = conditions;
    else delete own.conditions;
    return own;
  }

  async function ask() {
    const mine = ++number;
    busy = true; waiting = false; asked = performance.now();
    one("#shaded").hidden = true;
    const open = one(".proof[open]") !== null;
    const done = await fill(one("#answer"), "answer", { preferences: state });
    if (open) one(".proof").open = true;
    if (mine !== number) return;
    busy = false;
    body.dataset.took = performance.now() - asked;
    body.dataset.answered = mine;
    one("#progress").replaceChildren();
    if (done) mark();
    if (waiting) return ask();
    clearTimeout(timer);
    timer = setTimeout(() => fill(one("#why"), "why", { preferences: state }).then(() => shade(mine)), 300);
  }

  /** At most one question is under way; one that takes long is replaced by the next. */
  function again() {
    if (busy && performance.now() - asked < 250) { waiting = true; setTimeout(() => waiting && ask(), 260); }
    else ask();
  }

  function moved(push) {
    state = read();
    if (push) history.pushState(null, "", address("person", state));
    else history.replaceState(null, "", address("person", state));
    relink(state);
    again();
  }

  function place(rect, field, from, to = from) {
    const at = (value) => Math.min(100, Math.max(0, 100 * scales.get(field).share(value)));
    rect.setAttribute("x", Math.min(at(from), 99.3));
    rect.setAttribute("width", Math.max(0.7, at(to) - at(from)));
  }

  function mark() {
    const marks = JSON.parse(one("#marks").dataset.marks);
    for (const { field, name } of ranges) {
      const gets = one(".gets", field);
      one(".works", field).setAttribute("width", 0);
      if (name in marks) place(gets, field, marks[name]);
      else gets.setAttribute("width", 0);
      place(one(".kept", field), field, Number(one(".number.low", field).value), Number(one(".number.high", field).value));
    }
  }

  /** The range that works, where it is proven; nothing is shaded while it is not known. */
  async function shade(mine) {
    const found = await post(`data/region/${index}`, { preferences: state }).then(JSON.parse).catch(() => null);
    if (mine !== number) return;
    const box = found ? found.box : {};
    one("#shaded").hidden = !ranges.some(({ name }) => name in box);
    for (const { field, name } of ranges.filter((f) => f.name in box)) place(one(".works", field), field, box[name].low, box[name].high);
  }

  for (const { field, kind } of fields) {
    const is = one(".is", field), stop = one(".stop", field), lock = one(".lock", field);
    if (is && one(".track", field).dataset.now) place(is, field, Number(one(".track", field).dataset.now));
    if (kind === "range") {
      for (const end of ["low", "high"]) {
        const slider = one(`.end.${end}`, field), box = one(`.number.${end}`, field), other = one(`.end.${end === "low" ? "high" : "low"}`, field);
        slider.addEventListener("input", () => {
          if (end === "low" ? Number(slider.value) > Number(other.value) : Number(slider.value) < Number(other.value)) slider.value = other.value;
          box.value = slider.ariaValueText = scales.get(field).value(slider);
          moved(false);
        });
        slider.addEventListener("change", () => moved(true));
        box.addEventListener("change", () => { scales.get(field).set(slider, box.value); moved(true); });
        scales.get(field).set(slider, box.value);
      }
    }
    for (const choice of all("select, .box", field)) choice.addEventListener("change", () => moved(true));
    lock.addEventListener("change", () => { field.classList.toggle("locked", !lock.checked); moved(true); });
    stop.addEventListener("input", () => {
      field.dataset.moved = "yes";
      const words = stop.dataset.words.split("|")[stop.value];
      stop.setAttribute("aria-valuetext", words);
      one("output", field).textContent = words;
      moved(false);
    });
    stop.addEventListener("change", () => moved(true));
  }

  const go = (own) => location.assign(address("person", own));
  one("#undo").addEventListener("click", () => history.back());
  one("#reset").addEventListener("click", () => go(JSON.parse(form.dataset.start)));
  one("#open").addEventListener("change", (event) => reopen(event.target, (found) =>
    found.answers ? location.assign(address("interview", found.preferences, `&answers=${found.answers.join(",")}`)) : go(found.preferences)));
  window.addEventListener("popstate", () => location.reload());
  form.addEventListener("submit", (event) => event.preventDefault());

  document.addEventListener("click", (event) => {
    const drop = event.target.closest("[data-drop]"), asks = event.target.closest("[data-ask]");
    if (drop) go(without(state, JSON.parse(drop.dataset.drop)));
    if (asks) {
      one(`#${asks.dataset.into}`).textContent = asks.dataset.wait;
      fill(one(`#${asks.dataset.into}`), asks.dataset.ask, { preferences: state }).then(() => one(`#${asks.dataset.into}`).scrollIntoView({ block: "nearest" }));
    }
    if (event.target.closest("[data-stop]")) post(`data/stop/${index}`);
  });
  setInterval(() => {
    if (busy && performance.now() - asked > 700) part("progress").then((html) => { if (busy) one("#progress").innerHTML = html; }).catch(() => {});
  }, 500);
  relink(state);
  ask();
}

/** How a track's values lie on its sliders: evenly, or around the person's value in ever larger steps. */
function scale(track) {
  const [least, most, curve, now] = ["least", "most", "curve", "now"].map((name) => Number(track.dataset[name]));
  const bend = (value) => (curve ? Math.asinh((value - now) / curve) : value), unbend = (at) => now + curve * Math.sinh(at);
  const share = (value) => (bend(value) - bend(least)) / (bend(most) - bend(least));
  function value(slider) {
    if (!curve) return slider.value;
    const part = slider.value / 1000, exact = unbend(bend(least) + part * (bend(most) - bend(least)));
    const whole = Number.isInteger(Number(track.dataset.step)) ? Math.round(exact) : Number(exact.toPrecision(3));
    return String(part === 0 ? least : part === 1 ? most : Math.min(most, Math.max(least, whole)));
  }
  function set(slider, to) {
    if (curve) Object.assign(slider, { min: 0, max: 1000, step: 1, value: Math.round(1000 * share(Number(to))) });
    else slider.value = to;
    slider.ariaValueText = to;
  }
  return { share, value, set };
}

/** Preferences without some limits, or with one end of a range moved: [id, ...] or ["low:F", to]. */
function without(state, drop) {
  const own = structuredClone(state), [kind, name] = [drop[0].slice(0, drop[0].indexOf(":")), drop[0].slice(drop[0].indexOf(":") + 1)];
  if (kind === "low" || kind === "high") {
    own.ranges[name][kind === "low" ? 0 : 1] = drop[1];
    return own;
  }
  const gone = new Set();
  for (const id of drop) {
    const of = id.slice(0, id.indexOf(":")), rest = id.slice(id.indexOf(":") + 1);
    if (of === "mask") own.actionable.push(rest);
    if (of === "range") delete own.ranges[rest];
    if (of === "condition") gone.add(Number(rest));
  }
  if (own.conditions) own.conditions = own.conditions.filter((_, k) => !gone.has(k));
  return own;
}

// ---- Other ways, and the dialogue

function dialogue(place) {
  const state = JSON.parse(place.dataset.state), query = new URLSearchParams(location.search);
  const answers = (query.get("answers") || "").split(",").filter(Boolean);
  const to = (given) => {
    const more = given.length ? `&answers=${given.join(",")}` : "";
    history.pushState(null, "", address("interview", state, more));
    answers.splice(0, answers.length, ...given);
    show();
  };
  async function show() {
    relink(state, answers.length ? `&answers=${answers.join(",")}` : "");
    one("#back-answer").disabled = !answers.length;
    if (await fill(place, "interview", { preferences: state, answers: [...answers] })) one("h1", place).tabIndex = -1;
  }
  place.addEventListener("click", (event) => {
    const told = event.target.closest("[data-tell]");
    if (told && !place.hasAttribute("aria-busy")) to([...answers, told.dataset.tell]);
  });
  one("#back-answer").addEventListener("click", () => to(answers.slice(0, -1)));
  one("#open").addEventListener("change", (event) => reopen(event.target, (found) =>
    location.assign(address("interview", found.preferences, `&answers=${(found.answers || []).join(",")}`))));
  window.addEventListener("popstate", () => location.reload());
  show();
}

/** Answers side by side, each by its limits, as long as this tab is open. */
function pinned(place) {
  const key = `${root} ${index}`, kept = () => JSON.parse(sessionStorage.getItem(key) || "[]");
  async function show() {
    try {
      const cards = await Promise.all(kept().map((own) => part("pinned", { tab: "", preferences: JSON.parse(own) })));
      one(".plans", place).innerHTML = cards.join("");
      place.hidden = !cards.length;
    } catch (error) {
      fault(error);
    }
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-pin], [data-unpin]");
    if (!button) return;
    const { pin, unpin } = button.dataset, others = kept().filter((own) => own !== (pin || unpin));
    sessionStorage.setItem(key, JSON.stringify(pin ? [...others, pin].slice(-4) : others));
    show().then(() => pin && place.scrollIntoView({ block: "nearest" }));
  });
  show();
}

// ---- The people

function people(rows) {
  const filter = one("#filter"), kind = one("#kind"), group = one("#group"), counts = one("#counts");
  function show() {
    const words = filter.value.trim().toLowerCase(), kinds = kind.value.split(" ").filter(Boolean);
    for (const row of rows.rows) row.hidden = !row.textContent.toLowerCase().includes(words) || (kinds.length > 0 && !kinds.includes(row.dataset.kind));
    if (!group) return;
    counts.hidden = !group.value;
    const table = new Map();
    for (const row of rows.rows) if (row.dataset.kind) {
      const value = JSON.parse(row.dataset.groups)[group.value] ?? "–", counted = table.get(value) || [0, 0, 0];
      counted[["proven", "unproven", "accepted"].includes(row.dataset.kind) ? 0 : row.dataset.kind === "impossible" ? 1 : 2] += 1;
      table.set(value, counted);
    }
    const line = (cells, tag) => { const tr = document.createElement("tr"); for (const text of cells) { const cell = document.createElement(tag); cell.textContent = text; if (tag === "th") cell.scope = "col"; tr.append(cell); } return tr; };
    one("thead", counts).replaceChildren(line([group.value, ...counts.dataset.names.split("|")], "th"));
    one("tbody", counts).replaceChildren(...[...table].sort().map(([value, counted]) => line([value, ...counted], "td")));
  }
  async function more() {
    try {
      const box = document.createElement("div");
      box.innerHTML = await part("people");
      const found = one("tbody", box);
      [...found.rows].forEach((row, k) => {
        const old = rows.rows[k], held = old && old.contains(document.activeElement);
        if (!old) rows.append(row);
        else if (old.dataset.kind !== row.dataset.kind) old.replaceWith(row);
        if (held) one("a", rows.rows[k]).focus();
      });
      one("#plots").replaceChildren(one(".plots", box));
      one("#done").textContent = found.dataset.said;
      show();
      if (!found.dataset.complete) setTimeout(more, 1000);
    } catch (error) {
      fault(error);
    }
  }
  for (const control of [filter, kind, group].filter(Boolean)) control.addEventListener("input", show);
  one("#filters").addEventListener("submit", (event) => event.preventDefault());
  const jump = one("#jump");
  if (jump) jump.addEventListener("submit", (event) => { event.preventDefault(); location.assign(`${root}/${language}/person/${one("input", jump).value}`); });
  more();
}

if (one("#pins")) pinned(one("#pins"));
if (one("#limits")) limits(one("#limits"));
if (one("#ways")) { const place = one("#ways"), state = JSON.parse(place.dataset.state); relink(state); fill(place, "ways", { preferences: state }); }
if (one("#interview")) dialogue(one("#interview"));
if (one("#rows")) people(one("#rows"));
