/**
 * One undo for a change of several cells, each of which has an undo history of its own.
 */

/** What is used of yjs's UndoManager. */
export interface IUndoManager {
  readonly undoStack: readonly unknown[];
  stopCapturing(): void;
  undo(): unknown;
  on(name: 'stack-item-popped', listener: (event: IPopped) => void): unknown;
  off(name: 'stack-item-popped', listener: (event: IPopped) => void): unknown;
}

interface IPopped {
  readonly stackItem: unknown;
}

/** Make changes that one undo takes back, in all texts whose histories these are: some notebooks have one history for all cells. */
export function asOneChange(histories: ReadonlyArray<IUndoManager | null | undefined>, change: () => void): void {
  const managers = [...new Set(histories.flatMap(each => each ?? []))];
  // By itself: else what was typed in the last half second would go with it.
  managers.forEach(manager => manager.stopCapturing());
  change();
  managers.forEach(manager => manager.stopCapturing());
  linkUndo(managers);
}

/** Tie together the newest change of each history: when one of them is undone, the others go too, unless more came on top. */
function linkUndo(managers: readonly IUndoManager[]): void {
  const linked = managers.map(manager => ({ manager, item: manager.undoStack.at(-1) }));
  if (linked.length < 2 || linked.some(({ item }) => item === undefined)) {
    return;
  }
  const undoAll = ({ stackItem }: IPopped): void => {
    if (!linked.some(({ item }) => item === stackItem)) {
      return;
    }
    for (const { manager } of linked) {
      manager.off('stack-item-popped', undoAll);
    }
    for (const { manager, item } of linked) {
      if (manager.undoStack.at(-1) === item) {
        manager.undo();
      }
    }
  };
  for (const { manager } of linked) {
    manager.on('stack-item-popped', undoAll);
  }
}
