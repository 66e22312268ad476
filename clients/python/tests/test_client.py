"""Run by `python3 -m unittest discover -s tests` in clients/python."""

import contextlib
import email.utils
import os
import pickle
import random
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import regedge
from regedge import ApiError, Client, RegedgeError, UnansweredError, headers

MATCH = (
    b'{"data":[{"value":"AAA-0001","label":"A","type":"llp"}],'
    b'"meta":{"request_id":"01","credits_remaining":9,"sandbox":false}}'
)


def found(handler, extra=()):
    handler.send_response(200)
    for name, value in extra:
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(MATCH)))
    handler.end_headers()
    handler.wfile.write(MATCH)


def lost(handler):
    """Breaks the connection in the middle of an answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(MATCH)))
    handler.end_headers()
    handler.wfile.write(MATCH[:20])
    handler.close_connection = True


def problem(status, code, retry_after=None):
    def answer(handler):
        body = ('{"type":"t","title":"T","detail":"D","status":%d,"code":"%s"}' % (status, code)).encode()
        handler.send_response(status)
        handler.send_header("X-Request-Id", "01ID")
        handler.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            handler.send_header("Retry-After", str(retry_after))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def certified():
    """Returns the TLS settings of a service with a certificate of its own, and those of a client that knows it."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = os.path.join(folder, "key"), os.path.join(folder, "certificate")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
             "-subj", "/CN=made up", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
            check=True, capture_output=True,
        )
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        known = ssl.create_default_context(cafile=certificate)
    return tls, known


