# Generated from clients/openapi.json by generate.py: DO NOT EDIT. `make clients` rewrites it.
"""The types of requests and answers, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union


class _Problem(TypedDict):
    type: Literal["about:blank"]
    title: str
    status: int


class Problem(_Problem, total=False):
    """RFC 9457."""
    detail: str
    errors: list[str]
    request: str
    trace: str


class FeedItem(TypedDict):
    pin: PinID
    time: str
    author: UserID
    board: Union[BoardID, None]
    interests: list[InterestID]
    title: str
    link: str
    new: bool
    source: str
    score: float


class FeedPage(TypedDict):
    items: list[FeedItem]
    next: Union[str, None]
    degraded: list[str]


class PinItem(TypedDict):
    pin: PinID
    time: str
    author: UserID
    board: Union[BoardID, None]
    interests: list[InterestID]
    title: str
    link: str


class RelatedPin(TypedDict):
    pin: PinID
    time: str
    author: UserID
    board: Union[BoardID, None]
    interests: list[InterestID]
    title: str
    link: str
    score: float


class RelatedPins(TypedDict):
    items: list[RelatedPin]
    degraded: list[str]


class RelatedInterestsItems(TypedDict):
    interest: InterestID
    score: float


class RelatedInterests(TypedDict):
    items: list[RelatedInterestsItems]
    degraded: list[str]


class PinPage(TypedDict):
    items: list[PinItem]
    next: Union[str, None]
    degraded: list[str]


class Count(TypedDict):
    count: int


class PoolItem(TypedDict):
    pin: PinID
    score: float
    time: str
    author: UserID
    board: Union[BoardID, None]
    interests: list[InterestID]


class Pool(TypedDict):
    source: str
    total: int
    items: list[PoolItem]


class _Why(TypedDict):
    user: UserID
    pin: PinID
    feed: str
    fate: Literal["shown", "pending", "next", "waiting", "deferred", "hidden", "out"]
    by: list[str]
    shown: Union[Shown, None]
    candidates: list[WhyCandidate]
    degraded: list[str]


class Why(_Why, total=False):
    arm: str
    reason: Literal["outranked", "beyond_head", "cap_author", "cap_board", "cap_interest", "similar", "no_share", "own_rule", "weak", "deferred_earlier", "deleted", "author_deleted", "own", "block", "no_edge", "followee_cap", "seen_trimmed", "expired", "deferral_expired", "cap", "undelivered", "unknown", "user_deleted"]
    place: int
    since: str


class _Shown(TypedDict):
    time: str
    position: int


class Shown(_Shown, total=False):
    source: str
    score: float


class _WhyCandidate(TypedDict):
    source: str
    edges: list[str]
    score: float
    parts: dict[str, float]


class WhyCandidate(_WhyCandidate, total=False):
    reason: str
    rank: int


class _Definition(TypedDict):
    name: str
    entity: Literal["user", "pin", "pair"]
    aggregate: Literal["count", "sum", "mean", "min", "max", "distinct", "last", "top", "sequence", "rate", "mean_embedding", "cosine", "ratio"]


class Definition(_Definition, total=False):
    description: str
    verbs: list[str]
    window: str
    where: dict[str, list[str]]
    group_by: Union[str, list[str]]
    of: str
    n: int
    half_life: str
    columns: list[str]
    embedding: Literal["float32", "int8"]
    numerator: str
    denominator: str


class Definitions(TypedDict):
    features: list[Definition]
    feature_sets: dict[str, list[str]]


class FeaturesRequest(TypedDict, total=False):
    """Each feature is evaluated for all entities of its kind, at most 50,000 values in total. At least one entity is
    required."""
    features: list[str]
    feature_sets: list[str]
    users: list[UserID]
    pins: list[PinID]
    pairs: list[list[str]]
    at: str


class Value4(TypedDict):
    time: list[int]


class Value52(TypedDict):
    object: str
    verb: str
    timestamp: str


class Value53(TypedDict):
    value: str
    count: int


class FeaturesAnswerMissing(TypedDict):
    entity: str
    feature: str
    reason: Literal["empty", "window", "cap", "overflow", "pin", "attribute", "deleted", "deadline", "store", "size"]


class FeaturesAnswer(TypedDict):
    values: dict[str, dict[str, Value]]
    missing: list[FeaturesAnswerMissing]
    degraded: list[Literal["deadline", "store", "size"]]
    as_of: str
    fresh: Union[None, str]


class _TryRequest(TypedDict):
    definition: str


class TryRequest(_TryRequest, total=False):
    """At least one entity is required."""
    users: list[UserID]
    pins: list[PinID]
    pairs: list[list[str]]
    at: str


class TryAnswerMissing(TypedDict):
    entity: str
    feature: str
    reason: Literal["empty", "window", "cap", "overflow", "pin", "attribute", "deleted", "deadline", "store", "size"]


class TryAnswer(TypedDict):
    definitions: list[Definition]
    values: dict[str, dict[str, Value]]
    missing: list[TryAnswerMissing]
    degraded: list[Literal["deadline", "store", "size"]]
    as_of: str
    fresh: Union[None, str]


class _AttributesRequest(TypedDict):
    pins: list[PinID]


class AttributesRequest(_AttributesRequest, total=False):
    embeddings: bool


class _AttributesAnswerPins(TypedDict):
    author: str
    interests: list[str]
    attributes: dict[str, str]


class AttributesAnswerPins(_AttributesAnswerPins, total=False):
    board: str
    embedding: list[float]


class AttributesAnswerMissing(TypedDict):
    entity: str
    reason: Literal["pin", "deadline", "store", "size"]


class AttributesAnswer(TypedDict):
    pins: dict[str, AttributesAnswerPins]
    missing: list[AttributesAnswerMissing]
    degraded: list[Literal["deadline", "store", "size"]]
    fresh: Union[None, str]


class GrowthDay(TypedDict):
    day: str
    new: int
    daily: int
    active: int
    resurrected: int
    dormant: int


class Xd28(TypedDict):
    days: int
    users: int


class Cohort(TypedDict):
    week: str
    users: int
    active: list[int]


class FunnelStep(TypedDict):
    verb: str
    users: int


class Experiment(TypedDict):
    feed: str
    sample_ratio: Union[SampleRatio, None]
    arms: list[ExperimentArm]


class SampleRatio(TypedDict):
    """Whether the numbers of users match the present shares of the arms."""
    p_value: float
    mismatch: bool


class ExperimentArm(TypedDict):
    arm: str
    share: float
    users: int
    visits: int
    items: int
    actions: list[ActionRate]


class ActionRate(TypedDict):
    verb: str
    count: int
    per_item: Union[Estimate, None]
    per_visit: Union[Estimate, None]
    difference: Union[Estimate, None]
    days_needed: Union[float, None]


class Estimate(TypedDict):
    value: float
    low: float
    high: float
    std_err: float


class Popular(TypedDict):
    interest: str
    actions: int
    hours: list[list[int]]


class _ActionEvent(TypedDict):
    id: str
    object: PinID
    stream: Literal["actions"]
    time: EventTime
    verb: str


class ActionEvent(_ActionEvent, total=False):
    """View, closeup, click, save, hide, report or another action on a pin. Topic actions, key: object."""
    actor: Union[UserID, Literal[""], None]
    attributes: dict[str, str]
    board: Union[BoardID, Literal[""], None]
    surface: str


class ClientImpressions(TypedDict):
    """The pins of a visit that were on the user's screen. Topic client-impressions, key: user."""
    id: str
    pins: list[PinID]
    stream: Literal["client-impressions"]
    time: EventTime
    user: UserID
    visit: str


