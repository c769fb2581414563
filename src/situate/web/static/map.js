// The cluster as a map: a column for each zone, a cell for each node, its colour how full it is. Drawn on a canvas as
// large as the window, whatever the number of nodes: zooming flows the cells anew instead of magnifying them.

import { amounts, h, meter, percent, plural, replace, say, step, whyLink } from "./dom.js";
import { get } from "./api.js";

const CORDONED = 1;
const NOT_READY = 2;
const TAINTED = 4;
const LEAST_CELL = 5;
const MOST_CELL = 132;
const LEAST_COLUMN = 250;
const GAP = 20;
const HEAD = 30;
const ROWS_OF_TABLE = 300;

export function map({ root, go, query }) {
  const nodes = { names: [], zone: [], state: [], shares: [], used: null, resources: [], zones: [] };
  let by = query.get("by") || "scarcest";
  let wanted = query.get("q") || "";
  let zoom = 1;
  let layout = null;
  let selected = query.get("node") || "";
  let hovered = -1;
  let frame = 0;
  let blocked = false;
  let colours = null;
  let table = query.get("as") === "table";

  // ── the parts of the page ───────────────────────────────────────────────────────────────────────────────────────

  const search = h("input", {
    type: "search", id: "search", placeholder: "Find a node or zone", autocomplete: "off", spellcheck: "false", value: wanted,
    "aria-label": "Find a node or zone",
    oninput: () => { wanted = search.value; remember(); draw(); },
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      const found = order().find((row) => matches(row));
      if (found === undefined) say("no node matches");
      else { select(nodes.names[found]); reveal(found); }
    },
  });
  const choice = h("select", { id: "by", "aria-label": "Colour by", onchange: () => { by = choice.value; remember(); draw(); } });
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Map of the nodes; the table shows the same" });
  const tip = h("div", { class: "tip", hidden: true });
  const spacer = h("div", { class: "spacer" });
  const scroller = h("div", { class: "scroller" }, spacer, canvas, tip);
  const listing = h("div", { class: "listing", hidden: true });
  const panel = h("aside", { class: "panel", "aria-label": "The selected node", hidden: true });
  const measured = h("span", { class: "sign", hidden: true }, h("i", { class: "line" }), "used");
  const toggle = h("button", { type: "button", "aria-pressed": String(table), onclick: () => { table = !table; remember(); draw(); } }, "Table");
  const tools = h(
    "div",
    { class: "tools" },
    search,
    h("label", {}, h("span", {}, "Colour by"), choice),
    h("div", { class: "group", role: "group", "aria-label": "Zoom" },
      h("button", { type: "button", "aria-label": "Smaller cells", onclick: () => zoomTo(zoom / 1.5) }, "−"),
      h("button", { type: "button", "aria-label": "All in view", onclick: () => zoomTo(1) }, "Fit"),
      h("button", { type: "button", "aria-label": "Larger cells", onclick: () => zoomTo(zoom * 1.5) }, "+")),
    toggle,
    legend(),
  );
  replace(root, h("h1", { class: "unseen" }, "Map of the cluster"), tools, h("div", { class: "stage" }, h("div", { class: "left" }, scroller, listing), panel));

  function legend() {
    const steps = [["0", "empty"], ["1", "up to 25 %"], ["2", "up to 50 %"], ["3", "up to 75 %"], ["4", "up to 90 %"], ["5", "up to 100 %"], ["6", "full"]];
    return h(
      "div",
      { class: "legend", role: "img", "aria-label": "Lighter cells have more room left; orange cells are full. Striped: not ready. Corner: cordoned." },
      h("span", {}, "empty"),
      steps.map(([number, text]) => h("i", { data: { step: number }, title: text })),
      h("span", {}, "full"),
      h("span", { class: "sign" }, h("i", { class: "striped" }), "not ready"),
      h("span", { class: "sign" }, h("i", { class: "corner" }), "cordoned"),
      measured,
    );
  }

  function remember() {
    const kept = new URLSearchParams();
    if (wanted) kept.set("q", wanted);
    if (by !== "scarcest") kept.set("by", by);
    if (selected) kept.set("node", selected);
    if (table) kept.set("as", "table");
    history.replaceState({}, "", `/map${kept.size ? `?${kept}` : ""}`);
  }

  // ── what came ───────────────────────────────────────────────────────────────────────────────────────────────────

  function take(update) {
    const every = !update.rows;
    const zones = update.zones.map(zoneNumber);
    if (every) {
      nodes.names = update.names;
      nodes.state = update.state;
      nodes.zone = update.zone.map((at) => zones[at]);
      nodes.shares = update.shares;
      nodes.used = update.used || null;
      nodes.resources = update.resources;
      measured.hidden = !nodes.used;
      replace(choice, ["scarcest", ...nodes.resources, ...(nodes.used ? ["used cpu", "used memory"] : [])].map((name) => h("option", { value: name }, name)));
      if (![...choice.options].some((one) => one.value === by)) by = "scarcest";
      choice.value = by;
    } else {
      update.rows.forEach((row, at) => {
        nodes.names[row] = update.names[at];
        nodes.state[row] = update.state[at];
        nodes.zone[row] = zones[update.zone[at]];
        update.shares.forEach((column, which) => { nodes.shares[which][row] = column[at]; });
        if (update.used && nodes.used) update.used.forEach((column, which) => { nodes.used[which][row] = column[at]; });
      });
    }
    nodes.generation = (nodes.generation || 0) + (every || update.names.some((name, at) => name !== (layout && layout.names[update.rows[at]])) ? 1 : 0);
    draw();
    if (selected && (every || update.names.includes(selected))) inspect();
  }

  function zoneNumber(name) {
    const found = nodes.zones.indexOf(name);
    return found >= 0 ? found : nodes.zones.push(name) - 1;
  }

  function share(row) {
    const at = nodes.resources.indexOf(by);
    if (at >= 0) return nodes.shares[at][row];
    if (by === "used cpu") return nodes.used ? nodes.used[0][row] : -1;
    if (by === "used memory") return nodes.used ? nodes.used[1][row] : -1;
    let most = -1;
    for (const column of nodes.shares) if (column[row] > most) most = column[row];
    return most;
  }

  function matches(row) {
    if (!wanted) return true;
    const text = wanted.toLowerCase();
    return nodes.names[row].toLowerCase().includes(text) || nodes.zones[nodes.zone[row]].toLowerCase().includes(text);
  }

  const order = () => (layout ? layout.order : []);

  // ── layout ──────────────────────────────────────────────────────────────────────────────────────────────────────

  function arranged(width, height) {
    const members = nodes.zones.map(() => []);
    nodes.names.forEach((name, row) => { if (name) members[nodes.zone[row]].push(row); });
    const shown = nodes.zones.map((_, zone) => zone).filter((zone) => members[zone].length).sort((a, b) => compare(nodes.zones[a], nodes.zones[b]));
    for (const zone of shown) members[zone].sort((a, b) => compare(nodes.names[a], nodes.names[b]));
    const columns = Math.max(1, Math.min(shown.length, Math.floor((width + GAP) / (LEAST_COLUMN + GAP)) || 1));
    const inner = Math.floor((width - GAP * (columns - 1)) / columns);
    const tall = (cell) => {
      let y = 0;
      for (let first = 0; first < shown.length; first += columns) {
        const most = Math.max(...shown.slice(first, first + columns).map((zone) => members[zone].length));
        y += HEAD + Math.ceil(most / Math.max(1, Math.floor(inner / cell))) * cell + GAP;
      }
      return y;
    };
    let least = LEAST_CELL;
    let most = Math.min(MOST_CELL, inner);
    while (most - least > 0.5) {
      const middle = (least + most) / 2;
      if (tall(middle) <= height) least = middle;
      else most = middle;
    }
    const cell = Math.max(LEAST_CELL, Math.min(MOST_CELL, Math.floor(least * zoom)));
    const across = Math.max(1, Math.floor(inner / cell));
    const wide = Math.min(inner / across, cell * 1.45); // cells fill their column, without growing taller
    const made = { cell, wide, across, x: new Float64Array(nodes.names.length).fill(-1), y: new Float64Array(nodes.names.length), zones: [], order: [], names: nodes.names.slice(), columns };
    let y = 0;
    for (let first = 0; first < shown.length; first += columns) {
      let deepest = 0;
      shown.slice(first, first + columns).forEach((zone, column) => {
        const left = column * (inner + GAP);
        made.zones.push({ zone, x: left, y, width: inner, rows: members[zone] });
        members[zone].forEach((row, at) => {
          made.x[row] = left + (at % across) * wide;
          made.y[row] = y + HEAD + Math.floor(at / across) * cell;
          made.order.push(row);
        });
        deepest = Math.max(deepest, Math.ceil(members[zone].length / across) * cell);
      });
      y += HEAD + deepest + GAP;
    }
    made.height = Math.max(y - GAP, 1);
    return made;
  }

  const compare = (a, b) => a.localeCompare(b, "en", { numeric: true });

  function zoomTo(value) {
    const middle = scroller.scrollTop + scroller.clientHeight / 2;
    const before = layout ? layout.height : 1;
    zoom = Math.max(1, Math.min(40, value));
    layout = null;
    paint();
    scroller.scrollTop = (middle / before) * layout.height - scroller.clientHeight / 2;
  }

  // ── drawing ─────────────────────────────────────────────────────────────────────────────────────────────────────

  function draw() {
    if (!frame) frame = requestAnimationFrame(() => { frame = 0; paint(); });
  }

  function palette() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    return {
      steps: [0, 1, 2, 3, 4, 5, 6].map((number) => value(`--step-${number}`)),
      ink: [0, 1, 2, 3, 4, 5, 6].map((number) => value(`--ink-${number}`)),
      text: value("--text"), quiet: value("--quiet"), line: value("--line"), page: value("--page"), accent: value("--accent"), bad: value("--bad"),
      font: value("--font"),
    };
  }

  function paint() {
    toggle.setAttribute("aria-pressed", String(table));
    if (blocked) return null;
    scroller.hidden = table;
    listing.hidden = !table;
    if (table) return paintTable();
    const width = scroller.clientWidth;
    const height = scroller.clientHeight;
    if (!width || !height || !nodes.names.length) return null;
    if (!layout || layout.width !== width || layout.tall !== height || layout.generation !== nodes.generation) {
      layout = Object.assign(arranged(width, height - 4), { width, tall: height, generation: nodes.generation });
      spacer.style.height = `${layout.height}px`;
    }
    colours = colours || palette();
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const top = scroller.scrollTop;
    pen.translate(0, -top);
    for (const zone of layout.zones) paintZone(pen, zone, top, height);
    if (selected) outline(pen, nodes.names.indexOf(selected), colours.text, 2);
    if (hovered >= 0) outline(pen, hovered, colours.quiet, 1);
    canvas.setAttribute("aria-label", `Map of ${plural(layout.order.length, "node")} in ${plural(layout.zones.length, "zone")}; arrow keys select a node; the table shows the same`);
    return null;
  }

  function paintZone(pen, { zone, x, y, width, rows }, top, height) {
    const { cell } = layout;
    const below = y + HEAD + Math.ceil(rows.length / layout.across) * cell;
    if (below < top || y > top + height) return;
    pen.textBaseline = "alphabetic";
    pen.fillStyle = colours.text;
    pen.font = `600 13px ${colours.font}`;
    const name = nodes.zones[zone] || "no zone";
    pen.fillText(clipped(pen, name, width * 0.6), x, y + 16);
    const sum = rows.reduce((all, row) => all + Math.max(0, share(row)), 0);
    pen.fillStyle = colours.quiet;
    pen.font = `12px ${colours.font}`;
    const text = `${plural(rows.length, "node")} · ${percent(sum / rows.length)}`;
    pen.fillText(text, x + width - pen.measureText(text).width - 2, y + 16);
    for (const row of rows) {
      const cy = layout.y[row];
      if (cy + cell >= top && cy <= top + height) paintCell(pen, row, layout.x[row], cy, cell, layout.wide);
    }
  }

  function paintCell(pen, row, x, y, cell, wide) {
    const full = share(row);
    const number = step(full);
    const gap = cell >= 40 ? 6 : cell >= 14 ? 2 : 1;
    const side = cell - gap;
    const width = wide - gap;
    const state = nodes.state[row];
    pen.globalAlpha = matches(row) ? 1 : 0.13;
    pen.fillStyle = full < 0 ? colours.line : colours.steps[number];
    if (cell >= 14) rounded(pen, x, y, width, side, Math.min(8, cell / 7));
    else pen.fillRect(x, y, width, side);
    if (state & NOT_READY) stripes(pen, x, y, width, side);
    if (state & CORDONED) corner(pen, x + width - side, y, side);
    if (cell >= 76) details(pen, row, x, y, width, side, colours.ink[number]);
    else if (cell >= 12 && nodes.used) usedMark(pen, row, x, y, width, side, colours.ink[number]);
    pen.globalAlpha = 1;
  }

  function rounded(pen, x, y, width, height, radius) {
    pen.beginPath();
    pen.roundRect(x, y, width, height, radius);
    pen.fill();
  }

  function stripes(pen, x, y, width, side) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, width, side);
    pen.clip();
    pen.strokeStyle = colours.bad;
    pen.lineWidth = Math.max(1, side / 10);
    pen.beginPath();
    for (let at = -side; at < width; at += Math.max(4, side / 3)) {
      pen.moveTo(x + at, y + side);
      pen.lineTo(x + at + side, y);
    }
    pen.stroke();
    pen.restore();
  }

  function corner(pen, x, y, side) {
    pen.fillStyle = colours.text;
    pen.beginPath();
    pen.moveTo(x + side, y);
    pen.lineTo(x + side, y + side * 0.42);
    pen.lineTo(x + side * 0.58, y);
    pen.closePath();
    pen.fill();
  }

  function usedMark(pen, row, x, y, width, side, ink) {
    const used = Math.max(nodes.used[0][row], nodes.used[1][row]);
    if (used < 0) return;
    pen.fillStyle = ink;
    pen.globalAlpha *= 0.7;
    pen.fillRect(x + 1, y + side - 2 - Math.max(2, side * 0.1), (width - 2) * Math.min(1, used / 1000), Math.max(2, side * 0.1));
    pen.globalAlpha = matches(row) ? 1 : 0.13;
  }

  function details(pen, row, x, y, width, side, ink) {
    pen.fillStyle = ink;
    pen.font = `600 12px ${colours.font}`;
    pen.fillText(clipped(pen, nodes.names[row], width - 16), x + 8, y + 19);
    const lines = Math.min(nodes.resources.length, Math.floor((side - 26) / 17));
    pen.font = `10.5px ${colours.font}`;
    for (let at = 0; at < lines; at += 1) {
      const top = y + 34 + at * 17;
      const value = nodes.shares[at][row];
      pen.globalAlpha = matches(row) ? 0.75 : 0.1;
      const whole = nodes.resources[at].split("/").pop();
      const word = whole === "memory" && width < 100 ? "mem" : whole;
      pen.fillText(clipped(pen, word, width - 52), x + 8, top);
      const number = percent(value);
      pen.fillText(number, x + width - 8 - pen.measureText(number).width, top);
      pen.globalAlpha = matches(row) ? 0.22 : 0.05;
      rounded(pen, x + 8, top + 3, width - 16, 3, 1.5);
      pen.globalAlpha = matches(row) ? 0.85 : 0.1;
      if (value > 0) rounded(pen, x + 8, top + 3, (width - 16) * Math.min(1, value / 1000), 3, 1.5);
      if (nodes.used && at < 2 && nodes.used[at][row] >= 0) pen.fillRect(x + 8 + (width - 16) * Math.min(1, nodes.used[at][row] / 1000), top + 1, 1.5, 7);
    }
    pen.globalAlpha = 1;
  }

  function clipped(pen, text, width) {
    if (pen.measureText(text).width <= width) return text;
    let least = 0;
    let most = text.length;
    while (least < most) {
      const middle = (least + most + 1) >> 1;
      if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) least = middle;
      else most = middle - 1;
    }
    return `${text.slice(0, least)}…`;
  }

  function outline(pen, row, colour, width) {
    if (row < 0 || !layout || layout.x[row] < 0) return;
    const side = layout.cell - (layout.cell >= 40 ? 6 : layout.cell >= 14 ? 2 : 1);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.roundRect(layout.x[row] - 1.5, layout.y[row] - 1.5, side + layout.wide - layout.cell + 3, side + 3, Math.min(9, layout.cell / 6));
    pen.stroke();
  }

  // ── the same as a table ─────────────────────────────────────────────────────────────────────────────────────────

  function paintTable() {
    const rows = nodes.names.map((_, row) => row).filter((row) => nodes.names[row] && matches(row));
    rows.sort((a, b) => share(b) - share(a) || compare(nodes.names[a], nodes.names[b]));
    const shown = rows.slice(0, ROWS_OF_TABLE);
    replace(
      listing,
      h("table", {},
        h("caption", {}, `${plural(rows.length, "node")}, the fullest first${rows.length > shown.length ? `; the first ${shown.length}` : ""}`),
        h("thead", {}, h("tr", {}, ["Node", "Zone", "State", ...nodes.resources, ...(nodes.used ? ["used cpu", "used memory"] : [])].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, shown.map((row) => h("tr", {},
          h("th", { scope: "row" }, h("button", { type: "button", class: "link", onclick: () => select(nodes.names[row]) }, nodes.names[row])),
          h("td", {}, nodes.zones[nodes.zone[row]] || "–"),
          h("td", {}, stateOf(nodes.state[row])),
          nodes.shares.map((column) => h("td", { class: "number" }, meter(column[row]), " ", percent(column[row]))),
          nodes.used ? nodes.used.map((column) => h("td", { class: "number" }, percent(column[row]))) : null)))),
    );
  }

  const stateOf = (state) => [state & NOT_READY && "not ready", state & CORDONED && "cordoned", state & TAINTED && "tainted"].filter(Boolean).join(", ") || "ready";

  // ── one node ────────────────────────────────────────────────────────────────────────────────────────────────────

  function select(name) {
    selected = name;
    remember();
    draw();
    inspect();
  }

  let asked = 0;
  let pausing = 0;
  async function inspect() {
    clearTimeout(pausing);
    if (!selected) {
      panel.hidden = true;
      return;
    }
    const number = (asked += 1);
    try {
      const node = await get(`/api/nodes/${encodeURIComponent(selected)}`);
      if (number === asked) describe(node);
    } catch (error) {
      if (number !== asked) return;
      panel.hidden = false;
      replace(panel, closing(), h("p", { class: "problem" }, error.message));
    }
  }

  const closing = () => h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => { select(""); canvas.focus(); } }, "×");

  function describe(node) {
    const opened = panel.hidden;
    panel.hidden = false;
    replace(
      panel,
      closing(),
      h("h2", {}, node.node),
      h("p", { class: "quiet" }, [node.labels["topology.kubernetes.io/zone"], node.labels["node.kubernetes.io/instance-type"]].filter(Boolean).join(" · ")),
      node.unschedulable ? h("p", {}, "Cordoned: no new pods.") : null,
      node.taints.length ? h("p", {}, "Taints: ", node.taints.map((taint) => h("span", { class: "chip" }, taint))) : null,
      h("dl", { class: "resources" }, node.resources.map((one) => [h("dt", {}, one.name), h("dd", {}, meter(one.share), h("small", {}, `${one.requested} of ${one.allocatable} · ${percent(one.share)}${one.used >= 0 ? ` · ${percent(one.used)} used` : ""}`))])),
      h("h3", {}, plural(node.pods.length + node.morePods, "pod")),
      h("ul", { class: "pods" }, node.pods.map((one) => h("li", {}, h("a", { href: whyLink(one.pod), title: "Why here" }, one.pod), h("span", {}, amounts(one.requests))))),
      node.morePods ? h("p", { class: "quiet" }, `and ${node.morePods} more`) : null,
      h("p", {}, h("a", { class: "button", href: `/probe?drain=${encodeURIComponent(node.node)}` }, "What would draining it do?")),
    );
    if (opened) draw();
    say(`${node.node}: ${node.resources.map((one) => `${one.name} ${percent(one.share)}`).join(", ")}; ${plural(node.pods.length, "pod")}`);
  }

  // ── pointer and keys ────────────────────────────────────────────────────────────────────────────────────────────

  function at(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top + scroller.scrollTop;
    if (!layout) return -1;
    for (const zone of layout.zones) {
      if (x < zone.x || x >= zone.x + zone.width || y < zone.y + HEAD) continue;
      const place = Math.floor((y - zone.y - HEAD) / layout.cell) * layout.across + Math.floor((x - zone.x) / layout.wide);
      const row = zone.rows[place];
      if (row !== undefined && (x - zone.x) / layout.wide < layout.across && layout.y[row] <= y && y < layout.y[row] + layout.cell) return row;
    }
    return -1;
  }

  canvas.addEventListener("pointermove", (event) => {
    const row = at(event);
    canvas.style.cursor = row >= 0 ? "pointer" : "default";
    if (row !== hovered) {
      hovered = row;
      draw();
    }
    tip.hidden = row < 0 || layout.cell >= 76;
    if (tip.hidden) return;
    replace(tip, h("b", {}, nodes.names[row]), h("span", {}, `${nodes.zones[nodes.zone[row]] || "no zone"} · ${stateOf(nodes.state[row])}`), nodes.resources.map((name, which) => h("span", {}, `${name} ${percent(nodes.shares[which][row])}`)), nodes.used ? h("span", {}, `used: cpu ${percent(nodes.used[0][row])}, memory ${percent(nodes.used[1][row])}`) : null);
    const box = scroller.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX - box.left + 14, box.width - 190)}px`;
    tip.style.top = `${Math.min(event.clientY - box.top + 14, box.height - 110) + scroller.scrollTop}px`;
  });
  canvas.addEventListener("pointerleave", () => { hovered = -1; tip.hidden = true; draw(); });
  canvas.addEventListener("click", (event) => { const row = at(event); select(row >= 0 ? nodes.names[row] : ""); });
  scroller.addEventListener("scroll", draw, { passive: true });
  scroller.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomTo(zoom * (event.deltaY < 0 ? 1.2 : 1 / 1.2));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: layout ? layout.across : 1, ArrowUp: layout ? -layout.across : -1, Home: -Infinity, End: Infinity };
    if (event.key in moves && layout) {
      event.preventDefault();
      const all = layout.order;
      const here = all.indexOf(nodes.names.indexOf(selected));
      const next = all[here < 0 ? 0 : Math.max(0, Math.min(all.length - 1, here + moves[event.key]))];
      select(nodes.names[next]);
      reveal(next);
    } else if (event.key === "Escape") select("");
    else if (event.key === "+" || event.key === "=") zoomTo(zoom * 1.5);
    else if (event.key === "-") zoomTo(zoom / 1.5);
    else if (event.key === "0") zoomTo(1);
  });
  const slash = (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    search.focus();
  };
  document.addEventListener("keydown", slash);

  function reveal(row) {
    if (!layout || table) return;
    const y = layout.y[row];
    if (y < scroller.scrollTop || y + layout.cell > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = y - scroller.clientHeight / 2;
  }

  const retint = () => { colours = null; draw(); };
  window.addEventListener("situate:theme", retint);
  const watched = new ResizeObserver(() => draw());
  watched.observe(scroller);

  return {
    stream: "map",
    events: { map: take },
    summarized: (now) => {
      if (now.whole || blocked) return;
      blocked = true;
      tools.hidden = true;
      scroller.hidden = true;
      listing.hidden = false;
      replace(listing, h("div", { class: "card" }, h("h2", {}, "The map needs all nodes and pods"), h("p", {}, "Your rights do not cover them; the notes above say which. What you may read is under ", h("a", { href: "/waiting" }, "Waiting"), ".")));
    },
    close: () => {
      cancelAnimationFrame(frame);
      watched.disconnect();
      document.removeEventListener("keydown", slash);
      window.removeEventListener("situate:theme", retint);
    },
  };
}
