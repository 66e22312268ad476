import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from regedge import ApiError, Client

with open("sandbox.json", encoding="utf-8") as file:
    answers = json.load(file)["answers"]


class Recorded(BaseHTTPRequestHandler):
    def do_GET(self):
        answer = answers.get(self.path, answers["*"])
        body = json.dumps(answer["body"]).encode()
        self.send_response(answer["status"])
        for name, value in answer["headers"].items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Recorded)
threading.Thread(target=server.serve_forever, daemon=True).start()

client = Client(f"http://127.0.0.1:{server.server_port}")
print(client.company("U72900ZZ2015PTC000001").data.company_name)
try:
    client.llp("ZZZ-9999")
except ApiError as error:
    print(error.code)
