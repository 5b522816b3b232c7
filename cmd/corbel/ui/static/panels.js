// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The panels beside the tree. Each is a function of its element, of the component and of what the page lets it do; it
// returns the function that reads again what it shows.

import { hashOf } from './address.js';
import { get, post } from './api.js';
import { ago, announce, code, duration, el, icon, replace, toneOf } from './dom.js';

// reading makes a function that reads and draws, with the age of what is drawn. What was there before stays until the answer is there.
// Calls that come while it reads let it read once more after that.
export function reading(root, read, draw) {
  let busy = false, again = false;
  root.append(el('p', { class: 'empty' }, 'Loading…'));
  return async () => {
    again = true;
    if (busy) return;
    busy = true;
    root.setAttribute('aria-busy', 'true');
    while (again) {
      again = false;
      replace(root, await read().then(draw).catch(failure), el('p', { class: 'dim' }, 'Read ', ago(new Date().toISOString())));
    }
    busy = false;
    root.removeAttribute('aria-busy');
  };
}

export const note = (tone, text) => el('p', { class: 'note', 'data-tone': tone }, text);
export const failure = (error) => el('p', { class: 'error', role: 'alert' }, error.message);
// told is where an answer to a button is shown. It gets the focus, so that it is in sight and can be read by keyboard.
export const told = (label) => el('div', { class: 'result', role: 'region', 'aria-label': label, tabindex: '-1' });
const nameOf = (object) => `${object.kind} ${object.namespace ? object.namespace + '/' : ''}${object.name}`;

export function causePanel(root, component, { has }) {
  // linked names an object, with a link to what the page shows of it: of a pod the log.
  const linked = (object) => {
    const key = [object.group ?? '', object.kind, object.namespace ?? '', object.name].join('/');
    return has(key) ? el('a', { href: hashOf(component, object.kind === 'Pod' ? 'log' : 'live', key), 'data-key': key }, nameOf(object)) : nameOf(object);
  };
  return reading(root, () => get('why', component), (chain) => [
    el('p', { class: 'headline' }, icon(chain.ready ? 'good' : toneOf(chain.state)), (chain.text ?? '').split('\n')[0]),
    chain.links?.length > 0 && el('ol', { class: 'chain' }, chain.links.map((link, i) => el('li', { class: i === chain.links.length - 1 ? 'last' : null },
      el('p', { class: 'object' }, linked(link.object), i === chain.links.length - 1 && el('span', { class: 'pill', 'data-tone': 'bad' }, 'cause')),
      el('bdi', { class: 'message' }, link.message), link.since && el('span', { class: 'dim' }, ' since ', ago(link.since, '')),
      link.field && el('p', { class: 'dim' }, 'field: ', el('code', {}, link.field))))),
    chain.heldBack?.length > 0 && el('p', {}, `Held back by it: ${chain.heldBack.join(', ')}`),
    (chain.notices ?? []).map((notice) => note('busy', `Note: ${notice}`)),
    (chain.unknown ?? []).map((unknown) => note('idle', `Not known: ${unknown}`)),
    chain.command && el('div', { class: 'command' }, el('span', {}, 'Try:'), el('code', { tabindex: '0', 'data-key': 'command', role: 'group', 'aria-label': 'Next command' }, chain.command), copyButton(chain.command)),
  ]);
}

function copyButton(text) {
  const button = el('button', { type: 'button', 'data-key': 'copy', onclick: async () => {
    button.textContent = await navigator.clipboard.writeText(text).then(() => 'Copied', () => 'Copy it by hand');
  } }, 'Copy');
  return button;
}

