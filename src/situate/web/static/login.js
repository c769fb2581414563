// Logging in: by the link that `situate up` prints, or by a token of the API server.

import { post } from "./api.js";
import { h, replace } from "./dom.js";

export function login({ root, message, done }) {
  const link = location.pathname === "/login" ? location.hash.slice(1) : "";
  if (link) history.replaceState({}, "", "/login"); // it is of no use to anybody from now on, and need not stay in sight
  const problem = h("p", { class: "problem", role: "alert" }, message);
  problem.hidden = !message;
  const refused = (error) => {
    problem.textContent = error.message;
    problem.hidden = false;
  };
  const token = h("textarea", { id: "token", rows: 3, autocomplete: "off", spellcheck: "false", required: true });
  const namespace = h("input", { id: "namespace", autocomplete: "off", spellcheck: "false", placeholder: "default" });
  const form = h(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        try {
          done(await post("/api/login", { token: token.value.trim(), namespace: namespace.value.trim() }));
        } catch (error) {
          refused(error);
        }
      },
    },
    h("label", { for: "token" }, "Token"),
    token,
    h("label", { for: "namespace" }, "Namespace, if you may not read all of them"),
    namespace,
    h("button", { type: "submit", class: "primary" }, "Log in"),
  );
  replace(
    root,
    h(
      "div",
      { class: "card narrow" },
      h("img", { src: "/assets/icon.svg", alt: "", width: 40, height: 40 }),
      h("h1", {}, "situate"),
      problem,
      h("p", {}, "Open the link that ", h("code", {}, "situate up"), " printed. It works once. For a new one:"),
      h("pre", {}, h("code", {}, "situate web --login")),
      h("details", {}, h("summary", {}, "Log in with a token of the API server"), form),
    ),
  );
  if (link) post("/api/login", { link }).then(done, refused);
}
