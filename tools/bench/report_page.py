#!/usr/bin/env python3
"""Measures the time to create the page of a long run, and to open the page in a browser.

    tools/bench/report_page.py FOLDER [--lines 1000000] [--bin build/cpu/bin] [--browser chromium] [--most 2]

Writes a run folder, with this many lines in metrics.jsonl, and its page into FOLDER. A headless browser opens the page
three times; the first time is not counted. The time is from the start of the navigation to the frame after the first
frame with all drawings. Fails if the time exceeds --most seconds, or a drawing is missing.
"""
import argparse
import http.server
import json
import math
import pathlib
import queue
import subprocess
import sys
import threading
import time
import urllib.parse

# Runs after the page's own script. Drawings appear with the first frame.
PROBE = """<script>
requestAnimationFrame(() => requestAnimationFrame(() => {
  document.body.getBoundingClientRect();
  fetch(`/done?seconds=${performance.now() / 1000}&drawings=${document.querySelectorAll('path.series').length}`);
}));
</script></body>"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=1000000)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/cpu/bin"))
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--most", type=float, default=2, help="maximum seconds until the page is open")
    return parser.parse_args()


def write_run(folder, lines):
    """Writes lines in the format of training, with an evaluation every hundred lines."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "metrics.jsonl", "w", encoding="utf-8") as file:
        file.write('{"kind":"start","schema":1,"run":"r","time":"2026-01-01T00:00:00Z"}\n')
        for line in range(1, lines):
            loss = 0.45 + 0.25 / math.sqrt(line) + line * 7919 % 97 / 2000
            common = f'"time":"2026-01-01T00:00:00Z","seconds":{line * 0.1:.1f},"iteration":{line * 10}'
            if line % 100 == 0:
                file.write(f'{{"kind":"eval",{common},"samples":1000,"eval_seconds":0.01,"AUC":{1.2 - loss:.6f}}}\n')
            else:
                file.write(f'{{"kind":"train",{common},"epoch":{line * 1e-4:.6f},"samples":{line * 1000},"loss":{loss:.6f},'
                           f'"mean_loss":{loss - 0.01:.6f},"learning_rate":0.001,"samples_per_second":{10000 + line % 89},'
                           f'"reader_wait":{line % 13 / 1000},"gpu_memory":{10 ** 9 + line},"host_memory":{2 * 10 ** 9 + line},'
                           f'"seconds_left":{(lines - line) * 0.1:.1f}}}\n')


class Page(http.server.BaseHTTPRequestHandler):
    """Serves the page to the browser, and receives the results of its probe."""

    def do_GET(self):
        place = urllib.parse.urlsplit(self.path)
        if place.path == "/done":
            self.server.said.put({name: float(values[0]) for name, values in urllib.parse.parse_qs(place.query).items()})
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.server.page if place.path == "/" else b"")

    def log_message(self, *_):
        pass


def opened(browser, page, folder):
    """Returns the seconds until everything is drawn, and the number of curves drawn."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        server.page, server.said = page.read_text(encoding="utf-8").replace("</body>", PROBE).encode(), queue.Queue()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        process = subprocess.Popen([browser, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
                                    f"--user-data-dir={(folder / 'profile').resolve()}", f"http://127.0.0.1:{server.server_port}/"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            said = server.said.get(timeout=60)
        except queue.Empty:
            sys.exit(f"{browser} did not draw {page} within 60 s")
        finally:
            process.terminate()
            process.wait()
            server.shutdown()
    return said["seconds"], int(said["drawings"])


def main():
    args = arguments()
    run, page = args.folder / "run", args.folder / "page.html"
    write_run(run, args.lines)
    begin = time.monotonic()
    subprocess.run([args.bin / "huge_ctr", "--report", run, "--no-scores", "--out", page], check=True, stderr=subprocess.DEVNULL)
    made = time.monotonic() - begin
    times = [opened(args.browser, page, args.folder) for _ in range(3)][1:]
    result = {"lines": args.lines, "metrics_mb": round((run / "metrics.jsonl").stat().st_size / 1e6, 1), "made_seconds": round(made, 2),
              "page_kb": round(page.stat().st_size / 1e3, 1), "open_seconds": round(max(seconds for seconds, _ in times), 3),
              "drawings": min(drawings for _, drawings in times)}
    print(json.dumps(result))
    if result["open_seconds"] > args.most or result["drawings"] < 7:
        sys.exit(f"the page should open within {args.most:g} s with at least 7 lines drawn")


if __name__ == "__main__":
    main()
