"""What is known of ranks whose traces are missing: where each was last, kept beside where its trace would be.

A rank that is killed saves nothing. So while it runs, its line is in `run.rank1.devtrace.last`; where its trace could
not be written, the reason too. Once the trace is saved the file is gone.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from devtrace.trace.rows import site_label
from devtrace.words.catalogue import sentence

_OF_RANK: Final = re.compile(r"(?P<stem>.+)\.rank(?P<rank>\d+)(?P<suffix>\.[^.]+)")
LAST: Final = ".last"


@dataclass(frozen=True, slots=True)
class LastWords:
    """Line in which a rank was; `at` is when, as `recorded` of a trace, and `unsaved` why its trace was not written."""

    file: str = ""
    line: int = 0
    text: str = ""
    at: str = ""
    unsaved: str = ""

    def encoded(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, path: Path) -> LastWords | None:
        try:
            data = json.loads(path.read_bytes())
            words = cls(**data)
        except (OSError, ValueError, TypeError):
            return None
        whole = all(isinstance(each, str) for each in (words.file, words.text, words.at, words.unsaved))
        return words if whole and isinstance(words.line, int) else None

    @property
    def position(self) -> str:
        """Return the line as a sentence names it; nothing where it is unknown."""
        return sentence("rank.position", site=site_label(self.file, self.line), text=self.text) if self.file else ""


def last_words_file(trace: Path) -> Path:
    return trace.with_name(f"{trace.name}{LAST}")


def lost_ranks(files: Iterable[str | Path]) -> dict[int, LastWords]:
    """Return the last words that lie beside the traces of a job, of ranks that have no trace among them."""
    found: dict[int, LastWords] = {}
    traces = [(path.parent, named) for path in map(Path, files) if (named := _OF_RANK.fullmatch(path.name))]
    for folder, stem, suffix in {(folder, named["stem"], named["suffix"]) for folder, named in traces}:
        for path in folder.glob(f"{glob.escape(stem)}.rank*{glob.escape(suffix)}{LAST}"):
            of_rank, words = _OF_RANK.fullmatch(path.name.removesuffix(LAST)), LastWords.read(path)
            if of_rank and words and not path.with_name(path.name.removesuffix(LAST)).exists():
                found[int(of_rank["rank"])] = words
    return found


def missing(numbers: Collection[int], lost: Mapping[int, LastWords], began: str) -> Iterator[str]:
    """Yield the sentences on ranks without a trace. Words from before the job began are another job's."""
    known = {rank: words for rank, words in lost.items() if words.at >= began and rank not in numbers}
    ended: dict[LastWords, list[str]] = {}
    for rank in sorted({*range(max(numbers)), *known} - set(numbers)):
        words = known.get(rank, LastWords())
        if words.unsaved:
            yield sentence("rank.unsaved", rank=rank, why=words.unsaved, position=words.position)
        else:
            ended.setdefault(LastWords(words.file, words.line, words.text), []).append(str(rank))
    for words, ranks in ended.items():
        yield sentence("ranks.missing", count=len(ranks), ranks=ranks, position=words.position)
