
// Three significant digits; what is not a number says so.
export function digits(value: number | null | undefined, places = 3): string {
  if (value === null || value === undefined) return '–';
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-3 ? value.toExponential(places - 1).replace(/\.?0+e/, 'e').replace('e+', 'e')
    : size >= 1000 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(places)));
  return text.replace(/-/g, (_, at) => (at === 0 ? '−' : '-'));
}

// Metrics near 1, such as a cosine or a ratio, need their digits.
export function metric(name: string, value: number | null): string {
  return digits(value, name.includes('cosine') ? 7 : 3);
}

export function thousandths(value: number): string {
  return value >= 100 ? digits(value) : value.toFixed(3);
}

export function time(ms: number | null): string {
  if (ms === null || !Number.isFinite(ms)) return digits(ms);
  if (ms >= 1000) return `${digits(ms / 1000)} s`;
  return ms >= 0.1 || ms === 0 ? `${digits(ms)} ms` : `${digits(ms * 1000)} µs`;
}

export function bytes(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return digits(value);
  let size = value;
  for (const unit of ['B', 'kB', 'MB', 'GB']) {
    if (size < 1000) return `${digits(size)} ${unit}`;
    size /= 1000;
  }
  return `${digits(size)} TB`;
}

export function percent(share: number): string {
  return `${digits(share * 100, share >= 0.1 ? 3 : 2)} %`;
}

export function times(value: number | null): string {
  return value === null || Number.isNaN(value) ? digits(value) : `${digits(value)} ×`;
}

const superscripts = '⁰¹²³⁴⁵⁶⁷⁸⁹';
export function power(exponent: number): string {
  return `10${exponent < 0 ? '⁻' : ''}${[...String(Math.abs(exponent))].map((digit) => superscripts[Number(digit)]).join('')}`;
}

export function clip(value: string, length: number): string {
  const text = String(value ?? '');
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

