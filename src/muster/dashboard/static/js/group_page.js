/** Group: one gang with every level of its tree, its past, its pods, and why it waits if it does. */

import { html, useMemo } from "../vendor/htm-3.1.1/standalone.module.js";
import { objectPath } from "./api.js";
import { useBoard } from "./board.js";
import { ExplanationView } from "./explanation.js";
import { clock, count, fullTime, gangName, kindWord, natural, shortKey } from "./format.js";
import { Badge, Empty, GangLink, OnMap, Swatch, useAnswer, useThrottled } from "./parts.js";
import { change, useRoute } from "./router.js";

/** @typedef {import("./board.js").Board} Board */
/** @typedef {import("./types.js").GroupDetail} GroupDetail */
/** @typedef {import("./types.js").Explanation} Explanation */

/** All gangs. @param {{board: Board}} props */
export function GroupsPage({ board }) {
  useBoard(board);
  const { query } = useRoute();
  const filter = (query.get("filter") ?? "").toLowerCase();
  const gangs = [...board.gangs.values()]
    .filter((gang) => gang.minimum > 0 && (!filter || `${gang.namespace}/${gang.name} ${gang.reason}`.toLowerCase().includes(filter)))
    .sort((a, b) => Number(a.met) - Number(b.met) || natural(gangName(a), gangName(b)));
  return html`<h1>Gangs</h1>
    <div class="toolbar"><label>Filter <input type="search" placeholder="name, namespace, reason" value=${query.get("filter") ?? ""} onInput=${(/** @type {any} */ e) => change({ filter: e.target.value })} /></label><span class="muted">${count(gangs.length, "gang")}</span></div>
    ${gangs.length ? html`<div class="scroll"><table><thead><tr><th scope="col">Name</th><th scope="col">State</th><th scope="col">Bound</th><th scope="col">Needed</th><th scope="col">Pending</th><th scope="col">Priority</th><th scope="col"><span class="sr-only">Map</span></th></tr></thead><tbody>
      ${gangs.slice(0, 1000).map((gang) => html`<tr key=${gang.id}><td><${Swatch} id=${gang.id} /> <${GangLink} gang=${gang} /></td>
        <td><${Badge} good=${gang.met}>${gang.met ? "bound" : gang.reason || "waits"}<//></td><td class="number">${gang.bound}</td><td class="number">${gang.minimum}</td><td class="number">${gang.pending}</td><td class="number">${gang.priority}</td><td><${OnMap} gang=${gang} /></td></tr>`)}
    </tbody></table></div>` : html`<${Empty} title="There are no gangs">A PodGroup appears here as soon as it is created.<//>`}`;
}

/** @param {{board: Board, kind: string, namespace: string, name: string, moment?: string}} props */
export function GroupPage({ board, kind, namespace, name, moment = "" }) {
  useBoard(board);
  const key = { kind, namespace, name };
  const version = useThrottled(board.version, 1000);
  const path = `${objectPath(key)}${moment ? `?moment=${moment}` : ""}`;
  const answer = useAnswer(() => `/api/group/${path}`, [path, version]);
  const found = /** @type {GroupDetail | null} */ (answer.data);
  const waits = found !== null && (!found.root.met || found.root.pending > 0);
  const why = useAnswer(() => (waits ? `/api/explain/${path}` : null), [path, waits, version]);
  if (answer.failure) return html`<h1>${namespace}/${name}</h1><${Empty} title="Nothing to show" sign="⊘">${answer.failure}. <a href="/group">All gangs</a><//>`;
  if (!found) return html`<h1>${namespace}/${name}</h1><${Empty} title="Looking it up" busy=${true} />`;
  const root = { ...found.root, kind: found.root.kind, namespace: found.root.namespace, name: found.root.name };
  return html`<h1>${namespace}/${name} <span class="muted kind">${kindWord(kind)}</span></h1>
    <p class="summary"><${Badge} good=${root.met}>${root.met ? "its minimum is bound" : root.reason || "waits"}<//>
      <span>${root.bound} pods bound, ${root.minimum} needed${root.pending ? `, ${root.pending} pending` : ""}</span>
      <span>priority ${root.priority}</span> <${OnMap} gang=${root} /></p>
    ${waits && html`<section class="card"><h2>Why it waits</h2>${why.data ? html`<${ExplanationView} found=${/** @type {Explanation} */ (why.data)} />` : why.failure ? html`<p class="warn">${why.failure}</p>` : html`<p class="muted">Trying what would help…</p>`}</section>`}
    <div class="columns">
      <section class="card"><h2>Tree</h2><${Tree} found=${found} moment=${moment} /></section>
      <section class="card"><h2>Time line</h2><${Timeline} found=${found} /></section>
    </div>
    <section class="card"><h2>Members</h2><${Members} found=${found} /></section>`;
}

