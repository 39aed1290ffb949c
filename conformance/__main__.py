"""``python -m conformance`` is the command ``conformance``."""

from conformance.cli import main

main()
