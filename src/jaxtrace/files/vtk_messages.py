"""VTK's complaints as text: captured instead of printed, and cut to the point."""

import contextlib
import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

# Where VTK writes its messages is one setting of the whole process.
_LOCK = threading.RLock()
_LOG = logging.getLogger(__name__)
_ENTRY = re.compile(r"(?m)^(?=(?:ERROR|Warning|Generic Warning|Debug): In )")
_PREFIX = re.compile(r"^[\w ]+: In [^\n]*\n(?:\w+ \((?:0x)?[0-9a-f]+\): )?")
# The pipeline repeats in its own words that the reader failed.
_ECHO = re.compile(
    r"returned failure for request|No update piece number|did not create output"
)


class Transcript:
    """The messages of one VTK call."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def add(self, text: str) -> None:
        """Take the raw text of one or more messages."""
        self.entries += [entry for entry in _ENTRY.split(text) if entry.strip()]

    def failures(self) -> list[str]:
        """The messages that mean the data cannot be trusted, each once."""
        bad = [e for e in self.entries if e.startswith("ERROR") or "Error read" in e]
        telling = [e for e in bad if not _ECHO.search(e)] or bad
        short = [_PREFIX.sub("", e).strip() for e in telling]
        return list(dict.fromkeys(" ".join(text.split()) for text in short))


@contextlib.contextmanager
def captured(algorithm: Any) -> Iterator[Transcript]:
    """Collect everything VTK says while `algorithm` runs; nothing reaches stderr."""
    from vtkmodules.vtkCommonCore import (
        vtkLogger,
        vtkOutputWindow,
        vtkStringOutputWindow,
    )

    transcript, window = Transcript(), vtkStringOutputWindow()

    def note(_sender: Any, _event: str, text: str = "") -> None:
        transcript.add(text)

    note.CallDataType = "string0"  # pyright: ignore[reportFunctionMemberAccess]
    with _LOCK:
        previous = vtkOutputWindow.GetInstance()
        cutoff = vtkLogger.GetCurrentVerbosityCutoff()
        tags = [algorithm.AddObserver(e, note) for e in ("ErrorEvent", "WarningEvent")]
        vtkOutputWindow.SetInstance(window)
        vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
        try:
            yield transcript
        finally:
            vtkLogger.SetStderrVerbosity(vtkLogger.ConvertToVerbosity(cutoff))
            vtkOutputWindow.SetInstance(previous)
            for tag in tags:
                algorithm.RemoveObserver(tag)
            transcript.add(window.GetOutput())
            _LOG.debug("%s", transcript.entries)


@contextlib.contextmanager
def chatter_logged() -> Iterator[None]:
    """Send what C++ code prints to standard output to the debug log instead.

    A few VTK readers print their progress there and offer no way to ask them not to.
    """
    with _LOCK, tempfile.TemporaryFile() as sink:
        sys.stdout.flush()
        saved = os.dup(1)
        os.dup2(sink.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(saved, 1)
            os.close(saved)
            sink.seek(0)
            _LOG.debug("%s", sink.read().decode(errors="replace"))
