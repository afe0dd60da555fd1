import logging
import os

import pytest

from jaxtrace.files.vtk_messages import Transcript, captured, chatter_logged

pytest.importorskip("vtkmodules")


def failing_reader(tmp_path):
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridReader

    path = tmp_path / "bad.vtu"
    path.write_text("not xml")
    reader = vtkXMLUnstructuredGridReader()
    reader.SetFileName(str(path))
    return reader


def test_errors_are_captured_and_nothing_is_printed(tmp_path, capfd):
    reader = failing_reader(tmp_path)
    with captured(reader) as transcript:
        reader.Update()
    assert any("syntax error" in line for line in transcript.failures())
    assert capfd.readouterr() == ("", "")


def test_vtk_speaks_as_before_afterwards(tmp_path, capfd):
    from vtkmodules.vtkCommonCore import vtkLogger, vtkOutputWindow

    before = vtkOutputWindow.GetInstance(), vtkLogger.GetCurrentVerbosityCutoff()
    with captured(failing_reader(tmp_path)):
        pass
    after = vtkOutputWindow.GetInstance(), vtkLogger.GetCurrentVerbosityCutoff()
    assert before == after
    failing_reader(tmp_path).Update()
    assert "syntax error" in capfd.readouterr().err


def test_failures_are_short_and_each_said_once():
    transcript = Transcript()
    line = "ERROR: In vtkA.cxx, line 3\nvtkA (0x12ab): Cannot read\n  the points.\n\n"
    transcript.add(line + line)
    transcript.add("Warning: In vtkB.cxx, line 1\nvtkB (0x1): never mind\n\n")
    transcript.add("Generic Warning: In vtkC.cxx, line 1\nError reading binary data!\n")
    transcript.add("ERROR: In x, line 1\nvtkP (0x1): returned failure for request: z\n")
    assert transcript.failures() == [
        "Cannot read the points.",
        "Error reading binary data!",
    ]


def test_what_c_code_prints_goes_to_the_log(capfd, caplog):
    with caplog.at_level(logging.DEBUG, "jaxtrace"), chatter_logged():
        os.write(1, b"2D-Mesh found")
    assert capfd.readouterr().out == ""
    assert "2D-Mesh found" in caplog.text
    os.write(1, b"loud again")
    assert capfd.readouterr().out == "loud again"