class FollowEvent(TypedDict):
    """Follow, unfollow, block or unblock of a user, board or interest. Topic follows, key: object."""
    actor: UserID
    id: str
    object: str
    stream: Literal["follows"]
    time: EventTime
    verb: Literal["follow", "unfollow", "block", "unblock"]


class _OfferCandidates(TypedDict):
    author: UserID
    created: EventTime
    pin: PinID
    score: float


class OfferCandidates(_OfferCandidates, total=False):
    """One offered pin."""
    board: Union[BoardID, Literal[""], None]
    interests: list[InterestID]
    language: str


class Offer(TypedDict):
    """Pins that an external system offers to one user. Topic candidates, key: user."""
    candidates: list[OfferCandidates]
    id: str
    source: str
    stream: Literal["candidates"]
    time: EventTime
    user: UserID


class _PinEvent(TypedDict):
    actor: UserID
    id: str
    object: PinID
    stream: Literal["pins"]
    time: EventTime
    verb: Literal["create", "update", "delete"]


class PinEvent(_PinEvent, total=False):
    """Create, update or delete of a pin. Topic pins, key: object."""
    attributes: dict[str, str]
    board: Union[BoardID, Literal[""], None]
    embedding: Union[list[float], None]
    interests: list[InterestID]
    language: str
    link: str
    title: str


class _UserEvent(TypedDict):
    actor: UserID
    id: str
    object: UserID
    stream: Literal["users"]
    time: EventTime
    verb: Literal["update", "delete"]


