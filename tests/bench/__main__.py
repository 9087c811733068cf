"""`make bench`: every `bench_*.py` beside this file prints its table, in the order of their names.

Each is a script: its figures are ratios of interleaved runs, the best of several, since a machine's speed drifts.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main(chosen: list[str]) -> int:
    """Run the benches whose names hold one of the words, all without any; 1 where one failed or missed its budget."""
    scripts = sorted(Path(__file__).parent.glob("bench_*.py"))
    picked = [path for path in scripts if not chosen or any(word in path.stem for word in chosen)]
    return max([subprocess.run([sys.executable, str(path)], check=False).returncode for path in picked], default=1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
