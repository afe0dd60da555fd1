"""The flow room of the studio: sources, seeds, frames of a run, and what is kept."""

import base64
import time

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("zarr")

from jaxrig.studio.jobs import Hub, Jobs
from jaxrig.studio.rooms import Desk, Workspace
from jaxtrace import studio
from jaxtrace.bounds import box_bounds
from jaxtrace.studio_sources import check_upload, look, seed_positions, series
from jaxtrace.workflow.case import load_case

FLOW = {"flow": "rotation"}
HALF_TURN = {
    "source": FLOW,
    "particles": 40,
    "frames": 9,
    "span": [0.0, np.pi],
    "boundary": "absorbing",
    "integrator": "rk4",
    "diffusivity": None,
    "color": None,
    "seeds": [{"kind": "box", "from": [0.1, 0.1], "to": [0.5, 0.5]}],
}


@pytest.fixture
def desk(tmp_path):
    return Desk("trace", Workspace(tmp_path), Jobs(Hub()))


def finished(desk, begun):
    job = desk.jobs.get(begun["id"])
    end = time.monotonic() + 60
    while job.state == "running":
        assert time.monotonic() < end
        time.sleep(0.01)
    return job


def positions_of(job):
    """Decode frames: levels 0 to 65534 lie a margin around the domain [-1, 1]."""
    levels = np.stack([np.frombuffer(frame, "<u2") for frame in job.frames])
    shares = levels.reshape(len(levels), -1, 2) / 65534 * 1.04 - 0.02
    return 2 * shares - 1


def test_a_run_streams_what_it_keeps(desk, tmp_path):
    job = finished(desk, studio.run(desk, HALF_TURN))
    assert (job.state, job.message) == ("done", "")
    found = positions_of(job)
    assert found.shape == (9, 40, 2)
    assert (found[0] >= 0.1 - 1e-4).all()
    assert (found[0] <= 0.5 + 1e-4).all()
    # Half a turn about the origin: every particle ends at minus its start.
    np.testing.assert_allclose(found[-1], -found[0], atol=1e-3)
    assert job.about["times"][-1] == pytest.approx(np.pi)
    assert studio.runs(desk, {}) == ["rotation-1"]
    kept = tmp_path / "case.toml"
    kept.write_bytes(studio.case(desk, {"run": "rotation-1"}).content)
    assert load_case(kept).time.n_timesteps == 9
    table = studio.trajectories(desk, {"run": "rotation-1", "format": "csv"}).content
    assert table.count(b"\n") == 9 * 40 + 1
    again = finished(desk, studio.resume(desk, {"run": "rotation-1"}))
    assert again.frames == job.frames
    layer = finished(desk, studio.layer(desk, {"kind": "density", "run": "rotation-1"}))
    assert (layer.state, layer.result["columns"]) == ("done", layer.result["rows"])


def test_a_stopped_run_goes_on_where_it_was(desk):
    whole = finished(desk, studio.run(desk, HALF_TURN))
    begun = studio.run(desk, HALF_TURN)
    desk.jobs.get(begun["id"]).stop()
    stopped = finished(desk, begun)
    assert stopped.state == "stopped"
    assert len(stopped.frames) < 9
    again = finished(desk, studio.resume(desk, {"run": "rotation-2"}))
    assert again.frames == whole.frames


