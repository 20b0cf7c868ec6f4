import { h, type Child } from './dom';
import { W } from './words';

export const states = ['native', 'constrained', 'expanded', 'fallback', 'unsupported', 'unknown'] as const;
export type State = (typeof states)[number];

export const glyphs: Record<State, string> = { native: '●', constrained: '◐', expanded: '◇', fallback: '↩', unsupported: '✕', unknown: '?' };

export function stateOf(text: string | undefined): State {
  return states.includes(text as State) ? (text as State) : 'unknown';
}

export function statePill(state: State, count?: number): HTMLElement {
  const words = (W.states as Record<string, string>)[state];
  return h('span', { class: 'pill state', style: `--c:var(--${state});--g:var(--${state}-ink)`, title: words },
    h('span', { 'aria-hidden': 'true' }, glyphs[state]), ' ', count === undefined ? words : String(count),
    count === undefined ? null : h('span', { class: 'hide' }, ` ${words}`));
}

// A bar split by state with the counts below it; "all 89" where all are native.
export function splitBar(counts: Map<State, number>): Child[] {
  const total = [...counts.values()].reduce((sum, n) => sum + n, 0);
  if (!total) return [h('span', { class: 'quiet' }, '–')];
  const present = states.filter((state) => counts.get(state));
  const bar = h('span', { class: 'split', 'aria-hidden': 'true' },
    ...present.map((state) => h('i', { class: state, style: `flex:${counts.get(state)} 0 2px;--c:var(--${state})` })));
  if (present.length === 1 && present[0] === 'native') return [bar, h('span', { class: 'quiet' }, W.all.replace('{n}', String(total)))];
  return [bar, ...present.map((state) => h('span', { class: state === 'native' ? 'quiet counts' : 'counts', title: (W.states as Record<string, string>)[state] },
    String(counts.get(state)), h('span', { 'aria-hidden': 'true' }, glyphs[state]), h('span', { class: 'hide' }, ` ${(W.states as Record<string, string>)[state]} `)))];
}
