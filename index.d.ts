// The contract of sluicegate. The comment of each option is its documentation: shape, unit, default, and the error it raises.
// No framework's types are imported, so this compiles in a project that has Fastify, Express, both or neither.

/// <reference types="node" />

import type { IncomingMessage, ServerResponse } from 'node:http'

/** A number of milliseconds, or text: `'250ms'`, `'10s'`, `'1m'`, `'1h'`, `'1d'`. From 1 ms to 366 days. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** How a policy counts; docs/algorithms.md says which to take. */
export type Algorithm =
  'fixed_window' | 'sliding_window_counter' | 'sliding_window_log' | 'token_bucket' | 'leaky_bucket'

/** One limit: how much, in what time, by which algorithm. */
export interface Policy {
  /** Units in a window: a whole number from 0 (denies all) to 10⁹, for `sliding_window_log` to 10⁶. `ERR_SLUICEGATE_INVALID_LIMIT`. */
  limit: number
  /** Length of the window. `ERR_SLUICEGATE_INVALID_WINDOW`. */
  window: Duration
  /** Default `'sliding_window_counter'`. `ERR_SLUICEGATE_INVALID_ALGORITHM`. */
  algorithm?: Algorithm
  /** Buckets: the most units at once, 0 to 10⁹; default the limit. `ERR_SLUICEGATE_INVALID_BURST`. */
  burst?: number
  /** Fixed window: `'utc'` puts windows on the UTC boundary instead of a client's first request. `ERR_SLUICEGATE_INVALID_ALIGN`. */
  align?: 'utc'
  /** Leaky bucket: a wait longer than this is a denial; default `'5s'`. `ERR_SLUICEGATE_INVALID_MAX_DELAY`. */
  maxDelay?: Duration
}

/** A policy of `limits`. */
export interface NamedPolicy extends Policy {
  /** 1 to 64 printable ASCII characters, unique in the list; default such as `'10-per-1s'`. `ERR_SLUICEGATE_INVALID_NAME`. */
  name?: string
}

/** How tokens are verified before their `sub` is trusted. `ERR_SLUICEGATE_INVALID_JWT`. */
export interface JwtOptions {
  /** Of HMAC tokens. One of `secret`, `publicKey` and `jwks`. */
  secret?: string
  /** PEM, of signed tokens. */
  publicKey?: string
  /** The keys: a JSON Web Key Set, or a function that brings it, called once in 30 seconds at most. */
  jwks?: object | (() => object | string | Promise<object | string>)
  /** Which algorithms are taken, such as `['RS256']`. */
  algorithms?: string[]
  /** The `iss` that a token must have. */
  issuer?: string | string[]
  /** The `aud` that a token must have. */
  audience?: string | string[]
}

/** Rules of tenants, as in a rules file; docs/rules.md. `ERR_SLUICEGATE_INVALID_RULES`. */
export interface Rules {
  tenants: Record<string, TenantRules>
}

export interface TenantRules {
  /** Of requests that no route matches; without it they are not limited. */
  default?: RuleOptions
  /** The most specific match wins, whatever the order. */
  routes?: RouteRule[]
  /** Addresses, CIDR blocks or keys that are not limited. */
  allow?: string[]
  /** Addresses, CIDR blocks or keys that are refused. */
  deny?: string[]
  /** Of the check service alone: who may ask for this tenant. */
  secrets?: { id: string; secret: string }[]
}

export interface RuleOptions extends Partial<Policy> {
  /** Whose counters; default method and pattern. */
  name?: string
  /** Several policies decided together, instead of one. */
  limits?: NamedPolicy[]
  /** Units that a request takes; default 1. */
  cost?: number
  /** What happens when the store does not answer; default the limiter's. */
  onFailure?: 'open' | 'closed' | 'local'
}

export interface RouteRule extends RuleOptions {
  match: { method?: string; path?: string }
  /** Not limited. */
  skip?: boolean
}

/** The time of a limiter in tests: it stands where it is put. Unix milliseconds; a microsecond is the smallest step. */
export class ManualClock {
  constructor(milliseconds?: number)
  /** Puts the clock to a time, which may be before the last one. */
  set(milliseconds: number): void
  /** Puts the clock forward. */
  advance(milliseconds: number): void
  now(): number
}

