"""Tables of facts that come with the package: JSON, or tab-separated lines, of which one with # is a remark."""

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any


def rows_of(file: str) -> Iterator[list[str]]:
    """Yield the cells of each line of `simulation/cuda_rules.tsv`."""
    for line in resources.files("devtrace").joinpath(file).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


def json_of(file: str) -> Any:
    return json.loads(resources.files("devtrace").joinpath(file).read_bytes())
