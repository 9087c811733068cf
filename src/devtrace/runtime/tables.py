"""Tables of facts that come with the package as tab-separated lines; one that begins with # is a remark."""

from collections.abc import Iterator
from importlib import resources


def rows_of(file: str) -> Iterator[list[str]]:
    """Yield the cells of each line of `simulation/cuda_rules.tsv`."""
    for line in resources.files("devtrace").joinpath(file).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")
