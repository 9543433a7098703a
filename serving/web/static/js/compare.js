// Two feeds or experiment arms of one user, next to each other. Both are peeks, which change nothing.

import { $, announce, h, setText } from './dom.js';
import { call, ofUser, query } from './api.js';
import { count, name, sourceClass, unread, without } from './format.js';
import { app, current } from './app.js';
import { relative, scoreOf, signed, titleOf } from './scores.js';

const most = 25; // items of a page
const sides = ['a', 'b'];
let isShown = false; // the pages of the current user and feeds are shown, or requested

// refresh requests both pages, unless they are shown: a peek costs as much as a visit.
export async function refresh() {
  offer();
  if (!isShown) await load();
}

// offer adds new feeds to the menus. The first menu starts at the feed of the page, the second at another one.
function offer() {
  for (const side of sides) {
    const menu = $(`compare-${side}`), before = menu.value;
    if (menu.options.length === app.feeds.size) continue;
    menu.replaceChildren(...[...app.feeds].map((f) => h('option', { value: f }, f)));
    menu.value = before || (side === 'a' ? app.feed : [...app.feeds].find((f) => f !== app.feed));
  }
}

async function load() {
  isShown = true;
  const isCurrent = current(), feeds = sides.map((side) => $(`compare-${side}`).value);
  const pages = await Promise.allSettled(feeds.map((feed) => call(ofUser(app.user, `feed${query({ peek: true, limit: most, feed })}`))));
  if (!isCurrent() || sides.some((side, i) => $(`compare-${side}`).value !== feeds[i])) return;
  const items = pages.map((p) => (p.status === 'fulfilled' ? p.value.items : null));
  sides.forEach((side, i) => {
    setText($(`compare-${side}-status`), items[i] ? without(pages[i].value.degraded) : unread(`the feed ${feeds[i]}`, pages[i].reason));
    $(`compare-${side}-items`).replaceChildren(...(items[i] || []).map((item, place) => line(item, place, items[1 - i])));
  });
  const text = items[0] && items[1] ? summaryOf(...items, ...feeds) : '';
  setText($('compare-summary'), text);
  announce(text);
}

// line returns an item, with what differs in the other page; null: unknown.
function line(item, place, other) {
  const at = other ? other.findIndex((o) => o.pin === item.pin) : -1;
  const differences = other ? differencesOf(item, place, other[at], at) : [];
  return h('li', { class: differences.length ? 'differs' : false },
    h('span', { class: 'place' }, String(place + 1)),
    h('div', null, h('p', null, h('strong', null, item.title || name(item.pin)), h('span', { class: 'quiet' }, ` ${name(item.author)}`)),
      h('ul', { class: 'tags', 'aria-label': 'Source, score and differences' },
        h('li', { class: `source ${sourceClass(item.source)}` }, item.source), h('li', { title: titleOf(item.score) }, scoreOf(item.score)),
        item.new && h('li', null, 'new'), differences.map((d) => h('li', { class: 'difference' }, d)))));
}

// differencesOf names the differences of position, source and score.
function differencesOf(item, place, other, at) {
  if (!other) return ['only here'];
  const by = relative(item.score) - relative(other.score), steps = Math.abs(at - place);
  return [at !== place && `${steps} ${at > place ? 'higher' : 'lower'}`, other.source !== item.source && `there from ${other.source}`,
    Math.abs(by) >= 0.005 && `score ${signed(by, 2)}`].filter(Boolean);
}

function summaryOf(a, b, first, second) {
  const both = a.filter((i) => b.some((o) => o.pin === i.pin)), moved = both.filter((i) => a.indexOf(i) !== b.findIndex((o) => o.pin === i.pin));
  return `${count(both.length, 'item', 'items')} in both, ${moved.length} of them at another position; ${a.length - both.length} only in ${first}, ${b.length - both.length} only in ${second}.`;
}

// reset removes the data of the previous user.
export function reset() {
  isShown = false;
  setText($('compare-summary'), '');
  for (const side of sides) {
    setText($(`compare-${side}-status`), '');
    $(`compare-${side}-items`).replaceChildren();
  }
}

// start connects the controls of the view.
export function start() {
  for (const side of sides) $(`compare-${side}`).addEventListener('change', load);
  $('compare-refresh').addEventListener('click', load);
}
