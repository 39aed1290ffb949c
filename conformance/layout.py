"""Where the folders of the project are, in a checkout and in an installed wheel.

In a wheel ``spec`` and ``backends`` lie inside the package; in a checkout they lie beside it.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent

#: True when the package runs from a checkout (an editable install included).
CHECKOUT = not (PACKAGE / "spec").is_dir()

ROOT = PACKAGE.parent if CHECKOUT else PACKAGE
SPEC = ROOT / "spec"
BACKENDS = ROOT / "backends"


def cache_folder(name: str) -> Path:
    """A folder of the user's cache for things that can be made again; it may not exist yet."""
    import platformdirs  # costs as much as all the rest of this module

    return Path(platformdirs.user_cache_dir("decoder-conformance", appauthor=False)) / name


#: Where a run writes unless it is told otherwise, relative to the current folder.
LATEST_REPORTS = Path("reports") / "latest"
