"""`python -m bench` is the command line of the benchmarks."""

import sys

from bench.command import main

sys.exit(main())
