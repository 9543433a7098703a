// Plots as SVG, each with a table of its data for screen readers. They are drawn in pixels of the page, so that the font size is
// the same on a phone, and redrawn when the width of the page changes.

import { h, s, table } from './dom.js';
import { percent, short, sourceClass, whole } from './format.js';

const left = 92, right = 16, row = 34, axis = 26; // pixels: margins, height of a row, height of the axis

// figure returns a plot. draw(width) returns its SVG; rows are the rows of its table.
function figure(title, note, legend, draw, head, rows) {
  const place = h('div', { class: 'drawn' });
  new ResizeObserver(([e]) => {
    const width = Math.floor(e.contentRect.width);
    if (width > 0 && place.dataset.width !== String(width)) {
      place.dataset.width = String(width);
      place.replaceChildren(draw(width));
    }
  }).observe(place);
  return h('figure', { class: 'plot' },
    h('figcaption', null, h('h2', null, title), note && h('p', { class: 'quiet' }, note)),
    legend.length > 0 && h('ul', { class: 'legend' }, legend.map(([text, className]) => h('li', { class: className }, text))),
    place,
    h('details', null, h('summary', null, 'As a table'), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title }, table(title, head, rows))));
}

// canvas returns an SVG whose parts are hidden from screen readers: its label is a summary, and the table has the data.
function canvas(width, height, label, ...parts) {
  return s('svg', { class: 'canvas', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, ...parts);
}

const label = (x, y, text, anchor, className) => s('text', { x, y, 'text-anchor': anchor || 'start', class: className }, text);
const line = (x1, y1, x2, y2, className) => s('line', { x1, y1, x2, y2, class: className });

// nice divides 0 to most into at most n steps of a round size; integer steps if wholes is set.
function nice(most, n, wholes) {
  for (let unit = wholes ? 1 : 0.01; ; unit *= 10) {
    for (const size of [unit, 2 * unit, 5 * unit]) {
      const steps = Math.ceil(most / size - 1e-9);
      if (steps <= n) return Array.from({ length: Math.max(steps, 1) + 1 }, (_, i) => i * size);
    }
  }
}

// across returns a horizontal scale from 0 to most with grid lines and numbers.
function across(width, height, most, write, wholes) {
  const ticks = nice(most, width < 420 ? 3 : 5, wholes), span = width - left - right - 8;
  const at = (v) => left + (v / ticks.at(-1)) * span;
  return { at, parts: ticks.flatMap((t) => [
    line(at(t), 0, at(t), height - axis + 6, 'grid'),
    label(at(t), height - 6, write(t), 'middle', 'tick')]) };
}

// shares compares the actual shares of sources with their targets.
export function shares(title, rows, note) {
  const most = Math.max(0.1, ...rows.flatMap((r) => [r.target, r.actual])); // null counts as 0
  const target = (r) => (r.target === null ? '–' : percent(r.target));
  const draw = (width) => {
    const height = rows.length * (row + 6) + axis;
    const scale = across(width, height, most, (v) => percent(v), false);
    return canvas(width, height, `${title}: ${rows.map((r) => `${r.name} ${percent(r.actual)} of ${target(r)}`).join(', ')}`, scale.parts,
      rows.flatMap((r, i) => {
        const y = i * (row + 6) + 6;
        return [
          label(left - 10, y + 17, r.name, 'end', 'name'),
          s('rect', { class: `mark ${sourceClass(r.name)}`, x: left, y: y + 2, width: Math.max(scale.at(r.actual) - left, 1), height: 20, rx: 3 }),
          r.target === null ? null : line(scale.at(r.target), y - 3, scale.at(r.target), y + 27, 'target'),
        ];
      }));
  };
  return figure(title, note, [['shown', 'actual'], ['target', 'target']], draw,
    ['source', 'target', 'shown'], rows.map((r) => [r.name, target(r), percent(r.actual)]));
}

// steps shows how many users of the first step took each later step.
export function steps(title, rows, note) {
  const most = Math.max(1, ...rows.map((r) => r.users)), first = rows.length ? rows[0].users : 0;
  const part = (r) => (first ? percent(r.users / first) : '–');
  const draw = (width) => {
    const height = rows.length * row + axis;
    const scale = across(width, height, most, whole, true);
    return canvas(width, height, `${title}: ${rows.map((r) => `${r.verb} ${r.users}`).join(', ')}`, scale.parts,
      rows.flatMap((r, i) => {
        const y = i * row + 3, end = scale.at(r.users), inside = end - left > 90;
        return [
          label(left - 10, y + 17, r.verb, 'end', 'name'),
          s('rect', { class: 'mark plain', x: left, y, width: Math.max(end - left, 1), height: 24, rx: 3 }),
          label(inside ? end - 8 : end + 8, y + 17, `${whole(r.users)} · ${part(r)}`, inside ? 'end' : 'start', inside ? 'on-mark' : 'name'),
        ];
      }));
  };
  return figure(title, note, [], draw, ['step', 'users', 'of the first step'], rows.map((r) => [r.verb, whole(r.users), part(r)]));
}

const tall = 220, below = 30, axisLeft = 48; // pixels of plots with a vertical scale

// upward returns a vertical scale from 0 to most with grid lines and numbers.
function upward(width, most) {
  const ticks = nice(most, 5, true), span = tall - below - 12;
  const at = (v) => tall - below - (v / ticks.at(-1)) * span;
  return { at, parts: ticks.flatMap((v) => [line(axisLeft, at(v), width - 8, at(v), 'grid'), label(axisLeft - 8, at(v) + 4, short(v), 'end', 'tick')]) };
}

// lines plots numbers by day; series are [name, field, class].
export function lines(title, days, series, note) {
  const most = Math.max(1, ...days.flatMap((d) => series.map(([, field]) => d[field])));
  const draw = (width) => {
    const scale = upward(width, most), gap = (width - axisLeft - 24) / Math.max(days.length - 1, 1);
    const x = (i) => axisLeft + 8 + i * gap, every = Math.ceil(days.length / Math.max(2, Math.floor(width / 90)));
    return canvas(width, tall, `${title}: ${summary(days, series)}`, scale.parts,
      days.map((d, i) => (days.length - 1 - i) % every === 0 && label(x(i), tall - 8, d.day.slice(5), i === days.length - 1 ? 'end' : 'middle', 'tick')),
      series.flatMap(([, field, className]) => [
        s('polyline', { class: `curve ${className}`, points: days.map((d, i) => `${x(i)},${scale.at(d[field])}`).join(' ') }),
        days.map((d, i) => s('circle', { class: `dot ${className}`, cx: x(i), cy: scale.at(d[field]), r: days.length > 40 ? 0 : 2.5 }))]).flat());
  };
  return figure(title, note, series.map(([text, , className]) => [text, className]), draw,
    ['day', ...series.map(([text]) => text)], days.map((d) => [d.day, ...series.map(([, field]) => whole(d[field]))]));
}

const summary = (days, series) => (days.length ? series.map(([text, field]) => `${text} ${days.at(-1)[field]} on ${days.at(-1).day}`).join(', ') : 'nothing');

// columns shows one bar per value.
export function columns(title, list, note) {
  const most = Math.max(1, ...list.map((c) => c.value));
  const draw = (width) => {
    const scale = upward(width, most), gap = (width - axisLeft - 12) / list.length;
    const every = Math.ceil(list.length / Math.max(2, Math.floor(width / 42)));
    return canvas(width, tall, `${title}: ${list.filter((c) => c.value).map((c) => `${c.name}: ${c.value}`).join(', ') || 'nothing'}`, scale.parts,
      list.flatMap((c, i) => [
        s('rect', { class: 'mark plain', x: axisLeft + 4 + i * gap + gap * 0.12, y: scale.at(c.value), width: Math.max(gap * 0.76, 1), height: Math.max(scale.at(0) - scale.at(c.value), 0), rx: 2 }),
        i % every === 0 && label(axisLeft + 4 + (i + 0.5) * gap, tall - 8, c.name, 'middle', 'tick')]));
  };
  return figure(title, note, [], draw, ['days', 'users'], list.map((c) => [c.name, whole(c.value)]));
}

const shades = 5;
const shade = (part) => `shade-${part > 0 ? Math.max(1, Math.ceil(part * shades)) : 0}`;

// cohorts returns a table with shaded cells: the users of a week, and the share that was active in each later week.
export function cohorts(title, list, note) {
  const weeks = Math.max(1, ...list.map((c) => c.active.length));
  return h('figure', { class: 'plot wide' },
    h('figcaption', null, h('h2', null, title), note && h('p', { class: 'quiet' }, note)),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title },
      h('table', { class: 'cohorts' }, h('caption', { class: 'hidden' }, title),
        h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'week of'), h('th', { scope: 'col' }, 'users'),
          Array.from({ length: weeks }, (_, i) => h('th', { scope: 'col' }, i ? `+${i}` : 'week 0')))),
        h('tbody', null, list.map((c) => h('tr', null, h('th', { scope: 'row' }, c.week), h('td', { class: 'number' }, whole(c.users)),
          Array.from({ length: weeks }, (_, i) => cohortCell(c, i))))))));
}

