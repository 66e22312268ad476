"""The client: calls, attempts and pauses."""

from __future__ import annotations

import functools
import http.client
import io
import json
import os
import random
import secrets
import selectors
import socket
import ssl
import threading
import time
from typing import Any, Callable, List, Mapping, Optional, Tuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from . import headers as read
from .errors import ApiError, RegedgeError, UnansweredError
from .resources import Company, Director, Llp, Match, Result, record

SANDBOX_KEY = "reg_sandbox_public"
"""The public key for trying the API. It costs nothing."""

DEFAULT_BASE_URL = "http://127.0.0.1:8080"
"""Where `regedge dev` listens."""

_FIRST_PAUSE = 0.25  # seconds; the longest before the first retry, doubled up to the next
_LONGEST_PAUSE = 8.0
_MAX_BODY = 1 << 20  # bytes; four times the longest answer of the service
_LONGEST_TIMEOUT = 2**31 // 1000  # seconds; systems count milliseconds in 31 bits
_USER_AGENT = "regedge-python/1.0.0"

T = TypeVar("T")


class Client:
    """Calls the API. One client may be used by many threads and forked processes; each has a connection of its own.

    base_url     the address of the service, without /v1
    api_key      a live key, or SANDBOX_KEY
    timeout      seconds for connecting to each address of the service, and then for one attempt's answer, to its last byte;
                 above 0, at most 24 days
    max_retries  how often a call is repeated at most; 0 for never
    max_wait     the longest pause before a retry in seconds. When the service asks for a longer one
                 (a monthly volume that is used up), its error is raised at once
    headers      sent with each request, for example a traceparent
    context      TLS settings, for a private authority
    """

    def __init__(
        self,
        base_url: str = DEFAULT_BASE_URL,
        api_key: str = SANDBOX_KEY,
        *,
        timeout: float = 10.0,
        max_retries: int = 3,
        max_wait: float = 30.0,
        headers: Optional[Mapping[str, str]] = None,
        context: Optional[ssl.SSLContext] = None,
    ) -> None:
        for name, value in (("base_url", base_url), ("api_key", api_key or "")):  # None is as empty as ""
            if not isinstance(value, str):
                raise TypeError(f"{name}: want a string, got {type(value).__name__}")
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url: want an address such as {DEFAULT_BASE_URL}, got {base_url!r}")
        # With these each attempt would fail as without a connection.
        if any(c.isspace() or not c.isprintable() for c in parts.netloc + parts.path):
            raise ValueError(f"base_url: want the address without spaces and control characters; got {base_url!r}")
        if "?" in base_url or "#" in base_url:
            raise ValueError(f"base_url: want the address without ? and #; got {base_url!r}")
        if base_url.rstrip("/").endswith("/v1"):
            raise ValueError(f"base_url: want the address without /v1, which each call adds; got {base_url!r}")
        if not api_key or any(not "!" <= c <= "~" for c in api_key):
            raise ValueError("api_key: it is empty, or has a character that no key has, such as a line end")
        if not 0 < timeout <= _LONGEST_TIMEOUT:  # nor is NaN, which is neither less nor more than any number
            raise ValueError(f"timeout: want seconds above 0, at most {_LONGEST_TIMEOUT}, got {timeout!r}")
        if not (isinstance(max_retries, int) and max_retries >= 0 and max_wait >= 0):
            raise ValueError("max_retries must be a whole number, and neither it nor max_wait may be negative")
        self._secure, self._host = parts.scheme == "https", parts.hostname
        # Never None, for which http.client takes the last part of an IPv6 address.
        self._port = parts.port if parts.port is not None else 443 if self._secure else 80
        self._prefix = parts.path.rstrip("/")
        self._timeout, self._max_retries, self._max_wait = timeout, max_retries, max_wait
        own = {"Authorization": f"Bearer {api_key}", "User-Agent": _USER_AGENT, "Accept": "application/json"}
        kept = {name.lower() for name in own} | {"idempotency-key"}
        self._headers = {name: value for name, value in (headers or {}).items() if name.lower() not in kept} | own
        self._context = context
        self._local = threading.local()
        self._sleep: Callable[[float], None] = time.sleep

    def company(self, cin: str, *, idempotency_key: Optional[str] = None) -> Result[Company]:
        """Returns a company by its CIN (21 characters, any case)."""
        return self._call(f"/v1/companies/{_segment('cin', cin)}", lambda d: record(Company, d), idempotency_key)

    def director(self, din: str, *, idempotency_key: Optional[str] = None) -> Result[Director]:
        """Returns a director by DIN (1 to 8 digits)."""
        return self._call(f"/v1/directors/{_segment('din', din)}", lambda d: record(Director, d), idempotency_key)

    def llp(self, llpin: str, *, idempotency_key: Optional[str] = None) -> Result[Llp]:
        """Returns an LLP by its LLPIN (three letters, four digits, a hyphen or none between them)."""
        return self._call(f"/v1/llps/{_segment('llpin', llpin)}", lambda d: record(Llp, d), idempotency_key)

    def search(
        self, name: str, *, limit: Optional[int] = None, idempotency_key: Optional[str] = None
    ) -> Result[List[Match]]:
        """Returns companies and LLPs whose names match, best first: at most limit, 1 to 10, else 5.

        When nothing matches, data is empty, the call is free, and suggestions may have names that
        were perhaps meant.
        """
        query = {"name": _text("name", name)}
        if limit is not None:
            query["limit"] = str(limit)
        return self._call(f"/v1/search/companies?{urlencode(query)}", _matches, idempotency_key)

    def find_llp(self, llpin: str, *, idempotency_key: Optional[str] = None) -> Result[List[Match]]:
        """Returns the LLP with exactly this LLPIN, or an empty list."""
        return self._call(f"/v1/search/llps?{urlencode({'llpin': _text('llpin', llpin)})}", _matches, idempotency_key)

    def close(self) -> None:
        """Closes the connection of this thread. Others end with their threads."""
        connection = self._local.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, target: str, parse: Callable[[Any], T], idempotency_key: Optional[str]) -> Result[T]:
        """Repeats a call until there is a success, an error that a retry can't mend, or no retry left.

        All attempts carry one Idempotency-Key, so that a lookup whose answer was lost is not
        charged again by the edge that answered it.
        """
        key = idempotency_key or secrets.token_hex(16)
        for attempt in range(1, self._max_retries + 2):
            last = attempt > self._max_retries
            pause = min(_pause(attempt), self._max_wait)
            try:
                status, headers, body = self._attempt(target, key)
                if status == 200:
                    return _result(headers, body, parse, attempt)
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise UnansweredError(error, key, attempt) from error
            else:
                problem = _problem(status, headers, body, key, attempt)
                pause = max(pause, problem.retry_after)
                if last or not _retryable(status) or pause > self._max_wait:
                    raise problem
            self._sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, target: str, key: str) -> Tuple[int, http.client.HTTPMessage, bytes]:
        try:
            return self._exchange(target, key)
        except (ConnectionError, ssl.SSLEOFError):  # RemoteDisconnected is one of the first; the second is a reset under TLS
            if not self._local.__dict__.get("used"):
                raise
            # It was an idle connection that the service had closed.
            return self._exchange(target, key)

    def _exchange(self, target: str, key: str) -> Tuple[int, http.client.HTTPMessage, bytes]:
        connection = self._connection()
        try:
            if connection.sock is None:
                self._local.used = False  # http.client keeps the object when the service ends the connection with its answer
                connection.connect()  # may wait for several addresses, before the time of the answer begins
            until = time.monotonic() + self._timeout
            connection.response_class = functools.partial(_FinalResponse, until)  # type: ignore[assignment]
            connection.request("GET", self._prefix + target, headers={**self._headers, "Idempotency-Key": key})
            response = connection.getresponse()
            body = response.read(_MAX_BODY + 1)
            if len(body) > _MAX_BODY:
                raise http.client.HTTPException(f"the answer is longer than {_MAX_BODY} bytes")
            if response.length:  # read(n) returns less without an error when the connection breaks
                raise http.client.IncompleteRead(body, response.length)
        except BaseException:  # also of a key that no header takes, or Ctrl-C: half a call is in the connection
            self.close()
            raise
        self._local.used = True
        return response.status, response.headers, body

    def _connection(self) -> http.client.HTTPConnection:
        if self._local.__dict__.get("process") != os.getpid():
            # A forked process has a copy of its parent's connection, where each would read the other's answers.
            self.close()
        connection = getattr(self._local, "connection", None)
        if connection is not None and connection.sock is not None and _readable(connection.sock):
            # Its end, or what nobody asked for, such as a proxy's 408 before the end.
            self.close()
            connection = None
        if connection is None:
            if self._secure:
                connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=self._timeout, context=self._context
                )
            else:
                connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
            self._local.connection, self._local.used, self._local.process = connection, False, os.getpid()
        return connection


