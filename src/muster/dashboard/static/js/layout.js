/** Where each node lies on the map: racks are grids of nodes, blocks are rows of racks, zones are rows of blocks. */

import { natural } from "./format.js";

/** @typedef {import("./types.js").ClusterNode} ClusterNode */
/** @typedef {{level: number, key: string, value: string, path: string, x: number, y: number, w: number, h: number,
 *   header: number, nodes: number[]}} Box a domain */
/** @typedef {{names: string[], x: Float32Array, y: Float32Array, boxes: Box[], width: number, height: number,
 *   index: Map<string, number>}} Layout */

/** @typedef {{w: number, h: number, place: (x: number, y: number) => number[]}} Part */

/** The room for the name of a domain, in nodes: more on a large map, where a node is small. */
const LEAST_HEADER = 0.5, MOST_HEADER = 1.6;

/**
 * @param {Map<string, ClusterNode>} nodes
 * @param {string[]} levels
 * @param {number} aspect width to height of where the map is shown
 * @returns {Layout}
 */
export function layout(nodes, levels, aspect) {
  const all = [...nodes.values()].sort((a, b) => natural(a.name, b.name));
  /** @type {Layout} */
  const made = {
    names: all.map((node) => node.name),
    x: new Float32Array(all.length),
    y: new Float32Array(all.length),
    boxes: [],
    width: 1,
    height: 1,
    index: new Map(all.map((node, i) => [node.name, i])),
  };
  const whole = part(made, all, all.map((_, i) => i), levels, 0, "", aspect);
  whole.place(0, 0);
  made.boxes.sort((a, b) => a.level - b.level); // outer ones are painted first
  made.width = Math.max(1, whole.w);
  made.height = Math.max(1, whole.h);
  return made;
}

/**
 * @param {Layout} made @param {ClusterNode[]} all @param {number[]} inside @param {string[]} levels
 * @param {number} depth @param {string} path @param {number} aspect
 * @returns {Part}
 */
function part(made, all, inside, levels, depth, path, aspect) {
  if (depth === levels.length) return grid(made, inside, aspect);
  /** @type {Map<string, number[]>} */
  const groups = new Map();
  for (const i of inside) {
    const value = all[i].domains[depth] ?? "";
    const found = groups.get(value);
    if (found) found.push(i);
    else groups.set(value, [i]);
  }
  const names = [...groups.keys()].sort((a, b) => Number(!a) - Number(!b) || natural(a, b));
  const share = [1, 0.8, 0.6][Math.min(2, depth)];
  const header = share * Math.max(LEAST_HEADER, Math.min(MOST_HEADER, Math.sqrt(all.length) / 40));
  const parts = names.map((value) => {
    const below = groups.get(value) ?? [];
    const child = part(made, all, below, levels, depth + 1, `${path}/${value}`, names.length === 1 ? aspect : 1.5);
    return { value, below, child, w: child.w + 0.5, h: child.h + header + 0.25 };
  });
  const gap = depth === levels.length - 1 ? 0.35 : depth === levels.length - 2 ? 0.9 : 1.4;
  const shelves = shelve(parts, gap, aspect);
  return {
    w: shelves.width,
    h: shelves.height,
    place(x, y) {
      parts.forEach((each, i) => {
        const [left, top] = shelves.places[i];
        each.child.place(x + left + 0.25, y + top + header);
        made.boxes.push({
          level: depth, key: levels[depth], value: each.value, path: `${path}/${each.value}`,
          x: x + left, y: y + top, w: each.w, h: each.h, header, nodes: each.below,
        });
      });
      return [];
    },
  };
}

/** @param {Layout} made @param {number[]} inside @param {number} aspect @returns {Part} */
function grid(made, inside, aspect) {
  const columns = Math.max(1, Math.ceil(Math.sqrt(inside.length * aspect)));
  return {
    w: Math.min(columns, inside.length),
    h: Math.ceil(inside.length / columns),
    place(x, y) {
      inside.forEach((i, n) => {
        made.x[i] = x + (n % columns);
        made.y[i] = y + Math.floor(n / columns);
      });
      return inside;
    },
  };
}

/**
 * Rows of parts, in as many columns as come nearest to the aspect.
 * @param {{w: number, h: number}[]} parts @param {number} gap @param {number} aspect
 */
function shelve(parts, gap, aspect) {
  let best = rows(parts, gap, 0), least = Infinity, width = 0;
  for (const each of parts.slice(0, 80)) {
    width += each.w + gap;
    const tried = rows(parts, gap, width);
    const off = Math.abs(Math.log(tried.width / tried.height / aspect));
    if (off < least) [best, least] = [tried, off];
  }
  return best;
}

/** @param {{w: number, h: number}[]} parts @param {number} gap @param {number} target width of a row */
function rows(parts, gap, target) {
  /** @type {[number, number][]} */
  const places = [];
  let x = 0, y = 0, row = 0, width = 0;
  for (const each of parts) {
    if (x > 0 && x + each.w > target + 0.01) {
      x = 0;
      y += row + gap;
      row = 0;
    }
    places.push([x, y]);
    x += each.w + gap;
    row = Math.max(row, each.h);
    width = Math.max(width, x - gap);
  }
  return { places, width, height: y + row };
}
