/** Time: a recording with a slider; the map, the queue and a gang as they were, step by step. */

import { html, useEffect, useMemo, useRef, useState } from "../vendor/htm-3.1.1/standalone.module.js";
import { objectPath } from "./api.js";
import { Board, useBoard } from "./board.js";
import { ClusterPage } from "./cluster_page.js";
import { clock, count, fullTime, shortKey } from "./format.js";
import { GroupPage } from "./group_page.js";
import { Empty, useAnswer } from "./parts.js";
import { QueuePage } from "./queue_page.js";
import { change, useRoute } from "./router.js";

/** @typedef {import("./types.js").Times} Times */
/** @typedef {import("./types.js").Step} Step */

/** @param {{theme: string}} props */
export function TimePage({ theme }) {
  const { query } = useRoute();
  const [board] = useState(() => new Board());
  useBoard(board);
  const answer = useAnswer(() => "/api/time", []);
  const times = /** @type {Times | null} */ (answer.data);
  const [playing, setPlaying] = useState(false);
  const steps = times?.steps ?? [];
  const line = query.get("moment") ?? (times?.times.length ? String(times.times[times.times.length - 1][0]) : "");
  const at = useMemo(() => (times ? timeOf(times, Number(line)) : 0), [times, line]);
  const step = useMemo(() => lastIndex(steps, (each) => each.line <= Number(line)), [steps, line]);
  const tab = query.get("tab") ?? "map";
  useEffect(() => {
    if (line) board.show(line);
  }, [line]);
  useEffect(() => {
    if (!playing) return;
    const next = steps[step + 1];
    if (!next) return setPlaying(false);
    const timer = setTimeout(() => change({ moment: String(next.line) }), 700);
    return () => clearTimeout(timer);
  }, [playing, step, steps]);
  if (answer.failure) return html`<h1>Time</h1><${Empty} title="The recording cannot be read" sign="⊘">${answer.failure}<//>`;
  if (!times) return html`<h1>Time</h1><${Empty} title="Reading the recording" busy=${true} />`;
  if (!times.recording) return html`<h1>Time</h1><${Empty} title="There is no recording"><p>Record with <code>muster scheduler --decision-log FILE</code>, and open it with <code>muster dashboard --decision-log FILE</code>.</p><//>`;
  /** @param {number} by */
  const move = (by) => {
    const to = steps[Math.max(0, Math.min(steps.length - 1, step + by))];
    if (to) change({ moment: String(to.line) });
  };
  const current = steps[step];
  return html`<h1 class="sr-only">Time</h1>
    <div class="time-bar">
      <div class="buttons"><button type="button" aria-label="Step back" disabled=${step <= 0} onClick=${() => move(-1)}>‹</button>
        <button type="button" class="primary" aria-label=${playing ? "Pause" : "Play"} onClick=${() => { if (!playing && step >= steps.length - 1) change({ moment: String(steps[0]?.line ?? 1) }); setPlaying(!playing); }}>${playing ? "❚❚" : "▶"}</button>
        <button type="button" aria-label="Step forward" disabled=${step >= steps.length - 1} onClick=${() => move(1)}>›</button></div>
      <label class="slider"><span class="sr-only">Moment</span>
        <input type="range" min="0" max=${Math.max(0, times.times.length - 1)} value=${indexOf(times, Number(line))} aria-valuetext=${fullTime(at)} onInput=${(/** @type {any} */ e) => { setPlaying(false); change({ moment: String(times.times[Number(e.target.value)][0]) }); }} />
        <${Marks} times=${times} /></label>
      <output class="now"><strong>${clock(at)}</strong> <span class="muted">${times.recording}, ${count(steps.length, "step")}</span></output>
    </div>
    <div class="time-body">
      <div class="time-main">
        <nav class="tabs" aria-label="At this moment">${[["map", "Map"], ["queue", `Queue (${board.waiting})`], ["group", "Gang"]].map(([key, title]) => html`<button type="button" aria-pressed=${tab === key} onClick=${() => change({ tab: key })}>${title}</button>`)}</nav>
        ${tab === "queue" ? html`<${QueuePage} board=${board} moment=${line} now=${at} />` : tab === "group" ? html`<${GangThen} board=${board} steps=${steps} step=${current} line=${line} />` : html`<${ClusterPage} board=${board} theme=${theme} moment=${line} />`}
      </div>
      <aside class="steps" aria-label="Steps"><h2>Decisions</h2><${Steps} steps=${steps} step=${step} /></aside>
    </div>`;
}

