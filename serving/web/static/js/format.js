// Formats of ids, numbers and times.

// name returns an id without its kind.
export const name = (id) => id.slice(id.indexOf(':') + 1);

export const short = (n) => n.toLocaleString('en', { maximumFractionDigits: Math.abs(n) < 10 ? 2 : 1 });
export const whole = (n) => Math.round(n).toLocaleString('en');
export const percent = (part) => `${(100 * part).toFixed(part > 0 && part < 0.1 ? 1 : 0)} %`;
export const rate = (n) => `${n < 10 ? n.toFixed(1) : whole(n)}/s`;
export const clock = (time) => new Date(time).toLocaleTimeString('en-GB');

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' });
const units = [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60]];

// ago returns a time relative to now.
export function ago(time) {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const [unit, size] = units.find(([, s]) => Math.abs(seconds) >= s) || ['second', 1];
  return relative.format(Math.round(seconds / size), unit);
}

// without names the missing parts of an answer; '' if it is complete.
export const without = (degraded) => (degraded.length ? `Unavailable: ${degraded.join(', ')}.` : '');

// unread returns the message for data that could not be read.
export const unread = (what, error) => `Cannot read ${what}: ${error.message}.`;

export const count = (n, one, many) => `${whole(n)} ${n === 1 ? one : many}`;

// hash is FNV-1a over the text, mixed once more so that similar texts differ in every bit.
export function hash(text) {
  let n = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) n = Math.imul(n ^ text.charCodeAt(i), 0x01000193);
  n = Math.imul(n ^ (n >>> 16), 0x45d9f3b);
  return (n ^ (n >>> 16)) >>> 0;
}

const named = ['following', 'interest', 'related', 'popular', 'explore'];

// sourceClass returns the CSS class with the color of a source. External sources share one.
export const sourceClass = (source) => `source-${named.includes(source) ? source : 'other'}`;
