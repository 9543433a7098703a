// The pipeline: its groups and topics as a picture, and what it could not work off.

import { $, h, keyed, put, table, tell } from './dom.js';
import { call } from './api.js';
import { ago, count, short, whole } from './format.js';
import { nodesOf, draw } from './picture.js';

let before = null; // flows of the look before, with its time: rates are differences
let rates = new Map(); // topic → records a second, smoothed
let status = null;
let letters = 0; // offsets of dead letters at the last look at them
let looked = 0; // when that was
const pause = 3000; // ms between two looks at them that nobody asked for

// look shows a status that the caller has asked for.
export function look(now) {
  status = now;
  measure(now.flows || []);
  put($('missing'), now.missing, (list) => list.map((m) => h('p', { class: 'notice' }, m)));
  picture();
  put($('groups'), groupRows(now), (rows) => table('Groups', ['group', 'records/s', 'lag', 'partitions', 'restarts', 'dead letters', 'condition'], rows));
  put($('topics'), topicRows(now), (rows) => table('Topics', ['topic', 'key', 'from', 'to', 'records', 'records/s', 'lag'], rows));
  put($('parts'), partRows(now), (rows) => table('Parts', ['part', 'condition', 'since', 'restarts', 'last error'], rows));
  const flow = (now.flows || []).find((f) => f.topic === 'dead-letters');
  if (flow && flow.records !== letters && Date.now() - looked >= pause) lookAtLetters(flow.records);
}

// measure learns how fast topics grow; half of what was known stays, so that lines do not flicker.
function measure(flows) {
  const at = performance.now();
  if (before) {
    const seconds = Math.max((at - before.at) / 1000, 0.001);
    for (const f of flows) {
      const fresh = Math.max(0, f.records - (before.records.get(f.topic) ?? f.records)) / seconds;
      const known = rates.get(f.topic);
      const now = known === undefined ? fresh : known + 0.3 * (fresh - known);
      rates.set(f.topic, now < 0.05 ? 0 : now);
    }
  }
  before = { at, records: new Map(flows.map((f) => [f.topic, f.records])) };
}

function picture() {
  const width = Math.floor($('picture').clientWidth - 2 * parseFloat(getComputedStyle($('picture')).paddingLeft));
  if (width <= 0) return; // it is not looked at
  const nodes = nodesOf(status, rates);
  put($('picture'), { width, nodes }, () => draw(width, nodes));
}

const parted = (name, s) => s.parts.find((p) => p.name === name || p.name.startsWith(`${name}-`));

function groupRows(s) {
  return nodesOf(s, rates).filter((n) => n.lag !== null || n.group).map((n) => {
    const g = n.group, part = parted(n.name, s);
    return [n.name, g ? short(g.records_per_second) : short(Math.round(10 * n.in) / 10), n.lag === null ? 'unknown' : whole(n.lag),
      g && g.partitions ? String(g.partitions.length) : '–', part ? String(part.restarts) : 'elsewhere', g ? String(g.counters.deadLetter) : '–',
      part ? part.condition : 'elsewhere'];
  });
}

function topicRows(s) {
  return (s.flows || []).map((f) => [f.topic, f.key, f.writers.join(', '), f.whole && !f.readers.length ? 'held whole' : f.readers.map((r) => r.group).join(', ') || '–',
    whole(f.records), short(Math.round(10 * (rates.get(f.topic) || 0)) / 10), f.readers.length ? whole(f.readers.reduce((n, r) => n + r.records, 0)) : '–']);
}

function partRows(s) {
  return s.parts.map((p) => [p.name, p.condition, ago(p.since), String(p.restarts), p.last_error || '–']);
}

// lookAtLetters reads the newest dead letters; records is how many there are, of which transaction markers are some.
async function lookAtLetters(records) {
  letters = records;
  looked = Date.now();
  try {
    const answer = await call('/v1/deadletters?limit=50');
    showLetters(answer.letters.reverse());
  } catch (error) {
    letters = -1;
    tell($('letters-said'), `The dead letters could not be read: ${error.message}.`);
  }
}

function showLetters(list) {
  const open = list.filter((l) => !l.retried).length;
  $('letters-retry').disabled = open === 0;
  tell($('letters-said'), list.length ? `${count(list.length, 'letter', 'letters')}, ${open} not retried yet.` : 'There are none: every record has been worked off.');
  keyed($('letters'), list, (l) => `${l.letter_partition}/${l.letter_offset}`, makeLetter,
    (e, l) => { e.querySelector('.fate').textContent = l.retried ? 'retried' : 'not retried'; e.classList.toggle('open', !l.retried); });
}

function makeLetter(l) {
  const place = l.topic ? `${l.topic}/${l.partition} at ${l.offset}` : `letter ${l.letter_partition} at ${l.letter_offset}`;
  return h('li', null, h('details', null,
    h('summary', null, h('span', { class: 'fate' }), h('strong', null, place), h('span', null, l.reason)),
    h('dl', null,
      h('dt', null, 'Could not be worked off by'), h('dd', null, l.group || 'nobody knows'),
      h('dt', null, 'Arrived'), h('dd', null, new Date(l.time).toISOString()),
      h('dt', null, 'Reason'), h('dd', null, l.reason),
      h('dt', null, 'Key'), h('dd', null, h('code', null, spelled(bytes(l.key)))),
      h('dt', null, 'Value'), h('dd', null, l.value === null ? 'empty, or too long to be listed' : h('pre', { tabindex: '0' }, dump(bytes(l.value)))))));
}

const bytes = (base64) => (base64 ? Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)) : new Uint8Array());
const spelled = (list) => new TextDecoder().decode(list).replace(/\p{C}/gu, '\uFFFD') || 'none';

// dump writes bytes as numbers with the letters they may be, sixteen a line.
function dump(list) {
  const out = [];
  for (let i = 0; i < list.length; i += 16) {
    const line = [...list.slice(i, i + 16)];
    const letters = line.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '·')).join('');
    out.push(`${i.toString(16).padStart(4, '0')}  ${line.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(47)}  ${letters}`);
  }
  return out.join('\n');
}

async function retry() {
  $('letters-retry').disabled = true;
  try {
    const done = await call('/v1/deadletters/retry', { method: 'POST', patience: 90000 });
    await lookAtLetters(letters);
    looked = 0; // what still cannot be worked off comes back at once
    tell($('letters-said'), `${count(done.published, 'record was', 'records were')} published again${done.skipped ? `, ${done.skipped} skipped` : ''}.`);
  } catch (error) {
    $('letters-retry').disabled = false;
    tell($('letters-said'), `Nothing is certain: ${error.message}.`);
  }
}

// start has the view's controls work.
export function start() {
  $('letters-look').addEventListener('click', () => lookAtLetters(letters));
  $('letters-retry').addEventListener('click', retry);
  new ResizeObserver(() => { if (status) picture(); }).observe($('picture'));
}

// open has dead letters looked at anew.
export function open() {
  letters = -1;
  looked = 0;
}
