"""Figures inside the page: as SVG or PNG, whichever is shorter."""

import re
import struct
from base64 import b64encode
from dataclasses import dataclass
from urllib.parse import quote

from levymc_lab.framework import Results, SoFar

from ._html import Html, tag, void

PIXELS_PER_INCH = 96  # of CSS
PNG_DPI = 150  # as the experiments write it
POINTS_PER_INCH = 72
UNQUOTED = " /:=,.;()!*+-_~@$?|{}[]^`"  # what neither an URL nor an attribute takes amiss


@dataclass(frozen=True)
class Picture:
    """An address that holds the picture itself, and its size in pixels of CSS."""

    address: str
    width: int
    height: int


def figure(results: Results | SoFar, name: str, caption: str) -> Html:
    """One figure with its caption; where its files cannot be read, a sentence says so."""
    picture = _picture(results, name)
    if picture is None:
        text = f"The figure “{name}” is missing or damaged; the same command draws it again."
        return tag("p", text, class_="missing")
    image = void(
        "img", src=picture.address, alt=caption, width=picture.width, height=picture.height
    )
    frame = tag(
        "div", image, class_="frame", tabindex=0, role="region", aria_label=f"Figure {name}"
    )
    switch = tag("label", void("input", type="checkbox"), " full size", class_="zoom")
    return tag("figure", frame, tag("figcaption", switch, caption))


def _picture(results: Results | SoFar, name: str) -> Picture | None:
    found = []
    for suffix, read in (("svg", _from_svg), ("png", _from_png)):
        try:
            found.append(read(results.picture(name, suffix)))
        except (OSError, LookupError, ValueError, struct.error):
            continue
    return min(found, key=lambda picture: len(picture.address), default=None)


def _from_svg(content: bytes) -> Picture:
    """Quoted, which for SVG is shorter than base64; without the prolog and metadata."""
    text = content.decode()
    size = re.search(r'<svg[^>]*\swidth="([\d.]+)pt" height="([\d.]+)pt"', text)
    if size is None or "</svg>" not in text:
        raise ValueError("This is no SVG by matplotlib.")
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text[size.start() :], flags=re.DOTALL)
    body = re.sub(r"\s+", " ", body)
    width, height = (_pixels(float(length), POINTS_PER_INCH) for length in size.groups())
    return Picture(f"data:image/svg+xml,{quote(body, safe=UNQUOTED)}", width, height)


def _from_png(content: bytes) -> Picture:
    if not content.startswith(b"\x89PNG"):
        raise ValueError("This is no PNG.")
    width, height = (_pixels(length, PNG_DPI) for length in struct.unpack(">II", content[16:24]))
    return Picture(f"data:image/png;base64,{b64encode(content).decode()}", width, height)


def _pixels(length: float | int, per_inch: int) -> int:
    return round(length * PIXELS_PER_INCH / per_inch)
