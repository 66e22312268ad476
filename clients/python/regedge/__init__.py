"""Client of the registry lookup API: Indian companies, LLPs and directors.

    from regedge import Client

    client = Client()  # `regedge dev` on this machine, with the sandbox key
    company = client.company("U72900ZZ2015PTC000001")
    print(company.data.company_name, company.request_id)

Every method is one call of the service and returns a Result. An answer that is not a success is
raised as ApiError, with the stable code of the problem. A call that got no whole answer is
raised as UnansweredError.
"""

from .client import DEFAULT_BASE_URL, SANDBOX_KEY, Client
from .errors import ApiError, RegedgeError, UnansweredError
from .resources import (
    Company,
    Contact,
    Director,
    DirectorItem,
    LinkedCompany,
    Llp,
    Match,
    Partner,
    RateLimit,
    Result,
)

__all__ = [
    "ApiError",
    "Client",
    "Company",
    "Contact",
    "DEFAULT_BASE_URL",
    "Director",
    "DirectorItem",
    "LinkedCompany",
    "Llp",
    "Match",
    "Partner",
    "RateLimit",
    "RegedgeError",
    "Result",
    "SANDBOX_KEY",
    "UnansweredError",
]
