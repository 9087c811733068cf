"""The sentences that torch writes in errors about dtypes: one table, with an expression that makes torch say each."""

import re
from functools import cache
from typing import Final, NamedTuple

from devtrace.diagnosis.slugs import Refused
from devtrace.runtime.tables import rows_of

_CPP: Final = {
    "half": "float16", "float": "float32", "double": "float64", "long": "int64", "long int": "int64", "int": "int32",
    "short": "int16", "char": "int8", "signed char": "int8", "byte": "uint8", "unsigned char": "uint8",
    "complexfloat": "complex64", "complexdouble": "complex128", "complex<float>": "complex64",
    "complex<double>": "complex128",
}  # fmt: skip


class Sentence(NamedTuple):
    """A row of the table: `argument` is the tensor that is refused, by its place among the op's; -1 for any."""

    refused: Refused
    argument: int
    pattern: re.Pattern[str]
    example: str


class DtypeError(NamedTuple):
    """Refusal of torch, with the dtypes that it names, in its order."""

    refused: Refused
    argument: int
    named: tuple[str, ...]


@cache
def sentences() -> tuple[Sentence, ...]:
    return tuple(
        Sentence(refused, int(argument or -1), re.compile(sentence), example)  # type: ignore[arg-type]
        for refused, argument, sentence, example in rows_of("dtypes/sentences.tsv")
    )


def dtype_error(text: str) -> DtypeError | None:
    """Return what an error says of dtypes; None if it is about something else, or in words that devices have too."""
    for row in sentences():
        match = row.pattern.search(text)
        if match is not None:
            named = tuple(_in_full(name) for name in match.groups() if name)
            # Of two devices a convolution names types of tensors too: `torch.cuda.FloatTensor`.
            kinds = {"cuda" in part for part in match[0].split(" and ")} if "Input type (" in match[0] else ()
            return DtypeError(row.refused, row.argument, named) if len(kinds) < 2 else None
    return None


def _in_full(name: str) -> str:
    """Return `float16` for `c10::Half`, `at::Half`, `Half` and `torch.float16`."""
    short = name.rpartition("::")[2].rpartition(".")[2].strip().removesuffix("Tensor").removesuffix("_t")
    return _CPP.get(short.lower(), short.lower())
