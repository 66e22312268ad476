from regedge import Client

client = Client("{base}", "{key}")


def find(name):
    found = client.search(name, limit=10)
    if found.data or not found.suggestions:
        return found.data
    print("Did you mean:", ", ".join(found.suggestions))
    return client.search(found.suggestions[0], limit=10).data


for match in find("evry feild"):
    print(match.type, match.value, match.label)
