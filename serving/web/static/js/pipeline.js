// The pipeline: its groups and topics as a picture and as tables, and what it could not work off.

import { $, h, put, table, tell } from './dom.js';
import { ago, count, short, unread, whole } from './format.js';
import { nodesOf, componentsOf, processesOf, draw } from './picture.js';
import * as letters from './letters.js';

let before = null; // flows of the look before, with its time: rates are differences
let rates = new Map(); // topic → records a second, smoothed
let status = null;

// look shows a status that the caller has asked for.
export function look(now) {
  status = now;
  tell($('untold'), now.flows ? '' : 'The broker does not tell how far its topics are: what goes through them and who lags behind is not known.');
  if (now.flows) measure(now.flows);
  const missing = [...now.missing, ...(now.unavailable || []).map((u) => `Without ${u.source}: ${u.reason}`)];
  put($('missing'), missing, (list) => list.map((m) => h('p', { class: 'notice' }, m)));
  picture();
  put($('groups'), groupRows(now), (rows) => table('Groups', ['group', 'records/s', 'lag', 'partitions', 'restarts', 'dead letters', 'condition'], rows));
  put($('topics'), topicRows(now), showTopics);
  $('processes-section').hidden = !now.processes;
  put($('processes'), processRows(now), (rows) => table('Processes', ['process', 'version', 'state'], rows));
  put($('components'), componentRows(now), (rows) => table('Components', ['component', 'process', 'condition', 'since', 'restarts', 'last error'], rows));
  const flow = (now.flows || []).find((f) => f.topic === 'dead-letters');
  letters.look(flow ? flow.records : -1);
}

// away says that there is no status; what the last one said stays.
export function away(error) {
  tell($('untold'), unread('How the pipeline stands', error));
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

function groupRows(s) {
  return nodesOf(s, rates).filter((n) => n.lag !== null || n.group).map((n) => {
    const g = n.group, parts = componentsOf(n.name, s);
    return [n.name, g ? short(g.records_per_second) : short(Math.round(10 * n.in) / 10), n.lag === null ? 'unknown' : whole(n.lag),
      g && g.partitions ? partitions(g.partitions) : '–', parts.length ? whole(n.restarts) : 'not known', g ? whole(g.counters.dead_letters) : '–', conditions(parts)];
  });
}

// partitions says how many are worked on, wherever that is, and how many of them are not ready.
function partitions(list) {
  const working = (stage) => new Set(list.filter((p) => p.stage === stage).map((p) => p.partition));
  const running = working('running'), recovering = [...working('recovering')].filter((p) => !running.has(p));
  return `${running.size + recovering.length}${recovering.length ? `, ${recovering.length} recovering` : ''}`;
}

// conditions says how a part is in the processes that have it.
function conditions(parts) {
  const by = new Map();
  for (const p of parts) by.set(p.condition, (by.get(p.condition) || 0) + 1);
  return [...by].map(([condition, n]) => (parts.length > 1 ? `${condition} in ${n}` : condition)).join(', ') || 'not known';
}

// topicRows are those of the topics, null while they are not known.
function topicRows(s) {
  if (!s.flows) return null;
  return s.flows.map((f) => [f.topic, f.key, f.writers.join(', '), f.global_table && !f.readers.length ? 'global table' : f.readers.map((r) => r.group).join(', ') || '–',
    whole(f.records), short(Math.round(10 * (rates.get(f.topic) || 0)) / 10), f.readers.length ? whole(f.readers.reduce((n, r) => n + r.records, 0)) : '–']);
}

function showTopics(rows) {
  if (!rows) return h('p', { class: 'quiet' }, 'not known');
  return table('Topics', ['topic', 'key', 'from', 'to', 'records', 'records/s', 'lag'], rows);
}

function componentRows(s) {
  return processesOf(s).flatMap((at) => at.components.map((p) => [p.name, at.address || 'this one', p.condition, ago(p.since), whole(p.restarts), p.last_error || '–']));
}

function processRows(s) {
  return [...(s.processes || []).map((p) => [p.address, p.version, p.ready ? 'ready' : p.missing.join('; ')]),
    ...(s.unavailable || []).map((u) => [u.source, '–', `could not be asked: ${u.reason}`])];
}

// start has the view's controls work.
export function start() {
  letters.start();
  new ResizeObserver(() => { if (status) picture(); }).observe($('picture'));
}

// open has dead letters looked at anew.
export function open() {
  letters.open();
}
