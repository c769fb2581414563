// The stream of placements, the newest first, each with "why here and not there".

import { get } from "./api.js";
import { age, h, plural, replace, whyLink } from "./dom.js";

const KEPT = 500;
const SHOWN = 200;
const WORDS = { waiting: "waits", placed: "reserved", bound: "placed", repaired: "repaired", failed: "failed", evicted: "evicted", rebinding: "placed again" };
const PREEMPTED = ["PreemptionByScheduler", "Preempted"];
const KINDS = [["", "All"], ["bound", "Placed"], ["evicted", "Evicted"], ["waiting", "Waits"]];

export function placements({ root, query }) {
  let all = [];
  let problem = "";
  let kind = query.get("kind") || "";
  let frame = 0;
  const buttons = h("div", { class: "group", role: "group", "aria-label": "Which placements" }, KINDS.map(([value, word]) => h("button", { type: "button", "aria-pressed": String(value === kind), onclick: () => choose(value) }, word)));
  const caption = h("p", { class: "quiet" });
  const list = h("ol", { class: "stream", reversed: true });
  replace(root, h("div", { class: "heading" }, h("h1", {}, "Placements"), buttons), caption, list);

  function choose(value) {
    kind = value;
    [...buttons.children].forEach((button, at) => button.setAttribute("aria-pressed", String(KINDS[at][0] === kind)));
    history.replaceState({}, "", kind ? `/placements?kind=${kind}` : "/placements");
    replace(list);
    draw();
  }

  function draw() {
    if (!frame) frame = requestAnimationFrame(() => { frame = 0; paint(); });
  }

  function paint() {
    const shown = all.filter((one) => !kind || one.event === kind).slice(-SHOWN).reverse();
    caption.textContent = problem || (all.length ? `The last ${plural(all.length, "decision")}, the newest first` : "");
    caption.className = problem ? "problem" : "quiet";
    if (!shown.length) {
      replace(list, h("li", { class: "empty" }, h("strong", {}, "Nothing yet."), h("span", {}, "Every decision appears here as it is made.")));
      return;
    }
    const known = new Map([...list.children].map((item) => [item.dataset.number, item]));
    replace(list, shown.map((one) => known.get(String(one.number)) || made(one)));
  }

  function made(one) {
    const more = h("div", { class: "fixes", hidden: true });
    const button = h("button", { type: "button", "aria-expanded": "false", onclick: () => explain(one, button, more) }, one.event === "bound" ? "Why there" : "Why");
    return h("li", { data: { number: one.number, event: one.event } },
      h("time", { datetime: one.time, title: one.time, data: { since: one.time } }, age(one.time)),
      h("span", { class: `state ${one.event}` }, WORDS[one.event] || one.event),
      h("span", { class: "what" }, h("a", { href: whyLink(one.pod) }, one.pod), one.node ? [" → ", h("a", { href: `/map?node=${encodeURIComponent(one.node)}` }, one.node)] : null,
        one.message || (one.reason && one.event === "evicted") ? h("small", {}, [one.event === "evicted" ? one.reason : "", one.message].filter(Boolean).join(": "), PREEMPTED.includes(one.reason) ? [" · ", h("a", { href: `/preemptions?q=${encodeURIComponent(one.pod)}` }, "for whom")] : null) : null),
      button, more);
  }

  async function explain(one, button, more) {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    more.hidden = !open;
    if (!open) return;
    replace(more, h("p", { class: "quiet" }, "Asking…"));
    try {
      const [namespace, name] = one.pod.split("/");
      const found = await get(`/api/why/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`);
      const status = (found.decision && found.decision.status) || {};
      const scores = (status.scores || []).slice(0, 5);
      replace(more,
        scores.length
          ? [h("p", {}, `When it was decided, ${plural(status.feasible ?? scores.length, "node")} of ${status.nodes ?? "all"} fitted. The best:`),
             h("ol", {}, scores.map((each) => h("li", {}, h("b", {}, each.node), ` ${each.total}`, h("small", {}, ` ${Object.entries(each.plugins || {}).map(([plugin, score]) => `${plugin} ${score}`).join(", ")}`))))]
          : h("p", {}, found.message),
        (status.refusals || []).length ? h("p", { class: "quiet" }, `Refused: ${status.refusals.map((each) => `${plural(each.nodes, "node")} by ${each.plugin} (${each.reason})`).join("; ")}`) : null,
        h("p", {}, h("a", { href: whyLink(one.pod) }, "All of it")));
    } catch (error) {
      replace(more, h("p", { class: "problem" }, error.message));
    }
  }

  let number = 0;
  const timer = setInterval(() => {
    for (const time of list.querySelectorAll("time")) time.textContent = age(time.dataset.since);
  }, 1000);

  return {
    stream: "placements",
    events: {
      placements: (update) => {
        if (update.all) { all = []; replace(list); }
        // A pod that waits on for another reason is told once, as it is now.
        const waits = new Set(update.placements.filter((one) => one.event === "waiting").map((one) => one.pod));
        all = all.filter((one) => one.event !== "waiting" || !waits.has(one.pod));
        update.placements.forEach((one, at) => {
          if (one.event !== "waiting" || !update.placements.slice(at + 1).some((later) => later.pod === one.pod && later.event === "waiting")) all.push({ ...one, number: (number += 1) });
        });
        all = all.slice(-KEPT);
        problem = update.problem;
        draw();
      },
    },
    close: () => { clearInterval(timer); cancelAnimationFrame(frame); },
  };
}
