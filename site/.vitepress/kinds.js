// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

// writeKinds writes a page for each custom resource definition, with a table of the fields.
export function writeKinds(files, folder) {
  mkdirSync(folder, { recursive: true })
  for (const file of files) {
    const { spec } = parse(readFileSync(file, 'utf8'))
    const lines = [`# ${spec.names.kind}`, '', `Group \`${spec.group}\`, ${spec.scope === 'Namespaced' ? 'in a namespace' : 'without a namespace'}.`]
    for (const { name, schema } of spec.versions) {
      lines.push('', `## ${spec.group}/${name}`, '', '| field | type | description |', '|---|---|---|', ...rows('', schema.openAPIV3Schema))
    }
    writeFileSync(join(folder, `${spec.names.kind.toLowerCase()}.${spec.group}.md`), lines.join('\n') + '\n')
  }
}

// rows returns the rows of the fields of an object, those of nested objects below their own.
function rows(path, schema) {
  return Object.entries(schema.properties ?? {}).filter(([name]) => path !== '' || name === 'spec' || name === 'status').flatMap(([name, field]) => {
    const below = path === '' ? name : `${path}.${name}`
    const required = schema.required?.includes(name) ? ', required' : ''
    const inner = field.items ?? (typeof field.additionalProperties === 'object' ? field.additionalProperties : field)
    const suffix = field.items ? '[]' : field.additionalProperties ? '.KEY' : ''
    return [`| \`${below}\` | ${typeOf(field)}${required} | ${escaped(field.description)} |`, ...rows(below + suffix, inner)]
  })
}

function typeOf(field) {
  if (field.items) return `list of ${typeOf(field.items)}s`
  if (field['x-kubernetes-int-or-string']) return 'integer or string'
  const values = field.enum ? `: ${field.enum.map(value => `\`${value}\``).join(', ')}` : ''
  return (field.type ?? 'any') + values
}

const escaped = (text = '') => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('{', '&#123;').replaceAll(/\s*\n\s*/g, ' ')
