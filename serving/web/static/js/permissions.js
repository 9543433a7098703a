// What the token permits to change. A control of a call that needs a scope has the attribute data-scope. It is disabled, with the
// reason, for services without the scope. The API decides about users.

import { $, setText } from './dom.js';
import { call } from './api.js';

const changes = { feed: 'visits', 'events:actions': 'actions on pins', operate: 'retries, limits and decisions' };

let scopes = null; // of a service; null: unknown or a user, so all controls are enabled

// permits reports whether the token has a scope, or the one that includes it: events includes events:actions.
export const permits = (scope) => !scopes || scopes.includes(scope) || scopes.includes(scope.split(':')[0]);

// restrict disables a control that needs a scope, unless the token has it.
export function restrict(e, scope = e.dataset.scope) {
  e.dataset.scope = scope;
  e.disabled = !permits(scope);
  e.title = e.disabled ? `requires a token with the scope ${scope}` : '';
  return e;
}

// load requests the scopes of the token, and updates all controls.
export async function load() {
  const caller = await call('/v1/caller').catch(() => ({}));
  scopes = caller.subject && !caller.user ? caller.scopes : null;
  for (const e of document.querySelectorAll('[data-scope]')) restrict(e);
  const refused = Object.entries(changes).filter(([scope]) => !permits(scope)).map(([scope, what]) => `${what} (scope ${scope})`);
  setText($('refused'), refused.length ? `The token does not permit ${refused.join(', ')}.` : '');
}
