import pytest

from jaxtrace.files.nek5000 import check_dump, read_case
from trace_files import data_folder


def write_case(folder, text="filetemplate: a%01d.f%05d\nfirsttimestep: 3\n", count=2):
    for index in (3, 4):
        (folder / f"a0.f{index:05d}").write_bytes(dump())
    path = folder / "a.nek5000"
    path.write_text(text + f"numtimesteps: {count}\n")
    return path


def dump(fields="XUP", nz=1, components=5, word=4):
    """Two elements of 3 x 3 nodes."""
    head = f"#std {word} 3 3 {nz} 2 2 0.5 1 0 1 {fields}".ljust(132)
    return head.encode() + bytes(4 + 4 * 2 + word * 9 * nz * 2 * components)


def test_the_dumps_of_a_case_are_found(tmp_path):
    case = read_case(write_case(tmp_path))
    assert [path.name for path in case.dumps] == ["a0.f00003", "a0.f00004"]
    case.check(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense\n", "unknown line 'nonsense'"),
        ("color: red\n", "unknown line 'color: red'"),
        ("", "needs filetemplate"),
        ("filetemplate: a%01d.f%05d\nfirsttimestep: x\n", "needs filetemplate.*'x'"),
        ("filetemplate: a\nfirsttimestep: 1\n", "not like name%01d"),
    ],
)
def test_a_wrong_case_is_refused_by_name(tmp_path, text, message):
    with pytest.raises(ValueError, match=rf"(?s)a\.nek5000: .*{message}"):
        read_case(write_case(tmp_path, text))


def test_missing_dumps_and_empty_series_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a\.nek5000: names 'a0\.f00005'"):
        read_case(write_case(tmp_path, count=3))
    with pytest.raises(ValueError, match="numtimesteps must be at least 1"):
        read_case(write_case(tmp_path, count=0))


@pytest.mark.parametrize(
    "content",
    [dump(), dump("XUPT", components=6), dump("US02", 3, 5), dump("XU", components=4)],
)
def test_the_size_of_a_dump_is_that_of_its_fields(tmp_path, content):
    path = tmp_path / "a0.f00001"
    path.write_bytes(content)
    check_dump(path)
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=r"a0\.f00001: .* cut short"):
        check_dump(path)


def test_a_dump_without_header_is_refused(tmp_path):
    path = tmp_path / "a0.f00001"
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match=r"a0\.f00001: not a Nek5000 dump"):
        check_dump(path)


def test_the_real_dumps_pass():
    case = read_case(data_folder("nek5000_eddy") / "eddy_uv.nek5000")
    assert len(case.dumps) == 11
    for index in range(11):
        case.check(index)
