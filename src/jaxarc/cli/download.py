"""`jaxrig arc download`: fetch data sets that are not embedded."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from jaxarc.data.download import DatasetDownloader
from jaxrig.console import make_console


class Download(enum.StrEnum):
    """What can be fetched."""

    arc_agi_1 = "arc-agi-1"
    arc_agi_2 = "arc-agi-2"
    conceptarc = "conceptarc"
    miniarc = "miniarc"
    all = "all"


def download(
    dataset: Annotated[Download, typer.Argument(help="Which data set.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to put it in.")
    ] = Path("data"),
    force: Annotated[
        bool, typer.Option("--force", help="Fetch again what is there already.")
    ] = False,
) -> None:
    """Fetch data sets with git; this is the only command that uses the network."""
    console = make_console()
    tell = lambda line: console.print(line, markup=False, highlight=False)
    downloader = DatasetDownloader(output, progress=tell)
    if dataset is Download.all:
        folders = downloader.download_all(force)
    else:
        folders = [downloader.download(dataset.value, force)]
    for folder in folders:
        tell(f"use it with --path {folder}")
