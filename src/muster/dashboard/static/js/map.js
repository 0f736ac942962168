/** The map: a canvas that is panned and zoomed with mouse, fingers or keys; the node under the pointer is described. */

import { html, useEffect, useMemo, useRef, useState } from "../vendor/htm-3.1.1/standalone.module.js";
import { useBoard } from "./board.js";
import { isDark } from "./colours.js";
import { amount, count, gangName } from "./format.js";
import { layout } from "./layout.js";
import { cells, paint, paintOrder } from "./painter.js";

/** @typedef {import("./board.js").Board} Board */
/** @typedef {import("./painter.js").Look} Look */
/** @typedef {import("./painter.js").View} View */
/** @typedef {import("./layout.js").Layout} Layout */

/** What is shown, beside the colours, unless a page says otherwise. @type {Omit<Look, "dark">} */
export const PLAIN = {
  colour: "gang", resource: 2, size: 1, level: 0, seats: null, gang: null, nodes: null, arrivals: null, leaving: null,
};

/**
 * @param {{board: Board, look: Omit<Look, "dark">, onNode: (name: string | null) => void, focus?: string | null,
 *   theme: string, label?: string}} props `focus`: a domain (level/value) or node to move to
 */
export function ClusterMap({ board, look, onNode, focus = null, theme, label = "Map of the cluster" }) {
  useBoard(board);
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [box, setBox] = useState({ w: 0, h: 0 });
  const [hover, setHover] = useState(-1);
  const [pointer, setPointer] = useState({ x: 0, y: 0 });
  const view = useRef(/** @type {View} */ ({ x: 0, y: 0, zoom: 0 }));
  const frame = useRef(0);
  const dark = useMemo(isDark, [theme]);
  const aspect = box.h ? Math.round((box.w / box.h) * 10) / 10 : 1.6;
  const made = useMemo(() => layout(board.nodes, board.levels, aspect), [board, board.shape, aspect]);
  const full = { ...look, dark };
  const painted = useMemo(
    () => cells(board, made, full),
    [made, board.version, dark, look.colour, look.resource, look.size, look.level, look.seats, look.gang, look.nodes, look.arrivals],
  );
  const cache = useMemo(() => ({ order: paintOrder(painted) }), [painted]);

  function draw() {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => {
      const ctx = canvas.current?.getContext("2d");
      if (ctx && box.w) paint(ctx, board, made, painted, full, view.current, hover, cache);
    });
  }

  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (!element) return;
    const observer = new ResizeObserver(() => setBox({ w: element.clientWidth, h: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current;
    if (!element || !box.w) return;
    const ratio = devicePixelRatio || 1;
    element.width = Math.round(box.w * ratio);
    element.height = Math.round(box.h * ratio);
    view.current = fitted(made, box);
    draw();
  }, [box.w, box.h, made]);

  useEffect(() => {
    if (focus && box.w) {
      const target = targetOf(made, focus);
      if (target) view.current = around(target, box);
    }
    draw();
  }, [focus, made, box.w]);

  useEffect(draw);

  /** @param {number} x @param {number} y of the canvas */
  function nodeAt(x, y) {
    const { zoom } = view.current;
    const wx = view.current.x + x / zoom, wy = view.current.y + y / zoom;
    for (let i = 0; i < made.names.length; i++) {
      if (wx >= made.x[i] && wx < made.x[i] + 1 && wy >= made.y[i] && wy < made.y[i] + 1) return i;
    }
    return -1;
  }

  /** @param {number} factor @param {number} x @param {number} y */
  function zoomAt(factor, x, y) {
    const { zoom } = view.current;
    const smallest = fitted(made, box).zoom * 0.8;
    const next = Math.max(smallest, Math.min(220, zoom * factor));
    view.current = {
      x: view.current.x + x / zoom - x / next, y: view.current.y + y / zoom - y / next, zoom: next,
    };
    draw();
  }

  const handlers = usePointer(canvas, view, draw, zoomAt, nodeAt, setHover, setPointer, (i) => onNode(i >= 0 ? made.names[i] : null));

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const move = /** @type {Record<string, [number, number]>} */ ({
      ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
    })[event.key];
    if (move) setHover(neighbour(made, hover, move[0], move[1]));
    else if (event.key === "+" || event.key === "=") zoomAt(1.4, box.w / 2, box.h / 2);
    else if (event.key === "-") zoomAt(1 / 1.4, box.w / 2, box.h / 2);
    else if (event.key === "0") view.current = fitted(made, box);
    else if (event.key === "Enter" && hover >= 0) onNode(made.names[hover]);
    else if (event.key === "Escape") onNode(null);
    else return;
    event.preventDefault();
    draw();
  }

  const node = hover >= 0 ? board.nodes.get(made.names[hover]) : undefined;
  return html`<div class="map">
    <canvas ref=${canvas} tabindex="0" role="application" aria-label=${`${label}: ${count(made.names.length, "node")}. Arrow keys move, plus and minus zoom, Enter opens a node.`}
      onKeyDown=${onKey} ...${handlers}></canvas>
    <div class="map-buttons">
      <button type="button" onClick=${() => zoomAt(1.4, box.w / 2, box.h / 2)} aria-label="Zoom in">+</button>
      <button type="button" onClick=${() => zoomAt(1 / 1.4, box.w / 2, box.h / 2)} aria-label="Zoom out">−</button>
      <button type="button" onClick=${() => { view.current = fitted(made, box); draw(); }} aria-label="Show everything">⤢</button>
    </div>
    ${node && html`<${Tip} board=${board} node=${node} at=${pointer} box=${box} />`}
    <p class="sr-only" aria-live="polite">${node ? describe(board, node) : ""}</p>
  </div>`;
}

