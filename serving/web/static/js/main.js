// The console: the user, the view, and the periodic updates of the visible view.

import { $, h, setText } from './dom.js';
import { allowPrompt, call, hasToken, onUnauthorized } from './api.js';
import { name } from './format.js';
import { app, current } from './app.js';
import * as permissions from './permissions.js';
import * as scores from './scores.js';
import * as search from './search.js';
import * as feed from './feed.js';
import * as rail from './rail.js';
import * as compare from './compare.js';
import * as pools from './pools.js';
import * as graph from './graph.js';
import * as features from './features.js';
import * as interests from './interests.js';
import * as pipeline from './pipeline.js';
import * as insights from './insights.js';
import * as experiments from './experiments.js';
import * as config from './config.js';

const every = 1000; // ms between updates while the page is visible

// The views by name. The name is also the suffix of the section's id and the fragment of the page's URL. A view with user set
// needs a user. refresh updates the view; open is called before the view is shown.
const views = {
  feed: { user: true, refresh: rail.refresh },
  compare: { user: true, refresh: compare.refresh },
  pools: { user: true, refresh: pools.refresh },
  graph: { user: true, refresh: graph.refresh },
  features: { user: true, refresh: features.refresh },
  interests: { refresh: interests.refresh, open: interests.open },
  pipeline: { refresh: () => {}, open: pipeline.open }, // showStatus updates it
  insights: { refresh: insights.refresh, open: insights.open },
  experiments: { refresh: experiments.refresh, open: experiments.open },
  config: { refresh: config.refresh },
};

const view = () => (Object.hasOwn(views, location.hash.slice(1)) ? location.hash.slice(1) : 'feed');

// ---- views

// show displays the view of the page's URL. With focus set, the heading of the view gets the focus.
function show(focus) {
  const now = view();
  for (const other of Object.keys(views)) $(`view-${other}`).hidden = other !== now || (views[other].user && !app.user);
  for (const a of document.querySelectorAll('nav a')) {
    if (a.hash === `#${now}`) {
      a.setAttribute('aria-current', 'page');
      a.scrollIntoView({ block: 'nearest', inline: 'nearest' }); // on a phone, the links are wider than the page
    } else {
      a.removeAttribute('aria-current');
    }
  }
  $('suggest').hidden = !views[now].user || Boolean(app.user);
  document.title = [views[now].user && app.user && name(app.user), now, 'smartfeed console'].filter(Boolean).join(' · ');
  if (views[now].open) views[now].open();
  if (focus) {
    (document.querySelector(`#view-${now}:not([hidden]) h1`) || $('main')).focus();
    window.scrollTo(0, 0);
  }
}

// ---- user

// choose displays the feed of a user. It changes nothing: a visit needs its button.
async function choose(user, feedName) {
  app.visit++;
  const isCurrent = current();
  allowPrompt();
  offer(feedName);
  app.user = user;
  app.feed = feedName;
  app.known = false;
  $('user').value = user;
  $('name').value = feedName;
  for (const v of [feed, rail, compare, pools, graph, features, interests]) v.reset();
  setText($('notice'), '');
  show(false);
  if (!user) {
    await search.search();
    return;
  }
  await scores.load();
  if (isCurrent()) await open(false);
}

// open shows the first page of the feed, of a visit or a peek.
async function open(visiting) {
  const user = app.user, answered = await feed.open(visiting);
  if (user !== app.user) return false;
  if (answered || app.known) feed.follow(); // a new stream sends the current count at once; an open one sends only changes
  if (!answered) return false;
  app.known = true;
  search.remember(user);
  refresh();
  return true;
}

// navigate chooses a user and a feed, and adds them to the URL of the page.
function navigate(user, feedName) {
  history.pushState(null, '', `?${new URLSearchParams({ user, feed: feedName })}${location.hash || '#feed'}`);
  return choose(user, feedName);
}

// ---- periodic updates

let refreshing = false; // one update at a time, so that a slow server does not get more requests

// refresh updates the visible view. After an error, the view stays unchanged until the next update.
async function refresh() {
  if (refreshing || document.hidden) return;
  refreshing = true;
  try {
    const now = views[view()];
    const rounds = [call('/v1/status').then(showStatus, showStatusError)];
    if (app.known || !now.user) rounds.push(now.refresh());
    await Promise.all(rounds);
  } catch (error) {
    state(error.message, false);
  } finally {
    refreshing = false;
  }
}

// offer adds a feed to the menu.
function offer(feedName) {
  app.feeds.add(feedName);
  if (![...$('name').options].some((o) => o.value === feedName)) $('name').append(h('option', { value: feedName }, feedName));
}

function showStatus(status) {
  for (const s of status.shares || []) {
    offer(s.feed);
    if (s.arm) app.feeds.add(s.arm);
  }
  state(status.ready ? 'ready' : status.missing.join('; '), status.ready);
  setText($('version'), `smartfeed ${status.version}`);
  if (view() === 'pipeline') pipeline.refresh(status);
}

function showStatusError(error) {
  if (view() === 'pipeline') pipeline.showError(error);
  throw error;
}

function state(text, good) {
  setText($('state-text'), text); // screen readers announce the change
  $('state').firstElementChild.className = `dot ${good ? 'good' : 'bad'}`;
}

const live = () => $('live').getAttribute('aria-pressed') === 'true';

async function poll() {
  if (live()) await refresh();
  setTimeout(poll, every);
}

// ---- authentication

// promptForToken asks the user of the console for a token. detail is the problem that the API reported.
function promptForToken(detail) {
  setText($('token-reason'), detail);
  $('token').value = '';
  $('token-dialog').returnValue = '';
  $('token-dialog').showModal();
  return new Promise((answered) => {
    $('token-dialog').addEventListener('close', () => answered($('token-dialog').returnValue === 'use' ? $('token').value.trim() : null), { once: true });
  });
}

// ---- start

function start() {
  $('feed-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const typed = $('user').value.trim();
    await navigate(typed.includes(':') ? typed : `user:${typed}`, $('name').value);
    if (view() === 'feed') $('feed-title').focus();
  });
  $('name').addEventListener('change', () => { if (app.user) navigate(app.user, $('name').value); });
  $('live').addEventListener('click', () => $('live').setAttribute('aria-pressed', String(!live())));
  $('theme').value = document.documentElement.dataset.theme || 'auto';
  $('theme').addEventListener('change', chooseTheme);
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault(); // the fragment of the URL is the view
    $('main').focus();
  });
  window.addEventListener('popstate', fromAddress);
  window.addEventListener('hashchange', () => { show(true); refresh(); });
  onUnauthorized(promptForToken, permissions.load);
  if (hasToken()) permissions.load();
  for (const v of [compare, pipeline, features, interests, insights, experiments, config]) v.start();
  feed.start(() => open(true));
  search.start(async (user) => {
    await navigate(user, app.feed);
    $('feed-title').focus();
  });
  choose(...addressed());
  poll();
}

// addressed returns the user and the feed in the URL of the page.
function addressed() {
  const query = new URLSearchParams(location.search);
  return [query.get('user') || '', query.get('feed') || 'home'];
}

function fromAddress() {
  const [user, feedName] = addressed();
  if (user !== app.user || feedName !== app.feed) choose(user, feedName);
}

function chooseTheme() {
  const theme = $('theme').value;
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try { localStorage.setItem('theme', theme); } catch { /* the storage is blocked */ }
}

start();
