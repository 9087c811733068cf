"""README's tables of rules and causes, from the files of diagnosis.

python tools/readme_tables.py       writes them anew between their markers
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

from devtrace.diagnosis.causes.ordered import CAUSES
from devtrace.diagnosis.rules.ordered import RULES
from devtrace.diagnosis.slugs import RuleSlug

README: Final = Path(__file__).parents[1] / "README.md"


def rules() -> str:
    meanings = {rule.slug: rule.meaning for rule in RULES}
    rows = [(f"`{slug}`", meanings[slug]) for slug in get_args(RuleSlug) if slug in meanings]
    return _table(("rule", "it means"), *rows)


def causes() -> str:
    rows = [(f"`{cause.slug}`", cause.meaning, cause.what_helps) for cause in CAUSES.values()]
    return _table(("cause", "it means", "what helps"), *rows)


def _table(head: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    lines = [f"| {' | '.join(row)} |\n" for row in (head, *rows)]
    return "".join((lines[0], f"|{'---|' * len(head)}\n", *lines[1:]))


def with_tables(readme: str) -> str:
    """Return README with both tables made anew."""
    for name, table in (("rules", rules()), ("causes", causes())):
        begin, end = f"<!-- {name}: tools/readme_tables.py -->\n", f"<!-- end of {name} -->"
        before, rest = readme.split(begin)
        readme = f"{before}{begin}{table}{end}{rest.split(end)[1]}"
    return readme


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
