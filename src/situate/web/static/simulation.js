// Workloads over time, under several policies side by side: what `situate simulate` prints, and its report with plots.

import { h } from "./dom.js";

export function simulation({ field, answer, ask }) {
  const told = answer();
  const manifest = h("textarea", { id: "sim-manifest", rows: 7, spellcheck: "false", placeholder: "apiVersion: apps/v1\nkind: Deployment\n…" });
  const policy = h("textarea", { id: "sim-policy", rows: 7, spellcheck: "false", placeholder: "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n…" });
  const ofDefault = h("input", { type: "checkbox", id: "sim-default", checked: true });
  const ofCluster = h("input", { type: "checkbox", id: "sim-cluster" });
  const value = (id) => document.getElementById(id).value.trim();

  function asked() {
    return {
      manifest: manifest.value,
      arrivals: value("sim-arrivals"),
      pods: value("sim-pods") ? Number(value("sim-pods")) : null,
      duration: value("sim-duration"),
      seed: Number(value("sim-seed") || 0),
      default: ofDefault.checked,
      cluster: ofCluster.checked,
      policy: policy.value,
    };
  }

  return h("section", { class: "card simulation" },
    h("h2", {}, "How would policies compare?"),
    h("p", { class: "quiet" }, "Pods that wait now, and those of the workloads below, arrive on a copy of the cluster, once under each policy. Time is virtual."),
    h("form", { onsubmit: (event) => { event.preventDefault(); ask("/api/simulate", asked(), told, shown); } },
      h("div", { class: "pair" },
        h("div", {}, h("label", { for: "sim-manifest" }, "Workloads to come"), manifest),
        h("div", {}, h("label", { for: "sim-policy" }, "A policy of yours"), policy)),
      h("div", { class: "fields" }, field("sim-arrivals", "arrive", "", "all at once, poisson:2/m, every:10s"), field("sim-pods", "pods", "", "as many as the manifests say"), field("sim-duration", "run for", "", "for ever, 10m, exp:10m"), field("sim-seed", "seed", "0")),
      h("div", { class: "choices" },
        h("label", { for: "sim-default" }, ofDefault, "kube-scheduler's defaults"),
        h("label", { for: "sim-cluster" }, ofCluster, "this cluster's own configuration"),
        h("button", { type: "submit", class: "primary" }, "Simulate"))),
    told);
}

function shown(found) {
  const address = `/api/reports/${encodeURIComponent(found.report)}`;
  const several = found.configurations.length;
  const caption = several > 1 ? "The same pods, at the same times, under each policy" : "How it went";
  return [
    h("p", { class: "quiet" }, caption),
    h("div", { class: "wide" }, h("table", { "aria-label": caption },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, ""), found.configurations.map((name) => h("th", { scope: "col", class: "number" }, name)))),
      h("tbody", {}, found.rows.map((row) => (row.values.length
        ? h("tr", {}, h("th", { scope: "row", class: "figurename" }, row.label), row.values.map((each) => h("td", { class: "number" }, each)))
        : h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: several + 1 }, row.label))))))),
    h("p", {}, h("a", { href: address, target: "_blank", rel: "noopener" }, "Open the report with plots"), " in a tab of its own"),
    h("iframe", { class: "report", src: address, title: "The report of the simulation, with plots", sandbox: true }),
  ];
}
