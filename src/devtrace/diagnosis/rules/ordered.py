"""The slugs of all rules, in the order in which they are asked."""

from devtrace.diagnosis.rules.error_rules import OF_DEVICES
from devtrace.features import offers


def rule_slugs() -> tuple[str, ...]:
    return (*offers("error rule"), *OF_DEVICES, *offers("cost rule"), *offers("job rule"))
