// The configuration of the process that serves the console.

import { $, h, renderIfChanged, setText, table } from './dom.js';
import { call, query } from './api.js';
import { count, unread } from './format.js';

const pause = 10000; // ms between refreshes
let last = 0;
let all = new Map(), changed = new Map(); // values by key

// refresh reloads the configuration.
export async function refresh() {
  if (Date.now() - last < pause) return;
  last = Date.now();
  try {
    [all, changed] = (await Promise.all([call('/v1/config'), call(`/v1/config${query({ changed: true })}`)])).map((c) => flat(c));
    show();
  } catch (error) {
    setText($('config-status'), unread('the configuration', error));
  }
}

// flat returns the values of a configuration by the path of their key. Lists are values.
function flat(config, path = '') {
  return new Map(Object.entries(config).flatMap(([key, v]) => {
    const at = path + key;
    return v && typeof v === 'object' && !Array.isArray(v) && Object.keys(v).length ? [...flat(v, `${at}.`)] : [[at, v]];
  }));
}

// show shows the keys that contain the typed text.
function show() {
  const text = $('config-filter').value.trim().toLowerCase(), only = $('config-changed').checked;
  const keys = [...all.keys()].filter((k) => (!only || changed.has(k)) && (k.includes(text) || spelled(all.get(k)).toLowerCase().includes(text)));
  setText($('config-status'), keys.length ? `${count(keys.length, 'key', 'keys')} of ${all.size}; ${changed.size} differ from their defaults.` : `No key of ${all.size} matches.`);
  renderIfChanged($('config-values'), keys.map((k) => [k, spelled(all.get(k)), changed.has(k)]), (rows) =>
    table('Configuration', ['key', 'value'], rows.map(([k, v, differs]) => [
      h('code', null, k), h('span', null, h('code', null, v || '–'), differs && h('span', { class: 'differs' }, 'changed'))]), 'settings'));
}

const spelled = (v) => (typeof v === 'string' ? v : JSON.stringify(v));

// start connects the controls of the view.
export function start() {
  for (const [id, event] of [['config-filter', 'input'], ['config-changed', 'change']]) $(id).addEventListener(event, show);
}
