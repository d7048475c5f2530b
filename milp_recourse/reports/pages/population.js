"use strict";
// The table of a population's page: sort, filter, page and open, drawn one page at a time.
// Text reaches the document through textContent only.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [ID, OUTCOME, STATUS, COST, BOUND, GAP, PROOF, CONFIRMED, MESSAGE, SECONDS, HEADLINE, ASSURANCE, BEFORE, MOVED,
    LIMITS, GROUP] = Array(16).keys();
  const [FEATURE, AFTER, CAUSE, SHARE, SAID] = Array(5).keys();
  const get = (id) => document.getElementById(id);
  const text = (k) => data.texts[k];
  const natural = new Intl.Collator("en", { numeric: true });

  function el(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children) if (child !== null && child !== undefined) made.append(child);
    return made;
  }

  function breakable(name) { // between its words a long name may go on in a new line, as html.py allows
    const parts = String(name ?? "").split(/(\s+)/).flatMap((word) => (word.length < 12 || !/\p{L}/u.test(word)
      || Number.isFinite(Number(word.replaceAll(",", ""))) ? [word]
      : word.split(/(?<=[^\p{L}\p{N}\s])(?=[\p{L}\p{N}_])|(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z])(?=[0-9])/u).flatMap((part, k) => (k ? [el("wbr"), part] : [part]))));
    const made = document.createDocumentFragment();
    made.append(...parts);
    return made;
  }
  const called = (feature) => breakable(data.names[feature]);
  const unit = (feature, v) => (data.units[feature] && typeof v === "number" ? `\u00a0${data.units[feature]}` : "");

  // -- numbers, as milp_recourse.reports.pages.values shows them ------------------------------

  const trimmed = (s) => (s.includes(".") ? s.replace(/\.?0+$/, "") : s);
  function grouped(s) {
    const [, sign, whole, rest] = /^(-?)(\d+)(.*)$/.exec(s);
    return sign + (whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, ",") : whole) + rest;
  }
  function shown(v, precision = 4) {
    if (v === null || v === undefined) return "missing";
    if (typeof v === "string") return v;
    const size = Math.abs(v);
    if (Number.isInteger(v) && size < 1e15) return grouped(String(v === 0 ? 0 : v));
    const [mantissa, exponent] = v.toExponential(precision - 1).split("e");
    if (size < 1e-4 || size >= 1e15) return `${trimmed(mantissa)}e${Number(exponent)}`;
    const adjusted = Number(v.toExponential().split("e")[1]);
    return grouped(trimmed(v.toFixed(Math.max(size >= 1000 ? 1 : 0, precision - 1 - adjusted))));
  }
  function said(v) {
    if (typeof v !== "number" || Number.isInteger(v)) return shown(v);
    return Math.abs(v) < 1e-6 || Math.abs(v) >= 1e15 ? String(v).replace("e+", "e") : grouped(String(v));
  }
  function beside(a, b) {
    for (const precision of [4, 6, 9, 12, 17]) {
      if (a === b || shown(a, precision) !== said(b)) return [shown(a, precision), said(b)];
    }
    return [String(a), said(b)];
  }
  function percent(share) {
    if (share <= 0 || share >= 1) return share <= 0 ? "0%" : "100%";
    const p = 100 * share;
    return `${trimmed(p >= 10 && p <= 90 ? p.toFixed(0) : Math.min(Math.max(p, 0.1), 99.9).toFixed(1))}%`;
  }
  function value(v, as = shown(v), name = null) {
    const exact = v === null || v === undefined ? "missing" : String(v);
    const kind = v === null || v === undefined ? "none" : typeof v === "number" ? "num" : null;
    return el("span", { class: [name, kind].filter(Boolean).join(" ") || null, title: exact === as ? null : exact }, as);
  }

  // -- what is sorted and searched ------------------------------------------------------------

  const actions = (p) => p[MOVED].filter((m) => m[CAUSE] === "action" || m[CAUSE] === "held");
  const columns = [
    { name: "Person", key: (p) => p[ID] },
    { name: "Answer", key: (p) => p[OUTCOME] },
    { name: "Cost", key: (p) => p[COST], number: true },
    { name: "Changes", key: (p) => (p[COST] === null ? null : actions(p).length) },
    { name: "Proof", key: (p) => text(p[PROOF]) },
    { name: "Confirmed", key: (p) => (p[CONFIRMED] === null ? null : p[CONFIRMED] ? 0 : 1) },
  ];
  function compare(a, b) {
    if (typeof a === "string" || typeof b === "string") return natural.compare(a, b);
    return a - b;
  }
  const haystacks = new Array(data.people.length);
  function haystack(k) {
    if (haystacks[k] === undefined) {
      const p = data.people[k];
      const moved = p[MOVED].flatMap((m) => [data.features[m[FEATURE]], data.names[m[FEATURE]], String(m[AFTER])]);
      const group = p[GROUP].map((g, j) => `${data.groups[j]}=${text(g)}`);
      haystacks[k] = [p[ID], data.outcomes[p[OUTCOME]][0], p[STATUS], text(p[MESSAGE]) || "", text(p[PROOF]) || "",
        ...p[BEFORE].map(String), ...moved, ...group].join("\n").toLowerCase();
    }
    return haystacks[k];
  }

  const state = { column: null, down: false, page: 0, size: 50, words: [], outcomes: new Set(), confirmed: "any", open: new Set() };
  let found = [];

  function select() {
    const asked = { yes: true, no: false, "not asked": null };
    found = [];
    for (let k = 0; k < data.people.length; k++) {
      const p = data.people[k];
      if (state.outcomes.size && !state.outcomes.has(p[OUTCOME])) continue;
      if (state.confirmed !== "any" && p[CONFIRMED] !== asked[state.confirmed]) continue;
      if (state.confirmed === "not asked" && p[COST] === null) continue; // there was nothing to ask about
      if (state.words.length) {
        const hay = haystack(k);
        if (!state.words.every((word) => hay.includes(word))) continue;
      }
      found.push(k);
    }
    if (state.column !== null) {
      const key = columns[state.column].key;
      const keys = data.people.map(key);
      const sign = state.down ? -1 : 1;
      found.sort((a, b) => {
        const x = keys[a], y = keys[b];
        if (x === null || y === null) return x === y ? a - b : x === null ? 1 : -1; // nothing to compare comes last
        return sign * compare(x, y) || a - b;
      });
    }
  }

  // -- drawing --------------------------------------------------------------------------------

  function moves(p) {
    const all = actions(p);
    if (p[COST] === null) return el("span", { class: "note" }, "");
    if (!all.length) return el("span", { class: "note" }, "none");
    const list = all.slice(0, 4).map((m) => {
      const before = p[BEFORE][m[FEATURE]], after = m[AFTER];
      const numbers = typeof before === "number" && typeof after === "number";
      const sign = m[CAUSE] === "held" ? "held" : !numbers ? `→ ${shown(after)}` : after > before ? "▲" : "▼";
      return el("span", null, called(m[FEATURE]), " ", el("small", null, sign));
    });
    if (all.length > 4) list.push(el("span", { class: "note" }, `and ${all.length - 4} more`));
    return el("span", { class: "moves" }, ...list);
  }
  function pill(kind) {
    return el("span", { class: `pill ${data.outcomes[kind][1]}`, title: data.outcomes[kind][2] }, data.outcomes[kind][0]);
  }
  function confirmed(p) {
    if (p[CONFIRMED] === null) return el("span", { class: "note" }, p[COST] === null ? "" : "not asked");
    return p[CONFIRMED] ? el("span", null, "yes") : el("span", { class: "no" }, "no");
  }
  function row(k) {
    const p = data.people[k], open = state.open.has(k);
    const opener = el("button", { type: "button", class: "opener", "aria-expanded": String(open) }, breakable(p[ID]));
    const made = el("tr", { class: "row", "data-person": k },
      el("th", { scope: "row" }, opener),
      el("td", { class: "values tight" }, pill(p[OUTCOME])),
      el("td", { class: "number tight paid", "data-label": p[COST] === null ? null : "Cost" }, p[COST] === null ? null : value(p[COST])),
      el("td", { class: "moved" }, moves(p)),
      el("td", { class: "tight proof", "data-label": "Proof" }, text(p[PROOF]) || "none"),
      el("td", { class: "tight word", "data-label": p[COST] === null && p[CONFIRMED] === null ? null : "Confirmed" }, confirmed(p)));
    made.addEventListener("click", (event) => {
      if (!String(window.getSelection())) toggle(k, event.target === opener);
    });
    return made;
  }
  function change(p, feature, m) {
    const before = p[BEFORE][feature], limits = data.limits[p[LIMITS]][feature];
    const still = !m || m[CAUSE] === "held";
    const both = still ? [shown(before), ""] : beside(before, m[SAID]);
    const step = !still && typeof before === "number" && typeof m[SAID] === "number" ? m[SAID] - before : 0;
    const values = still ? [value(before, shown(before) + unit(feature, before))] : [value(before, both[0]), el("span", { class: "arrow" }, "→"),
      value(m[AFTER], both[1] + unit(feature, m[AFTER]), "after"),
      step ? el("span", { class: "by" }, (step > 0 ? "+" : "-") + shown(Math.abs(step))) : null];
    let share = null;
    if (m && m[SHARE] !== null && m[CAUSE] !== "effect") {
      const part = Math.min(Math.max(m[SHARE], 0), 1), bar = el("i");
      bar.style.width = `${(100 * part).toFixed(2)}%`;
      share = el("div", { class: "share" }, el("span", { class: "track" }, bar), el("span", { title: m[SHARE] }, percent(part)));
    }
    const allowed = limits === null ? null : text(limits);
    return el("tr", null, el("th", { scope: "row" }, called(feature)), el("td", { class: "values" }, ...values),
      el("td", { class: "full" }, share),
      el("td", { class: "full note", "data-label": allowed ? "May be set to" : null }, allowed));
  }
  function detail(k) {
    const p = data.people[k], moved = new Map(p[MOVED].map((m) => [m[FEATURE], m]));
    const all = [...data.features.keys()], lever = (f) => data.limits[p[LIMITS]][f] !== null;
    const caused = (cause) => all.filter((f) => moved.has(f) && moved.get(f)[CAUSE] === cause);
    const stay = all.filter((f) => !moved.has(f));
    const parts = [["To change", caused("action")], ["To hold", caused("held")], ["Follows by itself", caused("effect")],
      [p[COST] === null ? "May change" : "Could have changed, need not", stay.filter(lever)],
      ["Stays as it is", stay.filter((f) => !lever(f))]];
    const table = (names, some) => el("table", { class: "wide changes" },
      el("thead", null, el("tr", null, ...names.map((name) => (name ? el("th", { scope: "col" }, name) : el("td"))))),
      ...some.map(([name, list]) => el("tbody", null,
        el("tr", { class: "part" }, el("th", { colspan: 4, scope: "colgroup" }, `${name} (${list.length})`)),
        ...list.map((f) => change(p, f, moved.get(f))))));
    const [changed, idle] = [parts.slice(0, 3), parts.slice(3)].map((some) => some.filter(([, list]) => list.length));
    const tables = [];
    if (changed.length) tables.push(table(["Feature", "Now → after", "Share of the cost", "May be set to"], changed));
    if (idle.length) tables.push(table(["Feature", "Now", "", "May be set to"], idle));
    if (tables.length > 1) {
      const names = idle.map(([name, list], k) => `${k ? name.toLowerCase() : name} (${list.length})`).join(", ");
      tables.push(el("details", null, el("summary", null, names), tables.pop()));
    }
    const numbers = [["cost", COST], ["lower bound", BOUND], ["gap", GAP]].filter(([, at]) => p[at] !== null)
      .map(([name, at]) => el("span", null, `${name} `, value(p[at]), " · "));
    const seconds = p[SECONDS] === null ? "" : ` · ${shown(Number(p[SECONDS].toFixed(3)))} s`;
    const inside = el("div", { class: "inside" },
      el("h3", null, breakable(text(p[HEADLINE]))), el("p", null, text(p[ASSURANCE]), p[CONFIRMED] ? " Confirmed by the model itself." : ""),
      text(p[MESSAGE]) ? el("p", { class: "note" }, text(p[MESSAGE])) : null,
      el("p", { class: "note" }, ...numbers, `status ${p[STATUS]}${seconds}`),
      p[GROUP].length ? el("p", { class: "note" }, p[GROUP].map((g, j) => `${data.groups[j]}: ${text(g) ?? "not stated"}`).join(", ")) : null,
      ...tables);
    return el("tr", { class: "detail" }, el("td", { colspan: columns.length }, inside));
  }

  const body = el("tbody");
  const heads = columns.map((column, k) => {
    const button = el("button", { type: "button" }, column.name);
    button.addEventListener("click", () => sort(k, state.column === k && !state.down));
    return el("th", { scope: "col", class: column.number ? "number" : null }, button);
  });
  const order = get("sort"); // for narrow screens, where the heads are hidden
  order.append(el("option", { value: "" }, "as given"), ...columns.flatMap((column, k) => [
    el("option", { value: `${k} up` }, `${column.name} ↑`), el("option", { value: `${k} down` }, `${column.name} ↓`)]));
  order.addEventListener("change", () => {
    const [k, way] = order.value.split(" ");
    sort(k === "" ? null : Number(k), way === "down");
  });
  function sort(column, down) {
    Object.assign(state, { column, down, page: 0 });
    order.value = column === null ? "" : `${column} ${down ? "down" : "up"}`;
    refresh();
  }
  get("people").append(el("table", { class: "wide people" }, el("thead", null, el("tr", null, ...heads)), body));

  function draw(all = false) {
    const pages = Math.max(1, Math.ceil(found.length / state.size));
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    const first = all ? 0 : state.page * state.size;
    const here = all ? found : found.slice(first, first + state.size);
    body.replaceChildren(...here.flatMap((k) => (state.open.has(k) ? [row(k), detail(k)] : [row(k)])));
    if (!here.length) body.append(el("tr", null, el("td", { colspan: columns.length, class: "note full" }, "Nobody matches.")));
    heads.forEach((head, k) => {
      if (k === state.column) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const range = found.length ? `${grouped(String(first + 1))} to ${grouped(String(first + here.length))} of ` : "";
    const whole = grouped(String(data.people.length));
    get("count").textContent = `${range}${grouped(String(found.length))}${found.length < data.people.length ? ` (everybody: ${whole})` : ""}`;
    get("place").textContent = `page ${state.page + 1} of ${pages}`;
    get("back").disabled = state.page === 0;
    get("next").disabled = state.page >= pages - 1;
  }
  function refresh() {
    select();
    draw();
  }
  function toggle(k, focus) {
    if (!state.open.delete(k)) state.open.add(k);
    draw();
    if (focus) body.querySelector(`tr[data-person="${k}"] .opener`).focus();
  }
  function goto(k) {
    const at = found.indexOf(k);
    if (at < 0) return;
    state.page = Math.floor(at / state.size);
    state.open.add(k);
    draw();
    body.querySelector(`tr[data-person="${k}"]`).scrollIntoView({ block: "start" });
  }
  function linked() { // report.html#person=ID opens that person
    const wanted = /^#person=(.*)$/.exec(location.hash);
    if (!wanted) return;
    let id = wanted[1];
    try { id = decodeURIComponent(id); } catch { return; }
    goto(data.people.findIndex((p) => p[ID] === id));
  }

  // -- controls -------------------------------------------------------------------------------

  let waiting = 0;
  get("search").addEventListener("input", (event) => {
    clearTimeout(waiting);
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    waiting = setTimeout(() => { state.words = words; state.page = 0; refresh(); }, 120);
  });
  get("confirmed").addEventListener("change", (event) => { state.confirmed = event.target.value; state.page = 0; refresh(); });
  get("size").addEventListener("change", (event) => { state.size = Number(event.target.value); state.page = 0; draw(); });
  get("back").addEventListener("click", () => { state.page -= 1; draw(); });
  get("next").addEventListener("click", () => { state.page += 1; draw(); });
  for (const chip of document.querySelectorAll(".chip")) {
    chip.addEventListener("click", () => {
      const kind = Number(chip.dataset.outcome);
      if (!state.outcomes.delete(kind)) state.outcomes.add(kind);
      chip.setAttribute("aria-pressed", String(state.outcomes.has(kind)));
      state.page = 0;
      refresh();
    });
  }
  const group = get("group");
  if (group) {
    const blocks = document.querySelectorAll(".group-block");
    const choose = () => blocks.forEach((block) => { block.hidden = block.dataset.group !== group.value; });
    group.addEventListener("change", choose);
    group.closest(".tools").hidden = false;
    document.querySelectorAll(".group-name").forEach((name) => { name.hidden = true; });
    choose();
  }
  const MOST_PRINTED = 2000;
  window.addEventListener("beforeprint", () => { if (found.length <= MOST_PRINTED) draw(true); });
  window.addEventListener("afterprint", () => draw());
  window.addEventListener("hashchange", linked);

  get("table").hidden = false;
  refresh();
  linked();
})();
