"""What a backend says, made fit for reports: it can be encoded, and it is not endless."""

from __future__ import annotations

#: How much of one text of a backend is kept, in characters.
MOST = 2000


def tame(text: object) -> str:
    """``text`` as UTF-8 can hold it, its end left out where it is longer than ``MOST``.

    What is no text, as only a backend without ``Adapter`` can hand over, is shown as one.
    """
    try:
        whole = str(text)
        kept = whole[:MOST].encode("utf-8", "backslashreplace").decode("utf-8")
    except Exception:  # its __str__ is the backend's own code
        return "(its text can't be shown)"
    left_out = len(whole) - MOST
    return f"{kept} … and {left_out} characters more" if left_out > 0 else kept


def legible(text: object) -> bool:
    """Whether ``text`` is there at all, and UTF-8 can hold what is kept of it."""
    try:
        str(text)[:MOST].encode("utf-8")
    except Exception:  # its __str__ is the backend's own code
        return False
    return True


def told(error: BaseException) -> str:
    """The type of an exception, and its text where it has one."""
    text = tame(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
