"""Oracle: the page must agree with JAX and the installation, and see a wrong device."""

import io

import jax
import numpy as np
from rich.console import Console

from jaxrig import doctor
from jaxrig.doctor import compile_check, examine
from jaxrig.machine import install_command


def page():
    stream = io.StringIO()
    verdict = examine(Console(file=stream, width=120))
    return verdict, stream.getvalue()


def test_the_page_is_true_and_says_how_to_get_what_is_missing(monkeypatch):
    monkeypatch.setattr(
        doctor, "missing_modules", lambda extra: ["vtk"] if extra == "trace" else []
    )
    verdict, text = page()
    assert verdict
    assert jax.__version__ in text
    for device in jax.local_devices():
        assert f"{device.platform}:{device.id}" in text
    assert f"missing vtk: {install_command('trace')}" in text
    assert "Compile check on cpu:0: right" in text


def test_a_device_that_computes_wrongly_is_found(monkeypatch):
    monkeypatch.setattr(doctor.jnp, "tanh", lambda x: x)
    assert not compile_check().right
    verdict, text = page()
    assert not verdict
    assert "WRONG" in text


def test_the_check_reports_its_compile_seconds():
    check = compile_check()
    assert check.right
    assert np.isfinite(check.seconds)
