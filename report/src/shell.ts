// A shell takes the text as it is, whatever is in it. A control character would act on the terminal that it is pasted into: bash reads it from digits.
export function quoted(text: string): string {
  if (/^[\w./:@%+=,-]+$/.test(text)) return text;
  if (!/[\x00-\x1f\x7f]/.test(text)) return `'${text.replace(/'/g, `'\\''`)}'`;
  const digits = (control: string) => `\\x${control.charCodeAt(0).toString(16).padStart(2, '0')}`;
  return `$'${text.replace(/['\\]/g, '\\$&').replace(/[\x00-\x1f\x7f]/g, digits)}'`;
}