/** Where a limiter says things. */
export interface Logger {
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

/** Limits: one policy, or `limits`, or `rules`. */
export interface LimitOptions<Req = any> {
  /**
   * Units in a window, or a function of the request that gives them. Required unless `limits` or `rules` says it.
   * `ERR_SLUICEGATE_INVALID_LIMIT`; none at all: `ERR_SLUICEGATE_MISSING_OPTION`.
   */
  limit?: number | ((req: Req) => number)
  /** @see Policy.window */
  window?: Duration
  /** @see Policy.algorithm */
  algorithm?: Algorithm
  /** @see Policy.burst */
  burst?: number
  /** @see Policy.align */
  align?: 'utc'
  /** @see Policy.maxDelay */
  maxDelay?: Duration
  /** 1 to 8 policies decided together, all or nothing; not together with the options of one policy. `ERR_SLUICEGATE_INVALID_LIMITS`. */
  limits?: NamedPolicy[]
  /**
   * Which counters: limiters of one `tenantId` and `name` share theirs, in memory within the process, worker threads
   * included (one `clock` and one `maxKeys`, or `ERR_SLUICEGATE_NAME_CONFLICT`). Default: the limiter's own.
   * `ERR_SLUICEGATE_INVALID_NAME`.
   */
  name?: string
  /** Units that a request takes: a whole number, or a function of the request; default 1. `ERR_SLUICEGATE_INVALID_COST`. */
  cost?: number | ((req: Req) => number)
  /**
   * A second policy, that charges the client's address whenever the key is something that the client made up: an API key,
   * an unverified `sub`. New keys then do not mean new quota. `ERR_SLUICEGATE_INVALID_PER_ADDRESS`.
   */
  perAddress?: Policy
  /** Addresses, CIDR blocks or keys that are not limited. `ERR_SLUICEGATE_INVALID_ALLOW`. */
  allow?: string[]
  /** Addresses, CIDR blocks or keys that get a 403. `ERR_SLUICEGATE_INVALID_DENY`. */
  deny?: string[]
}

/** Who a request counts for. */
export interface KeyOptions<Req = any> {
  /**
   * `'ip'` (default), `'api-key-header'`, `'jwt-sub'`, `'composite'` (address and API key), or a function, which may be
   * async; nothing or empty text = the address, said once. Anything but text is `ERR_SLUICEGATE_INVALID_KEY` for the app's
   * error handler. `ERR_SLUICEGATE_INVALID_KEY_EXTRACTOR`.
   */
  keyExtractor?:
    | 'ip'
    | 'api-key-header'
    | 'jwt-sub'
    | 'composite'
    | ((req: Req) => string | null | undefined | Promise<string | null | undefined>)
  /** The header of API keys, in any case; default `'x-api-key'`. `ERR_SLUICEGATE_INVALID_KEY_HEADER`. */
  keyHeader?: string
  /** How much of an IPv6 address is a client: 32 to 64 bits, or `false` for all; default 56. `ERR_SLUICEGATE_INVALID_IPV6_SUBNET`. */
  ipv6Subnet?: number | false
  /** Verifies tokens before `sub` is trusted; without it `'jwt-sub'` believes them and says so once. */
  jwt?: JwtOptions
}

/** What responses say. */
export interface HeaderOptions {
  /** Which headers: one form, a list of forms, or `false`; default `'x-ratelimit'`. `ERR_SLUICEGATE_INVALID_HEADERS`. */
  headers?: HeaderForm | HeaderForm[] | false
  /** What `X-RateLimit-Reset` counts: seconds of the Unix epoch (default), or from now. `ERR_SLUICEGATE_INVALID_RESET`. */
  reset?: 'unix' | 'delta'
}

export type HeaderForm = 'x-ratelimit' | 'draft-6' | 'draft-7' | 'draft-8'

/** Settings of the store. */
export interface StoreOptions<Req = any> {
  /** `true` (default) is `onFailure: 'open'`, `false` is `'closed'`; another `onFailure` beside it is `ERR_SLUICEGATE_CONTRADICTION`. */
  failOpen?: boolean
  /**
   * What happens to a request when the store does not answer: `'open'` (default), `'closed'` (503), or `'local'`. The memory
   * store always answers. `ERR_SLUICEGATE_INVALID_ON_FAILURE`.
   */
  onFailure?: 'open' | 'closed' | 'local'
  /** Milliseconds for a whole check, 1 to 60000; default 100. The memory store needs none. `ERR_SLUICEGATE_INVALID_TIMEOUT`. */
  timeout?: number
  /** Whether a known denial is answered without the store; default `true`. `ERR_SLUICEGATE_INVALID_DENY_CACHE`. */
  denyCache?: boolean
  /** First part of the keys of a store outside the process; default `'sluicegate'`. `ERR_SLUICEGATE_INVALID_PREFIX`. */
  prefix?: string
  /** Called once for each check that the store could not answer; `error.code` says why. `ERR_SLUICEGATE_INVALID_ON_MISS`. */
  onMiss?: (error: Error & { code: string }, req?: Req) => void
  /** The most keys that memory holds, 1 to 10⁹; default 1,000,000. `ERR_SLUICEGATE_INVALID_MAX_KEYS`. */
  maxKeys?: number
  /** Time of the memory store, for tests. `ERR_SLUICEGATE_INVALID_CLOCK`. */
  clock?: ManualClock
  /** Where warnings go; default Node's own (`process.emitWarning`), in Fastify the app's. `ERR_SLUICEGATE_INVALID_LOGGER`. */
  logger?: Logger
}

/** Options of all three ways in. An option that does not exist is `ERR_SLUICEGATE_UNKNOWN_OPTION`. */
export interface LimiterOptions<Req = any>
  extends LimitOptions<Req>, KeyOptions<Req>, HeaderOptions, StoreOptions<Req> {
  /** Whose rules and counters; default `'default'`. `ERR_SLUICEGATE_INVALID_TENANT_ID`. */
  tenantId?: string
  /**
   * A file (YAML or JSON, read again when it changes) or an object, instead of a limit.
   * `ERR_SLUICEGATE_RULES_UNREADABLE`, `ERR_SLUICEGATE_INVALID_RULES`.
   */
  rules?: string | Rules
  /** `'shadow'` decides and reports, but never blocks or delays; default `'enforce'`. `ERR_SLUICEGATE_INVALID_MODE`. */
  mode?: 'enforce' | 'shadow'
}

/** What the middleware does with a request and with a denial. */
export interface TreatmentOptions<Req = any, Res = any> {
  /** `true` lets a request through unseen. Not async. `ERR_SLUICEGATE_INVALID_SKIP`. */
  skip?: (req: Req) => boolean
  /** Gives the cost back after a response ≥ 400, or when the client left before its end. `ERR_SLUICEGATE_INVALID_SKIP_FAILED_REQUESTS`. */
  skipFailedRequests?: boolean
  /** Gives the cost back after a response < 400. `ERR_SLUICEGATE_INVALID_SKIP_SUCCESSFUL_REQUESTS`. */
  skipSuccessfulRequests?: boolean
  /**
   * What happens to a request that may not pass. Default: a problem document (RFC 9457), 429, or 403 for a client on the
   * denylist. `'throw'`: a `DeniedError` to the app's error handler. A function answers for itself, with the status and
   * the headers set already; if it fails, or is async and has not answered when it is done, the default is sent.
   * `ERR_SLUICEGATE_INVALID_ON_DENIED`.
   */
  onDenied?: 'throw' | ((req: Req, res: Res, decision: Decision) => unknown)
}

export interface ExpressOptions<Req = any, Res = any>
  extends LimiterOptions<Req>, TreatmentOptions<Req, Res> {}

export interface FastifyOptions<Req = any, Res = any>
  extends LimiterOptions<Req>, TreatmentOptions<Req, Res> {
  /** Which hook checks, when the key needs a later one; default `'onRequest'`. `ERR_SLUICEGATE_INVALID_HOOK`. */
  hook?: 'onRequest' | 'preParsing' | 'preValidation' | 'preHandler'
}

/**
 * Options of one route, over those of the plugin: `config: { sluicegate: {…} }`. A route that names a policy field counts
 * for itself; one that only says how requests are treated (`cost`, `skip`, `onDenied`, `mode`, …) counts where the plugin counts.
 */
export interface RouteOptions<Req = any, Res = any>
  extends LimitOptions<Req>, KeyOptions<Req>, HeaderOptions, TreatmentOptions<Req, Res> {
  /** @see LimiterOptions.mode */
  mode?: 'enforce' | 'shadow'
}

export type Outcome = 'allowed' | 'denied' | 'allowlisted' | 'denylisted' | 'degraded'

/** One policy's part of a decision. Times are Unix milliseconds. */
export interface PolicyState {
  /** Its name. */
  policy: string
  /** Whether this policy alone lets the request pass. */
  allowed: boolean
  /** The limit; for buckets the capacity. */
  limit: number
  /** The largest cost that would pass now. */
  remaining: number
  /** When the full quota is back; now, if nothing is used. */
  resetAt: number
  /** When more quota comes: denied = now + `retryAfterMs`; full = now. */
  nextAt: number
  /** 0 when allowed; `null` when this cost can never pass. */
  retryAfterMs: number | null
  /** Leaky bucket: wait this long before going on; else 0. */
  delayMs: number
}

/**
 * The answer to a check; the numbers are those of the policy that binds. Decisions that counted nothing (`allowlisted`,
 * `denylisted`, `degraded`, or no rule at all) carry zeros and no policies.
 */
export interface Decision extends PolicyState {
  /** Whether to go on. In shadow mode always; then `outcome` tells what would have been. */
  allowed: boolean
  outcome: Outcome
  /** All policies, in order. */
  policies: PolicyState[]
}

/** One check. */
export interface CheckOptions {
  /** Units; default what the rule says. 0 only asks. */
  cost?: number
  /** The limit of this check alone; required where the option `limit` is a function. */
  limit?: number
  /** With `rules`: the method that decides which of them holds. */
  method?: string
  /** With `rules`: the path that decides which of them holds. */
  path?: string
}

/** Counts since the start. */
export interface Stats {
  allowed: number
  denied: number
  allowlisted: number
  denylisted: number
  degraded: number
  /** Keys held. */
  keys: number
  /** Keys that were put out before their time because memory was full. */
  evicted: number
  /** Checks that were counted in the bucket that keys share when memory is full of exhausted ones. */
  overflowed: number
  /** Keys blocked now. */
  blocked: number
  /** Checks that the store did not answer, by error code; memory always answers. */
  misses: Record<string, number>
  /** Batches sent to a store outside the process; none in memory. */
  batches: number
}

/** Bad arguments reject with a TypeError or RangeError; a closed limiter with `ERR_SLUICEGATE_CLOSED`. */
export class RateLimiter {
  private constructor()
  /** Decides, and counts if it allows. */
  check(key: string, options?: CheckOptions): Promise<Decision>
  /** The same at once; in memory only. */
  checkSync(key: string, options?: CheckOptions): Decision
  /** What `check` would say; takes and writes nothing. */
  peek(key: string, options?: CheckOptions): Promise<Decision>
  /** Gives units back; default 1. */
  refund(key: string, cost?: number, options?: Pick<CheckOptions, 'method' | 'path'>): Promise<void>
  /** Forgets what was counted for a key. */
  reset(key: string): Promise<void>
  /** Denies a key for a time, 1 ms to 366 days. `ERR_SLUICEGATE_INVALID_DURATION`. */
  block(key: string, milliseconds: number, label?: string): Promise<void>
  /** Ends a block; tells whether there was one. */
  unblock(key: string): Promise<boolean>
  /** The key that a request counts under: a framework's request, a WHATWG one, or an object with `ip` and `headers`. */
  keyOf(req: object): Promise<string>
  stats(): Stats
  /** Ends the limiter. An idle one never keeps the process alive, closed or not. */
  close(): Promise<void>
  toJSON(): object
}

/** The limiter for jobs, sockets, GraphQL, anything that has a key. */
export function createRateLimiter(options: LimiterOptions): RateLimiter

/** A request that may not pass, for the app's error handler. */
export class DeniedError extends Error {
  private constructor()
  code: 'ERR_SLUICEGATE_DENIED' | 'ERR_SLUICEGATE_DENYLISTED'
  statusCode: 429 | 403
  status: 429 | 403
  decision: Decision
}

/** Of Express, Connect or node:http. */
export interface ExpressMiddleware {
  (req: IncomingMessage, res: ServerResponse, next: (error?: any) => void): void
  limiter: RateLimiter
  keyOf(req: object): Promise<string>
}

/** Middleware for Express 4 and 5, and anything that calls `(req, res, next)`. */
export function expressRateLimit<Req = any, Res = any>(options: ExpressOptions<Req, Res>): ExpressMiddleware

/** A Fastify hook: `preHandler: app.sluicegate()`. */
export type FastifyHandler = (request: any, reply: any, done: (error?: any) => void) => void

/** What the plugin puts on an app. */
export interface FastifySluicegate {
  /** The plugin's check for places that no hook reaches; with options, another limiter over them. */
  (options?: RouteOptions): FastifyHandler
  limiter: RateLimiter
  keyOf(request: object): Promise<string>
}

/** Fastify 4 and 5: `await app.register(rateLimitPlugin, { limit: 100, window: '1m' })`. */
export const rateLimitPlugin: {
  (instance: any, options: FastifyOptions): Promise<void>
  default: typeof rateLimitPlugin
  rateLimitPlugin: typeof rateLimitPlugin
}

// @ts-ignore: a project without Fastify has nothing to add to, and no error either
declare module 'fastify' {
  interface FastifyContextConfig {
    /** Options of this route, or `false`: not limited. */
    sluicegate?: RouteOptions | false
  }

  interface FastifyInstance {
    sluicegate: FastifySluicegate
  }

  interface FastifyRequest {
    /** The decision about this request; of several limiters, the strictest. */
    rateLimit?: Decision
  }
}

declare global {
  namespace Express {
    interface Request {
      /** The decision about this request; of several limiters, the strictest. */
      rateLimit?: Decision
    }
  }
}
