/**
 * Paints the map on a canvas. Colours are computed when data changes; panning and zooming only fill rectangles, in the
 * order of their colours, so that five thousand nodes take a few milliseconds a frame.
 */

import { GANG_COLOURS, HEALTH_SIGNS, PATTERNS, healthColour, scale } from "./colours.js";
import { shortKey } from "./format.js";

/** @typedef {import("./types.js").ClusterNode} ClusterNode */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./board.js").Board} Board */
/**
 * What to show. `gang` and `nodes` are lit, everything else is dimmed; `arrivals` are pods that would come.
 * @typedef {{colour: string, resource: number, size: number, level: number, seats: Record<string, number> | null,
 *   gang: number | null, nodes: Set<string> | null, arrivals: Map<string, number> | null, leaving: Set<string> | null,
 *   dark: boolean}} Look
 */
/** @typedef {{x: number, y: number, zoom: number}} View the world point at the left top corner, and pixels a node */
/** @typedef {{colour: string, pattern: number, level: number, sign: string, dim: boolean}} Cell */

const GPU = 2;

/** @param {Board} board @param {Layout} layout @param {Look} look @returns {Cell[]} */
export function cells(board, layout, look) {
  const short = look.colour === "fragmentation" ? shortDomains(board, layout, look) : null;
  const priorities = look.colour === "priority" ? ranks(board) : null;
  return layout.names.map((name) => {
    const node = board.nodes.get(name);
    if (!node) return { colour: empty(look.dark), pattern: 0, level: 0, sign: "", dim: false };
    const cell = cellOf(node, board, look, short, priorities);
    cell.dim = dimmed(node, look);
    return cell;
  });
}

/** @param {boolean} dark */
function empty(dark) {
  return dark ? "#2a3441" : "#e3e8ee";
}

/**
 * @param {ClusterNode} node @param {Board} board @param {Look} look @param {Set<string> | null} short
 * @param {Map<number, number> | null} priorities @returns {Cell}
 */
function cellOf(node, board, look, short, priorities) {
  const sign = HEALTH_SIGNS[node.health] ?? "!";
  const share = used(node, look.resource);
  if (look.colour === "health") {
    return { colour: healthColour(node.health, look.dark), pattern: node.health ? 1 : 0, level: 1, sign, dim: false };
  }
  if (look.colour === "used") return { colour: scale(share, look.dark), pattern: 0, level: share, sign, dim: false };
  if (look.colour === "fragmentation") {
    const free = share < 1 && node.health !== "not ready";
    const lost = short !== null && short.has(node.name);
    const colour = !free ? empty(look.dark) : lost ? (look.dark ? "#ef7d3c" : "#d55e00") : look.dark ? "#2fc49a" : "#009e73";
    return { colour, pattern: free && lost ? 1 : 0, level: free ? 1 - share : 1, sign, dim: false };
  }
  const first = node.gangs[0];
  if (!first) return { colour: empty(look.dark), pattern: 0, level: 1, sign, dim: false };
  if (look.colour === "priority") {
    const most = Math.max(...node.gangs.map((cell) => priorities?.get(cell[0]) ?? 0));
    return { colour: scale(most, look.dark), pattern: 0, level: Math.max(0.2, most), sign, dim: false };
  }
  const chosen = look.gang !== null ? node.gangs.find((cell) => cell[0] === look.gang) ?? first : first;
  return { ...gangColour(chosen[0], look.dark), level: Math.max(0.25, share), sign, dim: false };
}

/** @param {number} id @param {boolean} dark */
export function gangColour(id, dark) {
  if (id === 0) return { colour: dark ? "#6b7785" : "#9aa7b5", pattern: 3 };
  const palette = dark ? GANG_COLOURS.dark : GANG_COLOURS.light;
  return { colour: palette[(id - 1) % palette.length], pattern: Math.floor((id - 1) / palette.length) % PATTERNS };
}

/** @param {ClusterNode} node @param {number} resource */
export function used(node, resource) {
  const all = node.allocatable[resource];
  if (!all) return node.gangs.length ? Math.min(1, node.requested[0] / Math.max(1, node.allocatable[0])) : 0;
  return Math.min(1, node.requested[resource] / all);
}

/** @param {ClusterNode} node @param {Look} look */
function dimmed(node, look) {
  if (look.arrivals) return !look.arrivals.has(node.name) && !look.leaving?.has(node.name);
  if (look.gang !== null) return !node.gangs.some((cell) => cell[0] === look.gang);
  return look.nodes !== null && !look.nodes.has(node.name);
}

