/**
 * Lines on which an optimizer keeps count on the CPU while it works on a device: PyTorch's own keep their step counts there.
 */
import { listed, userSite, type ITrace } from './trace';
import { countsBySite } from './ledger';
import { isObject, type JsonObject } from './findings';
import { ColumnReader } from './packed';
import type { Ints, ILists } from './columns';

/** The sites of an outline where all that an optimizer did on the CPU was to tensors of one element; `data` is the whole trace. */
export async function countingSites(outline: ITrace, data: JsonObject): Promise<ReadonlySet<number>> {
  const asked = mixedSites(outline);
  const [cpu, optimizer] = [deviceOf(outline, 'cpu'), outline.strings.indexOf('optimizer')];
  if (asked.size === 0 || cpu < 0 || optimizer < 0) {
    return new Set();
  }
  const table = new TableReader(data);
  const [phase, device, site] = [
    await table.ints('ops', 'phase'),
    await table.ints('ops', 'device'),
    await table.ints('ops', 'site')
  ];
  const [inputs, outputs] = [await table.lists('ops', 'inputs'), await table.lists('ops', 'outputs')];
  const [shape, dims] = [await table.ints('tensors', 'shape'), await table.lists('shapes', 'dims')];
  const isCount = (tensor: number): boolean =>
    shape[tensor] >= 0 && listed(dims, shape[tensor]).every(size => size === 1);
  const counting = new Map<number, boolean>();
  for (let op = 0; op < phase.length; op++) {
    const user = userSite(outline, site[op]);
    if (phase[op] === optimizer && device[op] === cpu && asked.has(user)) {
      const counts = [...listed(inputs, op), ...listed(outputs, op)].every(isCount);
      counting.set(user, counts && (counting.get(user) ?? true));
    }
  }
  return new Set([...counting].flatMap(([user, counts]) => (counts ? [user] : [])));
}

/** Lines that ran ops on the CPU and elsewhere, none of which belongs elsewhere. */
function mixedSites(outline: ITrace): ReadonlySet<number> {
  const cpu = deviceOf(outline, 'cpu');
  const found = [...countsBySite(outline)].filter(
    ([, { ops, cpuCompute }]) =>
      cpuCompute === 0 && ops[cpu] > 0 && ops.some((count, device) => device !== cpu && count > 0)
  );
  return new Set(found.map(([site]) => site));
}

function deviceOf({ devices, strings }: ITrace, name: string): number {
  return devices.name.findIndex(id => strings[id] === name);
}

/** Columns of a trace that its outline has left away. */
class TableReader {
  private readonly _reader = new ColumnReader();

  constructor(private readonly _data: JsonObject) {}

  ints(table: string, column: string): Promise<Ints> {
    return this._reader.read(`${table}.${column}`, this._column(table, column), false);
  }

  async lists(table: string, column: string): Promise<ILists> {
    const lists = this._column(table, column);
    const part = (name: string): unknown => (isObject(lists) ? lists[name] : undefined);
    const offsets = await this._reader.read(`${table}.${column}.offsets`, part('offsets'), true);
    return { offsets, flat: await this._reader.read(`${table}.${column}.flat`, part('flat'), true) };
  }

  private _column(table: string, column: string): unknown {
    const columns = this._data[table];
    return isObject(columns) ? columns[column] : undefined;
  }
}
