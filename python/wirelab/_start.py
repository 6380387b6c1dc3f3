"""Ctrl-C while the command is still being loaded: no traceback. Loaded as a library, nothing is changed."""

from __future__ import annotations

import os
import signal
import sys
import threading

#: ``python -m`` has no name yet while the package is being loaded.
_NAMES = ("-m", "wirelab", "wirelab.exe", "wirelab-script.py")


def _is_command() -> bool:
    name = sys.argv[0] if sys.argv else ""
    return os.path.basename(name) in _NAMES and threading.current_thread() is threading.main_thread()


#: Whether Ctrl-C was left to the system until the command begins.
_is_quiet = _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _is_quiet:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def loaded() -> None:
    """Everything is there. A program that is not wirelab's own command gets its Ctrl-C back."""
    if _is_quiet and not _is_own():
        begin()


def begin() -> None:
    """The command runs from here on, and sees Ctrl-C itself."""
    if _is_quiet and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_own() -> bool:
    """Of ``python -m MODULE`` only the original arguments tell which module it is."""
    if os.path.basename(sys.argv[0]) != "-m":
        return True
    given = getattr(sys, "orig_argv", [])
    return any(one == "-m" and after == "wirelab" for one, after in zip(given, given[1:], strict=False))
