"""What the studio costs: first views of its rooms, and frames of 50,000 particles.

Run as `python benchmarks/studio.py`; prints JSON. Needs Chromium. The first of two
servers fills the cache of compiled programs, and only the second is measured.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from browser import Page, start_browser  # pyright: ignore[reportMissingImports]
from jaxrig.machine import describe_machine

PARTICLES, FRAMES, DRAWN = 50_000, 120, 60
ROOMS = {  # what is there when a first view is
    "": "[...document.querySelectorAll('.tile canvas')]"
    ".filter(each => each.width !== 300).length === 3",
    "arc": "document.querySelectorAll('.thumb canvas[width]').length > 8",
    "trace": "document.querySelector('.corner')?.textContent.includes('particles')",
    "causal": "document.querySelector('.columns select') !== null",
}
# All of a moment is drawn, trails included, and waited for.
DRAW = f"""(async () => {{
  const {{ particles }} = await import("/static/particles.js");
  const canvas = document.createElement("canvas");
  canvas.style.cssText = "width: 1000px; height: 500px";
  document.body.append(canvas);
  const dots = particles(canvas), gl = canvas.getContext("webgl2");
  dots.start({PARTICLES}, 2, {FRAMES});
  for (let k = 0; k < {FRAMES}; k += 1) {{
    const frame = new Uint16Array(2 * {PARTICLES});
    for (let i = 0; i < frame.length; i += 1) frame[i] = (i * 7919 + 40 * k) % 65534;
    dots.add(frame.buffer);
  }}
  const view = {{ dot: 1.6, metric: [1, 1, 0], turn: [1, 0, 0, 0, 1, 0, 0, 0, 1],
    center: [0.5, 0.5, 0], fit: [2, 2], shift: [0, 0], plain: false }};
  const script = [], whole = [], pixel = new Uint8Array(4);
  for (let k = 0; k < {DRAWN}; k += 1) {{
    const begin = performance.now();
    dots.draw(k + 0.5, view);
    script.push(performance.now() - begin);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    whole.push(performance.now() - begin);
  }}
  return [dots.bytes, script, whole];
}})()"""


@contextmanager
def served(folder: Path) -> Generator[tuple[str, int], None, None]:
    """Start a studio of its own; give its address and process. It ends as by Ctrl-C."""
    command = [sys.executable, "-m", "jaxrig", "studio", "--no-open", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--folder", str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        told = (re.search(r"http:\S+", line) for line in process.stdout)
        yield next(found[0] for found in told if found), process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def cpu_seconds(process: int) -> float:
    """Return the CPU seconds of a process so far, as Linux counts them."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_views(page: Page, folder: Path) -> dict[str, dict[str, float]]:
    """Return seconds to the first view of each room of a fresh server, and the CPU
    seconds of the server meanwhile, which other work on the machine changes little.
    """
    found = {}
    for room, shown in ROOMS.items():
        with served(folder) as (url, process):
            page.load("about:blank")
            begin, before = time.perf_counter(), cpu_seconds(process)
            page.load(f"{url}#/{room}")
            page.until(shown)
            found[room or "home"] = {
                "seconds": round(time.perf_counter() - begin, 2),
                "cpu_seconds": round(cpu_seconds(process) - before, 2),
            }
    return found


def main() -> None:
    """Print what was measured."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with start_browser(folder / "profile") as browser:
            page = browser.open()
            page.show(1440, 900, prefers_reduced_motion="reduce")
            first_views(page, folder / "studio")
            views = first_views(page, folder / "studio")
            with served(folder / "studio") as (url, _):
                page.load(url)
                size, script, whole = page.evaluate(DRAW)
    result = {
        "first_views": views,
        "particles": PARTICLES,
        "bytes_per_frame": size,
        "script_ms_per_frame": round(statistics.median(script), 3),
        "whole_ms_per_frame": round(statistics.median(whole), 1),
        "machine": describe_machine() | {"load": os.getloadavg()[0]},
    }
    sys.stdout.write(json.dumps(result, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
