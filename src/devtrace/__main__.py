"""`python -m devtrace`."""

import sys

from devtrace.cli import main

sys.exit(main())
