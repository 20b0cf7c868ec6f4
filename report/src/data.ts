// The document as DATA.md describes it. Every part may be missing; numbers may be the strings "nan", "inf", "-inf".
export type Raw = number | string | null | undefined;

export interface Metrics {
  [name: string]: Raw;
}
export interface Refusal {
  device?: string;
  kernel?: string;
  reason?: string;
  detail?: string;
}
export interface Platform {
  name: string;
  version?: string;
  role?: string;
  source?: string;
  nodes?: number;
  native?: number;
  p0?: number;
  p1?: number;
  p2?: number;
  effort_days?: Raw[];
}
export interface ScanNode {
  node: string | number;
  op?: string;
  category?: string;
  platform?: string;
  state?: string;
  reason?: string;
  detail?: string;
  advice?: string;
  priority?: string;
}
export interface Copy {
  before: number;
  from: number | string;
  to: number | string;
  bytes?: Raw;
  ms?: Raw;
}
export interface Cause {
  id?: string;
  text?: string;
  advice?: string;
  bits?: Raw;
  excess?: Raw;
  also?: string[];
  with?: string | null;
  hypotheses?: { id?: string; bits?: Raw; excess?: Raw }[];
}
export interface Plane {
  rows?: Raw;
  cols?: Raw;
  axes?: number[][];
  shape?: number[];
  scale?: Raw;
  data?: string;
  row_mean?: Raw[];
  col_mean?: Raw[];
  hist?: Raw[];
  verdict?: string;
  pattern?: string[];
}
export interface Value {
  name?: string;
  node?: string | number;
  op?: string;
  dtype?: string;
  single?: Metrics;
  entire?: Metrics;
  baseline_single?: Metrics;
  baseline_entire?: Metrics;
  verdict?: string;
  cause?: Cause | null;
  plane?: Plane | null;
}
export interface Run {
  runner?: string;
  threads?: Raw;
  batch?: Raw;
  load_ms?: Raw;
  prepare_ms?: Raw;
  first_ms?: Raw;
  warm?: { count?: Raw; p50?: Raw; p90?: Raw; p99?: Raw; min?: Raw; mean?: Raw; cv?: Raw; samples?: Raw[] };
  peak_bytes?: Raw;
}
export interface Ratio {
  a?: string;
  b?: string;
  median?: Raw;
  low?: Raw;
  high?: Raw;
  unpaired?: boolean;
}
export interface Trial {
  part?: string;
  value?: string;
  node?: string;
  op?: string;
  nodes?: Raw;
  outputs?: Raw;
  wrong?: boolean | null;
  verdict?: string | null;
  failure?: string | null;
  error?: Metrics | null;
}
export interface Bisection {
  output?: string;
  trials?: Trial[];
  node?: string | null;
  within?: string[];
  hidden?: string[];
  stopped?: string | null;
  wrong_alone?: string;
  wrong_behind?: string;
}
export interface Align {
  bisection?: Bisection | null;
  reference?: string;
  target?: string;
  verdict?: string;
  atol?: Raw;
  rtol?: Raw;
  atol_scaled_by_rms?: boolean;
  metrics?: string[];
  single?: Raw[];
  entire?: Raw[];
  over?: Raw[];
  over_entire?: Raw[];
  excess?: Raw[];
  excess_entire?: Raw[];
  floor_low?: Raw[];
  floor_high?: Raw[];
  baseline?: string | null;
  baseline_entire?: Raw[];
  baseline_excess?: Raw[];
  baseline_over?: Raw[];
  heat?: Raw[][];
  hidden?: number[];
  first_divergent?: string | number | null;
  first_nonfinite?: string | number | null;
  values?: Value[];
  planes_left_out?: Raw;
}
export interface Group {
  op?: string;
  label?: string;
  nodes?: number[];
  ms?: Raw;
}
export interface Device {
  name?: string;
  backend?: string;
  state?: string;
  reason?: string;
  check_ms?: Raw;
  versions?: Record<string, string>;
}
export interface Doc {
  tool?: string;
  version?: string;
  created?: string;
  command?: string;
  model?: { path?: string; fingerprint?: string; inputs?: { name?: string; dtype?: string; shape?: Raw[] }[] };
  environment?: { host?: unknown; devices?: unknown[]; versions?: Record<string, unknown> };
  source?: string;
  target?: string;
  readings?: Record<string, string>;
  graph?: { name?: string[]; op?: string[]; category?: string[]; block?: string[] };
  scan?: { platforms?: Platform[]; nodes?: ScanNode[]; categories?: { name?: string; difficulty?: string; alternative?: string }[];
    effort?: { what?: string; low?: Raw; high?: Raw; why?: string }[] };
  plan?: { devices?: (string | { name?: string })[]; device?: number[]; choice?: boolean[]; kernel?: string[]; refusals?: Refusal[][]; copies?: Copy[] };
  align?: Align;
  bench?: { runs?: Run[]; ratios?: Ratio[]; warnings?: unknown[] };
  profile?: { ms?: Raw[]; groups?: Group[] };
  doctor?: { devices?: Device[]; engines?: Device[]; pairs?: { a?: string; b?: string; verdict?: string; source?: string; would?: string }[];
    libraries?: { name?: string; paths?: string[]; used?: string }[] };
}

