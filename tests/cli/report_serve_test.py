"""The local page that lists a folder's results: what it shows, and what it refuses."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from program import UNMOOR, ProgramTest, unmoor

MODEL = {"path": "models/m.onnx", "fingerprint": "ab", "inputs": []}


def bench(p50, created="2026-01-02T03:04:05Z"):
    run = {"runner": "cpu", "threads": 1, "batch": 1, "load_ms": 1, "prepare_ms": 2, "first_ms": 3, "peak_bytes": 1, "warm": {"count": 1, "p50": p50, "samples": [p50]}}
    return {"tool": "bench", "version": "0.1.0", "status": 0, "reason": "", "created": created, "model": MODEL, "runs": [run], "ratios": [], "warnings": [],
            "environment": {"host": {"processor": "Example 9000"}, "devices": [], "versions": {}}}


class Serve(ProgramTest):
    def setUp(self):
        super().setUp()
        self.shown = self.folder / "results"
        self.shown.mkdir()
        self.store("bench.json", bench(5))
        self.child = subprocess.Popen([UNMOOR, "report", "--serve", self.shown], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)/$", self.child.stdout.readline())[1])

    def stop(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()
        self.child.stderr.close()

    def store(self, name, content):
        (self.shown / name).write_text(content if isinstance(content, str) else json.dumps(content))

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response, body

    def raw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as client:
            client.sendall(data)
            client.settimeout(20)
            found = b""
            while part := client.recv(1 << 16):
                found += part
        return found

    def test_results_are_listed_and_shown_alone_and_together(self):
        self.store("new.json", bench(3, "2026-02-01T00:00:00Z"))
        self.store("migrate.json", {"tool": "migrate", "verdict": "blocked", "sentence": "It does <not> run.", "created": "2026-01-02T00:00:00Z"})
        self.store("notes.json", "[1, 2")
        response, body = self.ask("/")
        self.assertEqual(response.status, 200)
        for said in ("bench.json", "Example 9000", "m.onnx", "2026-01-02T03:04:05Z", "Blocked", "It does &lt;not&gt; run.", "notes.json", "it breaks at byte"):
            self.assertIn(said, body)
        self.assertNotIn("<script", body)
        _, alone = self.ask("/page?file=bench.json")
        self.assertIn("A warm run, median: cpu 5 ms.", alone)
        response, both = self.ask("/page?file=bench.json&file=new.json")
        self.assertEqual(response.status, 200)
        for said in ("cpu · new", "cpu · bench"):
            self.assertIn(said, both)

    def test_what_is_written_later_is_seen(self):
        self.ask("/")
        self.store("bench.json", bench(7, "2027-01-01T00:00:00Z"))
        self.assertIn("2027-01-01", self.ask("/")[1])
        (self.shown / "bench.json").unlink()
        self.assertIn("no results here", self.ask("/")[1])

    def test_a_stored_page_is_shown_without_rights(self):
        self.assertEqual(unmoor("report", self.shown / "bench.json", "-o", self.shown / "page.html").status, 0)
        self.store("other.html", "<html><script>alert(1)</script></html>")
        self.assertIn('href="/stored/page.html"', self.ask("/")[1])
        response, body = self.ask("/stored/page.html")
        self.assertEqual(body, (self.shown / "page.html").read_text())
        self.assertTrue(response.headers["Content-Security-Policy"].startswith("sandbox allow-scripts"))
        self.assertEqual(self.ask("/stored/other.html")[0].status, 404)

    def test_nothing_outside_the_folder_is_shown(self):
        secret = self.folder / "secret.json"
        secret.write_text(json.dumps(bench(123)))
        (self.shown / "link.json").symlink_to(secret)
        (self.shown / "inner.json").symlink_to("bench.json")
        (self.shown / "below").mkdir()
        (self.shown / "below" / "deep.json").write_text(json.dumps(bench(123)))
        (self.shown / "pipe.json").touch()
        os.remove(self.shown / "pipe.json")
        os.mkfifo(self.shown / "pipe.json")
        _, body = self.ask("/")
        self.assertIn("inner.json", body)
        for name in ("link.json", "secret.json", "deep.json", "pipe.json"):
            self.assertNotIn(name, body)
        for name in ("../secret.json", "..%2fsecret.json", "%2e%2e/secret.json", str(secret), "link.json", "below/deep.json", "pipe.json", "bench.json%00.json", "", "/etc/passwd"):
            for path in (f"/page?file={name}", f"/stored/{name}", f"/{name}"):
                response, body = self.ask(path)
                self.assertIn(response.status, (200,) if path == "/" else (400, 404), path)
                self.assertNotIn("123", body)
        self.assertEqual(self.ask("/page?file=inner.json")[0].status, 200)

    def test_only_this_machines_browser_is_answered_and_only_reading(self):
        for host in (None, "", "evil.example", f"evil.example:{self.port}", "127.0.0.1", f"127.0.0.1:{self.port + 1}"):
            response, body = self.ask("/", Host=host)
            self.assertEqual(response.status, 400, host)
            self.assertNotIn("bench.json", body)
        self.assertEqual(self.ask("/", Host=f"localhost:{self.port}")[0].status, 200)
        self.assertNotIn(b"bench.json", self.raw(b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % self.port))
        before = {each: each.read_bytes() for each in self.shown.iterdir()}
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            self.assertIn(self.ask("/", method)[0].status, (405, 501), method)
        self.assertEqual(before, {each: each.read_bytes() for each in self.shown.iterdir()})
        response, body = self.ask("/", "HEAD")
        self.assertEqual((response.status, body), (200, ""))
        other = next((each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET) if not each[4][0].startswith("127.")), None)
        if other:
            with self.assertRaises(OSError):
                socket.create_connection((other, self.port), timeout=5).close()

    def test_odd_requests_end_and_the_next_is_answered(self):
        host = b"Host: 127.0.0.1:%d\r\n" % self.port
        for data in (b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * 100_000 + b"\r\n\r\n", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
                     b"\x00\xff\r\n\r\n", b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 99999999\r\n\r\n", b"GET /page?%zz=&file HTTP/1.0\r\n" + host + b"\r\n"):
            try:
                self.assertNotIn(b"200 OK", self.raw(data))
            except ConnectionError:
                pass  # Refused while it was still being sent.
        names = "&".join(f"file={i}.json" for i in range(40))
        self.assertIn("at most 32", self.ask(f"/page?{names}")[1])
        waiting = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(50)]
        self.assertEqual(self.ask("/")[0].status, 200)
        for each in waiting:
            each.close()

    def test_broken_results_are_told_not_shown(self):
        self.store("deep.json", "[" * 100_000 + "]" * 100_000)
        self.store("other.json", {"tool": "catalog"})
        self.assertIn("no result of Unmoor", self.ask("/")[1])
        for name in ("deep.json", "other.json"):
            response, body = self.ask(f"/page?file={name}")
            self.assertEqual(response.status, 404)
            self.assertIn(name, body)

    def test_it_ends_when_it_is_told(self):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            child = subprocess.Popen([UNMOOR, "report", "--serve", self.shown], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            child.stdout.readline()
            child.send_signal(signal_number)
            self.assertEqual(child.wait(timeout=3), -signal_number)
            child.stdout.close()

    def test_wrong_use_is_told(self):
        for arguments, status, why in ((["--serve", self.folder / "none"], 2, "cannot be read"), (["--serve", self.shown / "bench.json"], 2, "is no folder"),
                                       (["--serve", self.shown, "--port", str(self.port)], 3, f"port {self.port} of this machine cannot be had"),
                                       (["--serve", self.shown, "--json"], 2, "no result to print"), ([], 2, "name the results"), (["--serve", self.shown, "-o", "x"], 2, "excludes"),
                                       (["--port", "1"], 2, "--serve"), ([self.shown / "bench.json"], 2, "-o")):
            done = unmoor("report", *arguments, timeout=20)
            self.assertEqual(done.status, status, done)
            self.assertIn(why, done.out + done.err)


if __name__ == "__main__":
    unittest.main()