function cohortCell(c, i) {
  if (i >= c.active.length) return h('td', null);
  const part = c.users ? c.active[i] / c.users : 0;
  return h('td', { class: `number ${shade(part)}`, title: `${c.active[i]} of ${c.users}` }, c.users ? percent(part) : '–');
}

const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

// hours shows actions by time: one square for each hour of the week.
export function hours(title, week, note) {
  const most = Math.max(1, ...week.flat());
  const draw = (width) => {
    const gap = Math.max((width - 44) / 24, 3), height = 7 * 22 + 24;
    return canvas(width, height, `${title}, by weekday and hour`,
      week.flatMap((day, d) => [
        label(36, d * 22 + 15, weekdays[d], 'end', 'tick'),
        day.map((n, hour) => s('rect', { class: `square ${shade(n / most)}`, x: 44 + hour * gap, y: d * 22, width: Math.max(gap - 2, 1), height: 20, rx: 2 },
          s('title', null, `${weekdays[d]} ${hour}:00: ${n}`)))]).flat(),
      [0, 6, 12, 18].map((hour) => label(44 + hour * gap, height - 6, `${hour}:00`, 'start', 'tick')));
  };
  return figure(title, note, [], draw, ['', ...Array.from({ length: 24 }, (_, i) => String(i))], week.map((day, d) => [weekdays[d], ...day.map(whole)]));
}
