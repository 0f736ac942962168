/** The application: session, navigation, theme, and the page that the address names. */

import { html, render, useEffect, useErrorBoundary, useState } from "../vendor/htm-3.1.1/standalone.module.js";
import { ask, sentence } from "./api.js";
import { Board, useBoard } from "./board.js";
import { ClusterPage } from "./cluster_page.js";
import { fullTime } from "./format.js";
import { GroupPage, GroupsPage } from "./group_page.js";
import { HealthPage } from "./health_page.js";
import { Empty } from "./parts.js";
import { QueuePage } from "./queue_page.js";
import { followLink, useRoute } from "./router.js";
import { TimePage } from "./time_page.js";
import { WhatIfPage } from "./what_if_page.js";

/** @typedef {import("./types.js").Session} Session */

const PAGES = [["cluster", "Cluster"], ["queue", "Queue"], ["group", "Gangs"], ["what-if", "What if"], ["time", "Time"], ["health", "Health"]];
const THEMES = ["", "light", "dark"];
const board = new Board();

function App() {
  const [session, setSession] = useState(/** @type {Session | null} */ (null));
  const [failure, setFailure] = useState("");
  const [theme, setTheme] = useState(() => localStorage.getItem("theme") ?? "");
  const [crash, recover] = useErrorBoundary();
  const route = useRoute();
  useBoard(board);

  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    if (!theme) delete document.documentElement.dataset.theme;
    localStorage.setItem("theme", theme);
  }, [theme]);

  async function enter() {
    try {
      const found = /** @type {Session} */ (await ask("/api/session"));
      setSession(found);
      if (found.signedIn) {
        board.status = found.source ?? null;
        board.onSignedOut = () => setSession({ ...found, signedIn: false });
        await board.open(found.source?.kind === "live");
      }
    } catch (error) {
      setFailure(sentence(error));
    }
  }
  useEffect(() => {
    enter();
    return () => board.close();
  }, []);
  const page = route.path[0] ?? "cluster";
  useEffect(() => {
    document.title = `${PAGES.find(([key]) => key === page)?.[1] ?? "Muster"} · Muster`;
    if (crash) recover();
  }, [page, location.pathname]);

  return html`<div class="app" onClick=${followLink}>
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the page</a>
    <header><a class="brand" href="/cluster"><img src="/static/icon.svg" alt="" width="24" height="24" /> Muster</a>
      ${session?.signedIn && html`<nav aria-label="Pages">${PAGES.map(([key, title]) => html`<a href=${`/${key}`} aria-current=${key === page ? "page" : undefined}>${title}${key === "queue" && board.waiting ? html` <span class="pill">${board.waiting.toLocaleString()}</span>` : ""}</a>`)}</nav>`}
      <div class="right"><${Connection} />
        <button type="button" class="theme" onClick=${() => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % 3])} aria-label=${`Theme: ${theme || "as the system"}. Change it.`} title=${`Theme: ${theme || "as the system"}`}>${theme === "dark" ? "☾" : theme === "light" ? "☀" : "◐"}</button>
        ${session?.signedIn && session.asksForToken && html`<button type="button" onClick=${async () => { await ask("/api/session", { method: "DELETE" }); location.reload(); }}>Sign out ${session.user}</button>`}</div>
    </header>
    <main id="main" tabindex="-1" class=${page}>
      ${crash ? html`<${Empty} title="This page failed" sign="⊘">${sentence(crash)} <button type="button" onClick=${recover}>Try again</button><//>`
        : failure ? html`<${Empty} title="No connection" sign="⊘">${failure}. <button type="button" onClick=${() => location.reload()}>Try again</button><//>`
        : !session ? html`<${Empty} title="Opening" busy=${true} />`
        : !session.signedIn ? html`<${SignIn} session=${session} done=${enter} />`
        : html`<${Page} route=${route} theme=${theme} page=${page} />`}
    </main>
  </div>`;
}

/** @param {{route: import("./router.js").Route, theme: string, page: string}} props */
function Page({ route, theme, page }) {
  useBoard(board);
  if (page === "time") return html`<${TimePage} theme=${theme} />`;
  const forbidden = board.status?.forbidden ?? [];
  if (forbidden.includes("Pod") || forbidden.includes("Node")) {
    return html`<${Empty} title="You may not read this cluster" sign="⊘"><p>Listing ${forbidden.join(", ")} in the whole cluster is forbidden to this user. <code>muster explain</code> says what one namespace tells.</p><//>`;
  }
  if (board.state === "loading") return html`<${Empty} title="Reading the cluster" busy=${true}>${board.status?.trouble?.[0] ?? "Nodes, pods and gangs are being listed."}<//>`;
  if (board.state === "failed" && !board.version) return html`<${Empty} title="No connection" sign="⊘">${board.failure}<//>`;
  const moment = route.query.get("moment") ?? "";
  if (page === "cluster") return html`<${ClusterPage} board=${board} theme=${theme} />`;
  if (page === "queue") return html`<${QueuePage} board=${board} />`;
  if (page === "group" && route.path.length === 4) return html`<${GroupPage} board=${board} kind=${route.path[1]} namespace=${route.path[2]} name=${route.path[3]} moment=${moment} />`;
  if (page === "group") return html`<${GroupsPage} board=${board} />`;
  if (page === "what-if") return html`<${WhatIfPage} board=${board} theme=${theme} />`;
  if (page === "health") return html`<${HealthPage} board=${board} theme=${theme} />`;
  return html`<${Empty} title="There is no such page"><a href="/cluster">To the cluster</a><//>`;
}

