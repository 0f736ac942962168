/** Addresses: every page, selection and filter has one; the back button works. */

import { useEffect, useState } from "../vendor/htm-3.1.1/standalone.module.js";

/** @typedef {{path: string[], query: URLSearchParams}} Route */

/** @returns {Route} */
function current() {
  const path = location.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  return { path, query: new URLSearchParams(location.search) };
}

/** @type {Set<() => void>} */
const listeners = new Set();

/** @param {string} address @param {{replace?: boolean}} [how] */
export function go(address, { replace = false } = {}) {
  if (address === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  for (const listener of listeners) listener();
}

/** Change some parameters of the present address. @param {Record<string, string | null>} changes
 * @param {{replace?: boolean}} [how] */
export function change(changes, how = { replace: true }) {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), how);
}

/** @returns {Route} */
export function useRoute() {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const listener = () => setRoute(current());
    listeners.add(listener);
    addEventListener("popstate", listener);
    return () => {
      listeners.delete(listener);
      removeEventListener("popstate", listener);
    };
  }, []);
  return route;
}

/** Clicks on our own links change the page without loading it again. @param {MouseEvent} event */
export function followLink(event) {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!(link instanceof HTMLAnchorElement) || link.origin !== location.origin || link.target) return;
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.pathname.startsWith("/static") || link.pathname.startsWith("/api")) return;
  event.preventDefault();
  go(link.pathname + link.search);
  scrollTo(0, 0);
}
