import { h, saveButton, copyButton } from './dom';
import { digits } from './format';
import { W, fill } from './words';

export type Cell = string | number | null;

export interface Column<Row> {
  title: string;
  get(row: Row): Cell;
  show?(row: Row): Node | string;
}

interface Options {
  limit?: number;
  name?: string;
  sort?: { column: number; down: boolean };
}

// A cell that a spreadsheet would run gets a quote in front.
export function csvCell(cell: Cell): string {
  const text = cell === null ? '' : String(cell);
  const safe = typeof cell === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

function compare(a: Cell, b: Cell): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === 'number' && typeof b === 'number') {
    const rank = (value: number) => (Number.isNaN(value) ? Infinity : value);
    return rank(a) === rank(b) ? Number(Number.isNaN(a)) - Number(Number.isNaN(b)) : rank(a) - rank(b);
  }
  return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
}

// A table to filter, sort and copy. Only `limit` rows are made until more are asked for, and the page says so.
export function table<Row>(rows: Row[], columns: Column<Row>[], options: Options = {}): HTMLElement {
  let limit = options.limit ?? 100;
  let sort = options.sort ?? { column: -1, down: false };
  let words = '';
  const numeric = columns.map((column) => rows.some((row) => typeof column.get(row) === 'number'));
  const body = h('tbody');
  const status = h('span', { class: 'status', role: 'status' });
  const more = h('button', { type: 'button', onclick: () => { limit = Math.min(rows.length, limit + 1000); fillBody(); } }, W.more_rows);
  const heads = columns.map((column, i) => {
    const button = h('button', { type: 'button', class: 'plain', onclick: () => {
      sort = { column: i, down: sort.column === i ? !sort.down : numeric[i] };
      fillBody();
    } }, column.title);
    return h('th', { scope: 'col', class: numeric[i] ? 'number' : null }, button);
  });

  const chosen = () => {
    const found = words ? rows.filter((row) => columns.some((column) => String(column.get(row) ?? '').toLowerCase().includes(words))) : [...rows];
    const column = columns[sort.column];
    return column ? found.sort((a, b) => compare(column.get(a), column.get(b)) * (sort.down ? -1 : 1)) : found;
  };
  const fillBody = () => {
    const found = chosen();
    body.replaceChildren(...found.slice(0, limit).map((row) => h('tr', {}, ...columns.map((column, i) => {
      const value = column.get(row);
      return h('td', { class: numeric[i] ? 'number' : typeof value === 'string' && value.length > 40 && !column.show ? 'long' : null }, column.show ? column.show(row) : typeof value === 'number' ? digits(value) : value ?? '–');
    }))));
    heads.forEach((head, i) => {
      if (i === sort.column) head.setAttribute('aria-sort', sort.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    const shown = Math.min(limit, found.length);
    status.textContent = shown < found.length ? fill(W.rows_cut, { shown, all: found.length }) : fill(W.rows_all, { all: found.length });
    more.hidden = shown >= found.length;
  };
  const csv = () => [columns.map((column) => csvCell(column.title)), ...chosen().map((row) => columns.map((column) => csvCell(column.get(row))))]
    .map((cells) => cells.join(',')).join('\r\n');

  fillBody();
  const filter = h('input', { type: 'search', placeholder: W.filter, 'aria-label': W.filter, oninput: () => {
    words = filter.value.trim().toLowerCase();
    fillBody();
  } });
  return h('div', { class: 'table' },
    h('div', { class: 'tools' }, rows.length > 8 ? filter : null, status, copyButton(csv, W.copy_csv),
      options.name ? saveButton(W.save_csv, `${options.name}.csv`, 'text/csv', csv) : null),
    scroller(h('table', {}, h('thead', {}, h('tr', {}, ...heads)), body), options.name ?? W.data_table), more);
}

// A wide thing scrolls inside its own box, never the page.
export function scroller(content: HTMLElement, label: string): HTMLElement {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, content);
}
