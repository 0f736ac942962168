/** Cluster: the topology as a map, and the largest gang that fits at each level. */

import { html, useMemo } from "../vendor/htm-3.1.1/standalone.module.js";
import { useBoard } from "./board.js";
import { isDark, scale } from "./colours.js";
import { amount, count, gangName, kindWord, shortKey } from "./format.js";
import { ClusterMap, PLAIN } from "./map.js";
import { Badge, Bar, Empty, GangLink, Swatch, useAnswer, useThrottled } from "./parts.js";
import { change, useRoute } from "./router.js";

/** @typedef {import("./board.js").Board} Board */
/** @typedef {import("./types.js").Seats} Seats */

const COLOURS = { gang: "gang", used: "used", priority: "priority", fragmentation: "fragmentation", health: "health" };
const RESOURCES = ["CPU", "memory", "GPU"];

/** @param {{board: Board, theme: string, moment?: string}} props */
export function ClusterPage({ board, theme, moment = "" }) {
  useBoard(board);
  const { query } = useRoute();
  const version = useThrottled(board.version, 2000);
  const hasGpus = useMemo(() => [...board.nodes.values()].some((node) => node.allocatable[2] > 0), [board.shape, board.version > 0]);
  const resource = Number(query.get("resource") ?? (hasGpus ? 2 : 0));
  const pod = ["cpu", "memory", "gpu"].map((name) => /** @type {[string, string]} */ ([name, query.get(name) ?? ""]));
  const asked = new URLSearchParams([...pod.filter(([, value]) => value), ...(moment ? [["moment", moment]] : [])]).toString();
  const seats = useAnswer(() => (board.nodes.size ? `/api/seats?${asked}` : null), [asked, version, board.nodes.size > 0]);
  const found = /** @type {Seats | null} */ (seats.data);
  const colour = query.get("colour") ?? "gang";
  const gang = board.gangOf(query.get("gang"));
  const domain = query.get("domain");
  const selected = query.get("node");
  const listed = query.get("nodes");
  const level = Number(query.get("level") ?? Math.max(0, board.levels.length - 1));
  const lit = useMemo(() => litNodes(board, domain, listed), [board, board.shape, domain, listed]);
  const look = {
    ...PLAIN, colour, resource, level, size: Math.max(1, Number(query.get("size") ?? 8)), seats: found?.seats ?? null,
    gang: gang ? gang.id : null, nodes: lit,
  };
  const focus = selected ?? domain ?? (listed ? listed.split(",")[0] : null);
  if (board.hidden === "nodes") return html`<${Empty} title="You may not list nodes" sign="⊘">The map needs the right to list nodes. The queue and your gangs are on their own pages.<//>`;
  if (!board.nodes.size) return html`<${Empty} title="There are no nodes yet">The map appears with the first node of the cluster.<//>`;
  return html`<div class="cluster">
    <h1 class="sr-only">Cluster</h1>
    <form class="toolbar" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <label>Colour by <select value=${colour} onChange=${(/** @type {any} */ e) => change({ colour: e.target.value })}>
        ${Object.entries(COLOURS).map(([value, text]) => html`<option value=${value} selected=${value === colour}>${text}</option>`)}
      </select></label>
      ${colour === "used" && html`<label>of <select value=${String(resource)} onChange=${(/** @type {any} */ e) => change({ resource: e.target.value })}>
        ${RESOURCES.map((text, i) => html`<option value=${String(i)} selected=${i === resource}>${text}</option>`)}</select></label>`}
      ${colour === "fragmentation" && html`<label>for a gang of <input type="number" min="1" max="100000" value=${look.size} onInput=${(/** @type {any} */ e) => change({ size: e.target.value })} /></label>
        <label>in one <select value=${String(level)} onChange=${(/** @type {any} */ e) => change({ level: e.target.value })}>
        ${[...board.levels.map(shortKey), "node"].map((text, i) => html`<option value=${String(i)} selected=${i === level}>${text}</option>`)}</select></label>`}
      <${Slots} found=${found} pod=${pod} failure=${seats.failure} />
    </form>
    <div class="map-and-side">
      <${ClusterMap} board=${board} look=${look} theme=${theme} focus=${focus}
        onNode=${(/** @type {string | null} */ name) => change({ node: name, gang: null, domain: null, nodes: null }, { replace: false })} />
      <aside aria-label="Selection">
        ${selected ? html`<${NodeSide} name=${selected} board=${board} moment=${moment} />` : gang ? html`<${GangSide} gang=${gang} board=${board} moment=${moment} />`
          : html`<${Legend} board=${board} colour=${colour} />`}
      </aside>
    </div>
  </div>`;
}

