/**
 * The values that the server sends and the pages draw.
 *
 * @typedef {[number, number, number]} Amounts CPUs in thousandths, memory in MiB, GPUs
 * @typedef {[number, number, number, number, number]} GangCell gang number, pods, cpu, memory, gpu; number 0: hidden
 * @typedef {{name: string, domains: string[], health: string, allocatable: Amounts, requested: Amounts,
 *   gangs: GangCell[]}} ClusterNode
 * @typedef {{id: number, kind: string, namespace: string, name: string, priority: number, bound: number,
 *   minimum: number, pending: number, met: boolean, reason: string, topology: string}} Gang
 * @typedef {{position: number, kind: string, namespace: string, name: string, members: string, priority: number,
 *   since: string, reason: string, message: string, expectedStart?: string, workload?: string}} QueueRow
 * @typedef {{kind: string, name: string, ready: boolean, trouble: string[], forbidden: string[],
 *   takenAt: string}} SourceStatus
 * @typedef {{signedIn: boolean, asksForToken: boolean, user?: string, version: string, source?: SourceStatus,
 *   recording?: string | null}} Session
 * @typedef {{version: number, whole?: boolean, levels?: string[], nodes?: any[], goneNodes?: string[], gangs?: any[],
 *   goneGangs?: number[], queue?: QueueRow[], waiting?: number, hidden?: string}} BoardMessage
 * @typedef {{pod: Record<string, string>, largest: Record<string, number>, total: number,
 *   seats: Record<string, number>}} Seats
 * @typedef {{key: string, value: string, seats: number, needed: number, text: string, whenEmpty: number | null}} Nearest
 * @typedef {{kind: string, name: string, depth: number, minimum: number, bound: number, pending: number, met: boolean,
 *   topology: string | null, domain: string | null, nearest: Nearest[], exists: boolean}} Level
 * @typedef {{kind: string, namespace: string, name: string, priority: number, pods: number,
 *   amounts: Record<string, string>}} Holder
 * @typedef {{action: string, text: string, details: Record<string, string | number>}} Suggestion
 * @typedef {{kind: string, namespace: string, name: string, verdict: string, sentence: string, priority: number,
 *   levels: Level[], remark: string, rules: {pod: string, text: string, nodes: number, of: number}[],
 *   holders: Holder[], heldIn: string, preemption: string, since: string, position: number, waiting: number,
 *   wakes: string, suggestions: Suggestion[], missing: string, reservation?: string, recreate?: string,
 *   devices?: string[]}} Explanation
 * @typedef {{kind: string, namespace: string, name: string, depth: number, minimum: number, bound: number,
 *   pending: number, met: boolean, topology: string | null, domains: string[], nodes: Record<string, number>,
 *   reason: string}} GroupRow
 * @typedef {{at: string, about: string, what: string, text: string, good: boolean | null}} Moment
 * @typedef {{name: string, group: string, state: string, phase: string, node: string, created: string}} MemberRow
 * @typedef {{kind: string, namespace: string, name: string, root: Omit<Gang, "id">, rows: GroupRow[],
 *   members: MemberRow[], moreMembers: number, timeline: Moment[]}} GroupDetail
 * @typedef {{line: number, at: number, text: string, kind: string, namespace: string, name: string, bound: number,
 *   evicted: number}} Step
 * @typedef {{recording: string | null, start: number, end: number, times: [number, number][], steps: Step[]}} Times
 * @typedef {{fits: boolean, undecided: boolean, pods: number, placements: {pod: string, node: string}[],
 *   victims: {pod: string, preemptor: string, pods?: number}[], pending: {pod: string, reason: string, undecided: boolean}[],
 *   groups: {kind: string, namespace: string, name: string, status: string, reason: string, message: string}[]
 *   }} Answer
 * @typedef {import("../vendor/htm-3.1.1/standalone.module.js").VNode} VNode
 */
export {};
