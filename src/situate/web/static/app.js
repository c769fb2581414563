// The frame around the views: who is logged in, where we are, what the whole cluster looks like.

import { Refused, Stream, get, post } from "./api.js";
import { h, meter, percent, plural, replace, say } from "./dom.js";
import { gangs } from "./gangs.js";
import { login } from "./login.js";
import { map } from "./map.js";
import { placements } from "./placements.js";
import { preemptions } from "./preemptions.js";
import { probe } from "./probe.js";
import { waiting } from "./waiting.js";
import { why } from "./why.js";

const VIEWS = { map, waiting, placements, preemptions, gangs, probe, why };
const TITLES = { map: "Map", waiting: "Waiting", placements: "Placements", preemptions: "Preemptions", gangs: "Gangs", probe: "What if", why: "Why" };
const content = document.getElementById("content");
let shown = null;
let stream = null;
let summary = null;

// ── where we are ────────────────────────────────────────────────────────────────────────────────────────────────────

function parsed(url) {
  const parts = url.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  const name = parts[0] in VIEWS ? parts[0] : "map";
  return { name, rest: parts.slice(1), query: url.searchParams };
}

export function go(path, replaceIt = false) {
  history[replaceIt ? "replaceState" : "pushState"]({}, "", path);
  show();
}

function show() {
  if (location.pathname === "/login") return showLogin();
  const where = parsed(new URL(location.href));
  close();
  document.title = `${TITLES[where.name]} · situate`;
  for (const link of document.querySelectorAll("#bar nav a")) {
    const here = link.getAttribute("href") === `/${where.name}` || (where.name === "why" && link.getAttribute("href") === "/waiting");
    if (here) {
      link.setAttribute("aria-current", "page");
      link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.offsetLeft - 40; // on a phone, not all fit
    } else link.removeAttribute("aria-current");
  }
  content.className = where.name;
  content.setAttribute("aria-label", TITLES[where.name]);
  shown = VIEWS[where.name]({ root: content, rest: where.rest, query: where.query, go, summary: () => summary });
  stream = new Stream(shown.stream || "summary", {
    ...(shown.events || {}),
    summary: showSummary,
    state: showState,
    problem: (text) => showNotes([text]),
  });
  return null;
}

function close() {
  if (stream) stream.close();
  if (shown && shown.close) shown.close();
  stream = shown = null;
  replace(content);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || link.origin !== location.origin || event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || link.target || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  go(link.getAttribute("href"));
  content.focus({ preventScroll: true });
  window.scrollTo(0, 0);
});
window.addEventListener("popstate", show);

// ── who is here ─────────────────────────────────────────────────────────────────────────────────────────────────────

function showLogin(message = "") {
  close();
  document.title = "Log in · situate";
  for (const id of ["bar", "totals", "notes"]) document.getElementById(id).hidden = true;
  content.className = "login";
  const back = location.pathname === "/login" ? "/map" : location.pathname + location.search;
  login({ root: content, message, done: (me) => welcome(me, back) });
}

function welcome(me, back) {
  document.getElementById("bar").hidden = false;
  const person = document.getElementById("person");
  person.textContent = me.user || "";
  person.title = `${me.cluster} (${me.server})`;
  if (back) history.replaceState({}, "", back);
  show();
}

window.addEventListener("situate:login", () => showLogin("Your login has ended. A new link lets you in again."));
document.getElementById("logout").addEventListener("click", async () => {
  try {
    await post("/api/logout", {});
  } finally {
    showLogin("You are logged out.");
  }
});

// ── the whole cluster ───────────────────────────────────────────────────────────────────────────────────────────────

function showState(state) {
  const words = { live: "live", connecting: "connecting", reconnecting: "reconnecting", ended: "stopped" };
  document.getElementById("live").dataset.state = state;
  document.getElementById("live-text").textContent = words[state];
}

function showSummary(now) {
  summary = now;
  const count = document.getElementById("waiting-count");
  count.textContent = now.waiting.toLocaleString("en");
  count.hidden = !now.waiting;
  showNotes(now.problems);
  const totals = document.getElementById("totals");
  totals.hidden = false;
  replace(
    totals,
    now.whole
      ? [
          figure(now.nodes, now.nodes === 1 ? "node" : "nodes", [
            now.notReady && h("span", { class: "bad" }, `${now.notReady} not ready`),
            now.cordoned && `${now.cordoned} cordoned`,
          ]),
          figure(now.bound, now.bound === 1 ? "pod placed" : "pods placed", [now.listing && "still counting"]),
          figure(now.waiting, now.waiting === 1 ? "pod waits" : "pods wait", [], now.waiting ? "warn" : ""),
          Object.entries(now.totals).slice(0, 2).map(([name, one]) => total(name, one)),
        ]
      : [
          figure(now.bound, `${now.bound === 1 ? "pod" : "pods"} placed${within(now)}`, [now.listing && "still counting"]),
          figure(now.waiting, `${now.waiting === 1 ? "pod waits" : "pods wait"}${within(now)}`, [], now.waiting ? "warn" : ""),
        ],
  );
  if (shown && shown.summarized) shown.summarized(now);
}

const within = (now) => (now.namespace ? ` in ${now.namespace}` : "");

const figure = (count, noun, more, kind = "") =>
  h("div", { class: `figure ${kind}` }, h("strong", {}, count.toLocaleString("en")), h("span", {}, noun), more.filter(Boolean).map((one) => h("small", {}, one)));

const total = (name, one) =>
  h(
    "div",
    { class: "figure wide" },
    h("span", {}, name),
    meter(one.share, `${percent(one.share)} of ${name} requested`),
    h("small", {}, `${percent(one.share)} requested, ${one.requested} of ${one.allocatable}${one.used >= 0 ? `; ${percent(one.used)} used` : ""}`),
  );

function showNotes(problems) {
  const notes = document.getElementById("notes");
  notes.hidden = !problems.length;
  const before = notes.textContent;
  replace(notes, problems.map((text) => h("p", {}, text)));
  if (problems.length && notes.textContent !== before) say(`${plural(problems.length, "note")}: ${problems[0]}`);
}

// ── light and dark ──────────────────────────────────────────────────────────────────────────────────────────────────

const kept = localStorage.getItem("situate-theme");
if (kept) document.documentElement.dataset.theme = kept;
document.getElementById("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--is-dark").trim() === "1";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("situate-theme", document.documentElement.dataset.theme);
  window.dispatchEvent(new CustomEvent("situate:theme"));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => window.dispatchEvent(new CustomEvent("situate:theme")));

// ── begin ───────────────────────────────────────────────────────────────────────────────────────────────────────────

async function begin() {
  if (location.pathname === "/login" && location.hash) return showLogin();
  try {
    welcome(await get("/api/me"), location.pathname === "/" || location.pathname === "/login" ? "/map" : "");
  } catch (error) {
    showLogin(error instanceof Refused && error.status === 401 ? "" : error.message);
  }
  return null;
}

begin();
