"""What a call can raise."""

from __future__ import annotations

from typing import Any, Optional, Type

from .resources import RateLimit


class RegedgeError(Exception):
    """The base of all errors of this package but ValueError for unusable arguments."""

    def __reduce__(self) -> Any:
        # The default calls the class with the message alone. In a pool of processes that call fails, and the pool hangs.
        return _again, (type(self), self.args), vars(self)


class ApiError(RegedgeError):
    """An answer that is not a success (RFC 9457).

    code never changes its meaning; it is "" when the answer is not one of the service, such as a
    proxy's page. title and detail are for people. request_id is what support needs to find the
    call. retry_after is in seconds, 0 when the service says none.

    idempotency_key is that of the call. An attempt before this answer may have been charged though its
    own was lost: the same call with this key is not charged again within 10 minutes at the same edge.
    """

    def __init__(
        self,
        status: int,
        code: str,
        *,
        type: str = "",
        title: str = "",
        detail: str = "",
        request_id: str = "",
        retry_after: float = 0,
        rate_limit: Optional[RateLimit] = None,
        idempotency_key: str = "",
        attempts: int = 1,
    ) -> None:
        self.status = status
        self.code = code
        self.type = type
        self.title = title
        self.detail = detail
        self.request_id = request_id
        self.retry_after = retry_after
        self.rate_limit = rate_limit or RateLimit()
        self.idempotency_key = idempotency_key
        self.attempts = attempts
        message = f"{status} {code or 'an answer that is not of this service'}"
        if detail:
            message += f": {detail}"
        if request_id:
            message += f" (request {request_id})"
        super().__init__(message)

    @property
    def not_found(self) -> bool:
        """True when the registry does not have the record."""
        return self.code in ("company_not_found", "director_not_found", "llp_not_found")


class UnansweredError(RegedgeError):
    """A call of which no whole answer arrived. The service may have answered and charged it.

    The same call with idempotency_key=error.idempotency_key is not charged again within 10 minutes
    at the same edge. __cause__ is the failure of the last attempt.
    """

    def __init__(self, cause: BaseException, idempotency_key: str, attempts: int) -> None:
        self.idempotency_key = idempotency_key
        self.attempts = attempts
        super().__init__(f"no answer after {attempts} attempts: {cause}")


def _again(kind: Type[RegedgeError], args: Any) -> RegedgeError:
    return kind.__new__(kind, *args)
