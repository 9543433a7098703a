// The graph of a user: the users, boards and interests that the user follows, and the blocks.

import { $, bar, h, renderIfChanged, setBar, setText } from './dom.js';
import { call, ofUser, query } from './api.js';
import { count, name, short, unread } from './format.js';
import { app, current } from './app.js';

const most = 200; // follows and blocks
const pause = 3000; // ms between refreshes
const kinds = { user: 'Users', board: 'Boards', interest: 'Interests' };
let last = 0;

// refresh reloads the graph.
export async function refresh() {
  if (Date.now() - last < pause) return;
  last = Date.now();
  const isCurrent = current();
  try {
    const graph = await call(ofUser(app.user, `graph${query({ limit: most })}`));
    if (!isCurrent()) return;
    setText($('graph-status'), '');
    setText($('graph-summary'), summaryOf(graph));
    renderIfChanged($('graph-panels'), graph, panels);
  } catch (error) {
    if (isCurrent()) setText($('graph-status'), unread('the graph', error));
    throw error;
  }
}

function summaryOf(g) {
  const shown = (list, all) => (list.length < all ? ` (the first ${list.length} are shown)` : '');
  return `${count(g.followers, 'follower', 'followers')}. Follows ${g.following}${shown(g.follows, g.following)}, blocks ${g.blocking}${shown(g.blocks, g.blocking)}.`;
}

function panels(g) {
  const highest = Math.max(1, ...g.follows.map((f) => f.weight));
  const followed = Object.entries(kinds).map(([kind, title]) => {
    const list = g.follows.filter((f) => f.id.startsWith(`${kind}:`));
    return panel(title, list.map((f) => line(f.id, short(f.weight), f.weight / highest)), `Follows no ${title.toLowerCase()}.`);
  });
  return [...followed, g.blocks.length > 0 && panel('Blocks', g.blocks.map((id) => line(id, '', 0)), '')].filter(Boolean);
}

const panel = (title, lines, none) => h('section', { class: 'panel', 'aria-label': title },
  h('h2', null, title), lines.length ? h('ul', { class: 'bars' }, lines) : h('p', { class: 'quiet' }, none));

// line returns a followee with the weight of its edge. A user links to the graph of that user.
function line(id, value, part) {
  const e = bar(name(id), id);
  setBar(e, value, part);
  if (id.startsWith('user:')) e.querySelector('.label').replaceChildren(h('a', { href: `${query({ user: id, feed: app.feed })}#graph` }, name(id)));
  return e;
}

// reset removes the data of the previous user.
export function reset() {
  last = 0;
  for (const id of ['graph-status', 'graph-summary']) setText($(id), '');
  renderIfChanged($('graph-panels'), null, () => []);
}
