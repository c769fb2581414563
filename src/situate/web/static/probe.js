// The probe: where there is room for a pod like this, what a drain or the loss of a zone would do, and how workloads fare
// under several policies. It is all tried on a copy; nothing in the cluster changes.

import { post } from "./api.js";
import { h, plural, replace, say, whyLink } from "./dom.js";
import { simulation } from "./simulation.js";

const SHOWN = 100;

export function probe({ root, query }) {
  const stop = new AbortController();
  const field = (id, label, value, hint = "") => [h("label", { for: id }, label), h("input", { id, value, placeholder: hint, autocomplete: "off", spellcheck: "false" })];
  const answer = () => h("div", { class: "answer", role: "status", "aria-live": "polite" });
  const room = answer();
  const drained = answer();
  const lost = answer();

  const yaml = h("textarea", { id: "yaml", rows: 9, spellcheck: "false", placeholder: "apiVersion: apps/v1\nkind: Deployment\n…", "aria-label": "A manifest with a pod or workload" });
  const nodes = h("input", { id: "nodes", value: query.get("drain") || "", placeholder: "node-1, node-2", autocomplete: "off", spellcheck: "false" });

  replace(root,
    h("div", { class: "heading" }, h("h1", {}, "What if")),
    h("p", { class: "quiet" }, "Every question is tried on a copy of the cluster as it is now. Nothing changes."),
    h("section", { class: "card" },
      h("h2", {}, "Where is room for a pod like this?"),
      h("form", { class: "columns", onsubmit: (event) => { event.preventDefault(); ask("/api/room", { manifest: fromForm() }, room, showRoom); } },
        h("div", { class: "fields" }, field("cpu", "cpu", "500m"), field("memory", "memory", "1Gi"), field("other", "other resource", "", "nvidia.com/gpu=1"), field("selector", "node labels", "", "disk=ssd"), field("zonespread", "spread over", "", "topology.kubernetes.io/zone")),
        h("button", { type: "submit", class: "primary" }, "Count")),
      h("details", {}, h("summary", {}, "Paste a manifest instead"),
        h("form", { onsubmit: (event) => { event.preventDefault(); ask("/api/room", { manifest: yaml.value }, room, showRoom); } }, yaml, h("button", { type: "submit", class: "primary" }, "Count"))),
      room),
    h("section", { class: "card" },
      h("h2", {}, "What would draining nodes do?"),
      h("form", { class: "line", onsubmit: (event) => { event.preventDefault(); drain(); } }, h("label", { for: "nodes", class: "unseen" }, "Nodes"), nodes, h("button", { type: "submit", class: "primary" }, "Try")),
      drained),
    h("section", { class: "card" },
      h("h2", {}, "Would everything survive the loss of a zone?"),
      h("form", { onsubmit: (event) => { event.preventDefault(); ask("/api/survive", {}, lost, showLost); } }, h("button", { type: "submit", class: "primary" }, "Try every zone")),
      lost),
    simulation({ field, answer, ask }));

  const drain = () => ask("/api/drain", { nodes: nodes.value.split(/[\s,]+/).filter(Boolean) }, drained, showDrained);

  async function ask(path, body, where, show) {
    replace(where, h("p", { class: "quiet" }, "Trying…"));
    try {
      const found = await post(path, body, stop.signal);
      replace(where, show(found), (found.notes || []).map((note) => h("p", { class: "note" }, note)));
      say(where.textContent.slice(0, 200));
    } catch (error) {
      if (error.name !== "AbortError") replace(where, h("p", { class: "problem" }, error.message));
    }
  }

  function fromForm() {
    const value = (id) => document.getElementById(id).value.trim();
    const pairs = (text) => Object.fromEntries(text.split(/[\s,]+/).filter(Boolean).map((pair) => [pair.split("=")[0], pair.slice(pair.indexOf("=") + 1)]));
    const requests = { ...(value("cpu") && { cpu: value("cpu") }), ...(value("memory") && { memory: value("memory") }), ...pairs(value("other")) };
    const spec = { containers: [{ name: "probe", image: "probe", resources: { requests, limits: pairs(value("other")) } }], nodeSelector: pairs(value("selector")) };
    if (value("zonespread")) spec.topologySpreadConstraints = [{ maxSkew: 1, topologyKey: value("zonespread"), whenUnsatisfiable: "DoNotSchedule", labelSelector: { matchLabels: { probe: "pod" } } }];
    return JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "probe", labels: { probe: "pod" } }, spec });
  }

  function showRoom(found) {
    const zones = Object.entries(found.byZone);
    const places = Object.entries(found.byNode).sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0], "en", { numeric: true }));
    return [
      h("p", { class: "verdict" }, h("strong", {}, `${found.limited ? "At least " : ""}${found.fits.toLocaleString("en")}`), ` more ${found.fits === 1 ? "fits" : "fit"}`, places.length ? `, on ${plural(places.length, "node")}` : ""),
      zones.length > 1 ? h("p", {}, zones.map(([zone, count]) => h("span", { class: "chip" }, h("b", {}, count), ` ${zone || "no zone"}`))) : null,
      found.next && (found.next.message || found.next.evicts.length) ? h("p", {}, h("span", { class: "quiet" }, "The next one: "), found.next.message || `would fit only by evicting ${found.next.evicts.join(", ")} from ${found.next.node}`) : null,
      places.length ? h("details", {}, h("summary", {}, "By node"), h("p", {}, places.slice(0, SHOWN).map(([node, count]) => h("a", { class: "chip", href: `/map?node=${encodeURIComponent(node)}` }, h("b", {}, count), ` ${node}`)), places.length > SHOWN ? ` and ${places.length - SHOWN} more` : "")) : null,
    ];
  }

  function showDrained(found) {
    const moves = found.waves.flatMap((wave, at) => wave.map((one) => ({ ...one, wave: at + 1 })));
    const homeless = moves.filter((one) => !one.to);
    return [
      h("p", { class: "verdict" }, h("strong", {}, found.complete ? "It would work." : "It would not work."), ` ${plural(moves.length - homeless.length, "pod")} would move in ${plural(found.waves.length, "wave")}`, homeless.length ? `, ${homeless.length} would find no node` : "", found.refused.length ? `, ${found.refused.length} could not leave` : "", "."),
      left("Cannot leave", found.refused), 
      moves.length ? h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, ["Wave", "Pod", "From", "To"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, moves.slice(0, SHOWN).map((one) => h("tr", {}, h("td", {}, one.wave), h("td", {}, h("a", { href: whyLink(one.pod) }, one.pod)), h("td", {}, one.from), h("td", {}, one.to || h("span", { class: "problem" }, one.message))))))) : null,
      moves.length > SHOWN ? h("p", { class: "quiet" }, `and ${moves.length - SHOWN} more`) : null,
      left("Deleted for good", found.deleted), left("Stay", found.stay),
    ];
  }

  const left = (title, those) => (those.length ? h("details", {}, h("summary", {}, `${title}: ${plural(those.length, "pod")}`), h("ul", {}, those.slice(0, SHOWN).map((one) => h("li", {}, `${one.pod} on ${one.node}: ${one.why}`)))) : null);

  function showLost(found) {
    if (!found.losses.length) return h("p", {}, "There are no zones to lose.");
    return [
      h("p", { class: "verdict" }, h("strong", {}, found.survives ? "Yes." : "No."), found.survives ? " Every pod would find a node again, whichever zone is lost." : " Some pods would find no node."),
      h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, ["Zone lost", "Nodes", "Pods that move", "Without a node"].map((name, at) => h("th", { scope: "col", class: at ? "number" : "" }, name)))),
        h("tbody", {}, found.losses.map((one) => h("tr", {}, h("th", { scope: "row" }, one.domain), h("td", { class: "number" }, one.nodes.length), h("td", { class: "number" }, one.moved.length), h("td", { class: "number" }, one.lost.length ? h("b", { class: "problem" }, one.lost.length) : "0")))))),
      found.losses.filter((one) => one.lost.length).map((one) => h("details", {}, h("summary", {}, `Without ${one.domain}`), h("ul", {}, one.lost.slice(0, SHOWN).map((each) => h("li", {}, h("a", { href: whyLink(each.pod) }, each.pod), `: ${each.message}`))))),
    ];
  }

  if (nodes.value) drain();
  return { stream: "summary", close: () => stop.abort() };
}
