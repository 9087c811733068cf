"""The strategies that make edits of dtypes, each with the reason for its rank."""

from typing import Final

from devtrace.diagnosis.fixes.ranked import Ranked
from devtrace.dtypes import cast_edits

FIRST: Final = (
    Ranked(cast_edits.leave_out_cast, ("wrong-device",), "a scaler needs what was there before the cast"),
    Ranked(cast_edits.compute_under_autocast, ("autocast-off",), "it is computed as the line before it"),
    Ranked(
        cast_edits.cast_for_numpy, ("target-dtype",), "numpy alone has no such dtype, and a model may go on with it"
    ),
    Ranked(cast_edits.invert_mask, ("target-dtype",), "masks are inverted, not subtracted"),
    Ranked(cast_edits.fill_with_what_fits, ("python-number",), "the number alone is wrong"),
    Ranked(cast_edits.cast_what_numpy_gives, ("numpy-boundary",), "all that is computed of it has the dtype then"),
)
BELOW_WHERE_IT_IS_MADE: Final = (
    Ranked(
        cast_edits.cast_what_a_hook_returns, ("wrong-device", "never-moved"), "no line hands over what a hook gives"
    ),
    Ranked(cast_edits.cast_below, ("wrong-device",), "no line casts it, and one below what made it can"),
)