class UserEvent(_UserEvent, total=False):
    """Update or delete of a user, who is both actor and object. Topic users, key: object."""
    attributes: dict[str, str]
    embedding: Union[list[float], None]
    interests: list[InterestID]


class Accepted(TypedDict):
    accepted: int


class Liveness(TypedDict):
    status: Literal["alive"]


class Readiness(TypedDict):
    ready: bool
    missing: list[str]


class _Component(TypedDict):
    name: str
    condition: str
    since: str
    restarts: int


class Component(_Component, total=False):
    last_error: str
    next_try: str


class _GroupPartitions1(TypedDict):
    partition: int
    stage: Literal["recovering", "running", "standby"]
    table_offset: int


class GroupPartitions1(_GroupPartitions1, total=False):
    process: str
    table_end: int
    applied: dict[str, int]


class _Group(TypedDict):
    group: str
    starts: int
    restarts: int
    joined: bool
    ready: bool
    partitions: Union[list[GroupPartitions1], None]
    counters: dict[str, int]
    records_per_second: float


class Group(_Group, total=False):
    dropped: dict[str, int]
    dead_letters: dict[str, int]
    effects: dict[str, int]
    lag: dict[str, int]


class UserGraphFollows(TypedDict):
    id: Union[UserID, BoardID, InterestID]
    weight: float


class UserGraph(TypedDict):
    user: UserID
    follows: list[UserGraphFollows]
    following: int
    blocks: list[str]
    blocking: int
    followers: int


class FeedStateSources(TypedDict):
    source: str
    waiting: int
    target: float
    shown: float


class _FeedStateDeferred(TypedDict):
    pin: PinID
    reason: Literal["deferred_earlier", "weak"]


class FeedStateDeferred(_FeedStateDeferred, total=False):
    since: str


class FeedStateAffinities(TypedDict):
    facet: str
    value: float


class _FeedState(TypedDict):
    feed: str
    sources: list[FeedStateSources]
    deferred: list[FeedStateDeferred]
    affinities: list[FeedStateAffinities]
    degraded: list[str]


class FeedState(_FeedState, total=False):
    arm: str


class _FeedShare(TypedDict):
    feed: str
    source: str
    target: float
    items: int


class FeedShare(_FeedShare, total=False):
    arm: str


class FlowReaders(TypedDict):
    group: str
    topic: str
    records: int


class _Flow(TypedDict):
    topic: str
    key: str
    writers: list[str]
    readers: list[FlowReaders]
    records: int


class Flow(_Flow, total=False):
    global_table: bool


class DeadLetter(TypedDict):
    dead_letter_partition: int
    dead_letter_offset: int
    retried: bool
    attempts: int
    first_partition: int
    first_offset: int
    topic: str
    partition: int
    offset: int
    group: str
    reason: str
    time: str
    key: Union[str, None]
    value: Union[str, None]


class _DictionaryTerm(TypedDict):
    term: str
    state: Literal["candidate", "accepted", "rejected", "merged", "blocked"]
    score: float
    pins: int
    people: int
    recent: float
    decided: Union[str, None]


class DictionaryTerm(_DictionaryTerm, total=False):
    interest: str
    into: str
    reason: str
    operator: str


class _DecisionRequest(TypedDict):
    term: str
    state: Literal["candidate", "accepted", "rejected", "merged"]


class DecisionRequest(_DecisionRequest, total=False):
    interest: InterestID
    into: str
    reason: str
    operator: str
    time: str


class UserInterestEvidence(TypedDict):
    pin: PinID
    verb: str
    weight: float
    time: str


class UserInterest(TypedDict):
    interest: InterestID
    strength: float
    share: float
    evidence: list[UserInterestEvidence]


class SourceEngagement(TypedDict):
    source: str
    counts: dict[str, int]


class RetryKindStates(TypedDict):
    waiting: int
    sent: int
    done: int
    parked: int


class _RetryKind(TypedDict):
    kind: str
    topic: str
    group: str
    reason: str
    rate: float
    priority: int
    states: RetryKindStates
    next: Union[str, None]


class RetryKind(_RetryKind, total=False):
    operator: str


class _RetriedDeadLetter(TypedDict):
    kind: str
    topic: str
    partition: int
    offset: int
    group: str
    reason: str
    state: Literal["waiting", "sent", "done", "parked"]
    attempts: int
    since: str
    due: Union[str, None]


class RetriedDeadLetter(_RetriedDeadLetter, total=False):
    why: str


