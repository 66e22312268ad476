import csv
import io
import re

from regedge import ApiError, Client

# What the other provider says. In practice: a file with a few hundred of your companies.
theirs = io.StringIO("""number,name,status
U72900ZZ2015PTC000001,Sandbox Every Field (Made-Up) Pvt. Ltd.,Active
u72900zz2017ptc000003,Sandbox Struck Off (Made-Up) Pvt. Ltd.,Active
U72900ZZ2015PTC999999,Nobody Knows Them Pvt. Ltd.,Active
""")

client = Client("{base}", "{key}")


def plain(name):
    words = re.sub(r"[^A-Z0-9]+", " ", name.upper()).split()
    return [{"PVT": "PRIVATE", "LTD": "LIMITED"}.get(word, word) for word in words]


for row in csv.DictReader(theirs):
    try:
        ours = client.company(row["number"]).data
    except ApiError as error:
        if not error.not_found:
            raise
        print(row["number"], "is not in this registry")
        continue
    if plain(ours.company_name) != plain(row["name"]):
        print(ours.cin, "has another name:", ours.company_name)
    elif ours.status != row["status"].upper():
        print(ours.cin, "has another status:", ours.status)
    else:
        print(ours.cin, "is the same")
