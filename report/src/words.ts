// All words of the page come from words.json; a second language stands beside it.
import words from '../words.json';

export const W = words.script;
export const sectionsOfPage = words.sections;

export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

// "1 node", "3 nodes": the two forms are split by a bar.
export function count(n: number, forms: string): string {
  const [one, many] = forms.split('|');
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
}
