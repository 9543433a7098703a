/**
 * Client of the smartfeed API: events, feeds and features. It has no dependencies, and runs in Node.js and in browsers.
 * @module
 */
export { ApiError } from "./error.js";
export { Client, type ClientOptions, type GetAnswer, type GetParameters, type GetPath, type VisitOptions } from "./client.js";
export { Publisher, type NewEvent, type PublisherOptions, type Rejection } from "./publisher.js";
export type { components, paths } from "./generated.js";
export type { Event, FeaturesAnswer, FeaturesRequest, FeedItem, FeedPage, Problem } from "./client.js";
