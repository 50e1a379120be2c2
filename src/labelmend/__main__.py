"""`python -m labelmend` is the command line."""

from __future__ import annotations

from labelmend.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
