"""Reading the headers of an answer."""

from __future__ import annotations

import email.utils
import re
import time
from typing import List, Mapping, Optional
from urllib.parse import unquote

from .resources import RateLimit

_NUMBER = re.compile(r"[ \t]*[0-9]+[ \t]*\Z")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(,\s*|$)')


def rate_limit(headers: Mapping[str, str]) -> RateLimit:
    return RateLimit(
        _number(headers.get("RateLimit-Limit")),
        _number(headers.get("RateLimit-Remaining")),
        _number(headers.get("RateLimit-Reset")),
    )


def retry_after(value: Optional[str]) -> float:
    """Reads seconds or a date (RFC 9110, section 10.2.3); 0 for anything else."""
    seconds = _number(value)
    if seconds is not None:
        return max(0, seconds)
    parsed = email.utils.parsedate_tz(value or "")
    try:
        return max(0.0, email.utils.mktime_tz(parsed) - time.time()) if parsed else 0
    except (ValueError, OverflowError):  # there is no such day
        return 0


def suggestions(value: Optional[str]) -> List[str]:
    """Reads a list of strings (RFC 9651, section 3.1), percent-encoded beyond ASCII."""
    names, position, text = [], 0, (value or "").strip()
    while position < len(text):
        match = _STRING.match(text, position)
        if match is None:
            return []
        names.append(unquote(re.sub(r"\\(.)", r"\1", match.group(1))))
        position = match.end()
    return names


def _number(value: Optional[str]) -> Optional[int]:
    """Reads a whole number. One of more than 15 digits counts as 10^15, since Python reads no more than some thousand."""
    if not _NUMBER.match(value or ""):
        return None
    digits = value.strip(" \t").lstrip("0")
    return int(digits or "0") if len(digits) <= 15 else 10**15
