/**
 * Findings as the trace carries them: made and worded in Python, here only given types. What is missing gets the value that shows nothing.
 */

export type Severity = 'error' | 'warning' | 'note';

export interface IEdit {
  readonly file: string;
  readonly cell: number;
  readonly line: number;
  readonly before: string;
  readonly after: string;
  /** Proven and tried: run, and the finding's proof says what came. */
  readonly grade: 'proven' | 'tried' | 'not tried';
}

interface ICulprit {
  readonly name: string;
  readonly device: string;
  /** Ids of sites, -1 when not known. */
  readonly born: number;
  readonly moved: number;
}

/** A line of source beside a finding: a label, the id of its site, a remark or nothing. */
export interface IStoryLine {
  readonly label: string;
  readonly site: number;
  readonly remark: string;
}

export interface IFinding {
  readonly rule: string;
  readonly severity: Severity;
  readonly devices: readonly string[];
  readonly site: number;
  readonly op: number;
  readonly ops: readonly number[];
  readonly culprit: ICulprit | null;
  readonly count: number;
  readonly message: string;
  readonly help: string;
  readonly edits: readonly IEdit[];
  /** What was run and compared, if that proves the edits. */
  readonly proof?: string;
  /** Where its tensor was created, which move missed it, where it came by. */
  readonly lines: readonly IStoryLine[];
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function readFinding(data: JsonObject): IFinding {
  const op = id(data['op']);
  const ops = numbers(data['ops']);
  return {
    rule: text(data['rule']),
    severity: severity(data['severity']),
    devices: texts(data['devices']),
    site: id(data['site']),
    op,
    ops: ops.length > 0 ? ops : op >= 0 ? [op] : [],
    culprit: isObject(data['culprit']) ? readCulprit(data['culprit']) : null,
    count: number(data['count'], 1),
    message: text(data['message']),
    help: text(data['help']),
    edits: list(data['edits']).filter(isObject).map(readEdit),
    proof: text(data['proof']),
    lines: list(data['lines']).filter(isObject).map(readLine)
  };
}

function readCulprit(data: JsonObject): ICulprit {
  return {
    name: text(data['name']),
    device: text(data['device']),
    born: id(data['born']),
    moved: id(data['moved'])
  };
}

function readLine(data: JsonObject): IStoryLine {
  return { label: text(data['label']), site: id(data['site']), remark: text(data['remark']) };
}

function readEdit(data: JsonObject): IEdit {
  return {
    file: text(data['file']),
    cell: id(data['cell']),
    line: number(data['line'], 0),
    before: text(data['before']),
    after: text(data['after']),
    grade: data['grade'] === 'proven' || data['grade'] === 'tried' ? data['grade'] : 'not tried'
  };
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function severity(value: unknown): Severity {
  return value === 'error' || value === 'warning' ? value : 'note';
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function number(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise;
}

function id(value: unknown): number {
  return Number.isInteger(value) ? (value as number) : -1;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function texts(value: unknown): string[] {
  return list(value).filter(item => typeof item === 'string');
}

function numbers(value: unknown): number[] {
  return list(value).filter(item => typeof item === 'number');
}
