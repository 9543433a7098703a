// The pipeline as a picture: groups as boxes, and topics as lines between them. dagre computes the positions from the topics.

import { Graph, layout } from '../vendor/dagre.js';
import { s } from './dom.js';
import { count, rate, whole } from './format.js';

const lagging = 1000; // lag in records from which a reader is highlighted
const lineHeight = 15, boxHeight = 82; // pixels; a box has at most five lines
const namesShown = 2, nameHeight = 13, characterWidth = 5.9; // of the topics at a line

// The forms of the picture, by the least width of the page: the width of boxes, whether lines have captions, and the smallest scale.
// A wider picture scrolls.
const forms = [{ from: 720, boxWidth: 124, captions: true, smallest: 0.85 }, { from: 0, boxWidth: 104, captions: false, smallest: 0.75 }];

// nodesOf returns each writer and reader with its input, output, lag and problems. The facts are the rates by topic, and the numbers of
// unsettled dead letters and of partitions without an owner by group.
export function nodesOf(status, { rates, deadLetters, unowned }) {
  const flows = (status.flows || []).filter((f) => f.topic !== 'dead-letters');
  const names = new Set(['producers', ...status.groups.map((g) => g.group), ...flows.flatMap((f) => [...f.writers, ...f.readers.map((r) => r.group)])]);
  return [...names].map((name) => {
    const reads = flows.filter((f) => f.readers.some((r) => r.group === name));
    const lag = reads.length ? reads.reduce((n, f) => n + f.readers.find((r) => r.group === name).records, 0) : null;
    const components = componentsOf(name, status);
    return {
      name, lag, group: status.groups.find((g) => g.group === name) || null,
      in: sum(reads.map((f) => rates.get(f.topic) || 0)),
      restarts: restartsOf(name, status),
      errors: errorsOf(components, unowned.get(name) || 0),
      deadLetters: deadLetters.get(name) || 0,
      notes: notesOf(components),
      to: linesFrom(name, flows, rates),
    };
  });
}

// processesOf returns the processes in a status, or only this process if it does not query others.
export const processesOf = (status) => status.processes || [{ address: '', components: status.components }];

// componentsOf returns the components of a writer or reader, at most one per process.
export function componentsOf(name, status) {
  const base = name.split('.')[0]; // a generation runs in the component of its group
  return processesOf(status).map((at) => at.components.find((p) => p.name === base) || at.components.find((p) => p.name.startsWith(`${base}-`))).filter(Boolean);
}

// restartsOf returns the sum over the processes.
function restartsOf(name, status) {
  const group = status.groups.find((g) => g.group === name);
  return group && group.restarts !== undefined ? group.restarts : sum(componentsOf(name, status).map((p) => p.restarts));
}

// errorsOf returns why a box is in the color of errors. A component that has not started yet is none.
function errorsOf(components, unowned) {
  const stopped = new Set(components.map((p) => p.condition).filter((c) => c !== 'running' && c !== 'idle'));
  return [...stopped, unowned > 0 && `${whole(unowned)} unowned`].filter(Boolean);
}

const healthy = 60000; // ms without a restart after which a component counts as healthy

// notesOf returns what is unusual without being an error. Restarts are counted since the start of a process, so only recent ones matter.
function notesOf(components) {
  if (components.some((p) => p.condition === 'idle')) return ['starting'];
  return components.some((p) => p.condition === 'running' && p.restarts > 0 && Date.now() - Date.parse(p.since) < healthy) ? ['restarted'] : [];
}

const sum = (list) => list.reduce((a, b) => a + b, 0);

// linesFrom groups the topics of a writer by reader.
function linesFrom(name, flows, rates) {
  const by = new Map();
  for (const f of flows.filter((f) => f.writers.includes(name))) {
    for (const r of f.readers.filter((r) => r.group !== name)) {
      const line = by.get(r.group) || { from: name, to: r.group, topics: [], rate: 0, lag: 0 };
      line.topics.push(f.topic);
      line.rate += (rates.get(f.topic) || 0) / f.writers.length;
      line.lag += r.records;
      by.set(r.group, line);
    }
  }
  return [...by.values()];
}

// draw returns the picture for a width. It is wider if it would become too small to read.
export function draw(width, nodes) {
  const lines = nodes.flatMap((n) => n.to), form = forms.find((f) => width >= f.from);
  const g = arrange(nodes.map((n) => n.name), lines, form), { width: w, height: h } = g.graph();
  const scale = Math.max(Math.min(1, width / w), form.smallest);
  return s('svg', { class: 'pipeline', width: scale * w, height: scale * h, viewBox: `0 0 ${w} ${h}`, role: 'img', 'aria-label': inWords(nodes) },
    s('defs', null, arrow('arrow'), arrow('arrow-idle'), arrow('arrow-late')),
    lines.map((l) => link(l, g)),
    form.captions && lines.map((l) => caption(l, g.edge(l.from, l.to))),
    nodes.map((n) => box(n, g.node(n.name))));
}

let arranged = { key: '', graph: null };

