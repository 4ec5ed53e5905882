"""Elements of HTML as text that is escaped unless it was made here."""

from html import escape

Attribute = str | int | bool | None


class Html(str):
    """Text that is HTML already."""


def joined(*parts: str | None, by: str = "") -> Html:
    """The parts one after the other; plain text is escaped, None and "" are left out.

    >>> joined("a < b", Html("<br>"), None)
    'a &lt; b<br>'
    """
    return Html(by.join(_safe(part) for part in parts if part))


def tag(name: str, /, *children: str | None, **attributes: Attribute) -> Html:
    """An element; None and False leave an attribute out, True gives it no value.

    >>> tag("td", "a < b", class_="number", colspan=2, hidden=None)
    '<td class="number" colspan="2">a &lt; b</td>'
    """
    return joined(_opening(name, attributes), *children, Html(f"</{name}>"))


def void(name: str, /, **attributes: Attribute) -> Html:
    """An element that has no content.

    >>> void("img", alt='"', src="data:")
    '<img alt="&quot;" src="data:">'
    """
    return _opening(name, attributes)


def _opening(name: str, attributes: dict[str, Attribute]) -> Html:
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        words.append(attribute if value is True else f'{attribute}="{escape(str(value))}"')
    return Html(f"<{' '.join(words)}>")


def _safe(part: str) -> str:
    return part if isinstance(part, Html) else escape(part)
