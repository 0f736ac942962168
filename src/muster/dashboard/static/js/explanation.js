/** An explanation: the answer first, the nearest places, who holds what, what would help; each can be shown on the map. */

import { html } from "../vendor/htm-3.1.1/standalone.module.js";
import { count, shortKey } from "./format.js";
import { GangLink, OnMap } from "./parts.js";

/** @typedef {import("./types.js").Explanation} Explanation */
/** @typedef {import("./types.js").Suggestion} Suggestion */

/** @param {{found: Explanation}} props */
export function ExplanationView({ found }) {
  const stuck = found.verdict === "Infeasible" || found.verdict === "Undecided";
  const nearest = found.levels.flatMap((level) => level.nearest.map((domain) => ({ level, domain })));
  return html`<div class="explanation">
    <p class="lead">${found.sentence}${found.sentence.endsWith(".") ? "" : "."}</p>
    ${found.remark && html`<p>${found.remark}</p>`}
    ${nearest.length > 0 && html`<h3>Nearest places</h3><ul class="plain">
      ${nearest.map(({ level, domain }) => html`<li key=${level.name + domain.key + domain.value}>
        ${domain.text}${domain.whenEmpty !== null && domain.value ? html` <span class="muted">(${domain.whenEmpty} when empty)</span>` : ""}
        ${domain.value && html` <a class="on-map" href=${domainLink(domain.key, domain.value)}>show on the map</a>`}</li>`)}
    </ul>`}
    ${found.rules.length > 0 && html`<h3>Nodes that cannot take one more of its pods</h3><ul class="plain">
      ${found.rules.map((rule) => html`<li><span class="number">${rule.nodes}</span> of ${rule.of}: ${rule.text}</li>`)}
    </ul>`}
    ${(found.devices ?? []).length > 0 && html`<h3>Devices</h3><ul class="plain">
      ${(found.devices ?? []).map((sentence) => html`<li>${sentence}</li>`)}
    </ul>`}
    ${found.holders.length > 0 && html`<h3>Who holds what it needs${found.heldIn ? ` in ${found.heldIn}` : ""}</h3>
      <ul class="plain">${found.holders.map((holder) => html`<li>
        ${holder.kind === "Hidden" ? holder.name : html`<${GangLink} gang=${holder} />`}
        <span class="muted"> priority ${holder.priority}, ${Object.entries(holder.amounts).map(([name, amount]) => `${amount} ${shortKey(name)}`).join(", ")} in ${count(holder.pods, "pod")}</span>
        ${" "}${holder.kind !== "Hidden" && holder.kind !== "Pod" && html`<${OnMap} gang=${holder} />`}</li>`)}</ul>`}
    ${found.reservation && html`<h3>Kept room</h3><p>${found.reservation}</p>`}
    ${found.recreate && html`<p class="muted">${found.recreate}</p>`}
    ${found.preemption && html`<h3>Preemption</h3><p>${found.preemption}</p>`}
    ${found.wakes && html`<h3>It is tried again</h3><p>${found.wakes}</p>`}
    ${stuck && html`<h3>What would help <span class="muted">(each was tried)</span></h3>
      ${found.suggestions.length
        ? html`<ol>${found.suggestions.map((each) => html`<li>${each.text} <${ShowSuggestion} each=${each} /></li>`)}</ol>`
        : html`<p class="muted">No single change was found: not of labels, taints, topology, minimum, who runs, or more such nodes.</p>`}`}
    ${found.missing && html`<p class="muted">This is what the objects say of themselves. To see why and what would help: ${found.missing}.</p>`}
  </div>`;
}

/** @param {{each: Suggestion}} props */
function ShowSuggestion({ each }) {
  const { kind, namespace, name, key, domain, names } = each.details;
  if (kind && namespace && name) return html`<${OnMap} gang=${{ kind: String(kind), namespace: String(namespace), name: String(name) }} />`;
  if (key && domain) return html`<a class="on-map" href=${domainLink(String(key), String(domain))}>show on the map</a>`;
  if (names) return html`<a class="on-map" href=${`/cluster?${new URLSearchParams({ nodes: String(names) })}`}>show on the map</a>`;
  return null;
}

/** @param {string} key @param {string} value */
export function domainLink(key, value) {
  return `/cluster?${new URLSearchParams({ domain: `${key}=${value}` })}`;
}