/** @param {{found: GroupDetail, moment: string}} props */
function Tree({ found, moment }) {
  return html`<ul class="tree">${found.rows.map((row) => html`<li key=${row.kind + row.name} style=${`--depth:${row.depth}`} class=${row.name === found.name && row.kind === found.kind ? "here" : ""}>
    <${Badge} good=${row.met}><${GangLink} gang=${row} moment=${moment} text=${row.name} /><//>
    <span class="muted"> ${row.bound} of ${row.minimum} ${row.kind === "PodGroup" ? "members" : "child groups"}${row.pending ? `, ${row.pending} pods pending` : ""}
    ${row.topology ? (row.domains.length ? `, ${shortKey(row.topology)} ${row.domains.join(", ")}` : `, all in one ${shortKey(row.topology)}`) : ""}${row.reason ? `, ${row.reason}` : ""}</span></li>`)}</ul>`;
}

/** @param {{found: GroupDetail}} props */
function Timeline({ found }) {
  const moments = useMemo(() => found.timeline.filter((each) => each.at), [found]);
  if (!moments.length) return html`<p class="muted">Nothing has happened yet.</p>`;
  const first = Date.parse(moments[0].at), last = Date.parse(moments[moments.length - 1].at);
  const span = Math.max(1, last - first);
  return html`<div class="strip" aria-hidden="true">${moments.map((each) => html`<span class=${each.good === null ? "" : each.good ? "good" : "waits"} style=${`left:${(100 * (Date.parse(each.at) - first)) / span}%`}></span>`)}</div>
    <ol class="timeline">${moments.map((each) => html`<li class=${each.good === null ? "" : each.good ? "good" : "waits"}>
      <time datetime=${each.at} title=${fullTime(each.at)}>${clock(each.at)}</time>
      <div><strong>${each.what}</strong> <span class="muted">${each.about}</span>${each.text && html`<div>${each.text}</div>`}</div></li>`)}</ol>`;
}

/** @param {{found: GroupDetail}} props */
function Members({ found }) {
  if (!found.members.length) return html`<p class="muted">It has no pods yet.</p>`;
  return html`<div class="scroll"><table><thead><tr><th scope="col">Pod</th><th scope="col">Group</th><th scope="col">State</th><th scope="col">Node</th><th scope="col">Created</th></tr></thead><tbody>
    ${found.members.map((member) => html`<tr key=${member.name}><td>${member.name}</td><td>${member.group}</td>
      <td><${Badge} good=${member.state === "running" || member.state === "succeeded" ? true : member.state === "pending" ? false : null}>${member.phase && member.state === "running" ? member.phase : member.state}<//></td>
      <td>${member.node ? html`<a href=${`/cluster?${new URLSearchParams({ node: member.node })}`}>${member.node}</a>` : html`<span class="muted">none</span>`}</td>
      <td title=${fullTime(member.created)}>${clock(member.created)}</td></tr>`)}
  </tbody></table></div>${found.moreMembers > 0 && html`<p class="muted">and ${count(found.moreMembers, "more pod")}</p>`}`;
}