class Service:
    """Answers the n-th attempt with the n-th step, and every later one with the last."""

    def __init__(self, *steps, tls=None):
        self.keys, self.asked, service = [], None, self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                service.keys.append(self.headers["Idempotency-Key"])
                service.asked = self
                steps[min(len(service.keys), len(steps)) - 1](self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def client(self, path="", scheme="http", **options):
        client = Client("%s://127.0.0.1:%d%s" % (scheme, self.server.server_port, path), **options)
        client.pauses = []
        client._sleep = client.pauses.append
        return client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class ClientTest(unittest.TestCase):
    def test_a_lost_answer_is_asked_for_again_under_the_same_idempotency_key(self):
        replayed = lambda handler: found(handler, [("Idempotent-Replayed", "true")])
        with Service(lost, problem(503, "overloaded", 1), replayed) as service, service.client() as client:
            result = client.find_llp("AAA-0001")
            self.assertEqual((result.attempts, result.replayed, result.credits_remaining), (3, True, 9))
            self.assertEqual(result.data[0].label, "A")
            self.assertEqual(len(set(service.keys)), 1)
            self.assertEqual(len(service.keys[0]), 32)
            self.assertGreaterEqual(client.pauses[1], 1)
            client.find_llp("AAA-0001")
            self.assertEqual(len(set(service.keys)), 2, "another call has a key of its own")

    def test_what_a_retry_cannot_mend_is_raised_at_once(self):
        for status, code, retry_after in (
            (404, "llp_not_found", None),
            (402, "insufficient_credits", None),
            (422, "idempotency_key_reused", None),
            (400, "invalid_cin", None),
            (401, "invalid_api_key", None),
            (403, "account_suspended", None),
            (405, "method_not_allowed", None),
            (409, "x", None),
            (431, "header_too_large", None),
            (429, "monthly_volume_exceeded", 86400),
            (429, "rate_limit_exceeded", 31),  # longer than max_wait by default
        ):
            with self.subTest(code), Service(problem(status, code, retry_after)) as service, service.client() as client:
                with self.assertRaises(ApiError) as raised:
                    client.llp("AAA-0001")
                self.assertEqual((raised.exception.code, len(service.keys)), (code, 1))
                self.assertEqual(raised.exception.request_id, "01ID")
                self.assertEqual(str(raised.exception), "%d %s: D (request 01ID)" % (status, code))
                self.assertEqual(raised.exception.not_found, status == 404)
        self.assertFalse(ApiError(404, "route_not_found").not_found)

    def test_what_may_pass_is_retried(self):
        for status in (408, 429, 500, 502, 503, 504, 520):
            with self.subTest(status), Service(problem(status, "x"), found) as service, service.client() as client:
                self.assertEqual(client.find_llp("AAA-0001").attempts, 2)

    def test_pauses_grow_and_stay_within_their_bounds(self):
        with Service(problem(503, "overloaded")) as service, service.client(max_retries=7) as client:
            with self.assertRaises(ApiError):
                client.company("x")
            bounds = (0.25, 0.5, 1, 2, 4, 8, 8)
            for pause, most in zip(client.pauses, bounds):
                self.assertTrue(most / 2 <= pause <= most, client.pauses)
            self.assertNotEqual(tuple(client.pauses), bounds, "they are random")

    def test_a_call_may_be_repeated_for_hours(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            with Client("http://127.0.0.1:%d" % closed.getsockname()[1], max_retries=1200) as client:
                client._sleep = lambda pause: self.assertLessEqual(pause, 8)
                with self.assertRaises(UnansweredError) as raised:
                    client.company("x")
        self.assertEqual(raised.exception.attempts, 1201)

    def test_no_pause_is_longer_than_max_wait(self):
        with Service(lost, problem(503, "overloaded"), found) as service, service.client(max_wait=0.001) as client:
            self.assertEqual(client.find_llp("AAA-0001").attempts, 3)
            self.assertLessEqual(max(client.pauses), 0.001)

    def test_a_pause_of_max_wait_is_waited_for(self):
        for asked, attempts in ((30, 2), (31, 1)):
            with self.subTest(asked), Service(problem(429, "x", asked), found) as service, service.client() as client:
                try:
                    self.assertEqual(client.find_llp("AAA-0001").attempts, attempts)
                except ApiError as error:
                    self.assertEqual((error.attempts, error.retry_after), (attempts, asked))

    def test_what_is_asked_for(self):
        other = {"Authorization": "Bearer other", "traceparent": "00-trace"}
        with Service(found) as service, service.client("/api/", api_key="mine", headers=other) as client:
            for call, kind in ((client.director, "directors"), (client.llp, "llps"), (client.company, "companies")):
                with self.assertRaises(RegedgeError):
                    call("a/b?c")
                self.assertEqual(service.asked.path, "/api/v1/%s/a%%2Fb%%3Fc" % kind)
            self.assertEqual(service.asked.headers["Accept"], "application/json")
            self.assertEqual([service.asked.headers[name] for name in other], ["Bearer mine", "00-trace"])
            self.assertRegex(service.asked.headers["User-Agent"], r"^regedge-python/\d+\.\d+\.\d+$")
            client.search("a & b", limit=1)
            self.assertEqual(service.asked.path, "/api/v1/search/companies?name=a+%26+b&limit=1")

    def test_headers_of_the_client_replace_none_of_the_call(self):
        given = {"authorization": "Bearer other", "IDEMPOTENCY-KEY": "other", "user-agent": "other", "accept": "text/html"}
        with Service(found) as service, service.client(api_key="mine", headers=given) as client:
            client.find_llp("AAA-0001", idempotency_key="own")
            sent = [service.asked.headers.get_all(name) for name in ("Authorization", "Idempotency-Key", "Accept")]
            self.assertEqual(sent, [["Bearer mine"], ["own"], ["application/json"]])
            self.assertEqual(len(service.asked.headers.get_all("User-Agent")), 1)

    def test_an_answer_that_is_too_long_is_none(self):
        for size, answered in ((1 << 20, True), ((1 << 20) + 1, False)):

            def padded(handler):
                handler.send_response(200)
                handler.send_header("Content-Length", str(size))
                handler.end_headers()
                handler.wfile.write(MATCH + b" " * (size - len(MATCH)))

            with self.subTest(size), Service(padded) as service, service.client(max_retries=0) as client:
                if answered:
                    client.find_llp("AAA-0001")
                else:
                    self.assertRaises(UnansweredError, client.find_llp, "AAA-0001")

    def test_an_answer_without_an_end_is_given_up(self):
        sent = []

        def endless(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(1 << 40))
            handler.end_headers()
            handler.close_connection = True
            try:
                for _ in range(1 << 10):  # 64 MiB
                    handler.wfile.write(b" " * (1 << 16))
                    sent.append(1 << 16)
            except OSError:
                pass  # the client has closed the connection

        with Service(endless) as service, service.client(max_retries=0) as client:
            with self.assertRaises(UnansweredError):
                client.company("x")
        self.assertLess(sum(sent), 32 << 20)

    def test_a_certificate_is_checked(self):
        tls, known = certified()
        with Service(found, tls=tls) as service:
            with service.client(scheme="https", context=known) as client:
                self.assertEqual(client.find_llp("AAA-0001").attempts, 1)
            with service.client(scheme="https", max_retries=0) as client, self.assertRaises(UnansweredError) as raised:
                client.find_llp("AAA-0001")
            self.assertIsInstance(raised.exception.__cause__, ssl.SSLCertVerificationError)
            self.assertEqual(len(service.keys), 1)

    def test_a_key_that_cannot_be_sent_spoils_no_later_call(self):
        with Service(found) as service, service.client(max_retries=0) as client:
            client.find_llp("AAA-0001")
            for key in ("a\nb", "é€"):
                with self.subTest(key), self.assertRaises(ValueError):
                    client.find_llp("AAA-0001", idempotency_key=key)
                self.assertEqual(client.find_llp("AAA-0001").attempts, 1)

    def test_what_is_no_string_is_not_sent(self):
        with Service(found) as service, service.client() as client:
            for call in (client.company, client.director, client.llp, client.search, client.find_llp):
                for value in (None, 1234567, b"x"):
                    with self.subTest(f"{call.__name__}({value!r})"), self.assertRaisesRegex(TypeError, "want a string, got"):
                        call(value)
            self.assertEqual(service.keys, [])

    def test_retries_end(self):
        with Service(problem(503, "registry_unavailable", 1)) as service, service.client(max_retries=2) as client:
            with self.assertRaises(ApiError) as raised:
                client.company("x")
            self.assertEqual((raised.exception.attempts, len(service.keys)), (3, 3))

    def test_a_call_without_answer_says_under_which_key_to_ask_again(self):
        with Service(lost) as service, service.client() as client:
            with self.assertRaises(UnansweredError) as raised:
                client.director("1", idempotency_key="mine")
            self.assertEqual((raised.exception.idempotency_key, raised.exception.attempts), ("mine", 4))

    def test_a_problem_after_a_lost_answer_says_under_which_key_to_ask_again(self):
        with Service(lost, problem(503, "overloaded")) as service, service.client() as client:
            with self.assertRaises(ApiError) as raised:
                client.director("1")
            self.assertEqual((raised.exception.idempotency_key, raised.exception.attempts), (service.keys[0], 4))

    def test_an_attempt_that_hangs_is_repeated(self):
        end = threading.Event()
        with Service(lambda _: end.wait(10), found) as service, service.client(timeout=0.2, max_retries=20) as client:
            try:
                self.assertGreaterEqual(client.find_llp("AAA-0001").attempts, 2)  # more on a busy machine
            finally:
                end.set()

    def test_an_answer_that_never_ends_is_given_up_in_time(self):
        """A wait for one byte is short, and there are many of them."""

        def trickled(pieces):
            def answer(handler):
                handler.close_connection = True
                try:
                    for piece in pieces:
                        handler.wfile.write(piece)
                        time.sleep(0.02)
                except OSError:
                    pass  # the client has closed the connection

            return answer

        body = [MATCH[i : i + 1] for i in range(len(MATCH))]
        header = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(MATCH)
        for name, pieces in (
            ("body", [header, *body]),
            ("header", [b"HTTP/1.1 200 OK\r\n", *(b"X-%d: x\r\n" % n for n in range(90)), header[17:] + MATCH]),
            ("interim answers", [*[b"HTTP/1.1 103 Early Hints\r\n\r\n"] * 90, header + MATCH]),
        ):
            with self.subTest(name), Service(trickled(pieces), found) as service, service.client(timeout=0.3, max_retries=20) as client:
                self.assertGreaterEqual(client.find_llp("AAA-0001").attempts, 2)  # more on a busy machine
        with Service(found) as service, service.client(timeout=0.3, max_retries=20) as client:

            def attempts():
                client.find_llp("AAA-0001")
                time.sleep(0.3)  # the next call on the connection has its own time
                return client.find_llp("AAA-0001").attempts

            self.assertTrue(any(attempts() == 1 for _ in range(20)), "once in time, also on a busy machine")

    def test_an_address_that_never_answers_leaves_the_next_one_its_time(self):
        with socket.socket() as dead, Service(found) as service, contextlib.ExitStack() as waiting:
            dead.bind(("127.0.0.1", 0))
            dead.listen(0)
            for _ in range(3):  # its queue is full: it takes no more connections
                other = waiting.enter_context(socket.socket())
                other.setblocking(False)
                other.connect_ex(dead.getsockname())
            live = socket.getaddrinfo(*service.server.server_address, type=socket.SOCK_STREAM)
            addresses = socket.getaddrinfo(*dead.getsockname(), type=socket.SOCK_STREAM) + live
            with unittest.mock.patch("socket.getaddrinfo", return_value=addresses):

                def attempts():
                    with service.client(timeout=0.3, max_retries=20) as client:
                        return client.find_llp("AAA-0001").attempts

                self.assertTrue(any(attempts() == 1 for _ in range(20)), "once in time, also on a busy machine")

    def test_an_idle_connection_that_the_service_closed_costs_no_attempt(self):
        def found_and_closed(handler):
            found(handler)
            handler.close_connection = True

        with Service(found_and_closed) as service, service.client(max_retries=0) as client:
            client.find_llp("AAA-0001")
            time.sleep(0.05)
            self.assertEqual(client.find_llp("AAA-0001").attempts, 1)

    def test_an_idle_connection_that_is_reset_costs_no_attempt_over_tls_either(self):
        idle, reset = threading.Event(), threading.Event()

        def found_and_reset(handler):
            found(handler)
            idle.wait(10)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.close_connection = True
            socket.close(handler.connection.detach())
            reset.set()

        tls, known = certified()
        with Service(found_and_reset, found, tls=tls) as service:
            with service.client(scheme="https", context=known, max_retries=0) as client:
                client.find_llp("AAA-0001")
                idle.set()
                self.assertTrue(reset.wait(10))
                self.assertEqual(client.find_llp("AAA-0001").attempts, 1)

    def test_what_came_on_an_idle_connection_answers_no_call(self):
        idle, ended = threading.Event(), threading.Event()

        def found_and_timed_out(handler):  # as some proxies do before they close an idle connection
            found(handler)
            idle.wait(10)
            problem(408, "request_timeout")(handler)
            handler.close_connection = True
            ended.set()

        with Service(found_and_timed_out, found) as service, service.client(max_retries=0) as client:
            client.find_llp("AAA-0001")
            idle.set()
            self.assertTrue(ended.wait(10))
            self.assertEqual(client.find_llp("AAA-0001").data[0].value, "AAA-0001")
            self.assertEqual(len(service.keys), 2)

    def test_a_new_connection_that_is_closed_is_an_attempt(self):
        def silent(handler):
            handler.close_connection = True

        with Service(silent) as service, service.client(max_retries=0) as client:
            with self.assertRaises(UnansweredError):
                client.company("x")
            self.assertEqual(len(service.keys), 1)

    def test_a_connection_that_takes_the_place_of_an_idle_one_is_new(self):
        def silent(handler):
            handler.close_connection = True

        with Service(found, silent) as service, service.client(max_retries=1) as client:
            client.find_llp("AAA-0001")
            with self.assertRaises(UnansweredError):
                client.find_llp("AAA-0001")
            self.assertEqual(len(service.keys), 1 + 2 + 1, "only the idle one was tried for nothing")

    def test_a_connection_after_one_that_the_service_ended_with_its_answer_is_new(self):
        def last(handler):
            found(handler, [("Connection", "close")])

        def silent(handler):
            handler.close_connection = True

        with Service(last, silent) as service, service.client(max_retries=0) as client:
            client.find_llp("AAA-0001")
            with self.assertRaises(UnansweredError):
                client.find_llp("AAA-0001")
            self.assertEqual(len(service.keys), 1 + 1, "there was no idle connection")

    @unittest.skipUnless(hasattr(os, "fork"), "processes are not forked here")
    def test_a_forked_process_shares_no_connection(self):
        with Service(found) as service, service.client() as client:
            client.find_llp("AAA-0001")
            parents = service.asked.client_address
            child = os.fork()
            if child == 0:
                try:
                    client.find_llp("AAA-0001")
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            self.assertEqual(len(service.keys), 2)
            self.assertNotEqual(service.asked.client_address, parents, "each would read the other's answers")
            client.find_llp("AAA-0001")
            self.assertEqual(service.asked.client_address, parents, "the connection of the first process stays")

    def test_an_answer_of_another_program_is_an_error_without_a_code(self):
        for body in (b"[]", b'"busy"', b"<html>", b"", b'{"code":null,"detail":null}', b'{"code":502,"detail":["busy"]}'):

            def foreign(handler):
                handler.send_response(502)
                handler.send_header("Content-Length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            with self.subTest(body), Service(foreign) as service, service.client(max_retries=0) as client:
                with self.assertRaises(ApiError) as raised:
                    client.company("x")
                self.assertEqual((raised.exception.status, raised.exception.code, raised.exception.detail), (502, "", ""))

    def test_an_interim_answer_is_not_taken_for_the_answer(self):
        def hinted(handler):
            handler.wfile.write(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
            found(handler, [("X-Registry-Release", handler.path[-1])])

        with Service(hinted) as service, service.client() as client:
            got = [client.find_llp(f"AAA-000{n}").release for n in "123"]
        self.assertEqual(got, ["1", "2", "3"], "each call has its own answer")

    def test_no_service_is_an_unanswered_call(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            client = Client("http://127.0.0.1:%d" % closed.getsockname()[1], max_retries=0)
            with self.assertRaises(UnansweredError):
                client.company("x")

    def test_an_answer_without_its_fields_is_an_error_of_the_package(self):
        def bare(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", "21")
            handler.end_headers()
            handler.wfile.write(b'{"data":[],"meta":{}}')

        with Service(found, bare) as service, service.client() as client:
            with self.assertRaisesRegex(RegedgeError, "^read an answer that is not of this service: "):
                client.company("x")
            with self.assertRaises(RegedgeError):
                client.find_llp("AAA-0001")

    def test_an_answer_that_nests_without_an_end_is_an_error_of_the_package(self):
        deep = b"[" * 200_000

        def nested(status):
            def answer(handler):
                handler.send_response(status)
                handler.send_header("Content-Length", str(len(deep)))
                handler.end_headers()
                handler.wfile.write(deep)

            return answer

        for status in (200, 400):
            with Service(nested(status)) as service, service.client() as client:
                with self.assertRaises(RegedgeError):
                    client.company("x")

    def test_redirects_are_not_followed(self):
        with Service(found) as elsewhere:

            def away(handler):
                handler.send_response(302)
                handler.send_header("Location", "http://127.0.0.1:%d/" % elsewhere.server.server_port)
                handler.send_header("Content-Length", "0")
                handler.end_headers()

            with Service(away) as service, service.client() as client:
                with self.assertRaises(ApiError) as raised:
                    client.company("x")
                self.assertEqual((raised.exception.status, elsewhere.keys), (302, []))

    def test_configurations_that_cannot_work_are_refused(self):
        for arguments in ({"base_url": "localhost:8080"}, {"base_url": "https://"}, {"api_key": "reg_live_x\n"}, {"api_key": "reg_live_é"}, {"api_key": "reg_live x"}, {"api_key": ""}, {"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}, {"timeout": float("inf")}, {"timeout": 1e7}, {"max_retries": -1}, {"max_retries": 1.5}, {"max_wait": -1}, {"max_wait": float("nan")}):
            with self.subTest(arguments), self.assertRaises(ValueError):
                Client(**arguments)
        for address in ("https://api.example.org/v1", "http://127.0.0.1:8080/v1/"):
            with self.subTest(address), self.assertRaisesRegex(ValueError, "without /v1, which each call adds"):
                Client(address)
        for address in ("http://127.0.0.1:8080?tenant=1", "http://127.0.0.1:8080/#top"):
            with self.subTest(address), self.assertRaisesRegex(ValueError, "without [?] and #"):
                Client(address)
        for address in ("http://exa mple:8080", "http://127.0.0.1:8080/a b", "http://127.0.0.1\u00a0", "http://127.0.0.1/a\x01"):
            with self.subTest(address), self.assertRaisesRegex(ValueError, "without spaces"):
                Client(address)
        for arguments, want in (({"api_key": b"reg_live_x"}, "api_key: want a string, got bytes"), ({"base_url": 8080}, "base_url: want a string, got int")):
            with self.subTest(arguments), self.assertRaisesRegex(TypeError, want):
                Client(**arguments)

    def test_suggestions(self):
        for value, want in (
            (None, []),
            ('"TATA MOTORS", "TATA \\"X\\" \\\\ LTD"', ["TATA MOTORS", 'TATA "X" \\ LTD']),
            ('"%E0%A4%86 50%25"', ["आ 50%"]),
            ('"open', []),
            ("token", []),
            ('"a" "b"', []),
            ('"a", b', []),
        ):
            with self.subTest(value):
                self.assertEqual(headers.suggestions(value), want)

    def test_what_the_service_says_beside_a_result(self):
        names = [("Search-Suggestion", '"TATA MOTORS"'), ("Search-Suggestion", '"TATA STEEL", "TATA POWER"')]
        said = [("Idempotent-Replayed", "false"), ("X-Registry-Release", "r1"), ("RateLimit-Reset", "30")]
        with Service(lambda handler: found(handler, names + said)) as service, service.client() as client:
            result = client.find_llp("AAA-0001")
        # A proxy may divide a list (RFC 9110, section 5.3).
        self.assertEqual(result.suggestions, ["TATA MOTORS", "TATA STEEL", "TATA POWER"])
        self.assertEqual((result.replayed, result.release, result.rate_limit.reset), (False, "r1", 30))

    def test_what_the_service_does_not_say_is_empty(self):
        def foreign(handler):
            handler.send_response(403)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        with Service(found, foreign) as service, service.client() as client:
            result = client.find_llp("AAA-0001", idempotency_key="")
            self.assertEqual((result.release, result.replayed, result.suggestions), ("", False, []))
            self.assertRegex(service.keys[0], "^[0-9a-f]{32}$", "an empty key is none")
            with self.assertRaises(ApiError) as raised:
                client.company("x")
        error = raised.exception
        self.assertEqual((error.request_id, error.type, error.title, error.detail, error.retry_after), ("", "", "", "", 0))
        self.assertEqual(str(error), "403 an answer that is not of this service")

    def test_each_part_of_an_answer_is_read_from_its_field(self):
        body = b'{"data":[],"meta":{"request_id":"01","credits_remaining":0,"sandbox":true}}'

        def empty(handler):
            handler.send_response(200)
            handler.send_header("X-Request-Id", "another")
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        with Service(empty, problem(404, "llp_not_found")) as service, service.client() as client:
            result = client.find_llp("AAA-0001")
            self.assertEqual((result.request_id, result.credits_remaining, result.sandbox), ("01", 0, True))
            with self.assertRaises(ApiError) as raised:
                client.llp("AAA-0001")
        error = raised.exception
        self.assertEqual((error.type, error.title, error.detail, error.request_id), ("t", "T", "D", "01ID"))

    def test_a_page_in_place_of_an_answer_is_an_error_of_the_package(self):
        def page(handler):
            handler.send_response(200)
            handler.send_header("X-Request-Id", "01ID")
            handler.send_header("Content-Length", "6")
            handler.end_headers()
            handler.wfile.write(b"<html>")

        with Service(page) as service, service.client() as client:
            with self.assertRaisesRegex(RegedgeError, "^read the answer of 01ID: "):
                client.company("x")
            self.assertEqual(len(service.keys), 1)

    def test_an_answer_that_lacks_its_last_byte_is_none(self):
        def cut(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(MATCH) + 1))
            handler.end_headers()
            handler.wfile.write(MATCH)
            handler.close_connection = True

        with Service(cut, found) as service, service.client() as client:
            self.assertEqual(client.find_llp("AAA-0001").attempts, 2)

    def test_a_call_that_is_interrupted_leaves_its_answer_to_nobody(self):
        other = MATCH.replace(b'"A"', b'"B"')

        def another(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(other)))
            handler.end_headers()
            handler.wfile.write(other)

        def unread(handler):
            try:
                found(handler)
            except OSError:
                pass  # the client has closed the connection

        with Service(unread, another) as service, service.client(max_retries=0) as client:
            with unittest.mock.patch("http.client.HTTPConnection.getresponse", side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    client.find_llp("AAA-0001")
            self.assertEqual(client.find_llp("AAA-0001").attempts, 1)

    def test_an_address_without_a_port_has_that_of_its_scheme(self):
        with unittest.mock.patch("socket.create_connection", side_effect=ConnectionRefusedError) as connect:
            for address, host, port in (
                ("http://api.example.org", "api.example.org", 80),
                ("https://api.example.org/", "api.example.org", 443),
                ("http://api.example.org:0", "api.example.org", 0),
                ("http://[2001:db8::10]", "2001:db8::10", 80),
                ("https://[2001:db8::cafe]/registry", "2001:db8::cafe", 443),
            ):
                with self.assertRaises(UnansweredError):
                    Client(address, max_retries=0).company("x")
                self.assertEqual(connect.call_args.args[0], (host, port))

    def test_an_idempotency_key_cannot_be_guessed(self):
        with Service(found) as service, service.client() as client:
            for _ in range(2):
                random.seed(1)
                client.find_llp("AAA-0001")
            self.assertNotEqual(service.keys[0], service.keys[1])

    def test_an_error_has_what_the_service_says_beside_it(self):
        def limited(handler):
            handler.send_response(403)
            handler.send_header("RateLimit-Limit", "60")
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        with Service(limited) as service, service.client() as client, self.assertRaises(ApiError) as raised:
            client.company("x")
        self.assertEqual(raised.exception.rate_limit.limit, 60)

    def test_each_call_is_sent_under_the_key_it_is_given(self):
        with Service(problem(400, "x")) as service, service.client() as client:
            calls = (client.company, client.director, client.llp, client.search, client.find_llp)
            for call in calls:
                with self.assertRaises(ApiError):
                    call("x", idempotency_key=call.__name__)
            self.assertEqual(service.keys, [call.__name__ for call in calls])

    def test_a_limit_that_is_none_is_left_to_the_service_to_refuse(self):
        with Service(problem(400, "invalid_query")) as service, service.client() as client:
            with self.assertRaises(ApiError):
                client.search("x", limit=0)
            self.assertEqual(service.asked.path, "/v1/search/companies?name=x&limit=0")

    def test_an_error_says_whether_the_registry_lacks_the_record(self):
        for code in ("company_not_found", "director_not_found", "llp_not_found"):
            self.assertTrue(ApiError(404, code).not_found, code)

    def test_everything_public_can_be_imported(self):
        self.assertLessEqual({"ApiError", "Client", "RegedgeError", "Result", "SANDBOX_KEY", "UnansweredError"}, set(regedge.__all__))
        for name in regedge.__all__:
            self.assertTrue(hasattr(regedge, name), name)

    def test_errors_pass_between_processes(self):
        with Service(problem(429, "rate_limit_exceeded", 31), lost) as service, service.client(max_retries=0) as client:
            for kind in (ApiError, UnansweredError):
                with self.assertRaises(kind) as raised:
                    client.company("x", idempotency_key="mine")
                again = pickle.loads(pickle.dumps(raised.exception))
                self.assertIs(type(again), kind)
                self.assertEqual((str(again), vars(again)), (str(raised.exception), vars(raised.exception)))

    def test_connecting_takes_ten_seconds_by_default(self):
        with unittest.mock.patch("socket.create_connection", side_effect=ConnectionRefusedError) as connect:
            for address in ("http://127.0.0.1:1", "https://127.0.0.1:1"):
                with self.assertRaises(UnansweredError):
                    Client(address, max_retries=0).company("x")
                self.assertEqual(connect.call_args.args[1], 10, address)

    def test_a_client_that_is_left_closes_its_connection(self):
        ended = threading.Event()
        with Service(found) as service:
            finish = service.server.RequestHandlerClass.finish
            service.server.RequestHandlerClass.finish = lambda handler: (finish(handler), ended.set())
            with service.client() as client:
                client.find_llp("AAA-0001")
                self.assertFalse(ended.is_set(), "it is kept for the next call")
            self.assertTrue(ended.wait(10))

    def test_each_rate_limit_is_read_from_its_header(self):
        limit = headers.rate_limit({"RateLimit-Limit": "60", "RateLimit-Remaining": "59", "RateLimit-Reset": "7"})
        self.assertEqual((limit.limit, limit.remaining, limit.reset), (60, 59, 7))
        limit = headers.rate_limit({"RateLimit-Limit": "60"})
        self.assertEqual((limit.limit, limit.remaining, limit.reset), (60, None, None))

    def test_retry_after_is_seconds_or_a_date(self):
        for value, least, most in ((None, 0, 0), ("3", 3, 3), (" 3\t", 3, 3), ("-3", 0, 0), ("1_0", 0, 0), ("٣", 0, 0), ("soon", 0, 0), ("007", 7, 7), ("9" * 5000, 1e15, 1e15), ("0" * 5000, 0, 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0), ("Thu, 01 Jan 99999 00:00:00 GMT", 0, 0), ("Thu, 01 Jan 99999999999999999999 00:00:00 GMT", 0, 0)):
            with self.subTest(value):
                self.assertTrue(least <= headers.retry_after(value) <= most)
        ahead = headers.retry_after(email.utils.formatdate(time.time() + 60, usegmt=True))
        self.assertTrue(50 < ahead <= 60, ahead)

    def test_a_pause_is_the_longer_of_the_clients_and_the_services(self):
        with Service(problem(503, "overloaded", 1)) as service, service.client(max_retries=6) as client:
            with self.assertRaises(ApiError):
                client.company("x")
            self.assertTrue(all(pause >= least for pause, least in zip(client.pauses, (1, 1, 1, 1, 2, 4))), client.pauses)

    def test_an_error_says_why(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            with self.assertRaisesRegex(UnansweredError, "^no answer after 1 attempts: .*refused"):
                Client("http://127.0.0.1:%d" % closed.getsockname()[1], max_retries=0).company("x")
        self.assertIsNone(ApiError(503, "overloaded").rate_limit.limit)


if __name__ == "__main__":
    unittest.main()
