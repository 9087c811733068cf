/**
 * What the kernel sends as `application/vnd.devtrace.v1+json`.
 */

export const MIME_TYPE = 'application/vnd.devtrace.v1+json';

export interface ITrace {
  readonly title: string;
  /** Ops by device, most first. */
  readonly counts: ReadonlyArray<readonly [device: string, ops: number]>;
}

/** The trace in a bundle's data, or a sentence that says why there is none. */
export function readTrace(data: unknown): ITrace | string {
  const bundle = data as { format?: unknown; version?: unknown; title?: unknown; counts?: unknown } | null;
  if (bundle?.format !== 'devtrace') {
    return 'This output is not a devtrace trace.';
  }
  if (bundle.version !== 1) {
    return `This trace has version ${String(bundle.version)}; this devtrace reads version 1. Update devtrace.`;
  }
  const counts = Object.entries((bundle.counts ?? {}) as Record<string, number>);
  return { title: typeof bundle.title === 'string' ? bundle.title : '', counts: counts.sort((a, b) => b[1] - a[1]) };
}

/** All ops of the trace. */
export function opCount(trace: ITrace): number {
  return trace.counts.reduce((sum, [, ops]) => sum + ops, 0);
}
