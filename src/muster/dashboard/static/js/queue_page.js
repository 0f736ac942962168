/** Queue: what waits, in order, with why. */

import { html, useMemo } from "../vendor/htm-3.1.1/standalone.module.js";
import { useBoard } from "./board.js";
import { age, count, fullTime, natural } from "./format.js";
import { Empty, GangLink, useAnswer, useNow } from "./parts.js";
import { change, useRoute } from "./router.js";

/** @typedef {import("./board.js").Board} Board */
/** @typedef {import("./types.js").QueueRow} QueueRow */

/** @type {[string, string, (row: QueueRow) => string | number][]} */
const COLUMNS = [
  ["position", "#", (row) => row.position],
  ["name", "Name", (row) => row.workload || row.name],
  ["namespace", "Namespace", (row) => row.namespace],
  ["members", "Members", (row) => row.members],
  ["priority", "Priority", (row) => row.priority],
  ["since", "Waiting", (row) => row.since],
  ["reason", "Why", (row) => row.reason],
];

/** @param {{board: Board, moment?: string, now?: number}} props `now`: the time of a recording */
export function QueuePage({ board, moment = "", now = 0 }) {
  useBoard(board);
  const { query } = useRoute();
  const present = useNow();
  const filter = (query.get("filter") ?? "").toLowerCase();
  const sort = query.get("sort") ?? "position";
  const down = query.get("order") === "down";
  const rows = useMemo(() => sorted(board.queue, filter, sort, down), [board.queue, filter, sort, down]);
  const half = Math.floor(present / 30); // asked for twice a minute
  const starts = useAnswer(() => (board.queue.length ? `/api/starts${moment ? `?moment=${moment}` : ""}` : null), [moment, half, board.queue.length > 0]);
  const expected = useMemo(() => {
    const found = /** @type {QueueRow[]} */ (starts.data ?? []);
    return new Map(found.filter((row) => row.expectedStart && row.expectedStart !== "unknown").map((row) => [`${row.kind}/${row.namespace}/${row.name}`, row.expectedStart ?? ""]));
  }, [starts.data]);
  if (!board.queue.length) return html`<h1>Queue</h1><${Empty} title="Nothing waits" sign="●">Every pod and every gang has what it asked for.<//>`;
  return html`<h1>Queue</h1>
    <div class="toolbar"><label>Filter <input type="search" value=${query.get("filter") ?? ""} placeholder="name, namespace, reason" onInput=${(/** @type {any} */ e) => change({ filter: e.target.value })} /></label>
      <span class="muted" aria-live="polite">${count(rows.length, "row")} of ${board.waiting.toLocaleString()} waiting</span></div>
    <div class="scroll"><table><thead><tr>
      ${COLUMNS.map(([key, title]) => html`<th scope="col" aria-sort=${sort === key ? (down ? "descending" : "ascending") : "none"}>
        <button type="button" class="link" onClick=${() => change({ sort: key, order: sort === key && !down ? "down" : null })}>${title}${sort === key ? (down ? " ▾" : " ▴") : ""}</button></th>`)}
      <th scope="col">Expected start</th>
    </tr></thead><tbody>
      ${rows.map((row) => html`<tr key=${`${row.kind}/${row.namespace}/${row.name}`}>
        <td class="number">${row.position}</td>
        <td>${row.kind === "Pod" ? html`<span>${row.name}</span>` : html`<${GangLink} gang=${row} moment=${moment} text=${row.workload || row.name} />`}</td>
        <td>${row.namespace}</td><td class="number">${row.members}</td><td class="number">${row.priority}</td>
        <td class="number" title=${row.since ? fullTime(row.since) : ""}>${row.since ? age(row.since, now || present) : "unknown"}</td>
        <td class="why"><strong>${row.reason || "New"}</strong> <span>${row.message}</span></td>
        <td>${startOf(expected.get(`${row.kind}/${row.namespace}/${row.name}`))}</td>
      </tr>`)}
    </tbody></table></div>
    ${board.waiting > board.queue.length && html`<p class="muted">The first ${board.queue.length.toLocaleString()} that you may read are listed.</p>`}`;
}

/** @param {string | undefined} start */
function startOf(start) {
  return start ? fullTime(start) : html`<span class="muted">unknown</span>`;
}

/** @param {QueueRow[]} rows @param {string} filter @param {string} sort @param {boolean} down */
function sorted(rows, filter, sort, down) {
  const value = (COLUMNS.find(([key]) => key === sort) ?? COLUMNS[0])[2];
  const found = rows.filter((row) => !filter || `${row.namespace}/${row.name} ${row.reason} ${row.message}`.toLowerCase().includes(filter));
  found.sort((a, b) => {
    const x = value(a), y = value(b);
    return typeof x === "number" && typeof y === "number" ? x - y : natural(String(x), String(y));
  });
  return down ? found.reverse() : found;
}
