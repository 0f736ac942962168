/** Health: pending pods and gangs, verdicts, times to bind, utilisation, evictions, leader and watches. */

import { html, useEffect, useMemo, useRef } from "../vendor/htm-3.1.1/standalone.module.js";
import UPlot from "../vendor/uPlot-1.6.32/uPlot.esm.js";
import { useBoard } from "./board.js";
import { GANG_COLOURS, isDark } from "./colours.js";
import { age, clock, count, duration, fullTime, resourceWord } from "./format.js";
import { Badge, Empty, useAnswer, useNow } from "./parts.js";

/** @typedef {import("./board.js").Board} Board */
/** @typedef {{label: string, values: (number | null)[], dash?: number[]}} Series */

/** @param {{board: Board, theme: string}} props */
export function HealthPage({ board, theme }) {
  useBoard(board);
  const now = useNow(5000);
  const answer = useAnswer(() => "/api/health", [now]);
  const found = /** @type {any} */ (answer.data);
  if (answer.failure) return html`<h1>Health</h1><${Empty} title="No figures" sign="⊘">${answer.failure}<//>`;
  if (!found) return html`<h1>Health</h1><${Empty} title="Counting" busy=${true} />`;
  const last = found.samples[found.samples.length - 1];
  return html`<h1>Health</h1>
    <div class="cards">
      <${Figure} title="Pending pods" value=${found.pendingPods} />
      <${Figure} title="Pending gangs" value=${found.pendingGroups} />
      <${Figure} title="Nodes" value=${found.nodes} note=${found.unhealthy ? `${found.unhealthy} not healthy` : "all healthy"} good=${!found.unhealthy} />
      <${Figure} title="Evictions seen" value=${found.evicted} />
      ${last && Object.entries(last.used).map(([name, share]) => html`<${Figure} title=${`${resourceWord(name)} used`} value=${`${Math.round(100 * Number(share))} %`} />`)}
    </div>
    <div class="columns">
      <section class="card"><h2>Waiting</h2><${Chart} theme=${theme} samples=${found.samples} series=${waiting(found.samples)} share=${false} /></section>
      <section class="card"><h2>Utilisation and fragmentation</h2><${Chart} theme=${theme} samples=${found.samples} series=${usage(found.samples)} share=${true} /></section>
      <section class="card"><h2>From complete to bound</h2><${Histogram} waits=${found.waits} /></section>
      <section class="card"><h2>Verdicts</h2><${Verdicts} verdicts=${found.verdicts} /></section>
      <section class="card"><h2>Evictions</h2><${Evictions} rows=${found.evictions} /></section>
      <section class="card"><h2>Leader and watches</h2><${Watches} found=${found} now=${now} /></section>
    </div>`;
}

/** @param {{title: string, value: unknown, note?: string, good?: boolean}} props */
function Figure({ title, value, note = "", good = true }) {
  return html`<div class="figure"><span class="muted">${title}</span><strong>${typeof value === "number" ? value.toLocaleString() : value}</strong>${note && html`<${Badge} good=${good}>${note}<//>`}</div>`;
}

/** @param {any[]} samples @returns {Series[]} */
function waiting(samples) {
  return [
    { label: "pods", values: samples.map((each) => each.pendingPods) },
    { label: "queue entries", values: samples.map((each) => each.waiting), dash: [6, 4] },
  ];
}

/** @param {any[]} samples @returns {Series[]} */
function usage(samples) {
  const names = [...new Set(samples.flatMap((each) => Object.keys(each.used)))];
  const dashes = [[], [6, 4], [2, 3]];
  return [
    ...names.map((name, i) => ({ label: resourceWord(name), values: samples.map((each) => each.used[name] ?? null), dash: dashes[i % 3] })),
    { label: "fragmented (of what is free)", values: samples.map((each) => each.fragmented), dash: [10, 3, 2, 3] },
  ];
}

