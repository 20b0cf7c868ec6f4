import { nodeLink, pill } from '../dom';
import { list, num, records, type Trial } from '../data';
import { figure } from '../figure';
import { metric, times } from '../format';
import type { Page } from '../page';
import { table } from '../table';
import { fill, W } from '../words';
import { verdictKind } from './align';

const parts = () => W.bisect_parts as Record<string, string>;
const verdicts = () => W.value_verdicts as Record<string, string>;

function reading(page: Page, trials: Trial[]): string {
  const found = page.doc.align!.bisection!;
  const n = trials.length;
  if (!found.node) return fill(W.bisect_open, { n, nodes: list(found.within).slice(0, 3).join(', '), count: list(found.within).length });
  const alone = found.wrong_alone === 'yes' ? W.bisect_alone : found.wrong_alone === 'no' ? W.bisect_gathered : '';
  const behind = found.wrong_behind === 'yes' ? W.bisect_more : found.wrong_behind === 'no' ? W.bisect_no_more : '';
  return [fill(W.bisect_found, { n, node: found.node }), alone, behind].filter(Boolean).join(' ');
}

// Where the target shows outputs only: the parts of the model that were run in it, and what they told.
export function bisection(page: Page): HTMLElement | null {
  const found = page.doc.align?.bisection;
  if (!found) return null;
  const trials = records(found.trials);
  const verdict = (trial: Trial) => (trial.failure ? W.bisect_failed : verdicts()[trial.verdict ?? ''] ?? trial.verdict ?? '–');
  return figure({
    title: W.bisect_title,
    reading: reading(page, trials),
    body: [table(trials, [
      { title: W.bisect_part, get: (trial) => parts()[trial.part ?? ''] ?? trial.part ?? null },
      { title: W.bisect_nodes, get: (trial) => num(trial.nodes) },
      { title: W.bisect_outputs, get: (trial) => num(trial.outputs) },
      { title: W.bisect_value, get: (trial) => trial.value ?? null },
      { title: W.node, get: (trial) => trial.node ?? null, show: (trial) => nodeLink(trial.node ?? '–', page.known(trial.node)) },
      { title: 'rel_l2', get: (trial) => num(trial.error?.rel_l2), show: (trial) => metric('rel_l2', num(trial.error?.rel_l2)) },
      { title: W.excess, get: (trial) => num(trial.error?.excess_e), show: (trial) => times(num(trial.error?.excess_e)) },
      { title: W.verdict, get: verdict, show: (trial) => pill(trial.failure ? 'none' : verdictKind[trial.verdict ?? ''] ?? 'none', verdict(trial)) },
    ], { name: 'bisection' })],
    how: [found.stopped ?? '', W.bisect_how, fill(W.bisect_hidden, { n: list(found.hidden).length })].filter(Boolean).join(' '),
  });
}
