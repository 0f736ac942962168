/** Numbers, ages and names as people read them. Times are in the viewer's zone. */

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** @param {string | number} at a time of the API, or seconds since 1970 */
function date(at) {
  return typeof at === "number" ? new Date(at * 1000) : new Date(at);
}

/** @param {string | number} at */
export function clock(at) {
  const found = date(at);
  return Number.isNaN(found.getTime()) ? "unknown" : TIME.format(found);
}

/** @param {string | number} at */
export function fullTime(at) {
  const found = date(at);
  return Number.isNaN(found.getTime()) ? "unknown" : FULL.format(found);
}

/** @param {string | number} since @param {number} [now] seconds since 1970 */
export function age(since, now = Date.now() / 1000) {
  const found = date(since);
  if (Number.isNaN(found.getTime())) return "unknown";
  return duration(Math.max(0, now - found.getTime() / 1000));
}

/** @param {number} seconds */
export function duration(seconds) {
  const whole = Math.floor(seconds);
  for (const [unit, size] of /** @type {[string, number][]} */ ([["d", 86400], ["h", 3600], ["m", 60]])) {
    if (whole >= 2 * size) return `${Math.floor(whole / size)}${unit}`;
  }
  return `${whole}s`;
}

/** @param {number} number @param {string} noun */
export function count(number, noun) {
  return `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
}

/** A label key without its prefix. @param {string} key */
export function shortKey(key) {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** A resource as people write it. @param {string} name */
export function resourceWord(name) {
  const short = shortKey(name);
  return short === "cpu" || short === "gpu" ? short.toUpperCase() : short;
}

/** @param {number} index of a resource: cpu, memory, gpu @param {number} amount */
export function amount(index, amount) {
  if (index === 0) return `${+(amount / 1000).toFixed(1)} CPU`;
  if (index === 1) return amount >= 1024 ? `${+(amount / 1024).toFixed(1)} GiB` : `${amount} MiB`;
  return `${amount} GPU`;
}

/** @param {string} kind */
export function kindWord(kind) {
  return { PodGroup: "pod group", CompositePodGroup: "composite pod group", Pod: "single pods" }[kind] ?? kind;
}

/** @param {{kind: string, namespace: string, name: string}} gang */
export function gangName(gang) {
  if (gang.kind === "Pod" && !gang.name) return `single pods of ${gang.namespace}`;
  return `${gang.namespace}/${gang.name}`;
}

const NUMBERS = new Intl.Collator("en", { numeric: true });
/** rack-2 before rack-10. @param {string} a @param {string} b */
export function natural(a, b) {
  return NUMBERS.compare(a, b);
}