function Connection() {
  useBoard(board);
  const status = board.status;
  if (!status) return null;
  if (board.state === "lost") return html`<span class="badge waits" role="status">○ connection lost, trying again</span>`;
  if (status.kind === "snapshot") return html`<span class="badge neutral">snapshot ${status.name}${status.takenAt ? `, ${fullTime(status.takenAt)}` : ""}</span>`;
  if (status.kind === "recording") return html`<span class="badge neutral">recording</span>`;
  if (status.trouble.length && board.version) return html`<span class="badge waits" role="status" title=${status.trouble.join("\n")}>○ the cluster does not answer</span>`;
  return html`<span class=${`badge ${board.state === "live" ? "good" : "neutral"}`} title=${status.name}>${board.state === "live" ? "● live" : "…"} <span class="source">${status.name}</span></span>`;
}

/** @param {{session: Session, done: () => void}} props */
function SignIn({ session, done }) {
  const [token, setToken] = useState("");
  const [failure, setFailure] = useState("");
  if (!session.asksForToken) {
    return html`<${Empty} title="This address opens no session" sign="⊘"><p>The address that <code>muster dashboard</code> or <code>muster up</code> printed opens one session in one browser, for eight hours. Run <code>muster dashboard</code> for a new address.</p><//>`;
  }
  /** @param {Event} event */
  async function submit(event) {
    event.preventDefault();
    try {
      await ask("/api/session", { method: "POST", body: JSON.stringify({ token }), headers: { "Content-Type": "application/json" } });
      setToken("");
      done();
    } catch (error) {
      setFailure(sentence(error));
    }
  }
  return html`<form class="sign-in card" onSubmit=${submit}><h1>Sign in</h1>
    <p class="muted">Paste a bearer token of the cluster, for instance of <code>kubectl create token NAME</code>. You see what its user may read. The token stays on the server, for eight hours at most.</p>
    <label class="block">Token <input type="password" autocomplete="off" value=${token} onInput=${(/** @type {any} */ e) => setToken(e.target.value)} /></label>
    ${failure && html`<p class="warn" role="alert">${failure}</p>`}
    <button class="primary" disabled=${!token.trim()}>Sign in</button></form>`;
}

const place = document.getElementById("app");
if (place) {
  place.textContent = "";
  render(html`<${App} />`, place);
}
