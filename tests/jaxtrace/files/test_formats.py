import pytest

from jaxtrace.files import formats


@pytest.mark.parametrize(
    ("format", "kind", "given", "expected"),
    [
        ("xml", "polydata", "a.vtp", "a.vtp"),
        ("xml", "polydata", "a.vtk", "a.vtp"),
        ("binary", "polydata", "a.vtp", "a.vtk"),
        ("xml", "grid", "run 0.5", "run 0.5.vtu"),
        ("xml", "image", "x/a.VTI", "x/a.vti"),
        ("binary", "curved", "a", "a.vtk"),
    ],
)
def test_the_suffix_is_made_to_fit(format, kind, given, expected):
    assert formats.choose_format(format, kind).name(given).as_posix() == expected


def test_unknown_formats_are_refused():
    with pytest.raises(ValueError, match="'ascii': it must be 'xml' or 'binary'"):
        formats.choose_format("ascii", "grid")
