"""mypy checks this file: each comment `type: ignore` must hide an error."""

from typing import Optional

from smartfeed_client import Client, FeaturesRequest

client = Client("http://a.example")
publisher = client.publisher(on_rejected=lambda rejection: print(rejection.event["stream"], rejection.invalid))

publisher.publish(
    {"stream": "candidates", "user": "user:a", "source": "ads", "candidates": [{"pin": "pin:1", "author": "user:b", "created": 1, "score": 2}]}
)
publisher.publish({"stream": "follows", "actor": "user:a", "verb": "create", "object": "user:b"})  # type: ignore
publisher.publish({"stream": "pins", "actor": "user:a", "verb": "create"})  # type: ignore
request: FeaturesRequest = {"featurez": ["f"]}  # type: ignore[typeddict-unknown-key]

for item in client.feed("user:a"):
    board: Optional[str] = item["board"]
    text: str = item["board"]  # type: ignore[assignment]
    print(board, text)