export function planPanel(root, component) {
  const spec = el('textarea', { id: 'spec', spellcheck: 'false', autocapitalize: 'off', wrap: 'off' });
  const changed = note('busy', 'The spec has changed since you began to edit it. “Undo my edits” shows it as it is now.');
  const result = told('Plan');
  let read = '', generation; // the spec as it was read last, and of which generation
  changed.hidden = true;
  changed.setAttribute('role', 'status');
  const plan = async (body) => {
    for (const button of buttons) button.disabled = true;
    replace(result, el('p', { class: 'empty' }, 'The operator makes the plan…'));
    try {
      const { text, summary, changes, until } = await post('plan', component, body);
      replace(result, el('p', { class: 'verbatim' }, `${text}\n${summary}`), changesTable(component, changes, until));
      announce(summary);
    } catch (error) {
      replace(result, failure(error));
    }
    for (const button of buttons) button.disabled = false;
    result.focus();
  };
  const button = (text, run, kind) => el('button', { type: 'button', class: kind, onclick: run }, text);
  const end = button('Plan the end of the rollback', () => plan({ endRollback: true }));
  const buttons = [
    button('Plan', () => plan({ spec: spec.value }), 'primary'), button('Undo my edits', () => { spec.value = read; changed.hidden = true; }, 'quiet'), end, button('Plan the deletion', () => plan({ delete: true })),
  ];
  root.append(el('label', { for: 'spec' }, 'Spec'), spec, changed, el('div', { class: 'buttons' }, buttons),
    el('p', { class: 'dim' }, 'A plan writes nothing that belongs to the component: its operator says what it would do. What you type is not saved.'), result);
  return async (now) => { // what was typed stays
    const current = `${now.uid}/${now.generation}`;
    end.hidden = !now.rolledBack;
    if (generation === current) return;
    generation = current;
    try {
      const { yaml } = await get('spec', component);
      if (generation !== current) return; // a later one is being read
      if (spec.value === read) {
        spec.value = yaml;
        spec.rows = Math.max(6, Math.min(20, yaml.split('\n').length));
      } else if (yaml !== read) changed.hidden = false;
      read = yaml;
    } catch (error) {
      if (generation === current) generation = undefined; // it is tried again
      replace(result, failure(error));
    }
  };
}

// classes are the sign, the tone and the words for each class of changes.
const classes = {
  Create: ['+', 'good', 'created'], Update: ['~', 'busy', 'updated'], RestartsPods: ['~', 'busy', 'updated, restarts pods'], Recreate: ['±', 'busy', 'recreated'],
  Delete: ['-', 'bad', 'deleted'], Orphan: ['<', 'idle', 'orphaned'], Adopt: ['>', 'idle', 'adopted'], Refused: ['!', 'bad', 'refused'], Blocked: ['!', 'bad', 'blocked'],
};

// changesTable shows the changes of a plan, or between revisions: each object with its fields, which fold. A field without values is one
// of which the operator does not tell them.
export function changesTable({ namespace }, changes, until) {
  const batches = Object.entries(Object.groupBy(changes ?? [], (change) => change.batch ?? 0));
  const value = (text, otherwise) => el('bdi', { class: text ? null : 'dim' }, text || otherwise);
  const one = ({ key, class: of, hook, message, fields = [], moreFields, dependsOnCluster: cluster }) => {
    const [sign, tone, word] = classes[of] ?? ['~', 'busy', of];
    const name = key.namespace === namespace ? `${key.kind} ${key.name}` : nameOf(key);
    const head = [el('b', { class: 'sign', 'data-tone': tone }, sign), ' ', el('b', {}, name), ' ', el('span', { class: 'dim' }, [word, hook && `${hook} hook`].filter(Boolean).join(', '))];
    const rows = fields.map(({ path, old, new: now }) => [el('code', {}, path),
      ...(old || now ? [value(old, '(none)'), value(now, '(removed)')] : [value('', 'not shown'), value('', 'not shown')])]);
    const notes = [message, moreFields && `and ${moreFields} more fields`, cluster && `depends on the cluster: ${cluster}`].filter(Boolean).map((text) => el('p', {}, el('bdi', {}, text)));
    return rows.length || notes.length ? el('details', { class: 'change', open: true }, el('summary', {}, head), rows.length > 0 && table(name, ['Field', 'Before', 'After'], rows), notes)
      : el('p', { class: 'change' }, head);
  };
  const drawn = el('div', { class: 'changes' }, batches.map(([batch, of]) => {
    const after = new Set((until ?? []).filter((wait) => wait.batch === Number(batch)).map((wait) => nameOf(wait.key)));
    const title = [Number(batch) ? `Batch ${batch}` : 'Not written', after.size && `after ${[...after].join(', ')}`].filter(Boolean).join(', ');
    return [(batches.length > 1 || after.size > 0) && el('h3', {}, title), of.map(one)];
  }));
  const all = [...drawn.querySelectorAll('details')];
  const fold = () => { const open = !all.some((one) => one.open); for (const each of all) each.open = open; };
  if (all.length > 1) drawn.prepend(el('button', { type: 'button', class: 'quiet', onclick: fold }, 'Fold or unfold all'));
  return drawn;
}

