import { W, fill } from './words';

export type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

function build(element: Element, attributes: Attributes, children: Child[]) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(child instanceof Node ? child : String(child));
}

// Text only ever enters the page as text: no markup from data.
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  build(element, attributes, children);
  return element;
}

export function s<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  build(element, attributes, children);
  return element;
}

export function nodeHash(name: string): string {
  try {
    return `#node=${encodeURIComponent(name)}`;
  } catch {
    return '#';
  }
}

// Any node name on the page: opens the node's card.
export function nodeLink(name: string, known = true): HTMLElement {
  return known ? h('a', { class: 'name', href: nodeHash(name), title: name }, name) : h('span', { class: 'name', title: name }, name);
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { style: 'position:fixed;opacity:0' });
    area.value = text;
    document.body.append(area);
    area.select();
    let done = false;
    try {
      done = document.execCommand('copy');
    } catch {
      done = false;
    }
    area.remove();
    return done;
  }
}

export function copyButton(text: () => string, label: string = W.copy): HTMLButtonElement {
  const button = h('button', { type: 'button', class: 'copy', onclick: async () => {
    button.textContent = (await copyText(text())) ? W.copied : W.copy_failed;
    setTimeout(() => (button.textContent = label), 1500);
  } }, label);
  return button;
}

export function command(text: string): HTMLElement {
  return h('div', { class: 'command' }, h('code', {}, text), copyButton(() => text));
}

export function pill(kind: string, text: string): HTMLElement {
  return h('span', { class: `pill ${kind}` }, text);
}

// A link to a file made from text; the page asks no server for it.
export function saveButton(label: string, name: string, type: string, text: () => string): HTMLButtonElement {
  return h('button', { type: 'button', onclick: () => {
    const url = URL.createObjectURL(new Blob([text()], { type }));
    const link = h('a', { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  } }, label);
}

export function nodeLinks(names: string[], known: (name: string) => boolean, limit = 3): HTMLElement {
  const span = h('span', { class: 'links' });
  const show = (from: number, to: number) => names.slice(from, to).forEach((name, i) => span.append(from + i ? ', ' : '', nodeLink(name, known(name))));
  show(0, limit);
  if (names.length > limit) {
    const more = h('button', { type: 'button', class: 'plain', onclick: () => {
      more.remove();
      show(limit, Math.min(names.length, limit + 200));
      if (names.length > limit + 200) span.append(' ', fill(W.and_more, { n: names.length - limit - 200 }));
    } }, fill(W.and_more, { n: names.length - limit }));
    span.append(' ', more);
  }
  return span;
}
