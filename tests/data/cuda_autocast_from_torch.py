"""Derive CUDA's autocast policy from the header that torch's wheel ships.

    python tests/data/cuda_autocast_from_torch.py > src/devtrace/simulation/cuda_autocast.tsv

`include/ATen/autocast_mode.h` lists the operators of each policy; torch's CUDA backend registers just these.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch

HEADER = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
POLICIES = {
    "LOWER_PRECISION_FP": "lower",
    "FP32": "fp32",
    "FP32_SET_OPT_DTYPE": "fp32_dtype",
    "DIFFERENT_REDISPATCH_SIGNATURE": "fp32_append",
    "PROMOTE": "promote",
}


def rows() -> list[tuple[str, str]]:
    """(operator with overload, policy), sorted."""
    text = HEADER.read_text()
    found = [("binary_cross_entropy", "banned")]
    for macro, policy in POLICIES.items():
        body = re.search(rf"#define AT_FORALL_{macro}\(_\)((?:.*\\\n)*.*)", text)
        assert body, macro
        if policy == "fp32_append":
            found += [(name, policy) for name in re.findall(r'"(\w+(?:\.\w+)?)"', body[1])]
        else:
            found += [(".".join(re.split(r",\s*", name)), policy) for name in re.findall(r"_\(([\w, ]+)\)", body[1])]
    return sorted(found)


def main() -> None:
    sys.stdout.write(
        f"# op\tpolicy; source: include/ATen/autocast_mode.h of torch {torch.__version__.partition('+')[0]}\n"
    )
    for row in rows():
        sys.stdout.write("\t".join(row) + "\n")


if __name__ == "__main__":
    main()
