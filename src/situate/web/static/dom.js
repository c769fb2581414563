// Builds elements. Data reaches the page as text and attributes, never as markup.

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "htmlFor") element[name] = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
}

// A bar of a share in per mille; the text says the same.
export function meter(share, label) {
  const known = share >= 0;
  const bar = h("span", { class: "meter", role: "img", "aria-label": label || percent(share) }, h("span", { class: "fill" }));
  bar.firstChild.style.width = known ? `${Math.min(100, share / 10)}%` : "0";
  bar.dataset.step = known ? step(share) : "none";
  return bar;
}

export const percent = (share) => (share < 0 ? "–" : share > 0 && share < 5 ? "<1 %" : `${Math.round(share / 10)} %`);

// The step of the palette: six for what is left, one for full.
export function step(share) {
  if (share >= 1000) return 6;
  if (share >= 900) return 5;
  if (share >= 750) return 4;
  if (share >= 500) return 3;
  if (share >= 250) return 2;
  return share > 0 ? 1 : 0;
}

export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export function age(since) {
  const seconds = Math.max(0, (Date.now() - Date.parse(since)) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds < 90) return `${Math.floor(seconds)} s`;
  if (seconds < 5400) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export const whyLink = (pod, node) => {
  const [namespace, name] = pod.split("/");
  const path = `/why/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  return node ? `${path}?node=${encodeURIComponent(node)}` : path;
};

// For screen readers, when something worth knowing happened.
export function say(text) {
  document.getElementById("said").textContent = text;
}

export const amounts = (requests) =>
  Object.entries(requests).map(([name, amount]) => h("span", { class: "chip" }, h("b", {}, amount), ` ${name}`));