// arrange returns the positions, which depend only on the names. Records flow from left to right: dagre turns the lines around that
// close a cycle when it walks from the first name along the lines in their order.
function arrange(names, lines, { boxWidth, captions }) {
  const place = new Map(names.map((n, i) => [n, i]));
  const edges = [...lines].sort((a, b) => place.get(a.from) - place.get(b.from) || place.get(a.to) - place.get(b.to));
  const key = JSON.stringify([captions, names, edges.map((l) => [l.from, l.to, l.topics])]);
  if (arranged.key === key) return arranged.graph;
  const g = new Graph().setGraph({ rankdir: 'LR', nodesep: 14, ranksep: 24, edgesep: 8, marginx: 4, marginy: 4 });
  for (const n of names) g.setNode(n, { width: boxWidth, height: boxHeight });
  for (const l of edges) {
    const text = captions ? namesOf(l) : [''];
    g.setEdge(l.from, l.to, { width: Math.max(...text.map((t) => t.length)) * characterWidth + 6, height: text.length * nameHeight, labelpos: 'c' });
  }
  layout(g);
  arranged = { key, graph: g };
  return g;
}

// namesOf returns the lines of a caption.
function namesOf({ topics }) {
  const more = topics.length - namesShown;
  return [...topics.slice(0, more === 1 ? namesShown + 1 : namesShown), more > 1 && `+${more}`].filter(Boolean);
}

function arrow(id) {
  return s('marker', { id, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: 'userSpaceOnUse', orient: 'auto' },
    s('path', { d: 'M0 0 L8 4 L0 8 z', class: id }));
}

// course returns a path from the side of one box to the side of another. It is level next to other boxes and behind its caption.
function course(l, g) {
  const from = g.node(l.from), to = g.node(l.to), { points, x, width } = g.edge(l.from, l.to), ahead = from.x < to.x ? 1 : -1;
  const columns = new Set(g.nodes().map((n) => Math.round(g.node(n).x)));
  const half = (p) => ahead * (p.x === x ? width : columns.has(Math.round(p.x)) ? from.width : 0) / 2;
  const middle = points.slice(1, -1).flatMap((p) => [{ x: p.x - half(p), y: p.y }, { x: p.x + half(p), y: p.y }]);
  const ends = [side(from, ahead, middle[0] || to), side(to, -ahead, middle.at(-1) || from)];
  return [ends[0], ...middle, ends[1]].map((p, i, all) => `${i ? bend(all[i - 1], p) : 'M'}${at(p)}`).join(' ');
}

const at = ({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`;
const bend = (a, b) => `C${at({ x: (a.x + b.x) / 2, y: a.y })} ${at({ x: (a.x + b.x) / 2, y: b.y })} `;

// side returns a point at the left or right side of a box, nearer to the top for lines from above.
function side(box, ahead, { y }) {
  const most = boxHeight / 2 - 10;
  return { x: box.x + ahead * box.width / 2, y: box.y + Math.max(-most, Math.min(most, (y - box.y) / 4)) };
}

const thick = (perSecond) => 1.25 + Math.min(5, 1.4 * Math.log10(1 + perSecond));

function link(l, g) {
  const late = l.lag >= lagging;
  return s('path', {
    class: late ? 'flow late' : l.rate > 0 ? 'flow' : 'flow idle', d: course(l, g), 'stroke-width': thick(l.rate).toFixed(2),
    'marker-end': `url(#${late ? 'arrow-late' : l.rate > 0 ? 'arrow' : 'arrow-idle'})`,
  }, s('title', null, `${l.from} → ${l.to}: ${l.topics.join(', ')}; ${rate(l.rate)}, lag ${whole(l.lag)}`));
}

// caption returns the names of the topics in the middle of a line.
function caption(l, { x, y }) {
  const text = namesOf(l), first = y + 4 - ((text.length - 1) * nameHeight) / 2;
  return s('text', { class: 'topic', 'text-anchor': 'middle' }, text.map((t, i) => s('tspan', { x, y: first + i * nameHeight }, t)));
}

function box(n, { x, y, width, height }) {
  const late = n.lag >= lagging, unhealthy = n.errors.length > 0 || n.deadLetters > 0;
  const written = n.to.length ? rate(sum(n.to.map((l) => l.rate))) : '–';
  const goes = n.lag !== null ? rate(n.in) : n.group ? rate(n.group.records_per_second) : written;
  const waits = n.lag === null ? n.group && 'lag unknown' : n.lag ? `lag ${whole(n.lag)}` : 'no lag';
  const lines = [['name', n.name], ['rate', goes], ['lag', waits], ['health', healthOf(n).join(' · ')], ['dead', deadOf(n)]].filter(([, text]) => text);
  const first = y + 5 - ((lines.length - 1) * lineHeight) / 2;
  return s('g', { class: `node${late ? ' late' : ''}${unhealthy ? ' unhealthy' : ''}${n.errors.length ? ' failing' : ''}` },
    s('rect', { x: x - width / 2, y: y - height / 2, width, height, rx: 8 }),
    lines.map(([what, text], i) => s('text', { class: `node-${what}`, x, y: first + i * lineHeight, 'text-anchor': 'middle' }, text)));
}

// healthOf returns the problems and the number of restarts as text.
const healthOf = (n) => [...n.errors, ...n.notes, n.restarts > 0 && count(n.restarts, 'restart', 'restarts')].filter(Boolean);
const deadOf = (n) => n.deadLetters > 0 && count(n.deadLetters, 'dead letter', 'dead letters');

function inWords(nodes) {
  const facts = (n) => [`${n.name}${n.to.length ? ` writes to ${n.to.map((l) => l.to).join(', ')}` : ''}`, n.lag !== null && `lag ${n.lag} records`, ...healthOf(n), deadOf(n)];
  return `The pipeline. ${nodes.map((n) => facts(n).filter(Boolean).join(', ')).join('. ')}. The tables below have the numbers.`;
}
