import io

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxtrace.files import journal
from jaxtrace.files.journal import PAGE, all_or_nothing, finish_journal, journal_of

SIZE = 3 * PAGE + 100


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(np.random.default_rng(0).bytes(SIZE))
    return path


class Killed(BaseException):
    """The process ends here."""


def change(file):
    file.seek(PAGE - 3)
    file.write(b"across a page")
    file.seek(SIZE - 5)
    file.write(b"across the old end")
    file.seek(10_000, io.SEEK_CUR)
    file.write(b"after a hole")


def expected_after(before):
    plain = io.BytesIO(before)
    change(plain)
    return plain.getvalue()


def test_changes_arrive_when_the_block_ends(path):
    before = path.read_bytes()
    with all_or_nothing(path) as file:
        change(file)
        assert path.read_bytes()[:SIZE] == before
    assert path.read_bytes() == expected_after(before)
    assert list(path.parent.iterdir()) == [path]


def test_an_error_undoes_everything(path):
    before = path.read_bytes()

    def fail():
        with all_or_nothing(path) as file:
            change(file)
            raise Killed

    with pytest.raises(Killed):
        fail()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("writes", range(3))
def test_a_kill_at_any_write_of_the_commit_is_made_good(path, monkeypatch, writes):
    before, real, count = path.read_bytes(), journal._write_at, 0

    def die_after(raw, offset, view):
        nonlocal count
        if count == writes:
            raise Killed
        count += 1
        real(raw, offset, view)

    def fail():
        with all_or_nothing(path) as file:
            change(file)
            monkeypatch.setattr(journal, "_write_at", die_after)

    with pytest.raises(Killed):
        fail()
    monkeypatch.undo()
    finish_journal(path)
    assert path.read_bytes() == expected_after(before)
    assert not journal_of(path).exists()


def test_a_kill_before_the_journal_leaves_the_old_bytes(path, monkeypatch):
    before = path.read_bytes()

    def die(*_):
        raise Killed

    def fail():
        with all_or_nothing(path) as file:
            change(file)

    monkeypatch.setattr(journal, "_write_journal", die)
    with pytest.raises(Killed):
        fail()
    monkeypatch.undo()
    assert path.read_bytes()[:SIZE] == before
    with all_or_nothing(path) as file:
        file.truncate(SIZE)
    assert path.read_bytes() == before


def test_damaged_or_foreign_journals_are_refused(path):
    journal_of(path).write_bytes(bytes(100))
    with pytest.raises(ValueError, match=r"data\.bin\.journal is damaged"):
        finish_journal(path)


OPERATIONS = st.one_of(
    st.tuples(
        st.just("write"),
        st.integers(0, SIZE + 50),
        st.binary(min_size=1, max_size=PAGE + 10),
    ),
    st.tuples(st.just("read"), st.integers(0, SIZE + 50), st.integers(0, 2 * PAGE)),
    st.tuples(st.just("truncate"), st.integers(SIZE, SIZE + 300), st.none()),
)


@hypothesis.given(st.lists(OPERATIONS, max_size=12))
@hypothesis.settings(
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_it_is_a_file(tmp_path, operations):
    path = tmp_path / "data.bin"
    content = np.random.default_rng(0).bytes(SIZE)
    path.write_bytes(content)
    plain = io.BytesIO(content)
    with all_or_nothing(path) as file:
        for kind, position, argument in operations:
            if kind == "truncate":
                grow = position - plain.seek(0, io.SEEK_END)
                plain.write(bytes(max(0, grow)))
                plain.truncate(position)
                file.truncate(position)
                continue
            assert plain.seek(position) == file.seek(position)
            if kind == "write":
                assert plain.write(argument) == file.write(argument)
            else:
                assert file.read(argument) == plain.read(argument)
            assert plain.tell() == file.tell() or kind == "read"
    assert path.read_bytes() == plain.getvalue()
