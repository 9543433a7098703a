// The documentation of the HTTP API, rendered from /v1/openapi.json. All text is inserted as text, never as markup.

import { h, table } from './dom.js';

const byId = (id) => document.getElementById(id);

// nameOf returns the last part of a reference.
const nameOf = (ref) => ref.slice(ref.lastIndexOf('/') + 1);
// follow returns what a reference of the document refers to, or the value itself.
function follow(doc, value) {
  if (!value.$ref) return value;
  return value.$ref.slice(2).split('/').reduce((at, key) => at[key], doc);
}

// typeOf describes a schema: its type, with links to named schemas.
function typeOf(schema) {
  if (!schema) return [];
  if (schema.$ref) return [h('a', { href: `#schema-${nameOf(schema.$ref)}` }, nameOf(schema.$ref))];
  if (schema.oneOf) return schema.oneOf.flatMap((one, i) => (i ? [' or ', ...typeOf(one)] : typeOf(one)));
  if ('const' in schema) return [JSON.stringify(schema.const)];
  if (schema.enum) return [schema.enum.map((v) => JSON.stringify(v)).join(' | ')];
  if (schema.type === 'array') return ['array of ', ...typeOf(schema.items)];
  if (schema.additionalProperties && schema.additionalProperties !== true) return ['map of ', ...typeOf(schema.additionalProperties)];
  return [schema.format || schema.type || 'any value'];
}

// boundsOf describes the bounds and the default of a schema.
function boundsOf(schema) {
  const s = schema || {}, all = [];
  const between = (low, high, unit) => {
    if (low !== undefined && high !== undefined) all.push(`${low} to ${high}${unit}`);
    else if (low !== undefined) all.push(`at least ${low}${unit}`);
    else if (high !== undefined) all.push(`at most ${high}${unit}`);
  };
  between(s.minimum, s.maximum, '');
  between(s.minLength, s.maxLength, ' characters');
  between(s.minItems, s.maxItems, ' items');
  if (s.pattern) all.push(`matches ${s.pattern}`);
  if (s.default !== undefined) all.push(`default ${JSON.stringify(s.default)}`);
  return all.join('; ');
}

const cell = (...parts) => h('span', null, ...parts);
const described = (schema, text) => cell(text || schema.description || '', boundsOf(schema) && ` (${boundsOf(schema)})`);

// properties returns a table of the properties of an object, including those of nested objects without a name, or null.
function properties(schema, name) {
  const rows = rowsOf(schema, '');
  return rows.length ? h('div', { class: 'scroll' }, table(`Properties of ${name}`, ['Property', 'Type', 'Description'], rows)) : null;
}

// rowsOf returns the properties of a schema below a path: of an object, of the elements of a list, or of the values of a map.
function rowsOf(schema, path) {
  const inside = [[schema.items, '[]'], [path && schema.additionalProperties, '{}'], ...(schema.oneOf || []).map((one) => [one, ''])];
  const own = Object.entries(schema.properties || {}).flatMap(([key, value]) => [
    [cell(h('code', null, `${path}${path && '.'}${key}`), (schema.required || []).includes(key) ? ' (required)' : ''), cell(...typeOf(value)), described(value)],
    ...rowsOf(value, `${path}${path && '.'}${key}`)]);
  return [...own, ...inside.filter(([value]) => value && typeof value === 'object').flatMap(([value, step]) => rowsOf(value, path + step))];
}

// headers lists the headers of an answer.
function headers(answer) {
  const all = Object.entries(answer.headers || {});
  return all.length ? h('p', null, 'Headers: ', all.flatMap(([name, v], i) => [i ? ', ' : '', h('code', null, name), v.description ? ` (${v.description})` : ''])) : null;
}

function access(security) {
  if (!security || security.length === 0) return 'No token is required.';
  const all = security.map((one) => {
    const [scheme, scopes] = Object.entries(one)[0];
    if (scheme === 'self') return 'the token of the user in the path';
    if (scheme === 'user') return 'the token of any user';
    if (scheme === 'scrape') return 'the token of metrics.token_file';
    return `a service token with the scope ${scopes.join(', ')}`;
  });
  return `Token, if authentication is enabled: ${all.join(', or ')}.`;
}

