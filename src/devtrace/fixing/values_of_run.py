"""Values of one run of a program under recording, if it is a round of `devtrace fix`: written when it has ended."""

import sys
from collections.abc import Mapping

from devtrace.fixing import values
from devtrace.fixing.captured_locals import Returned


class ValuesOfRun:
    def __init__(self, namespace: Mapping[str, object]) -> None:
        self._namespace = namespace
        self._path = values.path_of_this_run()
        self._returned = Returned(namespace)

    def begin(self) -> None:
        if self._path is not None:
            values.seed()
            self._returned.begin()

    def end(self) -> None:
        """Write them while the tensors still have their simulated devices."""
        if self._path is not None:
            sys.settrace(None)
            values.write(self._path, self._namespace, self._returned.values)
