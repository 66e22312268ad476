"""Makes the calls that it reads from standard input, one JSON object a line, and writes what the
client returned. The service's tests run it on their vectors (internal/conformance/clients_test.go).
"""

import dataclasses
import json
import sys

from regedge import ApiError, Client


def plain(value):
    if dataclasses.is_dataclass(value):
        return {f.name.rstrip("_"): plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return [plain(item) for item in value] if isinstance(value, list) else value


def perform(request):
    client = Client(request["base"], request["key"], headers=request["header"], max_retries=0)
    arguments = {"limit": request["limit"]} if request.get("limit") else {}
    try:
        result = getattr(client, request["method"])(request["argument"], **arguments)
    except ApiError as error:
        fields = ("status", "code", "type", "title", "detail", "retry_after")
        return {
            "request_id": error.request_id,
            "rate_limit": plain(error.rate_limit),
            "error": {name: getattr(error, name) for name in fields},
        }
    finally:
        client.close()
    return plain(result)


for line in sys.stdin:
    print(json.dumps(perform(json.loads(line))), flush=True)
