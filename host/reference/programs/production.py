import os
import sys

from regedge import ApiError, Client, UnansweredError

client = Client(
    os.environ.get("REGISTRY_URL", "{base}"),
    os.environ.get("REGISTRY_KEY", "{key}"),  # a live key in production
    timeout=5,
)
try:
    company = client.company("U72900ZZ2015PTC000001")
except ApiError as error:
    if error.not_found:
        sys.exit("not registered")
    if error.code == "insufficient_credits":
        sys.exit("add credits, then go on")  # alert people: no retry helps
    sys.exit(f"{error.code}, request {error.request_id}")
except UnansweredError as error:
    sys.exit(f"no answer, try later under {error.idempotency_key}")

print(company.data.company_name)
print("request", company.request_id, "credits left", company.credits_remaining)
