// Requests to the page's own server, and its streams. There is nobody else to ask.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function read(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    body = {};
  }
  if (!response.ok) throw new Refused(response.status, body.error || `the server answered ${response.status}`);
  return body;
}

export const get = async (path, signal) => read(await fetch(path, { headers: { Accept: "application/json" }, signal }));

export const post = async (path, body, signal) =>
  read(await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal }));

const RETRY_MS = [500, 1000, 2000, 5000, 10000];

// A stream of events that starts again by itself, and rests while nobody sees the page.
export class Stream {
  constructor(view, handlers) {
    this.view = view;
    this.handlers = handlers;
    this.failures = 0;
    this.closed = false;
    this.onVisible = () => (document.hidden ? this.rest() : this.open());
    document.addEventListener("visibilitychange", this.onVisible);
    this.open();
  }

  open() {
    if (this.closed || this.source) return;
    clearTimeout(this.timer);
    const source = (this.source = new EventSource(`/stream/${this.view}`));
    const state = (name) => this.handlers.state && this.handlers.state(name);
    state(this.failures ? "reconnecting" : "connecting");
    for (const [name, handler] of Object.entries(this.handlers)) {
      if (name === "state") continue;
      source.addEventListener(name, (event) => {
        this.failures = 0;
        state("live");
        handler(JSON.parse(event.data));
      });
    }
    const ended = (why, again) => {
      this.rest();
      state(again ? "reconnecting" : "ended");
      if (this.handlers.problem) this.handlers.problem(why);
      if (again) this.later();
    };
    source.addEventListener("ended", (event) => ended(JSON.parse(event.data).why, true));
    source.addEventListener("expired", () => {
      ended("your login has expired", false);
      window.dispatchEvent(new CustomEvent("situate:login"));
    });
    source.onerror = () => {
      this.rest();
      state("reconnecting");
      this.later();
    };
  }

  async later() {
    const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
    this.failures += 1;
    this.timer = setTimeout(async () => {
      try {
        await get("/api/me"); // an EventSource does not tell why it failed
        this.open();
      } catch (error) {
        if (error.status === 401) window.dispatchEvent(new CustomEvent("situate:login"));
        else this.later();
      }
    }, wait);
  }

  rest() {
    if (this.source) this.source.close();
    this.source = null;
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onVisible);
    this.rest();
  }
}
