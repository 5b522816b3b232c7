// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The tree of a component: its dependents by stage, with their pods, and what others changed. The stream brings it and
// each change of it; rows stay the same elements, so that the scroll position is kept. Rows out of sight cost little,
// because the style sheet leaves out their contents (content-visibility).

import { hashOf } from './address.js';
import { ago, el, frame, icon, toneOf } from './dom.js';

export function treePanel(root, component) {
  const only = el('input', { type: 'checkbox', onchange: () => body.classList.toggle('only', only.checked) });
  const summary = el('p', { class: 'summary', role: 'status' }, 'Loading…');
  const lost = el('p', { class: 'note', 'data-tone': 'bad', hidden: true });
  const body = el('div', { class: 'tree' });
  const nothing = el('p', { class: 'empty unready' }, 'All dependent objects are ready.');
  root.append(el('div', { class: 'tools' }, summary, el('label', {}, only, 'Only what is not ready')), lost, body, nothing);
  const items = new Map(); // dependents, by their key
  const rows = new Map();

  const summarise = frame(() => {
    const all = [...items.values()], unready = all.filter((d) => !d.ready).length, changed = all.filter((d) => d.changes?.length).length;
    const text = `${all.length - unready} of ${all.length} ready` + (changed ? `, ${changed} changed by others` : '');
    if (summary.textContent !== text) summary.textContent = text;
    root.classList.toggle('all-ready', all.length > 0 && !unready);
  });

  // row is the element of a dependent, changed in place.
  function row(dependent) {
    items.set(dependent.key, dependent);
    if (!rows.has(dependent.key)) rows.set(dependent.key, el('li', { class: 'dependent', 'data-key': dependent.key }));
    const element = rows.get(dependent.key), before = element.dependent;
    element.dependent = dependent;
    const text = JSON.stringify(dependent);
    if (element.drawn === text) return element;
    element.drawn = text;
    element.dataset.ready = Boolean(dependent.ready);
    element.replaceChildren(...contents(dependent, component));
    if (before && before.state !== dependent.state) element.firstChild.classList.add('flash'); // for a moment
    return element;
  }

  return {
    // has reports whether there is a dependent, or a pod of one, with a key.
    has: (key) => items.has(key) || [...items.values()].some((d) => d.pods?.some((pod) => keyOfPod(d, pod) === key)),
    tree({ stages, unread, outputs, secretOutputs }) {
      const keys = new Set((stages ?? []).flatMap((stage) => stage.dependents.map((d) => d.key)));
      for (const key of [...items.keys()]) if (!keys.has(key)) { items.delete(key); rows.delete(key); }
      lost.hidden = !unread;
      lost.textContent = unread ?? '';
      body.replaceChildren(...(stages ?? []).map((stage) => el('section', {}, el('h3', {}, stage.title), el('ul', {}, stage.dependents.map(row)))));
      const published = [...Object.entries(outputs ?? {}), ...(secretOutputs ?? []).map((name) => [name, '(secret)'])];
      if (published.length) body.append(el('section', {}, el('h3', {}, 'outputs'), el('ul', {}, published.map(([name, value]) => el('li', {}, `${name}: `, el('bdi', {}, value))))));
      summarise();
    },
    // problem says why the tree cannot be read; what is drawn stays until the next tree.
    problem(why) {
      lost.hidden = false;
      lost.textContent = why;
      if (!items.size) summary.textContent = '';
    },
    dependent({ item }) {
      if (rows.has(item.key)) row(item); // one that is new comes with the next tree
      summarise();
    },
  };
}

const named = (key) => key.split('/').filter((part, i, all) => i % 2 || all.length !== 4).join(' '); // without group and namespace
const keyOfPod = (d, pod) => `/Pod/${d.namespace ?? ''}/${pod.name}`;
const toneOfPod = (pod) => (pod.message && pod.state !== 'Failed' ? 'busy' : toneOf(pod.state));
const stateOf = ({ state }, tone = toneOf(state)) => el('span', { class: 'state', 'data-tone': tone }, state);

// podList shows the pods of a dependent; each leads to its log.
export const podList = (d, component) => (d.pods?.length ? el('ul', { class: 'pods', 'aria-label': 'Pods' }, d.pods.map((pod) => el('li', { class: 'pod' },
  icon(toneOfPod(pod)), el('a', { class: 'name', href: hashOf(component, 'log', keyOfPod(d, pod)) }, pod.name), stateOf(pod, toneOfPod(pod)),
  pod.message && el('bdi', { class: 'message' }, pod.message)))) : '');

function contents(d, component) {
  const name = d.namespace && d.namespace !== component.namespace ? `${d.namespace}/${d.name}` : d.name;
  return [
    el('div', { class: 'head' }, icon(toneOf(d.state)), el('span', { class: 'kind' }, d.kind),
      el('a', { class: 'name', title: d.key, href: hashOf(component, 'live', d.key) }, name),
      el('span', {}, d.ready && el('bdi', { class: 'dim' }, d.message), ' ', stateOf(d))),
    d.message && !d.ready ? el('bdi', { class: 'message' }, d.message) : '',
    d.dependsOn?.length && !d.ready ? el('p', { class: 'dim' }, `depends on ${d.dependsOn.map(named).join(', ')}`) : '',
    ...(d.changes ?? []).map((change) => el('div', { class: 'drift' }, el('p', {}, 'set by ', el('b', {}, change.manager), ' ', ago(change.at)),
      el('ul', {}, change.fields.map((field) => el('li', {}, el('code', {}, field.path), ' ', el('code', { class: 'value' }, field.value)))))),
    podList(d, component),
  ].filter(Boolean);
}