// table draws rows of cells; on a small screen each cell has the title of its column beside it.
export const table = (caption, titles, rows) => el('div', { class: 'scroll' }, el('table', {}, el('caption', { class: 'unseen' }, caption),
  el('thead', {}, el('tr', {}, titles.map((title) => el('th', { scope: 'col' }, title)))),
  el('tbody', {}, rows.map((cells) => el('tr', {}, cells.map((cell, i) => el('td', { 'data-title': titles[i] || null }, cell)))))));

const marked = (text, tone) => el('span', { class: 'state', 'data-tone': tone }, icon(tone), text);

export function eventsPanel(root, component, { object } = {}) {
  return reading(root, () => get('events', component, { object }), ({ items, unread }) => [
    unread && note('busy', `Not all events can be read: ${unread}`),
    items?.length ? table('Events', ['Seen', 'Type', 'Reason', 'Object', 'Message'], items.toReversed().map((e) => [
      ago(e.Last), e.Type === 'Warning' ? marked(e.Type, 'bad') : e.Type, e.Reason, e.Object, el('bdi', {}, e.Message + (e.Count > 1 ? ` (${e.Count} times)` : '')),
    ])) : el('p', { class: 'empty' }, 'No events.'),
  ]);
}

export function historyPanel(root, component, { write, act }) {
  const listed = el('div'), diff = told('Comparison');
  let asked; // the revision that is compared, if several are asked for
  root.append(listed, diff);
  async function compare(revision) {
    asked = revision;
    replace(diff, el('p', { class: 'empty' }, 'The operator compares…'));
    const drawn = await post('diff', component, { revision }).then(({ from, to, changes }) => {
      const heading = `From revision ${from} to ${to}`;
      if (asked === revision) announce(heading);
      return [el('h3', {}, heading), changes.length ? changesTable(component, changes) : el('p', { class: 'empty' }, 'They are the same.')];
    }).catch(failure);
    if (asked !== revision) return;
    replace(diff, drawn);
    diff.focus();
  }
  const button = (text, label, onclick) => el('button', { type: 'button', 'data-key': label, 'aria-label': label, onclick }, text);
  const rollBack = (revision) => act({
    title: `Roll back to revision ${revision}`, go: 'Roll back',
    text: `The operator applies the manifests of revision ${revision} again, and the component stays there, whatever its spec says, until the rollback is ended.`,
    body: { action: 'rollback', revision },
  });
  return reading(listed, () => get('history', component), ({ items }) => (items?.length ? [
    table('Revisions', ['Revision', 'Result', 'Started', 'Ready after', 'Changed by', 'Source', 'Note', ''], items.toReversed().map((r) => [
      [String(r.revision), r.current && el('span', { class: 'pill' }, 'current')], marked(r.result ?? '', toneOf(r.result)), ago(r.appliedAt),
      r.readyAt ? duration((Date.parse(r.readyAt) - Date.parse(r.appliedAt)) / 1000) : '', r.changedBy, r.sourceText, el('bdi', {}, r.note),
      !r.current && r.digest && el('span', { class: 'buttons' }, button('Compare', `Compare revision ${r.revision} with the current one`, () => compare(r.revision)),
        write && button('Roll back…', `Roll back to revision ${r.revision}`, () => rollBack(r.revision))),
    ])),
  ] : [el('p', { class: 'empty' }, 'No history yet.')]));
}
