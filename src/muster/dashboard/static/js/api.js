/** Questions to the server. A refusal becomes a `Refusal` with the server's own sentence. */

export class Refusal extends Error {
  /** @param {number} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** The server did not answer at all. */
export class Unreachable extends Error {}

/**
 * @template T
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<T>}
 */
export async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable("the dashboard's server does not answer");
  }
  if (!answer.ok) {
    const status = await answer.json().catch(() => ({}));
    throw new Refusal(answer.status, status.message || `the server answered ${answer.status}`);
  }
  return answer.json();
}

/** @param {unknown} error */
export function sentence(error) {
  return error instanceof Error ? error.message : String(error);
}

/** @param {{kind: string, namespace: string, name: string}} object */
export function objectPath(object) {
  return [object.kind, object.namespace, object.name].map(encodeURIComponent).join("/");
}
