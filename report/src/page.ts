import type { Doc, Graph } from './data';
import { column } from './data';
import { graphChart, type GraphChart } from './graphchart';
import type { View } from './view';
import { say } from './words';

export type Role = 'target' | 'host' | 'third';

// What every section needs: the document, its graph, the shared view, and how to open a node.
export class Page {
  readonly devices: string[];
  readonly ms: (number | null)[] | null;
  readonly total: number;
  readonly limits: Limits;

  constructor(readonly doc: Doc, readonly graph: Graph, readonly view: View, readonly open: (node: number, from: Element | null) => void) {
    const devices = doc.plan?.devices;
    this.devices = Array.isArray(devices) ? devices.map((device) => String(typeof device === 'string' ? device : device?.name ?? '?')) : [];
    this.ms = column(doc.profile?.ms, graph.size);
    this.total = (this.ms ?? []).reduce((sum: number, value) => sum + (Number.isFinite(value) ? value! : 0), 0);
    this.limits = limitsOf(this);
  }

  reading(figure: string, otherwise: string): string {
    const text = this.doc.readings?.[figure];
    return typeof text === 'string' && text ? say(text) : otherwise;
  }

  chart(chart: GraphChart): HTMLElement {
    return graphChart(this.graph, this.view, this.open, chart);
  }

  known = (name: string | number | null | undefined) => this.graph.find(name) >= 0;

  nameOf(node: string | number): string {
    return typeof node === 'number' ? this.graph.name[node] ?? String(node) : node;
  }

  deviceOf(node: number): number {
    const device = this.doc.plan?.device?.[node];
    return typeof device === 'number' && device >= 0 && device < this.devices.length ? device : -1;
  }

  deviceIndex(device: number | string): number {
    return typeof device === 'number' ? device : this.devices.indexOf(device);
  }

  role(device: number): Role {
    const name = this.devices[device] ?? '';
    const target = this.doc.target ?? this.devices[0] ?? '';
    const base = (text: string) => text.split(':')[0];
    if (name === target || base(name) === base(target)) return 'target';
    return ['cpu', 'host', 'reference'].includes(base(name)) ? 'host' : 'third';
  }

  // True where the target refused the node, so that another device has it.
  refused(node: number): boolean {
    const device = this.deviceOf(node);
    return device >= 0 && this.role(device) !== 'target' && !this.doc.plan?.choice?.[node];
  }
}

// How far a kernel's error is from what is allowed: against rounding where the floor is known, else against the tolerance.
export interface Limits {
  kind: 'excess' | 'tolerance';
  single: (number | null)[] | null;
  entire: (number | null)[] | null;
  fine: number;
  bad: number;
  edges: number[];
}

function limitsOf(page: Page): Limits {
  const align = page.doc.align ?? {};
  const size = page.graph.size;
  const excess = column(align.excess, size);
  if (excess) return { kind: 'excess', single: excess, entire: column(align.excess_entire, size), fine: 3, bad: 10, edges: [1, 3, 10, 30, 100, 1000] };
  return { kind: 'tolerance', single: column(align.over, size), entire: column(align.over_entire, size), fine: 1, bad: 10, edges: [0.3, 1, 10, 30, 100, 1000] };
}

export function levelOf(value: number | null, limits: Limits): 'ok' | 'warn' | 'bad' | 'none' {
  if (value === null) return 'none';
  if (Number.isNaN(value) || value > limits.bad) return 'bad';
  return value > limits.fine ? 'warn' : 'ok';
}

const kinds: [RegExp, string][] = [
  [/dynamic|image|sampl/, 'other'], [/att/, 'attention'], [/mat/, 'matmul'], [/conv/, 'convolution'], [/norm/, 'normalization'], [/activ/, 'activation'],
  [/arith|element/, 'arithmetic'], [/layout|shape/, 'layout'],
];

export function categoryColour(category: string): string {
  return kinds.find(([pattern]) => pattern.test(category.toLowerCase()))?.[1] ?? 'other';
}
