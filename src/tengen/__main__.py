"""`python -m tengen`: the same as the command `tengen`."""

import sys

from tengen.commands import main

sys.exit(main())
