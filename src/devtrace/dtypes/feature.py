"""What `dtypes` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "observer": {"autocasts": "devtrace.dtypes.autocast_recorder:AutocastObserver"},
    "error rule": {"dtype-mismatch": "devtrace.dtypes.rule:dtype_mismatch"},
    "error kind": {"dtype": "devtrace.dtypes.sentences:dtype_error"},
    "cause": {"dtype": "devtrace.dtypes.causes:CAUSES"},
    "strategy": {
        "first": "devtrace.dtypes.cast_edits:FIRST",
        "move_where_made": "devtrace.dtypes.cast_edits:BELOW_WHERE_IT_IS_MADE",
    },
    "replay": {"dtype": "devtrace.dtypes.replay:ReplayOfDtypes"},
    "report part": {
        "autocasts": "devtrace.dtypes.report:under_autocast",
    },
}
