// Gangs: pods that are placed together or not at all. And the queues: what waits, by scheduler and priority.

import { age, h, plural, replace, whyLink } from "./dom.js";

export function gangs({ root }) {
  const list = h("div", { class: "rows" });
  const queues = h("div", { class: "wide" });
  replace(root, h("div", { class: "heading" }, h("h1", {}, "Gangs")), list, h("div", { class: "heading" }, h("h2", {}, "Queues")), queues);

  function show(now) {
    replace(list, now.gangs.length
      ? now.gangs.map(gang)
      : h("div", { class: "empty small" }, h("strong", {}, "There are no gangs."), h("span", {}, "Pods of a PodGroup appear here: how many are placed, how many are needed, and what the rest waits for.")),
      now.more ? h("p", { class: "quiet" }, `${now.more} more are not shown`) : null);
    replace(queues, now.queues.length
      ? h("table", {}, h("thead", {}, h("tr", {}, ["Scheduler", "Priority", "Class", "Pods", "Longest wait"].map((name, at) => h("th", { scope: "col", class: at === 1 || at === 3 ? "number" : "" }, name)))),
          h("tbody", {}, now.queues.map((one) => h("tr", {}, h("td", {}, one.scheduler), h("td", { class: "number" }, one.priority), h("td", {}, one.class || "–"), h("td", { class: "number" }, one.pods.toLocaleString("en")), h("td", {}, age(one.since))))))
      : h("p", { class: "quiet" }, "Nothing waits in any queue."));
  }

  function gang(one) {
    const needed = Math.max(one.minCount, 1);
    const share = Math.round((1000 * one.bound) / Math.max(one.pods, needed));
    const bar = h("span", { class: "meter", role: "img", "aria-label": `${one.bound} of ${one.pods} placed` }, h("span", { class: "fill" }));
    bar.firstChild.style.width = `${Math.min(100, share / 10)}%`;
    bar.dataset.step = "4";
    return h("article", { class: "wait gang" },
      h("div", { class: "age" }, `${one.bound}/${one.pods}`),
      h("div", { class: "what" },
        h("h2", {}, `${one.namespace}/${one.name}`, " ", h("span", { class: `state ${one.waiting ? "waiting" : "bound"}` }, one.waiting ? "waits" : "whole")),
        h("p", { class: "facts" }, bar, " ", one.minCount ? h("span", { class: "chip" }, `needs ${one.minCount} at once`) : null, one.topologyKey ? h("span", { class: "chip" }, `within one ${one.topologyKey}`) : null, one.nodeCount ? h("span", { class: "chip" }, `on ${plural(one.nodeCount, "node")}`) : null),
        one.message ? h("p", { class: "message" }, one.message) : null,
        one.nodes.length ? h("p", { class: "quiet" }, one.nodes.map((node, at) => [at ? ", " : "", h("a", { href: `/map?node=${encodeURIComponent(node)}` }, node)]), one.nodeCount > one.nodes.length ? ", …" : "") : null),
      h("div", { class: "actions" }, one.waitingPods.length ? h("a", { class: "button", href: whyLink(one.waitingPods[0]) }, "Why") : null));
  }

  return { stream: "gangs", events: { gangs: show } };
}