def _readable(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


class _FinalResponse(http.client.HTTPResponse):
    """Must have arrived by a time of time.monotonic(). http.client itself has a limit for each wait alone.

    Passes over interim answers (RFC 9110, section 15.2). http.client does so for 100 alone: it takes a proxy's 103 for the
    answer, and the answer for that of the next call."""

    def __init__(self, until: float, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_Timed(until, sock, self.fp.detach()))  # type: ignore[has-type]

    def _read_status(self) -> Tuple[str, int, str]:
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if not 100 < status < 200:
                return version, status, reason
            http.client.parse_headers(self.fp)


class _Timed(io.RawIOBase):
    """Reads from a socket until a time of time.monotonic()."""

    def __init__(self, until: float, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._until, self._sock, self._raw, self._limit = until, sock, raw, sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        left = self._until - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self._sock.settimeout(left)
        try:
            return self._raw.readinto(buffer)
        finally:
            self._sock.settimeout(self._limit)  # for the next call

    def close(self) -> None:
        super().close()
        self._raw.close()


def _text(parameter: str, value: str) -> str:
    """Refuses what is no string: None would be searched for as a name, and charged."""
    if not isinstance(value, str):
        raise TypeError(f"{parameter}: want a string, got {value!r}")
    return value


def _segment(parameter: str, value: str) -> str:
    return quote(_text(parameter, value), safe="")


def _matches(data: Any) -> List[Match]:
    return [record(Match, entry) for entry in data]


def _retryable(status: int) -> bool:
    return status in (408, 429) or status >= 500


def _pause(attempt: int) -> float:
    """Exponential backoff with jitter, so that clients that failed together don't retry together."""
    doublings = min(attempt - 1, 10)  # enough for the longest; a float overflows after some thousand
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**doublings)
    return random.uniform(longest / 2, longest)


def _result(headers: http.client.HTTPMessage, body: bytes, parse: Callable[[Any], T], attempts: int) -> Result[T]:
    try:
        envelope = json.loads(body)
        meta = envelope["meta"]
        return Result(
            data=parse(envelope["data"]),
            request_id=meta["request_id"],
            credits_remaining=meta["credits_remaining"],
            sandbox=meta["sandbox"],
            rate_limit=read.rate_limit(headers),
            release=headers.get("X-Registry-Release", ""),
            replayed=headers.get("Idempotent-Replayed") == "true",
            suggestions=read.suggestions(", ".join(headers.get_all("Search-Suggestion", []))),
            attempts=attempts,
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        request_id = headers.get("X-Request-Id")
        what = f"the answer of {request_id}" if request_id else "an answer that is not of this service"
        raise RegedgeError(f"read {what}: {error!r}") from error


def _problem(status: int, headers: http.client.HTTPMessage, body: bytes, key: str, attempts: int) -> ApiError:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = {}
    if not isinstance(document, dict):
        document = {}
    texts = {name: value for name, value in document.items() if isinstance(value, str)}
    return ApiError(
        status,
        texts.get("code", ""),
        type=texts.get("type", ""),
        title=texts.get("title", ""),
        detail=texts.get("detail", ""),
        request_id=headers.get("X-Request-Id", ""),
        retry_after=read.retry_after(headers.get("Retry-After")),
        rate_limit=read.rate_limit(headers),
        idempotency_key=key,
        attempts=attempts,
    )
