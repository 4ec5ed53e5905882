"""A server on this machine, for tests of downloads."""

import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Serves the `files` of its server, by the last part of their address.

    At /moved it leads to toy.zip; short.zip is that file cut short, endless.zip has no length.
    Of slow.zip a byte comes now and then, of slow-headers not even the headers end.
    """

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        content = self.server.files.get("toy.zip" if name in ("short.zip", "endless.zip") else name)
        if name.startswith("slow"):
            self.dribble(is_header=name != "slow.zip")
        elif name == "moved":
            self.send_response(302)
            self.send_header("Location", "/toy.zip")
            self.end_headers()
        elif content is None:
            self.send_error(404)
        else:
            self.send_response(200)
            if name != "endless.zip":
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:-10] if name == "short.zip" else content)

    def dribble(self, *, is_header):
        self.send_response(200)
        self.flush_headers() if is_header else self.end_headers()
        with suppress(OSError):
            while not self.server.is_over.wait(0.02):
                self.wfile.write(b"x")

    def log_message(self, *_):
        """Nothing."""


@contextmanager
def serving(files):
    """A server of files by name, on a free port; its `files` may change."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.is_over = files, threading.Event()
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()
