// All words of the page: English ones come with the bundle, those of another language with the page.
import { script } from '../words.json';

interface Other {
  script: typeof script;
  said: Record<string, string>;
}

const carried = document.getElementById('words')?.textContent;
const other = carried ? (JSON.parse(carried) as Other) : null;
export const W = other?.script ?? script;
const said = new Map(Object.entries(other?.said ?? {}));

// A sentence that a tool wrote, in the page's language if it has been put into it.
export function say(text: string): string {
  return said.get(text) ?? text;
}

export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

// "1 node", "3 nodes": the two forms are split by a bar; a language with one form has none.
export function count(n: number, forms: string): string {
  const [one, many = one] = forms.split('|');
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
}
