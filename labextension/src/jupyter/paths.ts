/**
 * Where a file of the kernel's machine is for the server that shows files.
 */

/**
 * The server's path of `file`, null when it lies outside of what the server shows. `folder` is the kernel's folder when devtrace was
 * loaded, which is the notebook's own unless somebody changed it; `root` is what the page knows of the server's root.
 */
export function contentsPath(file: string, notebook: string, folder: string, root: string): string | null {
  const target = slashes(file);
  const beside = notebook.includes('/') ? notebook.slice(0, notebook.lastIndexOf('/')) : '';
  if (!/^(\/|[A-Za-z]:\/)/.test(target)) {
    return normal(beside === '' ? target : `${beside}/${target}`);
  }
  for (const base of [rootOf(slashes(folder), beside), slashes(root)]) {
    if (base !== null && /^(\/|[A-Za-z]:\/)/.test(base)) {
      const within = base.endsWith('/') ? base : `${base}/`;
      if (target.startsWith(within)) {
        return normal(target.slice(within.length));
      }
    }
  }
  return null;
}

/** The folder that is the server's root when the notebook's own folder in it is `beside`. */
function rootOf(folder: string, beside: string): string | null {
  const trimmed = folder.replace(/\/+$/, '');
  if (beside === '') {
    return trimmed;
  }
  return trimmed.endsWith(`/${beside}`) ? trimmed.slice(0, -beside.length - 1) || '/' : null;
}

function slashes(path: string): string {
  return /^[A-Za-z]:\\/.test(path) ? path.replaceAll('\\', '/') : path;
}

/** Without `.` and `..`; null for a path that leads out of the root. */
function normal(path: string): string | null {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') {
      if (parts.pop() === undefined) {
        return null;
      }
    } else if (part !== '' && part !== '.') {
      parts.push(part);
    }
  }
  return parts.join('/');
}
