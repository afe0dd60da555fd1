"""The studio's server: who may talk to it, what it reads and writes, jobs and tabs."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from jaxrig.studio.rooms import Download, Room, Workspace
from studio_server import TOKEN, Client, real_rooms, running_studio

LIMIT = 1000  # bytes of an upload in these tests
FORBIDDEN, NOT_FOUND, TOO_LARGE, REFUSED = 403, 404, 413, 422


def count(desk, request):
    """A job whose frames are released by a file, step by step."""
    steps = request["steps"]

    def work(job):
        for number in range(steps):
            job.show("counting", number, steps)
            job.add([bytes([number])])
            if request.get("forever"):
                while True:
                    job.show("waiting", number, steps)
        return steps

    return desk.start("count", work)


def check(desk, path):
    assert path.read_text() != "bug"
    if not path.read_text().startswith("ok"):
        raise ValueError(f"{path.name} does not begin with ok")


ROOM = Room(
    {
        "count": count,
        "echo": lambda desk, request: request,
        "file": lambda desk, request: desk.folder.name(
            desk.folder.existing(request["name"])
        ),
        "list": lambda desk, request: desk.folder.files((".txt",)),
        "run": lambda desk, request: str(desk.result("runs", request["name"])),
        "save": lambda desk, request: Download('a"b.txt', b"text"),
        "fail": lambda desk, request: 1 / 0,
    },
    (".txt",),
    check,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio") / "inside"


@pytest.fixture(scope="module")
def client(folder):
    folder.mkdir()
    (folder.parent / "secret.txt").write_text("ok secret")
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "own.txt").write_text("ok own")
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    (folder / "lost.txt").symlink_to(folder / "none.txt")
    os.mkfifo(folder / "pipe.txt")
    (folder / "runs").mkdir()
    (folder / "runs/link").symlink_to(folder.parent)
    rooms = {"stub": ("Stub", lambda: ROOM)}
    with running_studio(folder, rooms, upload_bytes=LIMIT) as client:
        yield client


def socket_url(client, path):
    return f"ws://127.0.0.1:{client.port}{path}"


def open_socket(client, path, **changes):
    headers = {k: v for k, v in (client.headers | changes).items() if k != "Host"}
    origin = headers.pop("Origin")
    return connect(
        socket_url(client, path), origin=origin, additional_headers=headers, proxy=None
    )


def test_the_token_opens_the_door_once_and_a_cookie_keeps_it_open(client):
    nobody = {"Cookie": None, "Origin": None}
    assert client.send("/", **nobody)[0] == FORBIDDEN
    assert client.send("/static/shell.js", **nobody)[0] == FORBIDDEN
    assert client.send("/?token=guess", **nobody)[0] == FORBIDDEN
    status, _, headers = client.send(f"/?token={TOKEN}", **nobody)
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    status, page, headers = client.send("/", Cookie=cookie.partition(";")[0])
    assert status == 200
    assert b"<script type=" in page
    policy = headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert b"style=" not in page
    other = f"jaxrig_studio_{client.port}=guess"
    assert client.send("/", Cookie=other)[0] == FORBIDDEN


@pytest.mark.parametrize("host", ["evil.example:80", "127.0.0.1", "localhost:1", ""])
def test_a_rebound_name_is_refused(client, host):
    status, body, _ = client.send("/api/studio", Host=host)
    assert status == FORBIDDEN
    assert b"127.0.0.1" in body


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://localhost:1", "null", None]
)
def test_another_page_cannot_act(client, origin):
    assert client.send("/api/call/stub/echo", b"{}", Origin=origin)[0] == FORBIDDEN
    assert client.send("/api/upload/stub?name=a.txt", b"ok", Origin=origin)[0] == 403
    if origin is not None:
        with pytest.raises(InvalidStatus) as refused:
            open_socket(client, "/api/events", Origin=origin)
        assert refused.value.response.status_code == FORBIDDEN


def test_calls_answer_with_data_files_or_a_sentence(client):
    assert client.call("stub", "echo", a=[1, 2]) == (200, {"a": [1, 2]})
    _, body, headers = client.send("/api/call/stub/save", b"{}")
    assert body == b"text"
    assert headers["content-disposition"] == 'attachment; filename="a_b.txt"'
    assert client.call("stub", "nothing")[0] == NOT_FOUND
    assert client.call("nowhere", "echo")[0] == NOT_FOUND
    assert client.call("stub", "count")[1] == {"error": "the request lacks 'steps'"}
    assert "division" in client.call("stub", "fail")[1]["error"]
    for body in (b"[1]", b"{", b'{"a": NaN}', b"[" * 100_000):
        assert client.send("/api/call/stub/echo", body)[0] == REFUSED
    assert client.send("/api/call/stub/echo", b" " * 3_000_000)[0] == TOO_LARGE


@pytest.mark.parametrize(
    "name",
    ["../secret.txt", "/etc/passwd", "link.txt", "a/../../secret.txt", "..", "a\0b"],
)
def test_paths_stay_inside_the_folder(client, name):
    status, found = client.call("stub", "file", name=name)
    assert status == REFUSED
    assert "error" in found
    quoted = name.replace("\0", "%00")
    assert client.send(f"/api/file?name={quoted}")[0] == REFUSED


def test_files_of_the_folder_are_served(client):
    assert client.send("/api/file?name=own.txt")[1] == b"ok own"
    assert client.send("/api/file?name=none.txt")[0] == NOT_FOUND
    assert [one["name"] for one in client.call("stub", "list")[1]] == ["own.txt"]
    for name in ("loop.txt", "pipe.txt", "lost.txt"):  # a pipe would never end
        assert client.send(f"/api/file?name={name}")[0] in (NOT_FOUND, REFUSED)
    assert client.call("stub", "run", name="link")[0] == REFUSED
    for path in ("/static/../server.py", "/static/%2e%2e/server.py"):
        assert client.send(path)[0] == NOT_FOUND


def test_uploads_are_small_named_and_readable(client, folder):
    def upload(name, content):
        return client.send(f"/api/upload/stub?name={name}", content)

    status, body, _ = upload("..%2F..%2Fevil.txt", b"ok 1")
    assert (status, json.loads(body)["name"]) == (200, "uploads/evil.txt")
    assert json.loads(upload("evil.txt", b"ok 2")[1])["name"] == "uploads/evil-2.txt"
    assert (folder / "uploads/evil.txt").read_bytes() == b"ok 1"
    assert upload("run.py", b"ok")[0] == REFUSED
    assert upload("", b"ok")[0] == REFUSED
    assert upload("bad.txt", b"not")[0] == REFUSED
    assert upload("bug.txt", b"bug")[0] == 500
    assert upload("large.txt", b"ok" * LIMIT)[0] == TOO_LARGE
    with ThreadPoolExecutor() as tabs:  # two tabs at once: none writes over another
        both = list(tabs.map(lambda text: upload("evil.txt", text), [b"ok 3", b"ok 4"]))
    for (_, body, _), text in zip(both, (b"ok 3", b"ok 4"), strict=True):
        assert (folder / json.loads(body)["name"]).read_bytes() == text
    kept = sorted(path.name for path in (folder / "uploads").iterdir())
    assert kept == ["evil-2.txt", "evil-3.txt", "evil-4.txt", "evil.txt"]


def test_two_tabs_see_one_run_and_either_stops_it(client):
    with (
        open_socket(client, "/api/events") as one,
        open_socket(client, "/api/events") as other,
    ):
        _, begun = client.call("stub", "count", steps=3)
        seen = [
            [json.loads(tab.recv(timeout=20)) for _ in range(4)] for tab in (one, other)
        ]
        assert seen[0] == seen[1]
        assert {event["id"] for event in seen[0]} == {begun["id"]}
    assert client.wait(begun["id"])["state"] == "done"
    for _ in range(2):  # also for a tab that comes when all is over
        with open_socket(client, f"/api/frames/{begun['id']}") as tab:
            assert [tab.recv(timeout=20) for _ in range(3)] == [b"\0", b"\1", b"\2"]
            assert json.loads(tab.recv(timeout=20))["state"] == "done"
    _, endless = client.call("stub", "count", steps=1, forever=True)
    assert client.send(f"/api/stop/{endless['id']}", b"")[0] == 200
    assert client.wait(endless["id"])["state"] == "stopped"


def test_read_only_writes_nothing(tmp_path):
    rooms = {"stub": ("Stub", lambda: ROOM)}
    with running_studio(tmp_path, rooms, read_only=True) as client:
        status, body, _ = client.send("/api/upload/stub?name=a.txt", b"ok")
        assert status == REFUSED
        assert b"read-only" in body
    assert list(tmp_path.iterdir()) == []


def test_a_killed_studio_keeps_what_was_saved(tmp_path):
    """A game is on disk after every step, and another start goes on with it."""
    command = (
        "import sys; from jaxrig.cli import main; sys.argv = ['jaxrig', 'studio', "
        f"'--no-open', '--port', '0', '--folder', {str(tmp_path)!r}]; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        url = next(line for line in lines if "token=" in line).split()[-1]
        port, token = int(url.split(":")[2].split("/")[0]), url.split("token=")[1]
        client = Client(port)
        client.headers["Cookie"] = f"jaxrig_studio_{port}={token}"
        # The first calls of a start import their rooms, here at the same time.
        with ThreadPoolExecutor() as pool:
            rooms = ("arc", "datasets"), ("trace", "sources"), ("causal", "sources")
            found = pool.map(lambda room: client.call(*room)[0], rooms)
        assert list(found) == [200, 200, 200]
        begin = {"dataset": "AGI1", "task": "27a77e38"}
        _, game = client.call("arc", "open_game", **begin)
        status, after = client.call(
            "arc", "step", game=game["game"], operation=3, box=[0, 0, 1, 1]
        )
        assert (status, after["steps"]) == (200, 1)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    with running_studio(tmp_path, real_rooms("arc")) as client:
        status, again = client.call("arc", "open_game", game=game["game"])
        assert (status, again) == (200, after)


@pytest.mark.parametrize(
    ("task", "state"),
    [
        ("00d62c1b", "failed"),  # of 20 x 20 cells
        pytest.param("3c9b0459", "done", marks=pytest.mark.slow),
    ],
)
def test_the_solver_answers_what_it_can_read(tmp_path, task, state):
    with running_studio(tmp_path, real_rooms("arc")) as client:
        _, game = client.call("arc", "open_game", dataset="AGI1", task=task)
        _, begun = client.call("arc", "guess", game=game["game"])
        ended = client.wait(begun["id"])
        assert ended["state"] == state, ended["message"]
        if state == "failed":
            assert "reads grids of up to 12 x 12" in ended["message"]
            return
        (first, *_) = ended["about"]["answers"]
        _, known = client.call("arc", "answer", game=game["game"])
        assert first["grid"] == known["answer"]
        assert 0.8 < first["confidence"] <= 1


def test_the_folder_is_named_as_the_terminal_would(tmp_path, monkeypatch):
    space = Workspace(tmp_path / "data" / "studio")
    monkeypatch.chdir(tmp_path)
    assert space.shown() == os.path.join("data", "studio")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert space.shown() == str((tmp_path / "data" / "studio").resolve())
