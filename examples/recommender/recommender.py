"""A recommender service that ranks candidates with features, over the Open Inference Protocol v2.

    python recommender.py 127.0.0.1:9700 model.json

smartfeed sends one tensor: a row for each candidate, and a column for each feature of generator.model.features. The output "save" is the
probability of a save, by the logistic regression in model.json, which examples/training/train.py writes. The file is read again when it
changes. Without the file, all probabilities are 0.5, so the service can be used before there is a model: smartfeed then logs the values
of the features. The service needs no packages.
"""

import json
import math
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model:
    """The coefficients in a file."""

    def __init__(self, path):
        self.path, self.changed, self.content = path, None, None

    def load(self):
        """Reads the file if it has changed. Replace it by renaming a complete file."""
        changed = os.stat(self.path).st_mtime_ns if os.path.exists(self.path) else None
        if changed != self.changed:
            with open(self.path) as file:
                self.content = json.load(file)
            self.changed = changed
        return self.content

    def predict(self, rows):
        """Returns the probability of a save for each row."""
        content = self.load()
        if content is None:
            return [0.5] * len(rows)
        terms = list(zip(content["coefficients"], content["means"], content["scales"], strict=True))
        scores = (
            content["intercept"] + sum(c * (x - mean) / scale for x, (c, mean, scale) in zip(row, terms, strict=True))
            for row in rows
        )
        return [1 / (1 + math.exp(-max(-500, min(500, score)))) for score in scores]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open

    def do_GET(self):
        """/v2/health/ready, /v2/models/ranker/ready"""
        self.answer(200 if self.path.endswith("/ready") else 404, {})

    def do_POST(self):
        """/v2/models/ranker/infer"""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            features = next(i for i in json.loads(body)["inputs"] if i["name"] == "features")
            count, columns = features["shape"]
            rows = [features["data"][r * columns : (r + 1) * columns] for r in range(count)]
            saves = self.server.model.predict(rows)
        except (KeyError, StopIteration, ValueError, TypeError) as error:
            return self.answer(400, {"error": repr(error)})
        self.answer(200, {
            "model_name": "ranker",
            "outputs": [{"name": "save", "shape": [count, 1], "datatype": "FP64", "data": saves}],
        })

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: recommender.py HOST:PORT MODEL")
    host, port = sys.argv[1].rsplit(":", 1)
    server = ThreadingHTTPServer((host, int(port)), Handler)
    server.model = Model(sys.argv[2])
    server.serve_forever()


if __name__ == "__main__":
    main()