/** @param {Board} board @param {import("./types.js").ClusterNode} node */
function describe(board, node) {
  const gangs = node.gangs.map(([id, pods]) => `${count(pods, "pod")} of ${nameOf(board, id)}`).join(", ");
  return `${node.name}${node.health ? `, ${node.health}` : ""}: ${gangs || "no pods"}`;
}

/** @param {Board} board @param {number} id */
function nameOf(board, id) {
  const gang = board.gangs.get(id);
  return id === 0 ? "namespaces you may not read" : gang ? gangName(gang) : "a gang that has ended";
}

/** @param {{board: Board, node: import("./types.js").ClusterNode, at: {x: number, y: number}, box: {w: number, h: number}}} props */
function Tip({ board, node, at, box }) {
  const style = `left:${Math.min(at.x + 14, box.w - 250)}px;top:${Math.min(at.y + 14, Math.max(0, box.h - 150))}px`;
  const shares = node.allocatable
    .map((all, i) => (all ? `${amount(i, node.requested[i])} of ${amount(i, all)}` : ""))
    .filter(Boolean);
  return html`<div class="tip" style=${style} aria-hidden="true">
    <strong>${node.name}</strong> <span class="muted">${node.domains.filter(Boolean).join(" · ")}</span>
    ${node.health && html`<div class="warn">${node.health}</div>`}
    <div class="muted">${shares.join(", ")}</div>
    ${node.gangs.slice(0, 6).map(([id, pods]) => html`<div>${count(pods, "pod")} of ${nameOf(board, id)}</div>`)}
    ${node.gangs.length > 6 && html`<div class="muted">and ${node.gangs.length - 6} more</div>`}
    ${!node.gangs.length && html`<div class="muted">no pods</div>`}
  </div>`;
}

// --- moving ----------------------------------------------------------------------------------------

/** @param {Layout} made @param {{w: number, h: number}} box @returns {View} */
function fitted(made, box) {
  const zoom = Math.max(0.5, Math.min((box.w - 16) / made.width, (box.h - 16) / made.height, 120));
  return { zoom, x: (made.width - box.w / zoom) / 2, y: (made.height - box.h / zoom) / 2 };
}

