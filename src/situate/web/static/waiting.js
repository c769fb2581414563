// What waits, the longest first, each with its reason; and, one click away, what would help.

import { get } from "./api.js";
import { age, amounts, h, plural, replace, say, whyLink } from "./dom.js";

export function waiting({ root, query }) {
  let now = null;
  let wanted = query.get("q") || "";
  const opened = new Map();
  const search = h("input", {
    type: "search", placeholder: "Filter by name, namespace or reason", "aria-label": "Filter by name, namespace or reason", autocomplete: "off", spellcheck: "false", value: wanted,
    oninput: () => {
      wanted = search.value;
      history.replaceState({}, "", wanted ? `/waiting?q=${encodeURIComponent(wanted)}` : "/waiting");
      draw();
    },
  });
  const list = h("div", { class: "rows" });
  const caption = h("p", { class: "quiet" });
  replace(root, h("div", { class: "heading" }, h("h1", {}, "What waits for a node"), search), caption, list);

  const keyOf = (row) => `${row.namespace}|${row.owner}|${row.reason}|${row.message}`;
  const matches = (row) => !wanted || `${row.namespace} ${row.owner} ${row.pods.join(" ")} ${row.reason} ${row.message}`.toLowerCase().includes(wanted.toLowerCase());

  function draw() {
    if (!now) return;
    const rows = now.rows.filter(matches);
    caption.textContent = now.pods
      ? `${plural(now.pods, "pod")} in ${plural(now.rows.length + now.more, "row")}, the longest wait first${now.more ? `; ${now.more} more are not shown` : ""}${rows.length < now.rows.length ? `; ${rows.length} match` : ""}`
      : "";
    if (!now.pods) {
      replace(list, h("div", { class: "empty" }, h("strong", {}, "Nothing waits."), h("span", {}, "Every pod has a node. What is too large for the cluster would appear here, with the reason and what would help.")));
      return;
    }
    // Rows that stay keep their elements, so that focus and what is open survive an update.
    const known = new Map([...list.children].filter((one) => one.dataset.key).map((one) => [one.dataset.key, one]));
    replace(list, rows.map((row) => {
      const key = keyOf(row);
      const before = known.get(key);
      if (before && before.dataset.count === String(row.count)) return before;
      return made(row, key);
    }));
  }

  function made(row, key) {
    const [kind, name] = split(row.owner);
    const fixes = h("div", { class: "fixes", hidden: true });
    const button = h("button", { type: "button", "aria-expanded": "false", onclick: () => toggle(row, key, button, fixes) }, "What would help");
    const article = h(
      "article",
      { class: "wait", data: { key, count: row.count } },
      h("div", { class: "age" }, h("time", { datetime: row.since, data: { since: row.since } }, age(row.since))),
      h(
        "div",
        { class: "what" },
        h("h2", {}, h("a", { href: whyLink(`${row.namespace}/${row.pods[0]}`) }, `${row.namespace}/${name}`), " ", h("span", { class: "kind" }, kind), row.count > 1 ? h("span", { class: "count" }, `× ${row.count.toLocaleString("en")}`) : null),
        h("p", { class: "message" }, row.message),
        h("p", { class: "facts" }, amounts(row.requests), row.priority ? h("span", { class: "chip" }, `priority ${row.priority}`) : null, row.group ? h("span", { class: "chip" }, `gang ${row.group}`) : null,
          row.nominated.length ? h("span", { class: "chip warn" }, `waits for room on ${row.nominated.join(", ")}`) : null, row.reason ? h("span", { class: "chip reason" }, row.reason) : null),
        fixes,
      ),
      h("div", { class: "actions" }, button, h("a", { class: "button", href: whyLink(`${row.namespace}/${row.pods[0]}`) }, "Why")),
    );
    if (opened.has(key)) {
      button.setAttribute("aria-expanded", "true");
      fixes.hidden = false;
      replace(fixes, opened.get(key));
    }
    return article;
  }

  async function toggle(row, key, button, fixes) {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    fixes.hidden = !open;
    if (!open) {
      opened.delete(key);
      return;
    }
    replace(fixes, h("p", { class: "quiet" }, "Trying changes…"));
    try {
      const found = await get(`/api/why/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.pods[0])}`);
      const shown = found.ways && found.ways.length
        ? [h("p", {}, "It would fit with one of these changes. Each was tried:"), h("ol", {}, found.ways.map((way) => h("li", {}, way.text, h("span", { class: "quiet" }, ` → ${plural(way.fits, "node")}: ${way.examples.slice(0, 4).join(", ")}${way.fits > 4 ? ", …" : ""}`))))]
        : [h("p", {}, found.standing === "schedulable" ? `A node fits now: ${found.node}` : (found.notes && !found.ways ? found.notes[0] : "No small change was found that would make it fit."))];
      opened.set(key, shown);
      replace(fixes, shown);
      say(fixes.textContent);
    } catch (error) {
      replace(fixes, h("p", { class: "problem" }, error.message));
    }
  }

  const timer = setInterval(() => {
    for (const time of list.querySelectorAll("time")) time.textContent = age(time.dataset.since);
  }, 1000);

  return {
    stream: "waiting",
    events: { waiting: (rows) => { now = rows; draw(); } },
    close: () => clearInterval(timer),
  };
}

function split(owner) {
  const at = owner.indexOf("/");
  return [owner.slice(0, at), owner.slice(at + 1)];
}