def test_seeds_follow_what_was_drawn():
    domain = box_bounds([0, 2, 0, 1])
    shapes = [
        {"kind": "line", "from": [0, 0], "to": [2, 1]},
        {"kind": "point", "from": [1, 0.5]},
        {"kind": "all"},
    ]
    found = seed_positions(shapes, 100, domain)
    assert found.shape == (100, 3)
    line, cloud, everywhere = found[:34], found[34:67], found[67:]
    np.testing.assert_allclose(line[:, 0], 2 * line[:, 1])
    assert np.linalg.norm(cloud - [1, 0.5, 0], axis=1).max() <= 0.03
    assert np.ptp(everywhere[:, 0]) > 1.5
    for wrong, words in (
        ([], "no seeds"),
        ([{"kind": "polygon", "points": [[0, 0], [1, 1]]}], "2 corners"),
        ([{"kind": "polygon", "points": [[0, 0], [1, 1], [1]]}], "two finite numbers"),
        ([{"kind": "polygon", "points": [[0, 0], [1, 0], [2, 0]]}], "no area"),
        ([{"kind": "ring"}], "not a kind"),
        ([{"kind": "line", "from": [0], "to": [1, 1]}], "two finite numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            seed_positions(wrong, 10, domain)


def test_seeds_fill_a_polygon_evenly():
    """An L of three equal squares: a third of the seeds in each, none in its notch."""
    corners = [[0, 0], [0.8, 0], [0.8, 0.4], [0.4, 0.4], [0.4, 0.8], [0, 0.8]]
    shape = {"kind": "polygon", "points": corners}
    found = seed_positions([shape], 3000, box_bounds([0, 2, 0, 1]))
    assert found.shape == (3000, 3)
    right, upper = (found[:, :2] > 0.4).T
    assert found[:, :2].max() <= 0.8
    assert not (right & upper).any()
    for part in (right, upper, ~(right | upper)):
        assert part.mean() == pytest.approx(1 / 3, abs=0.03)  # 3.5 deviations


def test_ridges_of_the_exponent_are_brighter_than_the_walls(desk):
    request = {"source": {"flow": "double_gyre"}, "span": [0.0, 10.0]}
    layer = finished(desk, studio.layer(desk, {"kind": "ftle", **request}))
    assert (layer.state, layer.message) == ("done", "")
    found = layer.result
    assert (found["columns"], found["rows"]) == (160, 80)
    levels = np.frombuffer(base64.b64decode(found["data"]), np.uint8).reshape(80, 160)
    walls = [*levels[[0, -1]], *levels[:, [0, -1]].T]
    assert max(wall.mean() for wall in walls) < 0.6 * levels[1:-1, 1:-1].max()


def test_frames_hide_what_is_gone_and_wrap_what_is_periodic():
    domain = box_bounds([0, 2, 0, 1])
    frame = np.array([[[2.5, 0.5, 0], [np.nan, 0, 0], [1.0, 3.0, 0]]])
    (held,) = studio.quantize(frame, domain, (2.0, 0, 0))
    levels = np.frombuffer(held, "<u2").reshape(3, 2)
    expected = np.round((np.array([0.25, 0.5]) + 0.02) / 1.04 * 65534)
    assert levels[0].tolist() == expected.tolist()
    assert (levels[1:] == 65535).all()


def test_files_are_read_from_the_folder_alone(desk, tmp_path):
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    secret = tmp_path.parent / "x.vtu"
    secret.write_text("")
    # The slash and the dots may be written in any way that XML has.
    (uploads / "out.pvd").write_text('<DataSet file="&#46;&#46;/../x.vtu"/>')
    (uploads / "out.toml").write_text('[data]\npattern = "/data/*.vtu"\n')
    flow = '[flow]\nname = "rotation"\n[sample]\nvariables = ["a"]\nfiles = '
    (uploads / "sample.toml").write_text(f'{flow}["{secret}"]\n')
    (uploads / "net.toml").write_text('[data]\npattern = "http://a.example/*.nc"\n')
    (uploads / "bad.vtu").write_text("<VTKFile>")
    for name, words in (
        ("uploads/out.pvd", "outside of the studio's folder"),
        ("uploads/out.toml", "outside of the studio's folder"),
        ("uploads/sample.toml", "outside of the studio's folder"),
        ("uploads/net.toml", "is an address"),
        ("../secret.vtu", "outside of the studio's folder"),
        ("uploads/bad.vtu", "truncated"),
    ):
        with pytest.raises(ValueError, match=words):
            look(desk, {"source": {"file": name}})
    listed = [one["file"] for one in studio.sources(desk, {})["files"]]
    assert sorted(listed) == [
        f"uploads/{name}"
        for name in ("bad.vtu", "net.toml", "out.pvd", "out.toml", "sample.toml")
    ]
    names = ["a/f_01.vtu", "a/f_02.vtu", "b.nc"]
    assert series(names) == [
        {"file": "a/f_*.vtu", "files": 2},
        {"file": "b.nc", "files": 1},
    ]


def test_uploads_that_unpack_to_too_much_are_not_read(desk, tmp_path):
    """A few bytes can announce arrays larger than the machine, or name other files."""
    h5py = pytest.importorskip("h5py")
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    huge = '<ImageData WholeExtent="0 99999 0 99999 0 9"/><Piece NumberOfPoints="8"/>'
    (uploads / "huge.vti").write_text(huge)
    with h5py.File(uploads / "huge.nc", "w") as file:
        file.create_dataset("u", (10**5, 10**5), "f4", chunks=(100, 100))
    with h5py.File(uploads / "link.h5", "w") as file:
        file["a/u"] = h5py.ExternalLink("/etc/passwd", "u")
    with h5py.File(uploads / "raw.h5", "w") as file:
        file.create_dataset("u", (9,), "u1", external=[("/etc/passwd", 0, 9)])
    for name, words in (
        ("huge.vti", "take 1,118 GiB: an upload has at most 2"),
        ("huge.nc", "take 37 GiB"),
        ("link.h5", "values of a lie in other files"),
        ("raw.h5", "values of u lie in other files"),
    ):
        with pytest.raises(ValueError, match=words):
            check_upload(desk, uploads / name)


def test_too_much_is_refused_in_words(desk):
    for change, words in (
        ({"particles": 10**6}, "particles: give 1 to"),
        ({"particles": 200_000, "frames": 2000}, "MiB: at most"),
        ({"frames": 1}, "frames: give 2 to"),
        ({"seeds": [3]}, "3 has no kind"),
        ({"seeds": [{"kind": "line"}]}, "from is None"),
        ({"seeds": [{"kind": "point", "from": [1, "a"]}]}, "two finite numbers"),
        ({"span": []}, "not a start and another end"),
        ({"span": [0.0, float("inf")]}, "not a start and another end"),
        ({"diffusivity": "x"}, "diffusivity is 'x'"),
        ({"source": {"flow": "typhoon"}}, "flow.name"),
        ({"boundary": "sticky"}, "boundary.type"),
        ({"run": "../x"}, None),
    ):
        call = studio.run if words else studio.resume
        with pytest.raises(
            (ValueError, FileNotFoundError), match=words or "among the runs"
        ):
            call(desk, HALF_TURN | change)
    assert studio.runs(desk, {}) == []
