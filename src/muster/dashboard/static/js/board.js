/** The board: nodes, gangs and the queue as the server last said, kept current by differences. */

import { useEffect, useState } from "../vendor/htm-3.1.1/standalone.module.js";
import { ask, Refusal, sentence } from "./api.js";

/** @typedef {import("./types.js")} _ */
/** @typedef {import("./types.js").BoardMessage} BoardMessage */
/** @typedef {import("./types.js").ClusterNode} ClusterNode */
/** @typedef {import("./types.js").Gang} Gang */
/** @typedef {import("./types.js").QueueRow} QueueRow */
/** @typedef {import("./types.js").SourceStatus} SourceStatus */

/** One board, of now or of a moment of a recording. Listeners are told at most once a frame. */
export class Board {
  constructor() {
    this.version = 0;
    /** How often nodes were added, removed or moved: the layout of the map depends on it. */
    this.shape = 0;
    /** @type {string[]} */
    this.levels = [];
    /** @type {Map<string, ClusterNode>} */
    this.nodes = new Map();
    /** @type {Map<number, Gang>} */
    this.gangs = new Map();
    /** @type {QueueRow[]} */
    this.queue = [];
    this.waiting = 0;
    this.hidden = "";
    /** @type {"loading" | "live" | "lost" | "still" | "failed"} */
    this.state = "loading";
    this.failure = "";
    /** @type {SourceStatus | null} */
    this.status = null;
    this.moment = "";
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    this.told = 0;
    /** @type {EventSource | null} */
    this.stream = null;
    this.onSignedOut = () => {};
  }

  /** Fetch what there is; for the present, then follow the changes. @param {boolean} follow */
  async open(follow) {
    try {
      this.take(await ask(`/api/board?since=0`));
      this.state = follow ? "live" : "still";
      if (follow) this.follow();
    } catch (error) {
      if (error instanceof Refusal && error.code === 401) this.onSignedOut();
      this.state = "failed";
      this.failure = sentence(error);
      if (follow && !(error instanceof Refusal)) setTimeout(() => this.open(true), 3000);
    }
    this.tell();
  }

  /** Go to a moment of the recording. @param {string} moment */
  async show(moment) {
    this.moment = moment;
    try {
      const query = new URLSearchParams({ since: String(this.version), moment });
      const message = await ask(`/api/board?${query}`);
      if (this.moment !== moment) return; // the slider has moved on
      this.take(message);
      this.state = "still";
    } catch (error) {
      this.state = "failed";
      this.failure = sentence(error);
    }
    this.tell();
  }

  follow() {
    this.stream?.close();
    const stream = new EventSource(`/api/changes?since=${this.version}`);
    this.stream = stream;
    stream.onmessage = (event) => {
      this.state = "live";
      this.take(JSON.parse(event.data));
      this.tell();
    };
    stream.addEventListener("status", (event) => {
      this.status = JSON.parse(/** @type {MessageEvent} */ (event).data);
      this.state = "live";
      this.tell();
    });
    stream.onerror = () => {
      this.state = "lost";
      this.tell();
      stream.close();
      setTimeout(() => this.reconnect(), 2000);
    };
  }

  async reconnect() {
    try {
      const session = await ask("/api/session");
      if (!session.signedIn) return this.onSignedOut();
      await this.open(true);
    } catch {
      setTimeout(() => this.reconnect(), 3000);
    }
  }

  close() {
    this.stream?.close();
    this.stream = null;
  }

  /** @param {BoardMessage} message */
  take(message) {
    if (message.whole) {
      this.nodes = new Map();
      this.gangs = new Map();
      this.levels = message.levels ?? [];
      this.shape++;
    }
    for (const [name, domains, health, allocatable, requested, gangs] of message.nodes ?? []) {
      const before = this.nodes.get(name);
      if (!before || before.domains.join("\0") !== domains.join("\0")) this.shape++;
      this.nodes.set(name, { name, domains, health, allocatable, requested, gangs });
    }
    for (const name of message.goneNodes ?? []) {
      this.nodes.delete(name);
      this.shape++;
    }
    for (const [id, kind, namespace, name, priority, bound, minimum, pending, met, reason, topology] of message.gangs ?? []) {
      this.gangs.set(id, { id, kind, namespace, name, priority, bound, minimum, pending, met, reason, topology });
    }
    for (const id of message.goneGangs ?? []) this.gangs.delete(id);
    if (message.queue) {
      this.queue = message.queue;
      this.waiting = message.waiting ?? message.queue.length;
    }
    this.hidden = message.hidden ?? "";
    this.version = message.version;
  }

  tell() {
    if (this.told) return;
    this.told = requestAnimationFrame(() => {
      this.told = 0;
      for (const listener of this.listeners) listener();
    });
  }

  /** @param {string | null} text kind/namespace/name @returns {Gang | undefined} */
  gangOf(text) {
    if (!text) return undefined;
    for (const gang of this.gangs.values()) {
      if (`${gang.kind}/${gang.namespace}/${gang.name}` === text) return gang;
    }
    return undefined;
  }
}

/** Draw again when the board changes. @param {Board} board @returns {number} its version */
export function useBoard(board) {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((n) => n + 1);
    board.listeners.add(listener);
    return () => {
      board.listeners.delete(listener);
    };
  }, [board]);
  return board.version;
}