class _LimitRequest(TypedDict):
    kind: str


class LimitRequest(_LimitRequest, total=False):
    rate: float
    priority: int
    operator: str


class Limited(TypedDict):
    kind: str
    rate: Union[float, None]
    priority: int


class Retried(TypedDict):
    published: int
    topics: dict[str, int]
    skipped: int


class StatusUnavailable(TypedDict):
    source: str
    reason: str


class _Status(TypedDict):
    version: str
    ready: bool
    missing: list[str]
    components: list[Component]
    groups: list[Group]
    stores: list[StoreState]


class Status(_Status, total=False):
    processes: list[Process]
    unavailable: list[StatusUnavailable]
    dir: str
    flows: list[Flow]
    reloads: list[Reload]
    shares: list[FeedShare]


class _Process(TypedDict):
    address: str
    version: str
    ready: bool
    missing: list[str]
    components: list[Component]


class Process(_Process, total=False):
    reloads: list[Reload]


class _Caller(TypedDict):
    authentication: bool
    scopes: list[str]


class Caller(_Caller, total=False):
    subject: str
    user: UserID


class _Reload(TypedDict):
    contents: str
    file: str


class Reload(_Reload, total=False):
    loaded: str
    error: str
    needs_restart: list[str]


class _StoreState(TypedDict):
    name: Literal["primary", "standby", "features"]
    kind: Literal["embedded", "cassandra", "pinot"]


class StoreState(_StoreState, total=False):
    connected: bool


class _NewUserEvent(TypedDict):
    actor: UserID
    object: UserID
    stream: Literal["users"]
    verb: Literal["update", "delete"]


class NewUserEvent(_NewUserEvent, total=False):
    """Update or delete of a user, who is both actor and object. Topic users, key: object."""
    attributes: dict[str, str]
    embedding: Union[list[float], None]
    id: str
    interests: list[InterestID]
    time: EventTime


class _NewFollowEvent(TypedDict):
    actor: UserID
    object: str
    stream: Literal["follows"]
    verb: Literal["follow", "unfollow", "block", "unblock"]


class NewFollowEvent(_NewFollowEvent, total=False):
    """Follow, unfollow, block or unblock of a user, board or interest. Topic follows, key: object."""
    id: str
    time: EventTime


class _NewPinEvent(TypedDict):
    actor: UserID
    object: PinID
    stream: Literal["pins"]
    verb: Literal["create", "update", "delete"]


class NewPinEvent(_NewPinEvent, total=False):
    """Create, update or delete of a pin. Topic pins, key: object."""
    attributes: dict[str, str]
    board: Union[BoardID, Literal[""], None]
    embedding: Union[list[float], None]
    id: str
    interests: list[InterestID]
    language: str
    link: str
    time: EventTime
    title: str


class _NewActionEvent(TypedDict):
    object: PinID
    stream: Literal["actions"]
    verb: str


class NewActionEvent(_NewActionEvent, total=False):
    """View, closeup, click, save, hide, report or another action on a pin. Topic actions, key: object."""
    actor: Union[UserID, Literal[""], None]
    attributes: dict[str, str]
    board: Union[BoardID, Literal[""], None]
    id: str
    surface: str
    time: EventTime


class _NewOfferCandidates(TypedDict):
    author: UserID
    created: EventTime
    pin: PinID
    score: float


class NewOfferCandidates(_NewOfferCandidates, total=False):
    """One offered pin."""
    board: Union[BoardID, Literal[""], None]
    interests: list[InterestID]
    language: str


class _NewOffer(TypedDict):
    candidates: list[NewOfferCandidates]
    source: str
    stream: Literal["candidates"]
    user: UserID


class NewOffer(_NewOffer, total=False):
    """Pins that an external system offers to one user. Topic candidates, key: user."""
    id: str
    time: EventTime


class _NewClientImpressions(TypedDict):
    pins: list[PinID]
    stream: Literal["client-impressions"]
    user: UserID
    visit: str


class NewClientImpressions(_NewClientImpressions, total=False):
    """The pins of a visit that were on the user's screen. Topic client-impressions, key: user."""
    id: str
    time: EventTime


UserID = str
PinID = str
BoardID = str
InterestID = str
Value = Union[None, float, dict[str, float], Value4, list[Union[float, Value52, Value53]]]
EventTime = Union[str, int]
Event = Union[UserEvent, FollowEvent, PinEvent, ActionEvent, Offer, ClientImpressions]
NewEvent = Union[NewUserEvent, NewFollowEvent, NewPinEvent, NewActionEvent, NewOffer, NewClientImpressions]
