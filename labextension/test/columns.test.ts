import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { columnsOf, TABLE_NAMES } from '../src/model/columns';

interface ISchema {
  readonly properties: Readonly<Record<string, { readonly properties?: Readonly<Record<string, { $ref: string }>> }>>;
}

const schema = JSON.parse(readFileSync('src/devtrace/devtrace.schema.json', 'utf8')) as ISchema;

test('the tables and their columns are those of the shipped schema, in its order', () => {
  const theirs = Object.entries(schema.properties)
    .filter(([, table]) => table.properties)
    .map(([name, table]) => [name, Object.keys(table.properties ?? {})]);
  assert.deepEqual(
    TABLE_NAMES.map(name => [name, columnsOf(name).map(([column]) => column)]),
    theirs
  );
});

test('lists are where the schema has lists', () => {
  for (const name of TABLE_NAMES) {
    for (const [column, { kind }] of columnsOf(name)) {
      const { $ref } = schema.properties[name].properties?.[column] ?? { $ref: '' };
      assert.equal($ref.endsWith('lists'), kind === 'ints' || kind === 'rows', `${name}.${column}`);
    }
  }
});
