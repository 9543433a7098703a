// The pipeline: its groups and topics as a picture and as tables, and the dead letters.

import { $, h, renderIfChanged, table, setText } from './dom.js';
import { ago, count, short, unread, whole } from './format.js';
import { nodesOf, componentsOf, processesOf, draw } from './picture.js';
import * as deadLetters from './dead-letters.js';

let before = null; // flows of the previous status, with its time: rates are differences
let rates = new Map(); // topic → records a second, smoothed
let status = null;
let partitionCount = 0; // of the groups: the highest known number

// refresh shows a status.
export function refresh(now) {
  status = now;
  setText($('topics-unknown'), now.flows ? '' : 'The brokers did not answer: rates and lags of the topics are unknown.');
  if (now.flows) measure(now.flows);
  partitionCount = Math.max(partitionCount, ...now.groups.flatMap((g) => (g.partitions || []).map((p) => p.partition + 1)));
  const missing = [...now.missing, ...(now.unavailable || []).map((u) => `Missing: ${u.source}: ${u.reason}`)];
  renderIfChanged($('missing'), missing, (list) => list.map((m) => h('p', { class: 'notice' }, m)));
  picture();
  renderIfChanged($('groups'), groupRows(now), (rows) => table('Groups', ['group', 'records/s', 'lag', 'partitions', 'restarts', 'dead letters', 'condition'], rows));
  renderIfChanged($('topics'), topicRows(now), showTopics);
  $('processes-section').hidden = !now.processes;
  renderIfChanged($('processes'), processRows(now), (rows) => table('Processes', ['process', 'version', 'state'], rows));
  renderIfChanged($('components'), componentRows(now), (rows) => table('Components', ['component', 'process', 'condition', 'since', 'restarts', 'last error'], rows));
  const flow = (now.flows || []).find((f) => f.topic === 'dead-letters');
  deadLetters.refresh(flow ? flow.records : -1);
}

// showError shows that the status cannot be read. The previous status stays visible.
export function showError(error) {
  setText($('topics-unknown'), unread('the status', error));
}

// measure computes the rates of topics. It smooths them, so that lines do not flicker.
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
  if (width <= 0) return; // the view is hidden
  const nodes = nodesOf(status, facts(status));
  renderIfChanged($('picture'), { width, nodes }, () => draw(width, nodes));
}

const facts = (s) => ({ rates, deadLetters: deadLetters.unsettled, unowned: new Map(s.groups.map((g) => [g.group, unowned(g)])) });

// unowned returns the number of partitions of a group that no process has. While a process joins the group, none is missing.
function unowned(g) {
  const owned = new Set((g.partitions || []).filter((p) => p.stage !== 'standby').map((p) => p.partition));
  return g.joined && owned.size ? partitionCount - owned.size : 0;
}

function groupRows(s) {
  return nodesOf(s, facts(s)).filter((n) => n.lag !== null || n.group).map((n) => {
    const g = n.group, components = componentsOf(n.name, s);
    return [n.name, g ? short(g.records_per_second) : short(Math.round(10 * n.in) / 10), n.lag === null ? 'unknown' : whole(n.lag),
      g && g.partitions ? partitions(g.partitions) : '–', components.length ? whole(n.restarts) : 'unknown', g ? whole(g.counters.dead_letters) : '–', conditions(components)];
  });
}

// partitions returns the number of partitions with an owner in any process, and how many of them are recovering.
function partitions(list) {
  const inStage = (stage) => new Set(list.filter((p) => p.stage === stage).map((p) => p.partition));
  const running = inStage('running'), recovering = [...inStage('recovering')].filter((p) => !running.has(p));
  return `${running.size + recovering.length}${recovering.length ? `, ${recovering.length} recovering` : ''}`;
}

// conditions returns the conditions of a component in the processes that run it.
function conditions(components) {
  const by = new Map();
  for (const p of components) by.set(p.condition, (by.get(p.condition) || 0) + 1);
  return [...by].map(([condition, n]) => (components.length > 1 ? `${condition} in ${n}` : condition)).join(', ') || 'unknown';
}

// topicRows returns the rows of the topics; null if they are unknown.
function topicRows(s) {
  if (!s.flows) return null;
  return s.flows.map((f) => [f.topic, f.key, f.writers.join(', '), f.global_table && !f.readers.length ? 'global table' : f.readers.map((r) => r.group).join(', ') || '–',
    whole(f.records), short(Math.round(10 * (rates.get(f.topic) || 0)) / 10), f.readers.length ? whole(f.readers.reduce((n, r) => n + r.records, 0)) : '–']);
}

function showTopics(rows) {
  if (!rows) return h('p', { class: 'quiet' }, 'unknown');
  return table('Topics', ['topic', 'key', 'from', 'to', 'records', 'records/s', 'lag'], rows);
}

function componentRows(s) {
  return processesOf(s).flatMap((at) => at.components.map((p) => [p.name, at.address || 'this process', p.condition, ago(p.since), whole(p.restarts), p.last_error || '–']));
}

function processRows(s) {
  return [...(s.processes || []).map((p) => [p.address, p.version, p.ready ? 'ready' : p.missing.join('; ')]),
    ...(s.unavailable || []).map((u) => [u.source, '–', `unavailable: ${u.reason}`])];
}

// start connects the controls of the view.
export function start() {
  deadLetters.start();
  new ResizeObserver(() => { if (status) picture(); }).observe($('picture'));
}

// open reloads the dead letters.
export function open() {
  deadLetters.open();
}
