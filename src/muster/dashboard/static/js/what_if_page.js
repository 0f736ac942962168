/** What if: manifests are tried on the cluster as it is; nothing is changed. */

import { html, useMemo, useRef, useState } from "../vendor/htm-3.1.1/standalone.module.js";
import { ask, sentence } from "./api.js";
import { useBoard } from "./board.js";
import { ExplanationView } from "./explanation.js";
import { count, natural } from "./format.js";
import { ClusterMap, PLAIN } from "./map.js";

/** @typedef {import("./board.js").Board} Board */
/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {import("./types.js").Explanation} Explanation */

const MOST = 1 << 20;
const EXAMPLE = `apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: try-me}
spec:
  schedulingPolicy: {gang: {minCount: 4}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: try-me}
spec:
  parallelism: 4
  completions: 4
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      schedulingGroup: {podGroupName: try-me}
      containers:
      - name: worker
        image: busybox
        resources: {requests: {cpu: "4"}}
`;

/** @param {{board: Board, theme: string, moment?: string}} props */
export function WhatIfPage({ board, theme, moment = "" }) {
  useBoard(board);
  const [text, setText] = useState("");
  const [namespace, setNamespace] = useState("default");
  const [answer, setAnswer] = useState(/** @type {{answer: Answer, explanations: Explanation[]} | null} */ (null));
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState(false);
  const running = useRef(/** @type {AbortController | null} */ (null));

  async function run() {
    running.current?.abort();
    const stop = (running.current = new AbortController());
    setBusy(true);
    setFailure("");
    try {
      const query = new URLSearchParams({ namespace, ...(moment ? { moment } : {}) });
      setAnswer(await ask(`/api/what-if?${query}`, { method: "POST", body: text, headers: { "Content-Type": "application/yaml" }, signal: stop.signal }));
    } catch (error) {
      if (stop.signal.aborted) return;
      setAnswer(null);
      setFailure(sentence(error));
    }
    setBusy(false);
  }

  /** @param {DragEvent} event */
  async function drop(event) {
    event.preventDefault();
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length) setText((await Promise.all(files.map((file) => file.slice(0, MOST + 1).text()))).join("\n---\n"));
  }

  const tooLong = new Blob([text]).size > MOST;
  return html`<h1>What if</h1>
    <p class="muted">Paste or drop manifests and see where their pods would go. Nothing is changed; the answer is that of <code>muster simulate</code>.</p>
    <div class="columns what-if">
      <section>
        <label class="block">Manifests
          <textarea rows="18" spellcheck="false" value=${text} placeholder="YAML or JSON, at most 1 MiB" onInput=${(/** @type {any} */ e) => setText(e.target.value)} onDragOver=${(/** @type {Event} */ e) => e.preventDefault()} onDrop=${drop}></textarea></label>
        <div class="toolbar">
          <button type="button" class="primary" disabled=${busy || !text.trim() || tooLong} onClick=${run}>${busy ? "Trying…" : "Try it"}</button>
          ${busy && html`<button type="button" onClick=${() => { running.current?.abort(); setBusy(false); }}>Cancel</button>`}
          <label>Namespace <input value=${namespace} onInput=${(/** @type {any} */ e) => setNamespace(e.target.value)} /></label>
          ${!text && html`<button type="button" class="link" onClick=${() => setText(EXAMPLE)}>Use an example</button>`}
        </div>
        ${tooLong && html`<p class="warn">At most 1 MiB of manifests can be tried.</p>`}
        <div aria-live="polite">${failure && html`<p class="warn" role="alert">${failure}</p>`}</div>
      </section>
      <section aria-live="polite">${answer ? html`<${Result} board=${board} theme=${theme} found=${answer} />` : html`<div class="empty small"><div class="sign" aria-hidden="true">?</div><p class="muted">The answer appears here: the nodes, who would be evicted, or why not and what would help.</p></div>`}</section>
    </div>`;
}

/** @param {{board: Board, theme: string, found: {answer: Answer, explanations: Explanation[]}}} props */
function Result({ board, theme, found }) {
  const { answer, explanations } = found;
  const byNode = useMemo(() => {
    /** @type {Map<string, number>} */
    const nodes = new Map();
    for (const each of answer.placements) nodes.set(each.node, (nodes.get(each.node) ?? 0) + 1);
    return nodes;
  }, [answer]);
  const look = useMemo(() => ({ ...PLAIN, arrivals: byNode, leaving: null }), [byNode]);
  const verdict = !answer.pods ? "There is nothing to place" : answer.fits ? "It fits" : answer.undecided ? "Undecided" : "It does not fit";
  const leaving = answer.victims.reduce((n, each) => n + (each.pods ?? 1), 0);
  const evicted = leaving ? `, ${count(leaving, "eviction")}` : "";
  return html`<p class=${`verdict ${answer.fits ? "good" : "waits"}`}><strong>${answer.fits ? "●" : "○"} ${verdict}</strong>: ${answer.placements.length} of ${count(answer.pods, "pod")} would be bound${evicted}. Nothing was changed.</p>
    ${byNode.size > 0 && html`<div class="small-map"><${ClusterMap} board=${board} look=${look} theme=${theme} onNode=${() => {}} label="Where the pods would go" /></div>
      <details><summary>${count(answer.placements.length, "pod")} on ${count(byNode.size, "node")}</summary><div class="scroll"><table><thead><tr><th scope="col">Node</th><th scope="col">Pods</th></tr></thead><tbody>
      ${[...byNode].sort((a, b) => natural(a[0], b[0])).map(([node, pods]) => html`<tr><td><a href=${`/cluster?${new URLSearchParams({ node })}`}>${node}</a></td><td class="number">${pods}</td></tr>`)}</tbody></table></div></details>`}
    ${answer.victims.length > 0 && html`<h3>Would be evicted</h3><div class="scroll"><table><thead><tr><th scope="col">Pod</th><th scope="col">For</th></tr></thead><tbody>${answer.victims.map((each) => html`<tr><td>${each.pod}</td><td>${each.preemptor}</td></tr>`)}</tbody></table></div>`}
    ${explanations.map((each) => html`<section class="card"><h3>${each.namespace}/${each.name} would wait</h3><${ExplanationView} found=${each} /></section>`)}
    ${!explanations.length && answer.pending.length > 0 && html`<h3>Would wait</h3><ul class="plain">${answer.pending.slice(0, 20).map((each) => html`<li>${each.pod}: ${each.reason}</li>`)}</ul>`}`;
}
