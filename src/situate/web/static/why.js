// Why a pod waits, or runs where it does: the whole of `situate why`, node by node. The address can be shared.

import { get } from "./api.js";
import { age, h, plural, replace, say, whyLink } from "./dom.js";

const WORDS = { unschedulable: "waits", schedulable: "about to be placed", bound: "placed", gated: "gated", leaving: "leaving", finished: "finished", waiting: "waits" };

export function why({ root, rest, query, go }) {
  const [namespace = "", name = ""] = rest;
  const node = query.get("node") || "";
  const stop = new AbortController();
  const pod = `${namespace}/${name}`;
  replace(root, h("h1", {}, pod), h("p", { class: "quiet", role: "status" }, "Asking every plugin about every node…"));

  async function ask() {
    try {
      const path = `/api/why/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
      show(await get(node ? `${path}?node=${encodeURIComponent(node)}` : path, stop.signal));
    } catch (error) {
      if (error.name !== "AbortError") replace(root, h("h1", {}, pod), h("p", { class: "problem", role: "alert" }, error.message));
    }
  }

  function show(found) {
    document.title = `${pod} · situate`;
    replace(
      root,
      h("div", { class: "heading" },
        h("h1", {}, pod, " ", h("span", { class: `state ${found.standing}` }, WORDS[found.standing] || found.standing)),
        h("div", { class: "actions" },
          h("button", { type: "button", onclick: ask }, "Ask again"),
          h("button", { type: "button", onclick: copy }, "Copy link"))),
      h("p", { class: "message large" }, found.unserved ? `${found.unserved}: nobody is going to place it` : found.message),
      (found.notes || []).map((note) => h("p", { class: "note" }, note)),
      facts(found),
      found.oneNode ? oneNode(found) : null,
      ways(found),
      preemption(found),
      verdicts(found),
      scores(found),
      decision(found),
      wakes(found),
    );
    say(`${pod}: ${found.message}`);
  }

  async function copy(event) {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = location.href;
    }
  }

  function facts(found) {
    const w = found.waiting || {};
    const rows = [
      found.node && ["Node", h("a", { href: `/map?node=${encodeURIComponent(found.node)}` }, found.node)],
      found.rank && ["Rank of its node", `${found.rank} of ${found.feasible} that fit now`],
      !found.node && found.nodes && ["Nodes that fit", `${found.feasible} of ${found.nodes}`],
      w.since && found.standing !== "bound" && ["Has been waiting", h("span", { title: w.since }, age(w.since))],
      w.attempts && ["Tried", `${w.attemptsFrom === "events" ? "at least " : ""}${plural(w.attempts, "time")}`],
      w.lastTry && ["Last tried", h("span", { title: w.lastTry }, `${age(w.lastTry)} ago`)],
      ["Scheduler", found.schedulerName],
      found.priority ? ["Priority", String(found.priority)] : null,
      ...(found.waitingClaims || []).map((claim) => ["Waits for a claim", claim]),
    ].filter(Boolean);
    return h("dl", { class: "factlist" }, rows.map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text))));
  }

  function ways(found) {
    if (!found.ways || !found.ways.length) return found.standing === "unschedulable" ? h("section", {}, h("h2", {}, "What would help"), h("p", {}, "No small change was found that would make it fit.")) : null;
    return h("section", { class: "ways" },
      h("h2", {}, "It would fit with one of these changes"),
      h("p", { class: "quiet" }, "Each was tried on a copy of the cluster as it is now."),
      h("ol", {}, found.ways.map((way) => h("li", {}, h("span", {}, way.text), h("small", {}, `fits ${plural(way.fits, "node")}: `, way.examples.map((one, at) => [at ? ", " : "", h("a", { href: whyLink(pod, one) }, one)]), way.fits > way.examples.length ? ", …" : "")))));
  }

  function preemption(found) {
    if (!found.preemption) return null;
    return h("section", {}, h("h2", {}, "Preemption"), h("p", {}, "The scheduler would evict ", found.preemption.victims.length ? found.preemption.victims.map((victim, at) => [at ? ", " : "", h("a", { href: whyLink(victim) }, victim)]) : "pods that are already being deleted", ", and place it on ", h("a", { href: whyLink(pod, found.preemption.node) }, found.preemption.node), "."));
  }

  function verdicts(found) {
    if (!found.verdicts || !found.verdicts.length) return null;
    return h("section", {},
      h("h2", {}, "What rules out nodes"),
      h("div", { class: "verdicts" }, found.verdicts.map((one) => {
        const bar = h("span", { class: "meter", "aria-hidden": "true" }, h("span", { class: "fill" }));
        bar.firstChild.style.width = `${found.nodes ? (100 * one.nodes) / found.nodes : 0}%`;
        bar.dataset.step = "4";
        return h("details", { open: found.verdicts.length <= 4 },
          h("summary", {}, h("span", { class: "plugin" }, one.plugin), h("span", { class: "text" }, one.reason), h("span", { class: "amount" }, one.ofPod ? "the pod itself" : `${one.nodes.toLocaleString("en")} of ${found.nodes.toLocaleString("en")}`), bar),
          h("ul", {}, one.details.map((detail) => h("li", {}, detail.text, h("small", {}, ` ${plural(detail.nodes, "node")}: `, detail.examples.map((each, at) => [at ? ", " : "", h("a", { href: whyLink(pod, each) }, each)]), detail.nodes > detail.examples.length ? ", …" : ""))),
            one.details.length ? null : h("li", {}, h("small", {}, one.examples.map((each, at) => [at ? ", " : "", h("a", { href: whyLink(pod, each) }, each)])))),
          one.evictionHelpsOn ? h("p", { class: "quiet" }, `Evicting pods could help on ${plural(one.evictionHelpsOn, "node")}.`) : null);
      })));
  }

  function scores(found) {
    if (!found.scores || !found.scores.length) return null;
    const plugins = Object.keys(found.scores[0].scores).filter((plugin) => found.scores.some((one) => one.scores[plugin]));
    const short = (plugin) => plugin.replace(/^NodeResources|^Pod/, "").replace(/Toleration$/, "");
    return h("section", {},
      h("h2", {}, found.standing === "bound" ? "Why here and not there" : "Nodes that fit"),
      h("p", { class: "quiet" }, `The best ${found.scores.length} of ${found.feasible}, with the score of each plugin`),
      h("div", { class: "wide" }, h("table", {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Node"), h("th", { scope: "col", class: "number" }, "Score"), plugins.map((plugin) => h("th", { scope: "col", class: "number", title: plugin }, short(plugin))))),
        h("tbody", {}, found.scores.map((one) => h("tr", { class: one.node === found.node ? "chosen" : "" }, h("th", { scope: "row" }, h("a", { href: whyLink(pod, one.node) }, one.node)), h("td", { class: "number" }, h("b", {}, one.score)), plugins.map((plugin) => h("td", { class: "number" }, one.scores[plugin] ?? "")))))))); 
  }

  function oneNode(found) {
    const one = found.oneNode;
    return h("section", { class: "onenode" },
      h("h2", {}, `${one.node} ${one.fits ? "accepts it" : "refuses it"}`),
      one.verdicts.length ? h("ul", {}, one.verdicts.map((verdict) => h("li", {}, h("b", {}, verdict.plugin), `: ${verdict.reason}`, h("ul", {}, verdict.details.map((detail) => h("li", {}, detail.text, holders(detail))))))) : null,
      one.scores ? h("p", {}, `Score ${one.scores.score}: ${Object.entries(one.scores.scores).map(([plugin, score]) => `${plugin} ${score}`).join(", ")}`) : null,
      h("p", { class: "quiet" }, `Accepted by: ${one.nothingAgainst.join(", ")}`),
      h("p", {}, h("a", { href: whyLink(pod) }, "All nodes"), " · ", h("a", { href: `/map?node=${encodeURIComponent(one.node)}` }, "On the map")));
  }

  function holders(detail) {
    const closest = detail.values && detail.values.closest;
    if (!Array.isArray(closest)) return null;
    const all = closest.flatMap((each) => each.holders || []);
    return all.length ? h("ul", {}, all.map((holder) => h("li", {}, h("a", { href: whyLink(holder.pod) }, holder.pod), ` holds ${holder.amount}`))) : null;
  }

  function decision(found) {
    const status = found.decision && found.decision.status;
    if (!status || !status.alternatives || !status.alternatives.length) return null;
    return h("section", {}, h("h2", {}, "When it was decided"), h("p", { class: "quiet" }, `Phase ${status.phase || "unknown"}, score ${status.score ?? "unknown"}`),
      h("ul", {}, status.alternatives.map((one) => h("li", {}, `${one.node}: ${one.score}`))));
  }

  function wakes(found) {
    if (!found.wakesOn || !found.wakesOn.length) return null;
    return h("section", {}, h("h2", {}, "The scheduler tries it again when"), h("ul", {}, found.wakesOn.map((one) => h("li", {}, one.change, h("small", { class: "quiet" }, ` (${one.plugins.join(", ")})`)))));
  }

  ask();
  return { stream: "summary", close: () => stop.abort(), go };
}
