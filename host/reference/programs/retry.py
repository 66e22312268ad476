import http.client
import json
import random
import time
import urllib.error
import urllib.request
import uuid


def lookup(url, key, attempts=4):
    request = urllib.request.Request(url, headers={
        "Authorization": "Bearer " + key,
        "Idempotency-Key": str(uuid.uuid4()),
    })
    for attempt in range(attempts):
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            if error.code not in (408, 429, 500, 503) or attempt == attempts - 1:
                raise
            wait = int(error.headers.get("Retry-After") or 2 ** attempt)
            if wait > 60:
                raise
        except (OSError, http.client.HTTPException):  # no whole answer: it may have been charged
            if attempt == attempts - 1:
                raise
            wait = 2 ** attempt
        time.sleep(wait + random.random())


print(lookup("{base}/v1/companies/U72900ZZ2015PTC000001", "{key}")["company_name"])