/** @param {Board} board @param {string | null} domain @param {string | null} listed */
function litNodes(board, domain, listed) {
  if (listed) return new Set(listed.split(","));
  if (!domain) return null;
  const cut = domain.indexOf("=");
  const level = board.levels.indexOf(domain.slice(0, cut)), value = domain.slice(cut + 1);
  return new Set([...board.nodes.values()].filter((node) => node.domains[level] === value).map((node) => node.name));
}

/** The largest gang of a pod at each level. @param {{found: Seats | null, pod: [string, string][], failure: string}} props */
function Slots({ found, pod, failure }) {
  return html`<fieldset class="slots"><legend>Largest gang now</legend>
    ${pod.map(([name, value]) => html`<label class="amount">${name === "gpu" ? "GPU" : name === "cpu" ? "CPU" : "memory"}
      <input size="5" value=${value} placeholder=${found ? placeholder(found, name) : ""} onChange=${(/** @type {any} */ e) => change({ [name]: e.target.value.trim() })} /></label>`)}
    <output aria-live="polite">${failure ? html`<span class="warn">${failure}</span>` : found
      ? Object.entries(found.largest).reverse().map(([key, seats]) => html`<span class="slot"><b>${seats.toLocaleString()}</b> ${key === "kubernetes.io/hostname" ? "on one node" : `in one ${shortKey(key)}`}</span>`)
      : html`<span class="muted">counting…</span>`}</output>
  </fieldset>`;
}

/** @param {Seats} found @param {string} name */
function placeholder(found, name) {
  return found.pod[name === "gpu" ? "nvidia.com/gpu" : name] ?? "";
}

/** @param {{board: Board, colour: string}} props */
function Legend({ board, colour }) {
  const totals = [0, 1, 2].map((i) => [...board.nodes.values()].reduce(([used, all], node) => [used + node.requested[i], all + node.allocatable[i]], [0, 0]));
  const gangs = [...board.gangs.values()].filter((gang) => gang.bound > 0).sort((a, b) => b.bound - a.bound);
  const hidden = [...board.nodes.values()].reduce((n, node) => n + node.gangs.reduce((m, [id, pods]) => m + (id ? 0 : pods), 0), 0);
  const pods = hidden + [...board.gangs.values()].reduce((n, gang) => n + gang.bound, 0);
  return html`<h2>Cluster</h2>
    <p class="muted">${count(board.nodes.size, "node")}, ${count(pods, "pod")}, ${count(board.waiting, "gang")} waiting</p>
    ${totals.map(([used, all], i) => all > 0 && html`<div class="total"><span>${RESOURCES[i]}</span><${Bar} used=${used} total=${all} label=${`${Math.round((100 * used) / all)} % of ${RESOURCES[i]} used`} /><span class="muted">${amount(i, used)} of ${amount(i, all)}</span></div>`)}
    ${colour === "gang" ? html`<h3>Gangs</h3><ul class="plain gangs">${gangs.slice(0, 24).map((gang) => html`<li key=${gang.id}>
        <button type="button" class="link" onClick=${() => change({ gang: `${gang.kind}/${gang.namespace}/${gang.name}` }, { replace: false })}><${Swatch} id=${gang.id} /> ${gangName(gang)}</button> <span class="muted">${count(gang.bound, "pod")}</span></li>`)}
        ${hidden > 0 && html`<li><${Swatch} id=${0} /> <span class="muted">${count(hidden, "pod")} in namespaces that you may not read</span></li>`}</ul>
      ${gangs.length > 24 && html`<p class="muted">and ${gangs.length - 24} more (see <a href="/group">all gangs</a>)</p>`}`
      : html`<${Scale} colour=${colour} />`}`;
}

