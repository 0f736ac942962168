// The types of what the pages use of htm's standalone build with preact.
export type VNode = { readonly __vnode: unique symbol };
export type Child = VNode | string | number | null | undefined | boolean | Child[];
export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode;
export function render(node: VNode, parent: Element): void;
export function useState<T>(first: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T;
export function useCallback<T extends (...args: never[]) => unknown>(callback: T, inputs: readonly unknown[]): T;
export function useRef<T>(first: T): { current: T };
export function useErrorBoundary(callback?: (error: unknown) => void): [unknown, () => void];
