import { command, h, pill, saveButton } from '../dom';
import { groupBy, list, num, records, type Device } from '../data';
import { time } from '../format';
import { figure } from '../figure';
import type { Page } from '../page';
import { scroller } from '../table';
import { fill, say, W } from '../words';

const text = (value: unknown): string => (typeof value === 'string' ? value : value === null || value === undefined ? '' : JSON.stringify(value));

function pairs(rows: [string, string][]): HTMLElement {
  return h('dl', { class: 'facts' }, ...rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
}

export function environment(page: Page, json: string): (HTMLElement | null)[] {
  const { doc } = page;
  const env = doc.environment ?? {};
  const model = doc.model ?? {};
  const inputs = records(model.inputs).map((input): [string, string] => [`${W.input} ${input.name ?? ''}`, `${input.dtype ?? ''} ${list(input.shape).join(' × ')}`]);
  const host = env.host && typeof env.host === 'object' ? Object.entries(env.host).map(([name, value]): [string, string] => [(W.facts as Record<string, string>)[name] ?? name, text(value)]) : env.host ? [[W.host, text(env.host)] as [string, string]] : [];
  const devices = list(env.devices).map((device): [string, string] => [W.device, typeof device === 'string' ? device : text((device as { name?: string }).name ?? device)]);
  const versions = Object.entries(env.versions ?? {}).map(([name, value]): [string, string] => [name, text(value)]);
  const facts = [...host, ...devices, ...versions, ...(doc.version && !versions.some(([name]) => name === 'unmoor') ? [['unmoor', doc.version] as [string, string]] : [])];
  const about: [string, string][] = [...(model.path ? [[W.model, model.path] as [string, string]] : []), ...(model.fingerprint ? [[W.fingerprint, model.fingerprint] as [string, string]] : []), ...inputs];
  const base = `${(model.path ?? 'model').split('/').pop()!.replace(/[^\w.-]+/g, '_').slice(0, 60)}-unmoor.json`;
  return [
    figure({ title: W.again, reading: page.reading('again', W.again_reading), wide: false, body: [
      doc.command ? command(doc.command) : null,
      about.length ? pairs(about) : null,
      h('p', { class: 'save' }, W.json_inside, ' ', saveButton(W.save_json, base, 'application/json', () => json)),
    ] }),
    facts.length ? figure({ title: W.environment, reading: doc.created ?? '', wide: false, body: [pairs(facts)] }) : null,
  ];
}

const deviceKinds: Record<string, string> = { ready: 'ok', broken: 'bad', absent: 'none' };

// Devices that are absent for the same reason are one row.
function deviceRows(devices: Device[]): HTMLElement {
  const rows = [...groupBy(devices, (device) => (device.state === 'absent' ? `absent ${device.reason ?? ''}` : `${device.state} ${device.name}`)).values()];
  return h('ul', { class: 'plainlist' }, ...rows.map((same) => {
    const device = same[0];
    const checked = device.state !== 'absent' && num(device.check_ms) !== null ? `${W.checked} ${time(num(device.check_ms))}` : '';
    const versions = Object.entries(device.versions ?? {}).map(([name, version]) => `${name} ${version}`).join(', ');
    return h('li', {}, ...same.flatMap((one) => [h('code', { class: 'name' }, one.name ?? '?'), ' ']),
      pill(deviceKinds[device.state ?? ''] ?? 'none', (W.device_states as Record<string, string>)[device.state ?? ''] ?? device.state ?? '?'),
      h('span', { class: 'note' }, [device.reason ? say(device.reason) : '', checked, versions].filter(Boolean).join(' · ')));
  }));
}

const pairKinds: Record<string, string> = { fits: 'ok', 'does not': 'bad' };

export function doctor(page: Page): (HTMLElement | null)[] {
  const data = page.doc.doctor ?? {};
  const devices = records(data.devices);
  const engines = records(data.engines);
  const matrix = records(data.pairs);
  const libraries = records(data.libraries);
  return [
    devices.length || engines.length ? figure({ title: W.devices_title, reading: page.reading('devices', W.devices_reading), wide: false, body: [deviceRows([...devices, ...engines])] }) : null,
    matrix.length ? figure({ title: W.pairs_title, reading: page.reading('pairs', W.pairs_reading), wide: false, body: [scroller(h('table', {}, h('tbody', {}, ...matrix.map((pair) =>
      h('tr', {}, h('td', {}, pair.a ?? '?'), h('td', {}, pair.b ?? '?'), h('td', {}, pill(pairKinds[pair.verdict ?? ''] ?? 'warn', (W.pair_verdicts as Record<string, string>)[pair.verdict ?? ''] ?? pair.verdict ?? '?')), h('td', { class: 'note' }, pair.would ? h('span', { class: 'would' }, fill(W.would, { what: pair.would })) : null, pair.source ?? ''))))), W.pairs_title)] }) : null,
    libraries.length ? figure({ title: W.libraries_title, reading: page.reading('libraries', W.libraries_reading), wide: false, body: [h('ul', { class: 'plainlist' }, ...libraries.map((library) => h('li', {},
      h('code', { class: 'name' }, library.name ?? '?'), ' ', list(library.paths).length > 1 ? pill('warn', W.copies_of.replace('{n}', String(list(library.paths).length))) : null,
      ...list(library.paths).map((path) => h('span', { class: 'note path' }, path === library.used ? '● ' : '○ ', path, path === library.used && list(library.paths).length > 1 ? ` (${W.wins})` : '')))))] }) : null,
  ];
}