/** @param {{colour: string}} props */
function Scale({ colour }) {
  if (colour === "health") return html`<h3>Signs</h3><ul class="plain"><li>plain: ready</li><li><b>–</b> cordoned</li><li><b>×</b> not ready</li><li><b>!</b> under pressure</li></ul>`;
  if (colour === "fragmentation") return html`<h3>Reading it</h3><p>Hatched nodes have free room that such a gang cannot use: their domain has fewer seats than it needs. The height is the free share; plain grey nodes are full.</p>`;
  const steps = [0, 0.25, 0.5, 0.75, 1];
  const words = colour === "priority" ? ["lowest", "highest"] : ["free", "full"];
  return html`<h3>Scale</h3><div class="scale"><span>${words[0]}</span>${steps.map((step) => html`<span class="step" style=${`--swatch:${scale(step, isDark())}`}></span>`)}<span>${words[1]}</span></div>
    <p class="muted">The height of a node's fill says the same as its colour.</p>`;
}

/** @param {{gang: import("./types.js").Gang, board: Board, moment: string}} props */
function GangSide({ gang, board, moment }) {
  const nodes = [...board.nodes.values()].filter((node) => node.gangs.some((cell) => cell[0] === gang.id));
  const domains = board.levels.map((key, i) => /** @type {[string, string[]]} */ ([key, [...new Set(nodes.map((node) => node.domains[i]))]]));
  return html`<h2><${Swatch} id=${gang.id} /> <${GangLink} gang=${gang} moment=${moment} /></h2>
    <p class="muted">${kindWord(gang.kind)}, priority ${gang.priority}</p>
    ${gang.minimum > 0 && html`<p><${Badge} good=${gang.met}>${gang.met ? "minimum is bound" : gang.reason || "waits"}<//></p>
      <p>${gang.bound} pods bound, ${gang.minimum} needed${gang.pending ? `, ${gang.pending} pending` : ""}</p>`}
    <p>${nodes.length ? `On ${count(nodes.length, "node")}` : "On no node"}${domains.map(([key, values]) => (values.length && nodes.length ? `, ${values.length === 1 ? `${shortKey(key)} ${values[0]}` : count(values.length, shortKey(key))}` : ""))}</p>
    <button type="button" onClick=${() => change({ gang: null }, { replace: false })}>Clear selection</button>`;
}

/** @param {{name: string, board: Board, moment: string}} props */
function NodeSide({ name, board, moment }) {
  const version = useThrottled(board.version, 2000);
  const answer = useAnswer(() => `/api/node/${encodeURIComponent(name)}${moment ? `?moment=${moment}` : ""}`, [name, moment, version]);
  const detail = /** @type {any} */ (answer.data);
  const node = board.nodes.get(name);
  if (!node) return html`<h2>${name}</h2><p>This node does not exist.</p><button type="button" onClick=${() => change({ node: null }, { replace: false })}>Clear selection</button>`;
  return html`<h2>${name}</h2>
    <p><${Badge} good=${!node.health}>${node.health || "ready"}<//></p>
    <p class="muted">${board.levels.map((key, i) => `${shortKey(key)} ${node.domains[i] || "none"}`).join(", ")}</p>
    ${node.allocatable.map((all, i) => all > 0 && html`<div class="total"><span>${RESOURCES[i]}</span><${Bar} used=${node.requested[i]} total=${all} label=${`${RESOURCES[i]} used`} /><span class="muted">${amount(i, node.requested[i])} of ${amount(i, all)}</span></div>`)}
    <h3>Gangs here</h3>
    <ul class="plain">${node.gangs.map(([id, pods]) => { const gang = board.gangs.get(id); return html`<li><${Swatch} id=${id} /> ${gang ? html`<button type="button" class="link" onClick=${() => change({ gang: `${gang.kind}/${gang.namespace}/${gang.name}`, node: null }, { replace: false })}>${gangName(gang)}</button>` : "others"} <span class="muted">${count(pods, "pod")}</span></li>`; })}</ul>
    ${!node.gangs.length && html`<p class="muted">No pods.</p>`}
    ${detail && detail.pods.length > 0 && html`<details><summary>${count(detail.pods.length, "pod")}</summary><ul class="plain small">${detail.pods.map((/** @type {any} */ pod) => html`<li>${pod.namespace}/${pod.name} <span class="muted">${pod.phase}</span></li>`)}</ul></details>`}
    ${detail && detail.hidden > 0 && html`<p class="muted">and ${count(detail.hidden, "pod")} in namespaces that you may not read</p>`}
    ${detail && detail.taints.length > 0 && html`<h3>Taints</h3><ul class="plain small">${detail.taints.map((/** @type {string} */ taint) => html`<li>${taint}</li>`)}</ul>`}
    <button type="button" onClick=${() => change({ node: null }, { replace: false })}>Clear selection</button>`;
}