/** @param {{samples: any[], series: Series[], share: boolean, theme: string}} props */
function Chart({ samples, series, share, theme }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const data = useMemo(() => [samples.map((each) => each.at), ...series.map((each) => each.values)], [samples]);
  useEffect(() => {
    const element = place.current;
    if (!element || samples.length < 2) return;
    const dark = isDark();
    const ink = dark ? "#c3d0dd" : "#3b4854", lines = dark ? "#2f3b49" : "#dfe5eb";
    const palette = dark ? GANG_COLOURS.dark : GANG_COLOURS.light;
    const axis = { stroke: ink, grid: { stroke: lines, width: 1 }, ticks: { stroke: lines } };
    const plot = new UPlot(
      {
        width: element.clientWidth, height: 190, legend: { live: false }, cursor: { show: false },
        scales: { y: { range: share ? [0, 1] : (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } },
        axes: [axis, { ...axis, size: 58, values: (_plot, ticks) => ticks.map((tick) => (share ? `${Math.round(tick * 100)} %` : tick.toLocaleString())) }],
        series: [{}, ...series.map((each, i) => ({ label: each.label, stroke: palette[i % palette.length], width: 2, dash: each.dash ?? [], points: { show: false } }))],
      },
      /** @type {any} */ (data), element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 190 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [data, theme]);
  if (samples.length < 2) return html`<p class="muted">The line begins with the second sample, in a few seconds.</p>`;
  const latest = series.map((each) => `${each.label} ${share ? `${Math.round(100 * (each.values[each.values.length - 1] ?? 0))} %` : each.values[each.values.length - 1]}`);
  return html`<div class="chart" ref=${place} role="img" aria-label=${`Latest: ${latest.join(", ")}`}></div>`;
}

/** @param {{waits: {bounds: number[], counts: number[]}}} props */
function Histogram({ waits }) {
  const most = Math.max(1, ...waits.counts);
  const names = waits.counts.map((_, i) => (i === 0 ? `under ${duration(waits.bounds[0])}` : i === waits.bounds.length ? `${duration(waits.bounds[i - 1])} or more` : `under ${duration(waits.bounds[i])}`));
  if (!waits.counts.some(Boolean)) return html`<p class="muted">No gang has been bound yet.</p>`;
  return html`<table class="histogram"><caption class="sr-only">Gangs by the time from complete to bound</caption><tbody>${waits.counts.map((value, i) => html`<tr><th scope="row">${names[i]}</th><td><div class="bar"><div style=${`width:${(100 * value) / most}%`}></div></div></td><td class="number">${value}</td></tr>`)}</tbody></table>`;
}

/** @param {{verdicts: Record<string, number>}} props */
function Verdicts({ verdicts }) {
  const rows = Object.entries(verdicts).sort((a, b) => b[1] - a[1]);
  if (!rows.length) return html`<p class="muted">No gang has been tried yet.</p>`;
  return html`<table><thead><tr><th scope="col">Verdict</th><th scope="col">Times</th></tr></thead><tbody>${rows.map(([reason, times]) => html`<tr><td><${Badge} good=${reason === "Scheduled"}>${reason}<//></td><td class="number">${times}</td></tr>`)}</tbody></table>`;
}

/** @param {{rows: any[]}} props */
function Evictions({ rows }) {
  if (!rows.length) return html`<p class="muted">No eviction was seen.</p>`;
  return html`<div class="scroll short" tabindex="0" role="region" aria-label="Evictions"><table><thead><tr><th scope="col">When</th><th scope="col">Pod</th><th scope="col">Why</th></tr></thead><tbody>${[...rows].reverse().map((row) => html`<tr><td title=${fullTime(row.at)}>${clock(row.at)}</td><td>${row.namespace}/${row.pod}</td><td>${row.message || row.reason}</td></tr>`)}</tbody></table></div>`;
}

/** @param {{found: any, now: number}} props */
function Watches({ found, now }) {
  if (!found.watches) return html`<p class="muted">These pages show a file: nothing is watched.</p>`;
  const broken = found.watches.filter((/** @type {any} */ each) => each.trouble);
  const total = found.watches.reduce((/** @type {number} */ sum, /** @type {any} */ each) => sum + each.objects, 0);
  return html`<p>${found.leaders.length ? found.leaders.map((/** @type {any} */ each) => html`<div>${each.holder} leads <span class="muted">(${each.lease}, renewed ${age(each.renewed, now)} ago)</span></div>`) : html`<span class="muted">No lease: one scheduler, or its lease is not readable.</span>`}</p>
    <p><${Badge} good=${!broken.length}>${broken.length ? `${count(broken.length, "kind")} cannot be watched` : `${count(found.watches.length, "kind")} watched, ${count(total, "object")}`}<//> <span class="muted">the last new pod arrived within ${duration(found.delaySeconds + 1)} of its creation</span></p>
    <p class="muted">Groups: ${found.groups}${Object.keys(found.gates).length ? `; feature gates of the scheduler: ${Object.entries(found.gates).map(([name, on]) => `${name}=${on}`).join(", ")}` : ""}</p>
    <details><summary>Every watch</summary><table><thead><tr><th scope="col">Kind</th><th scope="col">Objects</th><th scope="col">Last change</th></tr></thead><tbody>${found.watches.map((/** @type {any} */ each) => html`<tr><td>${each.kind}</td><td class="number">${each.objects}</td><td>${each.trouble ? html`<span class="warn">${each.trouble}</span>` : each.quietSeconds === null ? "none yet" : `${duration(each.quietSeconds)} ago`}</td></tr>`)}</tbody></table></details>`;
}
