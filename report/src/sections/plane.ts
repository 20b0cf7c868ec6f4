import { h, pill, s } from '../dom';
import { list, num, type Plane } from '../data';
import { digits } from '../format';
import { fill, say, W } from '../words';

// Cells of the picture, -127 to 127; null if it is not what it should be.
function cellsOf(plane: Plane): Int8Array | null {
  const [rows, columns] = [num(plane.rows) ?? 0, num(plane.cols) ?? 0];
  if (!(rows > 0 && columns > 0 && rows * columns <= 1 << 17)) return null;
  try {
    const bytes = Int8Array.from(atob(String(plane.data)), (letter) => letter.charCodeAt(0));
    return bytes.length === rows * columns ? bytes : null;
  } catch {
    return null;
  }
}

type Colour = [number, number, number];

const colourOf = (name: string): Colour => {
  const text = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim().slice(1);
  return [0, 2, 4].map((at) => parseInt(text.slice(at, at + 2), 16)) as Colour;
};

// Pictures are the one thing whose colours are not variables: they are painted anew when the theme changes, and for paper.
const paints: (() => void)[] = [];
const repaint = () => paints.forEach((paint) => paint());
new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ['data-theme'] });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
matchMedia('print').addEventListener('change', repaint);

function picture(plane: Plane, cells: Int8Array, label: string): HTMLElement {
  const canvas = h('canvas', { width: num(plane.cols)!, height: num(plane.rows)!, role: 'img', 'aria-label': label });
  const paint = () => {
    const context = canvas.getContext('2d');
    if (!context) return;
    const [none, minus, plus] = ['x0', 'minus', 'plus'].map(colourOf);
    const image = context.createImageData(canvas.width, canvas.height);
    cells.forEach((cell, i) => {
      const share = Math.sqrt(Math.abs(cell) / 127);
      const end = cell < 0 ? minus : plus;
      for (let k = 0; k < 3; k++) image.data[4 * i + k] = none[k] + share * (end[k] - none[k]);
      image.data[4 * i + 3] = 255;
    });
    context.putImageData(image, 0, 0);
  };
  paints.push(paint);
  paint();
  return canvas;
}

// Bars up and down from a line, one path a sign.
function signedBars(values: number[], height: number): SVGElement {
  const most = Math.max(...values.map(Math.abs), 1e-300);
  const middle = height / 2;
  const path = (sign: number) => values.map((value, i) => (value * sign > 0 ? `M${i} ${middle}h1v${((-value / most) * middle).toFixed(2)}h-1z` : '')).join('');
  return s('svg', { viewBox: `0 0 ${values.length} ${height}`, preserveAspectRatio: 'none', height, 'aria-hidden': 'true' },
    s('path', { d: path(1), fill: 'var(--plus)' }), s('path', { d: path(-1), fill: 'var(--minus)' }));
}

function histogram(counts: number[], height: number): SVGElement {
  const most = Math.sqrt(Math.max(...counts, 1));
  const half = (counts.length - 1) / 2;
  const path = (side: number) => counts.map((count, i) => (Math.sign(i - half) === side && count > 0 ? `M${i + 0.05} ${height}h.9v-${((Math.sqrt(count) / most) * height).toFixed(2)}h-.9z` : '')).join('');
  return s('svg', { viewBox: `0 0 ${counts.length} ${height}`, preserveAspectRatio: 'none', height, 'aria-hidden': 'true' },
    s('path', { d: path(-1), fill: 'var(--minus)' }), s('path', { d: path(0), fill: 'var(--ink3)' }), s('path', { d: path(1), fill: 'var(--plus)' }));
}

// "axis 1 (64)", "axes 0, 2 (2 × 9)"
function axesText(plane: Plane, side: number): string {
  const axes = list(plane.axes?.[side]);
  const sizes = axes.map((axis) => plane.shape?.[axis] ?? '?').join(' × ');
  return axes.length ? fill(axes.length === 1 ? W.plane_axis : W.plane_axes, { axes: axes.join(', '), sizes }) : '';
}

// Where the error of a node lies, of which sign and how large it is, and whether that is chance.
export function planeMap(plane: Plane): HTMLElement | null {
  const cells = cellsOf(plane);
  if (!cells) return null;
  const scale = digits(num(plane.scale), 2);
  const systematic = plane.verdict === 'systematic';
  const verdict = systematic ? W.plane_systematic : W.plane_random;
  const [down, across] = [axesText(plane, 0), axesText(plane, 1)];
  const means = list(plane.col_mean).map(num).map((value) => (value !== null && Number.isFinite(value) ? value : 0));
  const counts = list(plane.hist).map(num).map((value) => (value !== null && value > 0 ? value : 0));
  const pattern = list(plane.pattern).map((text) => say(String(text))).join(' ');
  return h('div', { class: 'plane' },
    h('p', { class: 'small' }, [down && `${down} ↓`, across && `${across} →`].filter(Boolean).join(' · '), ' ', pill(systematic ? 'bad' : 'none', verdict)),
    picture(plane, cells, `${W.plane_title}. ${verdict}. ${pattern}`),
    means.length > 1 ? h('div', {}, h('p', { class: 'small' }, fill(W.plane_mean, { axis: across })), signedBars(means, 28)) : null,
    counts.length > 1 ? h('div', {}, h('p', { class: 'small' }, W.plane_histogram), histogram(counts, 40)) : null,
    h('ul', { class: 'legend' }, ...([['minus', `≤ −${scale}`], ['x0', '0'], ['plus', `≥ ${scale}`]] as const).map(([colour, text]) =>
      h('li', {}, h('i', { class: 'mark box', style: `--c:var(--${colour})`, 'aria-hidden': 'true' }), text))),
    h('p', { class: 'small' }, pattern));
}