/** Priorities as shares of the range, by gang. @param {Board} board @returns {Map<number, number>} */
function ranks(board) {
  const values = [...new Set([...board.gangs.values()].map((gang) => gang.priority))].sort((a, b) => a - b);
  const last = Math.max(1, values.length - 1);
  return new Map([...board.gangs.values()].map((gang) => [gang.id, values.indexOf(gang.priority) / last]));
}

/** Nodes in domains that have fewer seats than the gang needs. @param {Board} board @param {Layout} layout
 * @param {Look} look @returns {Set<string>} */
function shortDomains(board, layout, look) {
  const found = /** @type {Set<string>} */ (new Set());
  const seats = look.seats ?? {};
  const domains = look.level < board.levels.length
    ? layout.boxes.filter((box) => box.level === look.level).map((box) => box.nodes.map((i) => layout.names[i]))
    : layout.names.map((name) => [name]);
  for (const names of domains) {
    const sum = names.reduce((total, name) => total + (seats[name] ?? 0), 0);
    if (sum < look.size) names.forEach((name) => found.add(name));
  }
  return found;
}

// --- painting --------------------------------------------------------------------------------------

/**
 * @param {CanvasRenderingContext2D} ctx @param {Board} board @param {Layout} layout @param {Cell[]} painted
 * @param {Look} look @param {View} view @param {number} hover @param {{order: number[]}} cache
 */
export function paint(ctx, board, layout, painted, look, view, hover, cache) {
  const { width, height } = ctx.canvas;
  const ratio = devicePixelRatio || 1;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  const w = width / ratio, h = height / ratio;
  ctx.clearRect(0, 0, w, h);
  paintBoxes(ctx, layout, look, view, w, h);
  const size = view.zoom;
  const gap = size > 6 ? Math.min(3, size * 0.1) : size > 3 ? 0.5 : 0;
  const visible = cache.order.filter((i) => {
    const x = (layout.x[i] - view.x) * size, y = (layout.y[i] - view.y) * size;
    return x > -size && y > -size && x < w && y < h;
  });
  let last = "";
  for (const i of visible) {
    const cell = painted[i];
    const x = (layout.x[i] - view.x) * size, y = (layout.y[i] - view.y) * size, side = size - gap;
    if (size > 5 && cell.level < 1) {
      ctx.globalAlpha = cell.dim ? 0.35 : 1;
      if (last !== "ground") ctx.fillStyle = empty(look.dark);
      last = "ground";
      ctx.fillRect(x, y, side, side);
    }
    ctx.globalAlpha = cell.dim ? 0.18 : 1;
    if (last !== cell.colour) ctx.fillStyle = last = cell.colour;
    const tall = size > 5 ? side * cell.level : side;
    ctx.fillRect(x, y + side - tall, side, tall);
  }
  ctx.globalAlpha = 1;
  if (size > 9) for (const i of visible) paintDetails(ctx, board, layout, painted, look, view, i, size - gap);
  else paintPatterns(ctx, layout, painted, look, view, visible, size - gap);
  if (look.gang !== null || look.arrivals || look.nodes) outline(ctx, layout, painted, look, view, visible, size - gap);
  if (hover >= 0) frame(ctx, layout, view, hover, size - gap, look.dark ? "#fff" : "#111");
}

/** @param {CanvasRenderingContext2D} ctx @param {Layout} layout @param {Look} look @param {View} view
 * @param {number} w @param {number} h */
function paintBoxes(ctx, layout, look, view, w, h) {
  ctx.textBaseline = "top";
  for (const box of layout.boxes) {
    const x = (box.x - view.x) * view.zoom, y = (box.y - view.y) * view.zoom;
    const bw = box.w * view.zoom, bh = box.h * view.zoom;
    if (x > w || y > h || x + bw < 0 || y + bh < 0 || bw < 6) continue;
    ctx.fillStyle = look.dark ? ["#161d26", "#1b2430", "#202b39"][box.level % 3] : ["#eef2f6", "#f6f8fa", "#ffffff"][box.level % 3];
    ctx.fillRect(x, y, bw, bh);
    ctx.strokeStyle = look.dark ? "#394859" : "#c6d0da";
    ctx.lineWidth = 1;
    ctx.strokeRect(x + 0.5, y + 0.5, bw - 1, bh - 1);
    const font = Math.min(14, box.header * view.zoom * 0.75);
    if (font < 7 || bw < 26) continue;
    ctx.fillStyle = look.dark ? "#a9b8c8" : "#46535f";
    ctx.font = `${font}px system-ui, sans-serif`;
    const text = box.value || `no ${shortKey(box.key)}`;
    const above = Math.min(5, (box.header * view.zoom - font) / 2);
    ctx.fillText(fit(text, bw - 10, font), Math.max(x, 0) + 6, y + above, bw - 10);
  }
}

