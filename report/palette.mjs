import { readFileSync } from 'node:fs';

export const palette = JSON.parse(readFileSync(new URL('palette.json', import.meta.url)));

const rules = (theme) => Object.entries(palette).map(([name, colours]) => `--${name}:${colours[theme]}`).join(';');

// Light is the default; dark follows the system until the reader chooses; paper is always light.
export function paletteCss() {
  const light = `color-scheme:light;${rules(0)}`;
  const dark = `color-scheme:dark;${rules(1)}`;
  return `:root{${light}}
@media (prefers-color-scheme:dark){:root:not([data-theme=light]){${dark}}}
:root[data-theme=dark]{${dark}}
@media print{:root:root:root{${light}}}
`;
}
