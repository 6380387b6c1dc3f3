"""Ctrl-C while the command is still being loaded: no traceback. Loaded as a library, nothing is changed."""

from __future__ import annotations

# The built-in modules alone: others take time to load, in which Ctrl-C would still show a traceback.
import _signal  # type: ignore[import-not-found, unused-ignore]
import sys

#: ``python -m`` has no name yet while the package is being loaded.
_NAMES = ("-m", "wirelab", "wirelab.exe", "wirelab-script.py")


def _leave_to_system() -> bool:
    """Whether Ctrl-C is left to the system until the command begins."""
    name = (sys.argv[0] if sys.argv else "").replace("\\", "/").rpartition("/")[2]
    if name not in _NAMES or _signal.getsignal(_signal.SIGINT) is not _signal.default_int_handler:
        return False
    try:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    except ValueError:
        # Not the main thread.
        return False
    return True


_is_quiet = _leave_to_system()


def loaded() -> None:
    """Everything is there. A program that is not wirelab's own command gets its Ctrl-C back."""
    if _is_quiet and not _is_own():
        begin()


def begin() -> None:
    """The command runs from here on, and sees Ctrl-C itself."""
    if _is_quiet and _signal.getsignal(_signal.SIGINT) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def _is_own() -> bool:
    """Of ``python -m MODULE`` only the original arguments tell which module it is."""
    if sys.argv[0] != "-m":
        return True
    given = getattr(sys, "orig_argv", [])
    return any(one == "-m" and after == "wirelab" for one, after in zip(given, given[1:], strict=False))
