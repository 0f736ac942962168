/** Small parts that several pages share: states, links to gangs, signs, tables. */

import { html, useEffect, useRef, useState } from "../vendor/htm-3.1.1/standalone.module.js";
import { ask, objectPath, sentence } from "./api.js";
import { isDark } from "./colours.js";
import { gangName } from "./format.js";
import { gangColour } from "./painter.js";

/** @typedef {import("./types.js").VNode} VNode */

/** A page that has nothing to show says why. @param {{title: string, children?: unknown, sign?: string, busy?: boolean}} props */
export function Empty({ title, children, sign = "○", busy = false }) {
  return html`<div class="empty" role="status" aria-busy=${busy}>
    <div class=${busy ? "sign spinning" : "sign"} aria-hidden="true">${busy ? "◌" : sign}</div>
    <h2>${title}</h2><div class="muted">${children}</div>
  </div>`;
}

/** @param {{gang: {kind: string, namespace: string, name: string}, moment?: string, text?: string}} props */
export function GangLink({ gang, moment = "", text = gangName(gang) }) {
  if (gang.kind !== "PodGroup" && gang.kind !== "CompositePodGroup") return html`<span>${text}</span>`;
  const name = `${gang.kind}/${gang.namespace}/${gang.name}`;
  const there = moment ? `/time?${new URLSearchParams({ moment, tab: "group", about: name })}` : `/group/${objectPath(gang)}`;
  return html`<a href=${there}>${text}</a>`;
}

/** @param {{gang: {kind: string, namespace: string, name: string}, children?: unknown}} props */
export function OnMap({ gang, children = "show on the map" }) {
  const name = `${gang.kind}/${gang.namespace}/${gang.name}`;
  return html`<a class="on-map" href=${`/cluster?${new URLSearchParams({ gang: name })}`}>${children}</a>`;
}

/** A sign with a word: never colour alone. @param {{good: boolean | null, children?: unknown}} props */
export function Badge({ good, children }) {
  const [name, sign] = good === null ? ["neutral", "·"] : good ? ["good", "●"] : ["waits", "○"];
  return html`<span class=${`badge ${name}`}><span aria-hidden="true">${sign}</span> ${children}</span>`;
}

/** The colour and pattern of a gang as on the map. @param {{id: number}} props */
export function Swatch({ id }) {
  const { colour, pattern } = gangColour(id, isDark());
  return html`<span class=${`swatch pattern-${pattern}`} style=${`--swatch:${colour}`} aria-hidden="true"></span>`;
}

/** @param {{used: number, total: number, label: string}} props */
export function Bar({ used, total, label }) {
  const share = total ? Math.min(100, (100 * used) / total) : 0;
  return html`<div class="bar" role="img" aria-label=${label}><div style=${`width:${share}%`}></div></div>`;
}

/**
 * An answer of the server, asked again whenever `inputs` change.
 * @template T
 * @param {() => string | null} path
 * @param {unknown[]} inputs
 * @returns {{data: T | null, failure: string, loading: boolean}}
 */
export function useAnswer(path, inputs) {
  const [state, setState] = useState(/** @type {{data: T | null, failure: string, loading: boolean}} */ ({ data: null, failure: "", loading: true }));
  useEffect(() => {
    const address = path();
    if (address === null) return setState({ data: null, failure: "", loading: false });
    const stop = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    ask(address, { signal: stop.signal }).then(
      (data) => setState({ data: /** @type {T} */ (data), failure: "", loading: false }),
      (error) => {
        if (!stop.signal.aborted) setState({ data: null, failure: sentence(error), loading: false });
      },
    );
    return () => stop.abort();
  }, inputs);
  return state;
}

/** A value that follows another one at most every so many milliseconds. @template T @param {T} value @param {number} wait */
export function useThrottled(value, wait) {
  const [shown, setShown] = useState(value);
  const latest = useRef(value);
  latest.current = value;
  useEffect(() => {
    if (latest.current === shown) return;
    const timer = setTimeout(() => setShown(latest.current), wait);
    return () => clearTimeout(timer);
  }, [shown, value === shown]);
  return shown;
}

/** Seconds since 1970, moving on every few seconds. @param {number} every milliseconds */
export function useNow(every = 5000) {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), every);
    return () => clearInterval(timer);
  }, []);
  return now;
}
