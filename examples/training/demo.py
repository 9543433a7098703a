"""Closes the loop on a simulated product: log visits, export them, train a model, serve it, and compare its arm with the other.

    python examples/training/demo.py bin/smartfeed [--users 80] [--visits 5]

Each simulated user likes one of five topics, and saves mostly pins of this topic. No rule of the feed knows topics, but the features of a
user and a pin do: how many pins of its topic did the user save? In the first round, the model is untrained, and the feed logs the values
of these features. In the second round, users of the arm "ranked" get feeds that the trained model ranks. The exit code is 1 unless the
save rate of this arm is higher, at a confidence of 95 %.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import json
import math
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import duckdb

HERE = pathlib.Path(__file__).parent
TOPICS = ["tea", "bikes", "ferns", "chess", "bread"]
AUTHORS = 20
WINDOW = 10  # seconds of a label; the users of the demo act at once


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Product:
    """A running smartfeed."""

    def __init__(self, smartfeed, folder, model):
        self.http, kafka, registry = (f"127.0.0.1:{free_port()}" for _ in range(3))
        config = pathlib.Path(folder, "smartfeed.yaml")
        config.write_text((HERE / "smartfeed.yaml").read_text().replace("127.0.0.1:9700", model))
        self.command = [smartfeed, "--config", str(config), "--http", self.http, "--kafka", kafka, "--registry", registry]
        self.folder = folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SMARTFEED_")}  # which are settings

    @contextlib.contextmanager
    def running(self):
        with open(self.folder + "/smartfeed.log", "w") as log:
            files = ["--dir", self.folder + "/state", "--features_file", str(HERE / "features.yaml")]
            process = subprocess.Popen([*self.command, "dev", *files], stderr=log, stdout=log, env=self.environment)
        try:
            await_ready(process, f"http://{self.http}/readyz")
            yield
        except Exception:
            print(pathlib.Path(self.folder, "smartfeed.log").read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            stop(process)

    def run(self, *arguments):
        """Runs a command, and returns its output."""
        command = [*self.command, *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=self.environment).stdout

    def post(self, path, body=b"", kind="application/json"):
        request = urllib.request.Request(f"http://{self.http}{path}", body, {"Content-Type": kind})
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.loads(response.read() or "null")

    def publish(self, events):
        """Publishes events and waits until they are processed."""
        for i in range(0, len(events), 500):
            lines = "\n".join(json.dumps(e) for e in events[i : i + 500])
            self.post("/v1/events", lines.encode(), "application/x-ndjson")
        self.run("wait", "--timeout", "10m")


def stop(process):
    process.terminate()
    process.wait()


def await_ready(process, url):
    while process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=10):
            return
        time.sleep(0.1)
    raise RuntimeError(f"exit code {process.returncode} before {url} was ready")


@contextlib.contextmanager
def recommender(address, model):
    process = subprocess.Popen([sys.executable, str(HERE.parent / "recommender" / "recommender.py"), address, model])
    try:
        await_ready(process, f"http://{address}/v2/health/ready")
        yield
    finally:
        stop(process)


def event(stream, actor, verb, target, **more):
    event.count += 1
    return {"stream": stream, "id": f"demo-{event.count}", "time": now(), "actor": actor, "verb": verb, "object": target, **more}


event.count = 0


def population(users, pins):
    """Each author creates pins of all topics, and each user follows all authors."""
    events = [event("follows", user, "follow", f"user:author-{a}") for user in users for a in range(AUTHORS)]
    for n in range(pins):
        topic = TOPICS[n % len(TOPICS)]
        events.append(event("pins", f"user:author-{n % AUTHORS}", "create", f"pin:{n}-{topic}", attributes={"topic": topic}))
    random.Random(1).shuffle(events)
    return events


def visit(product, user, taste, chance):
    """Visits the feed, and returns the saves of the user."""
    page = product.post(f"/v1/users/{user}/visits?limit=10")
    if page.get("degraded"):
        print(f"the visit of {user} is degraded: {page['degraded']}", file=sys.stderr)
    saved = [i for i in page["items"] if i.get("new") and chance.random() < (0.5 if i["pin"].endswith("-" + taste) else 0.05)]
    return [event("actions", user, "save", i["pin"]) for i in saved]


def visits(product, users, number, seed):
    """Lets each user visit the feed several times."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for n in range(number):
            chances = [random.Random(f"{seed} {n} {user}") for user in users]
            saves = pool.map(lambda u, c: visit(product, u, users[u], c), users, chances)
            product.publish([e for of_user in saves for e in of_user])
    time.sleep(WINDOW + 1)  # until the windows of the labels have ended


def save_rates(folder):
    """Returns the 95 % interval of the save rate by arm. Users are independent, and the items of a user are not."""
    rows = duckdb.execute(f"""
        SELECT arm, count(*), avg(rate), stddev_samp(rate) FROM (
            SELECT arm, "user", avg(label_save::INT) AS rate FROM read_parquet('{folder}/day=*/*.parquet', union_by_name = true)
            GROUP BY ALL
        ) GROUP BY arm ORDER BY arm
    """).fetchall()
    intervals = {}
    for arm, users, mean, deviation in rows:
        margin = 1.96 * deviation / math.sqrt(users)
        intervals[arm] = (mean - margin, mean + margin)
        print(f"  {arm or 'home':8} {users:4} users  save rate {mean:6.1%}  95 % interval {mean - margin:6.1%} to {mean + margin:6.1%}")
    return intervals


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("smartfeed", help="path of the program")
    parser.add_argument("--users", type=int, default=80)
    parser.add_argument("--visits", type=int, default=5, help="visits of each user per round")
    options = parser.parse_args()
    users = {f"user:reader-{n}": TOPICS[n % len(TOPICS)] for n in range(options.users)}
    with tempfile.TemporaryDirectory() as folder:
        model, address = folder + "/model.json", f"127.0.0.1:{free_port()}"
        product = Product(str(pathlib.Path(options.smartfeed).absolute()), folder, address)
        with recommender(address, model), product.running():
            product.publish(population(users, 1000))
            print("round 1: the model is untrained", flush=True)
            visits(product, users, options.visits, 1)
            export = ["training", "export", "--label", f"save={WINDOW}s", "--out"]
            print(product.run(*export, folder + "/first"), end="")
            save_rates(folder + "/first")
            train = [sys.executable, str(HERE / "train.py"), folder + "/first", model]
            print(subprocess.run(train, check=True, stdout=subprocess.PIPE, text=True).stdout)
            print("round 2: the arm ranked has the trained model", flush=True)
            since = now()
            visits(product, users, options.visits, 2)
            print(product.run(*export, folder + "/second", "--since", since))
            print(product.run("evaluate", folder + "/second", "--action", "save"))
            intervals = save_rates(folder + "/second")
    if intervals["ranked"][0] <= intervals[""][1]:
        sys.exit("the arm with the model is not better")
    print("the arm with the model is better")


if __name__ == "__main__":
    main()