/** @param {string} text @param {number} width @param {number} font */
function fit(text, width, font) {
  const most = Math.floor(width / (font * 0.55));
  return text.length <= most ? text : most > 2 ? `${text.slice(0, most - 1)}…` : "";
}

/** @param {CanvasRenderingContext2D} ctx @param {Layout} layout @param {Cell[]} painted @param {Look} look
 * @param {View} view @param {number[]} visible @param {number} side */
function paintPatterns(ctx, layout, painted, look, view, visible, side) {
  if (side < 3) return;
  ctx.fillStyle = look.dark ? "rgba(0,0,0,.55)" : "rgba(255,255,255,.7)";
  for (const i of visible) {
    if (!painted[i].pattern || painted[i].dim) continue;
    const x = (layout.x[i] - view.x) * view.zoom, y = (layout.y[i] - view.y) * view.zoom;
    if (painted[i].pattern === 1) ctx.fillRect(x, y + side / 2, side, 1);
    else if (painted[i].pattern === 2) ctx.fillRect(x + side / 2, y, 1, side);
    else ctx.fillRect(x + side / 2 - 1, y + side / 2 - 1, 2, 2);
  }
}

/** @param {CanvasRenderingContext2D} ctx @param {Board} board @param {Layout} layout @param {Cell[]} painted
 * @param {Look} look @param {View} view @param {number} i @param {number} side */
function paintDetails(ctx, board, layout, painted, look, view, i, side) {
  const node = board.nodes.get(layout.names[i]);
  if (!node) return;
  const x = (layout.x[i] - view.x) * view.zoom, y = (layout.y[i] - view.y) * view.zoom;
  const cell = painted[i];
  ctx.globalAlpha = cell.dim ? 0.25 : 1;
  if (look.colour === "gang" && side >= 22) paintSeats(ctx, node, look, x, y, side);
  else if (cell.pattern) hatch(ctx, x, y + side * (1 - cell.level), side, side * cell.level, cell.pattern, look.dark);
  if (cell.sign) {
    ctx.font = `bold ${Math.min(20, side * 0.7)}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    write(ctx, cell.sign, x + side / 2, y + side * 0.12, look.dark);
    ctx.textAlign = "start";
  }
  if (look.leaving?.has(node.name)) {
    ctx.fillStyle = look.dark ? "#ef7d3c" : "#d55e00";
    ctx.fillRect(x, y, side, Math.max(2, side * 0.15));
  }
  const arriving = look.arrivals?.get(node.name);
  if (arriving) {
    ctx.font = `bold ${Math.min(16, side * 0.55)}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    write(ctx, `+${arriving}`, x + side / 2, y + side * 0.25, look.dark);
    ctx.textAlign = "start";
  }
  if (side >= 64) {
    ctx.font = "11px system-ui, sans-serif";
    write(ctx, fit(node.name, side - 4, 11), x + 3, y + 3, look.dark);
  }
  ctx.globalAlpha = 1;
}

/** Text that can be read on any colour: its ground goes with it. @param {CanvasRenderingContext2D} ctx
 * @param {string} text @param {number} x @param {number} y @param {boolean} dark */
function write(ctx, text, x, y, dark) {
  ctx.lineJoin = "round";
  ctx.lineWidth = 3;
  ctx.strokeStyle = dark ? "#161d26" : "#ffffff";
  ctx.strokeText(text, x, y);
  ctx.fillStyle = dark ? "#f1f5f9" : "#1d2733";
  ctx.fillText(text, x, y);
}

/** The GPUs of a node (or, without any, its share of CPUs) as small squares in the colours of their gangs; gangs that
 * hold none of them are a strip at the foot.
 * @param {CanvasRenderingContext2D} ctx @param {ClusterNode} node @param {Look} look
 * @param {number} x @param {number} y @param {number} side */
