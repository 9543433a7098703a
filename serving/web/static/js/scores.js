// Scores relative to now. A score contains ln(2) · creation / half-life with the creation counted from 1970, so that it never
// changes. Without the same term of the present, 0 is a new pin of the usual quality and weight.

import { call } from './api.js';

const timeout = 2000; // ms
const secondsOf = { h: 3600, m: 60, s: 1, ms: 0.001 };
let perSecond = 0; // ln(2) / half-life; 0: unknown, and scores are shown as they are

// load reads the half-life from the configuration, once. A token may not permit it.
export async function load() {
  if (perSecond) return;
  try {
    const { fanout } = await call('/v1/config', { timeout });
    const seconds = [...fanout.score_half_life.matchAll(/([\d.]+)(h|ms|m|s)/g)].reduce((sum, [, n, unit]) => sum + n * secondsOf[unit], 0);
    if (seconds > 0) perSecond = Math.LN2 / seconds;
  } catch { /* the scores stay as they are */ }
}

// relative returns a score, or its term of the creation, relative to now. A score of an external source or a model may lack the
// term; it stays as it is.
export function relative(score) {
  const now = (perSecond * Date.now()) / 1000;
  return score > now / 2 ? score - now : score;
}

export const signed = (v, digits) => `${v < 0 ? '−' : '+'}${Math.abs(v).toFixed(digits)}`;

// isRelative reports whether relative changes a score.
const isRelative = (score) => relative(score) !== score;

// scoreOf returns a score as text, and titleOf its explanation with the stored value.
export const scoreOf = (score, digits = 2) => (isRelative(score) ? signed(relative(score), digits) : score.toFixed(digits));
export const titleOf = (score) => (isRelative(score) ? `score relative to now; stored: ${score}` : `score ${score}`);
