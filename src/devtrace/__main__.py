"""`python -m devtrace`."""

import sys

from devtrace.cli.main import main

sys.exit(main())