function paintSeats(ctx, node, look, x, y, side) {
  const gpus = node.allocatable[GPU];
  const total = gpus ? Math.min(64, gpus) : 16;
  const top = side >= 64 ? 16 : 1;
  let columns = Math.ceil(Math.sqrt(total));
  while (total % columns) columns++; // full rows where the number allows it
  if (columns > 2 * Math.sqrt(total)) columns = Math.ceil(Math.sqrt(total));
  const wide = (side - 2) / columns, tall = (side - top - 1) / Math.ceil(total / columns);
  ctx.fillStyle = look.dark ? "#161d26" : "#ffffff";
  ctx.fillRect(x, y, side, side);
  /** @type {number[]} */
  const owners = [], others = [];
  for (const [gang, , cpu, , gpu] of node.gangs) {
    const squares = gpus ? Math.round((gpu * total) / gpus) : Math.round((cpu * total) / Math.max(1, node.allocatable[0]));
    if (!squares) others.push(gang);
    for (let n = 0; n < squares && owners.length < total; n++) owners.push(gang);
  }
  for (let n = 0; n < total; n++) {
    const left = x + 1 + (n % columns) * wide, up = y + top + Math.floor(n / columns) * tall;
    const owner = owners[n];
    const found = owner === undefined ? { colour: empty(look.dark), pattern: 0 } : gangColour(owner, look.dark);
    const was = ctx.globalAlpha;
    if (look.gang !== null && owner !== look.gang) ctx.globalAlpha = 0.25;
    ctx.fillStyle = found.colour;
    ctx.fillRect(left, up, wide - 1, tall - 1);
    if (found.pattern && wide > 6) hatch(ctx, left, up, wide - 1, tall - 1, found.pattern, look.dark);
    ctx.globalAlpha = was;
  }
  const foot = Math.max(3, side * 0.06);
  others.forEach((gang, n) => {
    ctx.fillStyle = gangColour(gang, look.dark).colour;
    ctx.fillRect(x + 1 + (n * (side - 2)) / others.length, y + side - foot, (side - 2) / others.length - 1, foot);
  });
}

/** @param {CanvasRenderingContext2D} ctx @param {number} x @param {number} y @param {number} w @param {number} h
 * @param {number} pattern @param {boolean} dark */
function hatch(ctx, x, y, w, h, pattern, dark) {
  ctx.fillStyle = ctx.strokeStyle = dark ? "rgba(0,0,0,.6)" : "rgba(255,255,255,.75)";
  ctx.lineWidth = 1.5;
  if (pattern === 3) {
    for (let dx = 3; dx < w; dx += 6) for (let dy = 3; dy < h; dy += 6) ctx.fillRect(x + dx - 1, y + dy - 1, 2, 2);
    return;
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  ctx.beginPath();
  for (let at = -h; at < w + h; at += 6) {
    ctx.moveTo(x + at, pattern === 1 ? y + h : y);
    ctx.lineTo(x + at + h, pattern === 1 ? y : y + h);
  }
  ctx.stroke();
  ctx.restore();
}

/** @param {CanvasRenderingContext2D} ctx @param {Layout} layout @param {Cell[]} painted @param {Look} look
 * @param {View} view @param {number[]} visible @param {number} side */
function outline(ctx, layout, painted, look, view, visible, side) {
  ctx.strokeStyle = look.dark ? "#ffffff" : "#111111";
  ctx.lineWidth = side > 12 ? 2 : 1;
  for (const i of visible) {
    if (painted[i].dim) continue;
    const x = (layout.x[i] - view.x) * view.zoom, y = (layout.y[i] - view.y) * view.zoom;
    ctx.strokeRect(x, y, side, side);
  }
}

/** @param {CanvasRenderingContext2D} ctx @param {Layout} layout @param {View} view @param {number} i
 * @param {number} side @param {string} colour */
function frame(ctx, layout, view, i, side, colour) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2.5;
  ctx.strokeRect((layout.x[i] - view.x) * view.zoom - 1, (layout.y[i] - view.y) * view.zoom - 1, side + 2, side + 2);
}

/** The order in which cells are painted: by colour. @param {Cell[]} painted */
export function paintOrder(painted) {
  return painted.map((_, i) => i).sort((a, b) => (painted[a].colour < painted[b].colour ? -1 : painted[a].colour > painted[b].colour ? 1 : 0));
}
