"""The records of the service, as docs/contract.md describes them.

Dates are written YYYY-MM-DD and timestamps as RFC 3339 in UTC, as the service writes them. A field is
None where the registry has no value. Fields that a later version of the service adds are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Dict, Generic, List, Optional, Type, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class DirectorItem:
    """A current director in a company's record."""

    din: str
    name: str
    designation: Optional[str]
    appointment_date: Optional[str]


@dataclass(frozen=True)
class Contact:
    """How to reach a company. E-mail and phone depend on the plan, and are masked in the sandbox."""

    address: Optional[str]
    email: Optional[str]
    phone: Optional[str]
    website: Optional[str]


@dataclass(frozen=True)
class Company:
    """The registry's record of a company. Amounts are whole rupees."""

    cin: str
    company_name: str
    registration_no: str
    status: str
    incorporation_date: Optional[str]
    category: Optional[str]
    sub_category: Optional[str]
    class_: Optional[str]  # "class" in the answer
    roc: Optional[str]
    authorized_capital: Optional[int]
    paid_up_capital: Optional[int]
    listed: Optional[bool]
    activity: Optional[str]
    state: Optional[str]
    district: Optional[str]
    pincode: Optional[str]
    contact: Contact
    directors: List[DirectorItem]
    last_updated: Optional[str]


@dataclass(frozen=True)
class LinkedCompany:
    """A company at which a director holds office."""

    cin: str
    company_name: str
    status: str
    designation: Optional[str]
    appointment_date: Optional[str]


@dataclass(frozen=True)
class Director:
    """A person who holds or held offices; at most 10 linked companies, and how many there are."""

    din: str
    name: str
    status: Optional[str]
    linked_companies: List[LinkedCompany]
    linked_companies_total: int


@dataclass(frozen=True)
class Partner:
    """A present or past partner of an LLP."""

    din: Optional[str]
    name: str
    status: str
    joined_on: Optional[str]
    left_on: Optional[str]


@dataclass(frozen=True)
class Llp:
    """The registry's record of an LLP; at most 50 partners, and how many there are."""

    llpin: str
    llp_name: str
    status: str
    incorporation_date: Optional[str]
    state: Optional[str]
    district: Optional[str]
    pincode: Optional[str]
    address: Optional[str]
    activity: Optional[str]
    contribution: Optional[int]
    partners: List[Partner]
    partners_total: int
    last_updated: Optional[str]


@dataclass(frozen=True)
class Match:
    """One result of a search: a CIN with type "company", or an LLPIN with type "llp"."""

    value: str
    label: str
    type: str


@dataclass(frozen=True)
class RateLimit:
    """What is left of the current minute; reset is in seconds.

    While an edge can't know it, it sends the limit alone, and the others are None.
    """

    limit: Optional[int] = None
    remaining: Optional[int] = None
    reset: Optional[int] = None


@dataclass(frozen=True)
class Result(Generic[T]):
    """A success: data, and what the service said beside it."""

    data: T
    request_id: str
    credits_remaining: Optional[int]
    """The balance after this call; None with the sandbox key."""
    sandbox: bool
    rate_limit: RateLimit
    release: str
    """The state of the registry that was read."""
    replayed: bool = False
    """An earlier attempt had been charged already, so this one was not."""
    suggestions: List[str] = field(default_factory=list)
    """Registered names that were perhaps meant: at most three, only beside an empty search."""
    attempts: int = 1


_NESTED: Dict[str, Type[Any]] = {
    "directors": DirectorItem,
    "linked_companies": LinkedCompany,
    "partners": Partner,
    "contact": Contact,
}


def record(kind: Type[T], document: Any) -> T:
    """Makes a record of a JSON object. Raises KeyError when a field is missing."""
    values = {}
    for entry in fields(kind):  # type: ignore[arg-type]
        value = document[entry.name.rstrip("_")]
        nested = _NESTED.get(entry.name)
        if nested is not None:
            value = [record(nested, item) for item in value] if isinstance(value, list) else record(nested, value)
        values[entry.name] = value
    return kind(**values)
