"""Numbers, durations and lists of them for readers."""

import math
from collections.abc import Sequence
from typing import Any

DIGITS = 4
MAX_WIDTH = 6  # digits of the widest number that a column with common decimals may have
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | int, digits: int = DIGITS) -> str:
    """With so many significant digits.

    >>> [number(x) for x in (0.25, 200000, 123456.7, 1e-8, -2.5e9, -0.5)]
    ['0.25', '200,000', '123,500', '1×10⁻⁸', '−2.5×10⁹', '−0.5']
    """
    if isinstance(value, int):
        return _signed(f"{value:,}")
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else _signed(f"{value}".replace("inf", "∞"))
    rounded = float(f"{value:.{digits}g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e7:
        mantissa, exponent = f"{rounded:.{digits - 1}e}".split("e")
        power = str(int(exponent)).translate(SUPERSCRIPTS)
        return _signed(f"{mantissa.rstrip('0').rstrip('.')}×10{power}")
    return _signed(f"{rounded:,}".removesuffix(".0"))


def column(values: Sequence[float]) -> list[str]:
    """Floats below each other: with common decimals where they are of similar size.

    >>> column([2.0, 1.75, float("nan")]), column([1e-12, 0.5])
    (['2.00', '1.75', '–'], ['1×10⁻¹²', '0.5'])
    """
    texts = [number(value) for value in values]
    decimals = max((len(text.partition(".")[2]) for text in texts), default=0)
    widest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    whole = len(f"{widest:.0f}") if widest >= 1 else 0
    if whole + decimals <= MAX_WIDTH and not any("×" in text for text in texts):
        plain = [_signed(f"{value:,.{decimals}f}") for value in values]
        texts = [p if math.isfinite(v) else t for p, t, v in zip(plain, texts, values, strict=True)]
    return ["–" if text == "NaN" else text for text in texts]


def exact(value: Any) -> str:
    """A setting as it was made, nothing rounded.

    >>> exact([1.5, 20000, True]), exact({"a": None})
    ('1.5, 20,000, yes', 'a: none')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "; ".join(f"{name}: {exact(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(f"({exact(v)})" if isinstance(v, list) else exact(v) for v in value)
    if isinstance(value, int):
        return f"{value:,}"
    return "none" if value is None else str(value)


def duration(seconds: float | int) -> str:
    """To about three digits.

    >>> duration(4.24), duration(192), duration(7500)
    ('4.2 s', '3 min 12 s', '2 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _signed(text: str) -> str:
    return text.replace("-", "−", 1) if text.startswith("-") else text