/** @param {Layout} made @param {string} focus @returns {{x: number, y: number, w: number, h: number} | null} */
function targetOf(made, focus) {
  const node = made.index.get(focus);
  if (node !== undefined) return { x: made.x[node] - 3, y: made.y[node] - 3, w: 7, h: 7 };
  const box = made.boxes.find((each) => `${each.key}=${each.value}` === focus);
  return box ?? null;
}

/** @param {{x: number, y: number, w: number, h: number}} target @param {{w: number, h: number}} box @returns {View} */
function around(target, box) {
  const zoom = Math.min((box.w * 0.7) / target.w, (box.h * 0.7) / target.h, 90);
  return { zoom, x: target.x + target.w / 2 - box.w / zoom / 2, y: target.y + target.h / 2 - box.h / zoom / 2 };
}

/** @param {Layout} made @param {number} from @param {number} dx @param {number} dy */
function neighbour(made, from, dx, dy) {
  if (from < 0) return made.names.length ? 0 : -1;
  let best = from, least = Infinity;
  for (let i = 0; i < made.names.length; i++) {
    const x = made.x[i] - made.x[from], y = made.y[i] - made.y[from];
    const along = x * dx + y * dy, across = Math.abs(x * dy) + Math.abs(y * dx);
    if (along > 0.4 && along + 3 * across < least) [best, least] = [i, along + 3 * across];
  }
  return best;
}

/**
 * Pointer, wheel and pinch.
 * @param {{current: HTMLCanvasElement | null}} canvas @param {{current: View}} view @param {() => void} draw
 * @param {(factor: number, x: number, y: number) => void} zoomAt @param {(x: number, y: number) => number} nodeAt
 * @param {(i: number) => void} setHover @param {(at: {x: number, y: number}) => void} setPointer
 * @param {(i: number) => void} onClick
 */
function usePointer(canvas, view, draw, zoomAt, nodeAt, setHover, setPointer, onClick) {
  const down = useRef(/** @type {Map<number, {x: number, y: number}>} */ (new Map()));
  const moved = useRef(0);
  const zoom = useRef(zoomAt);
  zoom.current = zoomAt;
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    /** @param {WheelEvent} event */
    const wheel = (event) => {
      event.preventDefault();
      zoom.current(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
  return {
    /** @param {PointerEvent} event */
    onPointerDown(event) {
      canvas.current?.setPointerCapture(event.pointerId);
      if (!down.current.size) moved.current = 0;
      down.current.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    },
    /** @param {PointerEvent} event */
    onPointerMove(event) {
      const before = down.current.get(event.pointerId);
      if (!before) {
        setPointer({ x: event.offsetX, y: event.offsetY });
        return setHover(nodeAt(event.offsetX, event.offsetY));
      }
      const dx = event.offsetX - before.x, dy = event.offsetY - before.y;
      moved.current += Math.abs(dx) + Math.abs(dy);
      if (down.current.size === 2) {
        const other = [...down.current].find(([id]) => id !== event.pointerId)?.[1];
        if (other) {
          const was = Math.hypot(before.x - other.x, before.y - other.y);
          const is = Math.hypot(event.offsetX - other.x, event.offsetY - other.y);
          if (was > 0) zoom.current(is / was, (event.offsetX + other.x) / 2, (event.offsetY + other.y) / 2);
        }
      } else {
        view.current = { ...view.current, x: view.current.x - dx / view.current.zoom, y: view.current.y - dy / view.current.zoom };
        draw();
      }
      down.current.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    },
    /** @param {PointerEvent} event */
    onPointerUp(event) {
      down.current.delete(event.pointerId);
      if (moved.current < 6) onClick(nodeAt(event.offsetX, event.offsetY));
    },
    /** @param {PointerEvent} event */
    onPointerCancel(event) {
      down.current.delete(event.pointerId);
    },
    onPointerLeave() {
      setHover(-1);
    },
  };
}
