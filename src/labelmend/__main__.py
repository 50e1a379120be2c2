"""`python -m labelmend` is the command line."""

from labelmend.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
