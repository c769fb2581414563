// Preemptions, the newest first: which pods had to go, for whom, on which node, and why that pod needed their room.

import { age, h, plural, replace, whyLink } from "./dom.js";

const SHOWN = 200;
const NAMED = 6;

export function preemptions({ root, query }) {
  let now = null;
  let wanted = query.get("q") || "";
  const search = h("input", {
    type: "search", placeholder: "Filter by pod, node or reason", "aria-label": "Filter by pod, node or reason", autocomplete: "off", spellcheck: "false", value: wanted,
    oninput: () => {
      wanted = search.value;
      history.replaceState({}, "", wanted ? `/preemptions?q=${encodeURIComponent(wanted)}` : "/preemptions");
      draw();
    },
  });
  const caption = h("p", { class: "quiet" });
  const list = h("div", { class: "rows" });
  replace(root, h("div", { class: "heading" }, h("h1", {}, "Preemptions"), search), caption, list);

  const matches = (row) => !wanted || `${row.by} ${row.node} ${row.message} ${row.victims.map((one) => one.pod).join(" ")}`.toLowerCase().includes(wanted.toLowerCase());

  function draw() {
    if (!now) return;
    const rows = now.rows.filter(matches);
    caption.textContent = now.problem || (now.rows.length ? `${plural(now.victims, "pod")} had to go for ${plural(now.rows.length, "other")}, the newest first${rows.length < now.rows.length ? `; ${rows.length} match` : ""}` : "");
    caption.className = now.problem ? "problem" : "quiet";
    if (!now.rows.length) {
      replace(list, h("div", { class: "empty" }, h("strong", {}, "No pod was preempted."), h("span", {}, "When a pod takes the room of others with a lower priority, they appear here, with the reason. The cluster keeps this for about an hour.")));
      return;
    }
    replace(list, rows.slice(0, SHOWN).map(row), rows.length > SHOWN ? h("p", { class: "quiet" }, `${rows.length - SHOWN} more are not shown`) : null);
  }

  function row(one) {
    const pod = one.byKind === "Pod" && one.by;
    return h("article", { class: "wait preempted" },
      h("div", { class: "age" }, h("time", { datetime: one.time, title: one.time, data: { since: one.time } }, age(one.time))),
      h("div", { class: "what" },
        h("h2", {}, pod ? h("a", { href: whyLink(one.by) }, one.by) : one.by || "A pod that is gone", " ", state(one)),
        h("p", { class: "message" }, `took the room of ${plural(one.victims.length, "pod")}`, one.node ? [" on ", h("a", { href: `/map?node=${encodeURIComponent(one.node)}` }, one.node)] : null, reason(one)),
        one.message ? h("p", { class: "quiet" }, `It waited because: ${one.message}`) : null,
        victims(one.victims.slice(0, NAMED)),
        one.victims.length > NAMED ? h("details", {}, h("summary", {}, `${one.victims.length - NAMED} more`), victims(one.victims.slice(NAMED))) : null),
      h("div", { class: "actions" }, pod && one.state !== "gone" ? h("a", { class: "button", href: whyLink(one.by) }, "Why") : null));
  }

  const state = (one) => {
    if (one.state === "waiting") return h("span", { class: "state waiting" }, "waits for them to end");
    if (one.state === "bound") return h("span", { class: "state bound" }, one.placed === one.node ? "placed" : `placed on ${one.placed}`);
    return h("span", { class: "state" }, "gone");
  };

  function reason(one) {
    const known = one.victims.map((each) => each.priority).filter((each) => each !== null);
    if (one.priority === null) return ".";
    if (!known.length) return `: its priority is ${one.priority}.`;
    const [low, high] = [Math.min(...known), Math.max(...known)];
    return `: its priority is ${one.priority}, theirs ${low === high ? low : `${low} to ${high}`}.`;
  }

  const victims = (those) => h("ul", { class: "victims" }, those.map((one) => h("li", {}, h("a", { href: whyLink(one.pod) }, one.pod), one.priority === null ? null : h("small", {}, ` priority ${one.priority}`))));

  const timer = setInterval(() => {
    for (const time of list.querySelectorAll("time")) time.textContent = age(time.dataset.since);
  }, 1000);

  return { stream: "preemptions", events: { preemptions: (rows) => { now = rows; draw(); } }, close: () => clearInterval(timer) };
}