// A number, with NaN and infinities as themselves; null for what is not known.
export function num(value: Raw): number | null {
  if (typeof value === 'number') return value;
  if (value === 'nan') return NaN;
  if (value === 'inf') return Infinity;
  if (value === '-inf') return -Infinity;
  return null;
}

export function list<T>(value: T[] | undefined | null): T[] {
  return Array.isArray(value) ? value.filter((item) => item !== null && item !== undefined) : [];
}

// The records of a list; what is no record is left out.
export function records<T extends object>(value: T[] | undefined | null): T[] {
  return list(value).filter((item) => typeof item === 'object' && !Array.isArray(item));
}

// A cause with texts where texts belong; null for what says nothing.
function causeOf(value: any): Cause | null {
  if (!value || typeof value !== 'object' || typeof value.id !== 'string') return null;
  const text = (key: string) => (typeof value[key] === 'string' ? value[key] : undefined);
  return { ...value, text: text('text'), advice: text('advice'), with: text('with') ?? null };
}

// The document with what the page reads as text or record made sure to be one.
export function documentOf(json: string): Doc {
  const record = (value: any): any => (value && typeof value === 'object' && !Array.isArray(value) ? value : {});
  const doc = { ...record(JSON.parse(json)) };
  const texts = (from: any, ...keys: string[]) => keys.forEach((key) => typeof from[key] === 'string' || delete from[key]);
  texts(doc, 'tool', 'version', 'created', 'command', 'source', 'target');
  for (const key of ['model', 'environment', 'readings', 'graph', 'scan', 'plan', 'align', 'bench', 'profile', 'doctor'])
    if (doc[key] !== undefined) doc[key] = { ...record(doc[key]) };
  if (doc.model) texts(doc.model, 'path', 'fingerprint');
  if (doc.align) {
    texts(doc.align, 'reference', 'target');
    doc.align.values = records(doc.align.values).map((item: any) => ({ ...item, single: record(item.single), entire: record(item.entire), cause: causeOf(item.cause),
      plane: typeof item.plane?.data === 'string' ? item.plane : null }));
  }
  if (doc.bench) doc.bench.runs = records(doc.bench.runs).map((item: any) => ({ ...item, runner: String(item.runner ?? '?'), warm: record(item.warm) }));
  if (doc.scan) doc.scan.platforms = records(doc.scan.platforms).map((item: any) => ({ ...item, name: String(item.name ?? '?') }));
  return doc;
}

// A column over the nodes: numbers or null, always as long as the graph. Null if there is no number in it at all.
export function column(values: Raw[] | undefined, length: number): (number | null)[] | null {
  if (!Array.isArray(values)) return null;
  const out = Array.from({ length }, (_, i) => num(values[i]));
  return out.some((value) => value !== null) ? out : null;
}

export interface Graph {
  size: number;
  name: string[];
  op: string[];
  category: string[];
  blocks: { name: string; start: number; end: number }[];
  find(node: string | number | null | undefined): number;
}

export function graphOf(doc: Doc): Graph {
  const raw = doc.graph ?? {};
  const name = Array.isArray(raw.name) ? raw.name.map(String) : [];
  const part = (values: string[] | undefined) => name.map((_, i) => (Array.isArray(values) && values[i] ? String(values[i]) : ''));
  const op = part(raw.op);
  const category = part(raw.category);
  const block = part(raw.block);
  const blocks: Graph['blocks'] = [];
  block.forEach((label, i) => {
    const last = blocks[blocks.length - 1];
    if (last && last.name === label) last.end = i + 1;
    else blocks.push({ name: label, start: i, end: i + 1 });
  });
  const index = new Map(name.map((text, i) => [text, i]));
  const find = (node: string | number | null | undefined) => {
    if (typeof node === 'number') return node >= 0 && node < name.length ? node : -1;
    return node === null || node === undefined ? -1 : index.get(node) ?? -1;
  };
  return { size: name.length, name, op, category, blocks, find };
}

export function groupBy<T>(items: T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = key(item);
    const found = groups.get(name);
    if (found) found.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}
