// The pipeline as a picture: groups as boxes, and topics as lines between them.

import { s } from './dom.js';
import { count, rate, whole } from './format.js';

// The positions of groups, [column, row]. Records flow from left to right. Other groups are below the last column.
const places = {
  producers: [0, 2.1], operators: [0, 3.3], objects: [1, 1.2], actors: [2, 0.3], fanout: [2, 3.7], related: [3, 1.45], pools: [3, 2.6],
  features: [4, 0.1], insights: [4, 1.1], serving: [4, 2.1], 'feature-files': [4, 3.05], materialize: [4, 4],
};
const columns = 5, rows = 5;

// The positions on a phone, [row, column]. Records flow downwards, with at most three groups per row.
const narrowPlaces = {
  producers: [0, 1], operators: [0, 2], objects: [1, 1], actors: [2, 0], fanout: [2, 2], related: [3, 0.1], pools: [3, 1.4],
  features: [4, 0], insights: [4, 1], materialize: [4, 2], 'feature-files': [5, 0.5], serving: [5, 1.5],
};
const lagging = 1000; // lag in records from which a reader is highlighted
const lineHeight = 16; // pixels per line of a box, which has at most four lines

// nodesOf returns each writer and reader with its input, output and lag.
export function nodesOf(status, rates) {
  const flows = (status.flows || []).filter((f) => f.topic !== 'dead-letters');
  const names = new Set(['producers', ...status.groups.map((g) => g.group), ...flows.flatMap((f) => [...f.writers, ...f.readers.map((r) => r.group)])]);
  return [...names].map((name) => {
    const reads = flows.filter((f) => f.readers.some((r) => r.group === name));
    const lag = reads.length ? reads.reduce((n, f) => n + f.readers.find((r) => r.group === name).records, 0) : null;
    return {
      name, lag, group: status.groups.find((g) => g.group === name) || null,
      in: sum(reads.map((f) => rates.get(f.topic) || 0)),
      restarts: restartsOf(name, status),
      problems: problemsOf(componentsOf(name, status)),
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

const healthy = 60000; // ms without a restart after which a component counts as healthy

// problemsOf returns the current problems of components. Restarts are counted since the start of a process, so only recent ones matter.
function problemsOf(components) {
  const stopped = components.filter((p) => p.condition !== 'running').map((p) => p.condition);
  if (stopped.length) return [...new Set(stopped)];
  return components.some((p) => p.restarts > 0 && Date.now() - Date.parse(p.since) < healthy) ? ['restarted'] : [];
}

const sum = (list) => list.reduce((a, b) => a + b, 0);

// linesFrom groups the topics of a writer by reader.
function linesFrom(name, flows, rates) {
  const by = new Map();
  for (const f of flows.filter((f) => f.writers.includes(name))) {
    for (const r of f.readers) {
      const line = by.get(r.group) || { to: r.group, topics: [], rate: 0, lag: 0 };
      line.topics.push(f.topic);
      line.rate += (rates.get(f.topic) || 0) / f.writers.length;
      line.lag += r.records;
      by.set(r.group, line);
    }
  }
  return [...by.values()];
}

// draw returns the picture for a width.
export function draw(width, nodes) {
  const layout = width >= 720 ? wide(width) : narrow(width);
  const others = nodes.filter((n) => !layout.places[n.name]).map((n) => n.name);
  const at = (name) => layout.at(layout.places[name] || layout.other(others.indexOf(name)));
  const known = new Set(nodes.map((n) => n.name));
  const lines = nodes.flatMap((n) => n.to.filter((l) => known.has(l.to) && l.to !== n.name).map((l) => ({ from: n.name, ...l })));
  const height = layout.height + others.length * layout.extra;
  return s('svg', { class: 'pipeline', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': inWords(nodes) },
    s('defs', null, arrow('arrow'), arrow('arrow-idle'), arrow('arrow-late')),
    lines.map((l) => link(l, at(l.from), at(l.to), layout)),
    nodes.map((n) => box(n, at(n.name), layout)),
    layout.names && captions(lines, nodes, at, layout));
}

function wide(width) {
  const w = Math.min(140, width / columns - 70), h = 74, gap = (width - w - 8) / (columns - 1), step = 110;
  return { w, h, places, names: true, down: false, height: (rows - 1) * step + h + 16, extra: step,
    at: ([column, row]) => [4 + column * gap, 4 + row * step], other: (i) => [columns - 1, rows + i] };
}

function narrow(width) {
  const w = Math.min(110, width / 3 - 8), h = 74, gap = (width - w - 4) / 2, step = 116;
  return { w, h, places: narrowPlaces, names: false, down: true, height: 5 * step + h + 12, extra: step,
    at: ([row, column]) => [2 + column * gap, 6 + row * step], other: (i) => [6 + i, 1] };
}

function arrow(id) {
  return s('marker', { id, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: 'userSpaceOnUse', orient: 'auto' },
    s('path', { d: 'M0 0 L8 4 L0 8 z', class: id }));
}

// course returns a curve from the side of one box to the side of another.
function course(from, to, { w, h, down }) {
  const [x1, y1] = from, [x2, y2] = to;
  const ahead = down ? y2 > y1 + h : x2 > x1 + w;
  if (ahead) {
    const a = down ? [x1 + w / 2, y1 + h] : [x1 + w, y1 + h / 2], b = down ? [x2 + w / 2, y2 - 2] : [x2 - 2, y2 + h / 2];
    const bend = down ? [0, (b[1] - a[1]) / 2] : [(b[0] - a[0]) / 2, 0];
    return curve(a, [a[0] + bend[0], a[1] + bend[1]], [b[0] - bend[0], b[1] - bend[1]], b);
  }
  return backwards(from, to, { w, h, down });
}

// backwards returns the course of a line against the flow or within a column. It connects the facing sides.
function backwards([x1, y1], [x2, y2], { w, h, down }) {
  const same = down ? Math.abs(y1 - y2) < h : Math.abs(x1 - x2) < w;
  const below = y2 >= y1;
  if (same && !down) {
    const x = x1 + w * (below ? 0.62 : 0.38);
    return curve([x, below ? y1 + h : y1], [x, (y1 + y2 + h) / 2], [x, (y1 + y2 + h) / 2], [x, below ? y2 - 2 : y2 + h + 2]);
  }
  const a = [x1 + w * 0.28, below ? y1 + h : y1], b = [x2 + w * 0.72, below ? y2 - 2 : y2 + h + 2];
  if (y1 === y2) { b[1] = y2 - 2; a[1] = y1; }
  const lift = y1 === y2 ? -60 : (b[1] - a[1]) / 2;
  return curve(a, [a[0], a[1] + lift], [b[0], y1 === y2 ? b[1] - 60 : b[1] - lift], b);
}

const curve = (...points) => ({ points, path: `M${points[0]} C${points.slice(1).join(' ')}` });

const thick = (perSecond) => 1.25 + Math.min(5, 1.4 * Math.log10(1 + perSecond));

function link(l, from, to, layout) {
  const late = l.lag >= lagging;
  return s('path', {
    class: late ? 'flow late' : l.rate > 0 ? 'flow' : 'flow idle', d: course(from, to, layout).path, 'stroke-width': thick(l.rate).toFixed(2),
    'marker-end': `url(#${late ? 'arrow-late' : l.rate > 0 ? 'arrow' : 'arrow-idle'})`,
  }, s('title', null, `${l.from} → ${l.to}: ${l.topics.join(', ')}; ${rate(l.rate)}, lag ${whole(l.lag)}`));
}

const namesShown = 2, characterWidth = 6.1, tall = 16; // pixels of a caption's character, and of its line

// captions returns the names of the topics at each line, if they do not overlap boxes or other captions.
function captions(lines, nodes, at, layout) {
  const taken = nodes.map((n) => { const [x, y] = at(n.name); return [x - 4, y - 4, x + layout.w + 4, y + layout.h + 4]; });
  return lines.map((l) => {
    const more = l.topics.length - namesShown;
    const text = l.topics.slice(0, namesShown).join(', ') + (more > 0 ? ` +${more}` : '');
    const spot = room(course(at(l.from), at(l.to), layout).points, text.length * characterWidth / 2, taken);
    return spot && s('text', { class: 'topic', x: spot[0], y: spot[1] + 4, 'text-anchor': 'middle' }, text);
  });
}

// room returns and reserves a free place for a caption on a curve; null: none. It tries the middle first.
function room(points, half, taken) {
  for (const t of [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.2, 0.8]) {
    const [x, y] = point(points, t), box = [x - half, y - tall / 2, x + half, y + tall / 2];
    if (taken.some((o) => box[0] < o[2] && box[2] > o[0] && box[1] < o[3] && box[3] > o[1])) continue;
    taken.push(box);
    return [x, y];
  }
  return null;
}

// point returns a point of a Bézier curve.
function point([a, b, c, d], t) {
  const u = 1 - t;
  return [0, 1].map((i) => u * u * u * a[i] + 3 * u * u * t * b[i] + 3 * u * t * t * c[i] + t * t * t * d[i]);
}

function box(n, [x, y], { w, h }) {
  const late = n.lag >= lagging, unhealthy = n.problems.length > 0;
  const written = n.to.length ? rate(sum(n.to.map((l) => l.rate))) : '–';
  const goes = n.lag !== null ? rate(n.in) : n.group ? rate(n.group.records_per_second) : written;
  const waits = n.lag === null ? n.group && 'lag unknown' : n.lag ? `lag ${whole(n.lag)}` : 'no lag';
  const lines = [['name', n.name], ['rate', goes], ['lag', waits], ['health', healthOf(n).join(' · ')]].filter(([, text]) => text);
  const first = h / 2 + 5 - ((lines.length - 1) * lineHeight) / 2;
  return s('g', { class: `node${late ? ' late' : ''}${unhealthy ? ' unhealthy' : ''}`, transform: `translate(${x} ${y})` },
    s('rect', { width: w, height: h, rx: 8 }),
    lines.map(([what, text], i) => s('text', { class: `node-${what}`, x: w / 2, y: first + i * lineHeight, 'text-anchor': 'middle' }, text)));
}

// healthOf returns the problems and the number of restarts as text.
const healthOf = (n) => [...n.problems, n.restarts > 0 && count(n.restarts, 'restart', 'restarts')].filter(Boolean);

function inWords(nodes) {
  const facts = (n) => [`${n.name}${n.to.length ? ` writes to ${n.to.map((l) => l.to).join(', ')}` : ''}`, n.lag !== null && `lag ${n.lag} records`, ...healthOf(n)];
  return `The pipeline. ${nodes.map((n) => facts(n).filter(Boolean).join(', ')).join('. ')}. The tables below have the numbers.`;
}
