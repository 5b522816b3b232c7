// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// What is shown is in the hash of the address, so that a link shows the same: #type/namespace/name/tab for a component, with the key of
// an object and a container of it behind that, and ?search=…&state=… for the list. Without that part a link keeps the list as it is.

export const hashOf = ({ type, namespace, name }, tab = 'tree', ...object) =>
  '#' + [type, namespace ?? '', name, tab, ...object].map(encodeURIComponent).join('/');

export function parseHash() {
  const [path, filters] = location.hash.slice(1).split('?');
  try {
    const [type, namespace, name, tab, object, container] = path.split('/').map(decodeURIComponent);
    if (type && name) return { component: { type, namespace, name }, tab, object, container, filters };
  } catch { /* no address of this page */ }
  return { filters };
}

// keepFilters writes the filters into the address, without a step in the history of the browser.
export function keepFilters(text) {
  const [path] = location.hash.split('?');
  history.replaceState(history.state, '', `${path || '#'}${text || path.length < 2 ? '?' + text : ''}`);
}