// content lists the content types of a body or an answer, with an example.
function content(doc, of) {
  return Object.entries(of.content || {}).flatMap(([type, media]) => {
    const lines = media['x-line-schema'] ? [', one ', ...typeOf(media['x-line-schema']), ' per line'] : [];
    const example = typeof media.example === 'string' ? media.example : JSON.stringify(media.example, null, 2);
    return [
      h('p', null, h('code', null, type), ': ', ...typeOf(media.schema), ...lines),
      media.schema && !media.schema.$ref ? properties(media.schema, 'the value') : null,
      media.example === undefined ? null : h('details', null, h('summary', null, 'Example'), h('pre', null, h('code', null, example))),
    ];
  });
}

function parameters(doc, list) {
  const rows = (list || []).map((p) => follow(doc, p)).map((p) => [
    cell(h('code', null, p.name), p.required ? ' (required)' : ''), p.in, cell(...typeOf(p.schema)), described(p.schema || {}, p.description)]);
  return rows.length ? h('div', { class: 'scroll' }, table('Parameters', ['Parameter', 'In', 'Type', 'Description'], rows)) : null;
}

function operation(doc, path, method, op) {
  const answers = Object.entries(op.responses).map(([code, r]) => [code, follow(doc, r)]);
  const good = answers.filter(([code]) => code < '300'), others = answers.filter(([code]) => code >= '300');
  return h('article', { class: 'panel', id: op.operationId },
    h('h3', null, h('code', null, `${method.toUpperCase()} ${path}`), ` — ${op.summary}`),
    op.description ? h('p', null, op.description) : null,
    h('p', { class: 'quiet' }, access(op.security)),
    parameters(doc, op.parameters),
    op.requestBody ? [h('h4', null, 'Request body'), ...content(doc, op.requestBody)] : null,
    ...good.flatMap(([code, r]) => [h('h4', null, `Answer ${code}`), h('p', null, r.description), headers(r), ...content(doc, r)]),
    others.length ? h('details', null, h('summary', null, 'Other answers'),
      table('Other answers', ['Status', 'Meaning'], others.map(([code, r]) => [code, h('div', null, r.description, headers(r))]))) : null,
    h('p', null, h('a', { href: '#main' }, 'Contents')));
}

function schema(name, s) {
  return h('article', { class: 'panel', id: `schema-${name}` }, h('h3', null, h('code', null, name)),
    s.description ? h('p', null, s.description) : null,
    properties(s, name) || h('p', null, ...typeOf(s), boundsOf(s) ? `; ${boundsOf(s)}` : ''));
}

function page(doc) {
  const all = Object.entries(doc.paths).flatMap(([path, item]) => Object.entries(item).map(([method, op]) => ({ path, method, op })));
  const sections = doc.tags.map((tag) => ({ tag, calls: all.filter((c) => c.op.tags.includes(tag.name)) }));
  return [
    h('p', null, doc.info.description),
    ...sections.map(({ tag, calls }) => h('section', { 'aria-label': `Contents: ${tag.name}` }, h('h2', null, tag.name), h('p', { class: 'quiet' }, tag.description),
      h('ul', { class: 'contents' }, calls.map((c) => h('li', null, h('a', { href: `#${c.op.operationId}` }, `${c.method.toUpperCase()} ${c.path}`)))))),
    ...sections.map(({ tag, calls }) => h('section', { 'aria-label': tag.name }, h('h2', null, `Calls: ${tag.name}`), calls.map((c) => operation(doc, c.path, c.method, c.op)))),
    h('section', { 'aria-label': 'Schemas' }, h('h2', null, 'Schemas'), Object.entries(doc.components.schemas).map(([name, s]) => schema(name, s))),
  ];
}

async function show() {
  try {
    const answer = await fetch('/v1/openapi.json');
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    byId('docs-body').replaceChildren(...page(await answer.json()));
    if (location.hash) byId(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  } catch (error) {
    byId('docs-problem').textContent = `Cannot show /v1/openapi.json: ${error.message}`;
    byId('docs-problem').hidden = false;
  }
}

show();
