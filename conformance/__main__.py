"""``python -m conformance`` is the command ``conformance``."""

from conformance.command.entry import main

main()