/** @param {{times: Times}} props */
function Marks({ times }) {
  const marks = useMemo(() => {
    const every = Math.max(1, Math.floor(times.steps.length / 200));
    return times.steps.filter((_, i) => i % every === 0).map((step) => [(100 * indexOf(times, step.line)) / Math.max(1, times.times.length - 1), step.evicted ? "waits" : step.bound ? "good" : ""]);
  }, [times]);
  return html`<span class="marks" aria-hidden="true">${marks.map(([left, name]) => html`<i class=${String(name)} style=${`left:${left}%`}></i>`)}</span>`;
}

/** @param {{steps: Step[], step: number}} props */
function Steps({ steps, step }) {
  const list = useRef(/** @type {HTMLOListElement | null} */ (null));
  useEffect(() => list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }), [step]);
  const first = Math.max(0, step - 100);
  return html`<ol class="plain" ref=${list}>${steps.slice(first, step + 100).map((each, i) => html`<li key=${each.line}>
    <button type="button" class="link" aria-current=${first + i === step ? "step" : undefined} onClick=${() => change({ moment: String(each.line), about: `${each.kind}/${each.namespace}/${each.name}` })}>
    <time>${clock(each.at)}</time> ${each.bound ? "●" : each.evicted ? "×" : "○"} ${each.text}</button></li>`)}</ol>`;
}

/** The gang of the step, or a chosen one, as it was; and why it went where it went.
 * @param {{board: Board, steps: Step[], step: Step | undefined, line: string}} props */
function GangThen({ board, steps, step, line }) {
  const { query } = useRoute();
  const [kind, namespace, ...rest] = (query.get("about") ?? (step ? `${step.kind}/${step.namespace}/${step.name}` : "")).split("/");
  const name = rest.join("/");
  const bound = lastOf(steps, (each) => each.bound > 0 && each.line <= Number(line) && each.kind === kind && each.namespace === namespace && each.name === name);
  if (kind !== "PodGroup" && kind !== "CompositePodGroup") return html`<${Empty} title="Choose a decision about a gang">The list on the right has them all.<//>`;
  return html`${bound && html`<${WhyHere} step=${bound} />`}<${GroupPage} board=${board} kind=${kind} namespace=${namespace} name=${name} moment=${line} />`;
}

/** @param {{step: Step}} props */
function WhyHere({ step }) {
  const answer = useAnswer(() => `/api/why-here/${step.line}/${objectPath(step)}`, [step.line]);
  const groups = /** @type {any[] | null} */ (answer.data);
  return html`<section class="card"><h2>Why it was placed here at ${clock(step.at)}</h2>
    ${answer.failure && html`<p class="warn">${answer.failure}</p>`}
    ${groups?.map((group) => html`<h3>${group.name}</h3><p>${group.sentence}</p><ul class="choices">${group.domains.map((/** @type {any} */ domain) => html`<li class=${domain.got ? "chosen" : ""}><span>${domain.got ? "●" : "○"} ${shortKey(domain.key)} ${domain.value}</span><span class="muted">${count(domain.seats, "seat")} before${domain.got ? `, got ${domain.got}` : ""}</span></li>`)}</ul>${group.others > 0 && html`<p class="muted">and ${group.others} more</p>`}`)}
  </section>`;
}

/** @param {Times} times @param {number} line */
function indexOf(times, line) {
  return Math.max(0, lastIndex(times.times, ([each]) => each <= line));
}

/** @param {Times} times @param {number} line */
function timeOf(times, line) {
  const step = times.steps.find((each) => each.line === line);
  return step ? step.at : times.times[indexOf(times, line)]?.[1] ?? times.start;
}

/** @template T @param {T[]} items @param {(item: T) => boolean} matches */
function lastIndex(items, matches) {
  for (let i = items.length - 1; i >= 0; i--) if (matches(items[i])) return i;
  return -1;
}

/** @template T @param {T[]} items @param {(item: T) => boolean} matches @returns {T | undefined} */
function lastOf(items, matches) {
  return items[lastIndex(items, matches)];
}
