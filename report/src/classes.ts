import type { Frame } from './graphchart';

// One of seven classes between the edges; what is not finite is in the last.
export function classOf(value: number | null, edges: number[]): number {
  if (value === null) return -1;
  if (Number.isNaN(value)) return edges.length;
  let i = 0;
  while (i < edges.length && value > edges[i]) i++;
  return i;
}

// Columns of at least two pixels; a column that holds several nodes stands for all of them.
export function columns(frame: Frame): { start: number; end: number }[] {
  const out: { start: number; end: number }[] = [];
  const step = Math.max(1, Math.ceil(2 / frame.step));
  for (let i = frame.from; i < frame.to; i += step) out.push({ start: i, end: Math.min(frame.to, i + step) });
  return out;
}

// One path per class for a row of columns; a column shows its worst member, and equal neighbours are one rectangle.
export function classPaths(frame: Frame, rank: (node: number) => number, y: number, height: number): Map<number, string> {
  const paths = new Map<number, string>();
  let last = -1;
  let start = frame.from;
  const close = (end: number) => {
    if (last >= 0 && end > start) {
      const from = frame.x(start).toFixed(1);
      const wide = Math.max(0.8, frame.x(end) - frame.x(start)).toFixed(1);
      paths.set(last, `${paths.get(last) ?? ''}M${from} ${y}h${wide}v${height}h-${wide}z`);
    }
  };
  for (const { start: first, end } of columns(frame)) {
    let worst = -1;
    for (let i = first; i < end; i++) worst = Math.max(worst, rank(i));
    if (worst !== last) {
      close(first);
      last = worst;
      start = first;
    }
  }
  close(frame.to);
  return paths;
}
