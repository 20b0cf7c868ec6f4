import 'virtual:palette.css';
import './style.css';
import { Card } from './card';
import { documentOf, graphOf } from './data';
import { copyButton, h } from './dom';
import { preparePrint } from './graphchart';
import { Page } from './page';
import { align } from './sections/align';
import { bench } from './sections/bench';
import { doctor, environment } from './sections/environment';
import { glance } from './sections/glance';
import { plan } from './sections/plan';
import { profile } from './sections/profile';
import { scan } from './sections/scan';
import { View } from './view';
import { W } from './words';

type Part = (page: Page) => (HTMLElement | null)[];

// A part that cannot be drawn says so; the others are not lost.
function put(place: Element | null, make: () => (HTMLElement | null)[]) {
  if (!place) return;
  try {
    place.append(...make().filter((item): item is HTMLElement => item !== null));
  } catch (error) {
    console.error(error);
    place.append(h('p', { class: 'figure' }, W.broken));
  }
}

function buttons() {
  const root = document.documentElement;
  const remember = (theme?: string) => {
    try {
      if (theme) localStorage.setItem('unmoor-theme', theme);
      return localStorage.getItem('unmoor-theme');
    } catch {
      return null;
    }
  };
  const stored = remember();
  if (stored === 'light' || stored === 'dark') root.dataset.theme = stored;
  document.getElementById('buttons')?.append(
    h('button', { type: 'button', onclick: () => {
      const now = root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
      root.dataset.theme = now === 'dark' ? 'light' : 'dark';
      remember(root.dataset.theme);
    } }, W.theme),
    h('button', { type: 'button', onclick: () => print() }, W.print));
  document.querySelectorAll('.command').forEach((box) => box.append(copyButton(() => box.querySelector('code')?.textContent ?? '')));
}

function watchSections() {
  const links = new Map([...document.querySelectorAll<HTMLAnchorElement>('.rail a')].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((link) => link.removeAttribute('aria-current'));
      links.get(entry.target.id)?.setAttribute('aria-current', 'true');
    }
  }, { rootMargin: '-10% 0px -75% 0px' });
  document.querySelectorAll('section.part').forEach((section) => seen.observe(section));
}

function start() {
  document.documentElement.classList.add('script');
  buttons();
  const json = document.getElementById('data')?.textContent ?? '{}';
  const doc = documentOf(json);
  const graph = graphOf(doc);
  const view = new View(graph.size);
  const card = new Card(() => page);
  const page: Page = new Page(doc, graph, view, (node, from) => card.show(node, from));
  const parts: Record<string, Part> = { scan, plan, align, bench, profile, doctor, environment: (one) => environment(one, json) };

  put(document.getElementById('glance'), () => [glance(page)]);
  for (const place of document.querySelectorAll<HTMLElement>('.figures')) {
    const part = parts[place.dataset.section ?? ''];
    if (part) put(place, () => part(page));
  }

  const fromHash = () => {
    if (!location.hash.startsWith('#node=')) return;
    let name = location.hash.slice(6);
    try {
      name = decodeURIComponent(name);
    } catch {
      return;
    }
    const node = graph.find(name);
    if (node >= 0) card.show(node, document.activeElement === document.body ? null : document.activeElement);
  };
  addEventListener('hashchange', fromHash);
  preparePrint();
  watchSections();
  fromHash();
}

start();
