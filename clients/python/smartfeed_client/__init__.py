"""Client of the smartfeed API: events, feeds and features."""

from ._client import ApiError, Client
from ._generated import Event, FeaturesAnswer, FeaturesRequest, FeedItem, FeedPage, NewEvent, Problem
from ._publisher import Publisher, Rejection

__all__ = [
    "ApiError",
    "Client",
    "Event",
    "FeaturesAnswer",
    "FeaturesRequest",
    "FeedItem",
    "FeedPage",
    "NewEvent",
    "Problem",
    "Publisher",
    "Rejection",
]
