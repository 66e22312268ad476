import type { RateLimit } from "./resources.js";

/** The codes of the contract. Later versions of the service may add some. */
export type Code =
  | "invalid_request"
  | "invalid_cin"
  | "invalid_din"
  | "invalid_llpin"
  | "invalid_query"
  | "invalid_idempotency_key"
  | "missing_api_key"
  | "invalid_api_key"
  | "insufficient_credits"
  | "address_not_allowed"
  | "plan_without_api_access"
  | "account_suspended"
  | "company_not_found"
  | "director_not_found"
  | "llp_not_found"
  | "route_not_found"
  | "method_not_allowed"
  | "request_timeout"
  | "uri_too_long"
  | "idempotency_key_reused"
  | "rate_limit_exceeded"
  | "key_credits_exceeded"
  | "monthly_volume_exceeded"
  | "not_found_cap_exceeded"
  | "header_too_large"
  | "internal_error"
  | "metering_unavailable"
  | "registry_unavailable"
  | "overloaded"
  | (string & {});

/** The base of this package's errors, but for TypeError and RangeError for unusable options. */
export class RegedgeError extends Error {
  override name = "RegedgeError";
}

/** An answer that is not a success (RFC 9457). */
export class ApiError extends RegedgeError {
  override name = "ApiError";

  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** "" when the answer is not one of the service, such as a proxy's page. */
    readonly code: Code,
    /** The address of a page that explains the code. */
    readonly type: string,
    /** For people; may change. */
    readonly title: string,
    /** For people; may change. */
    readonly detail: string,
    /** What support needs to find the call; "" when the answer has none. */
    readonly requestId: string,
    /** Seconds that the service asks to wait, or 0. */
    readonly retryAfter: number,
    readonly rateLimit: RateLimit,
    readonly attempts: number,
    /**
     * Of the call. An attempt before this answer may have been charged though its own was lost: the same
     * call with this key is not charged again within 10 minutes at the same edge.
     */
    readonly idempotencyKey = "",
  ) {
    super(
      `${status} ${code || "an answer that is not of this service"}` +
        (detail && `: ${detail}`) +
        (requestId && ` (request ${requestId})`),
    );
  }
}

/**
 * A call of which no whole answer arrived. The service may have answered and charged it. The same
 * call with this idempotencyKey is not charged again within 10 minutes at the same edge.
 */
export class UnansweredError extends RegedgeError {
  override name = "UnansweredError";

  constructor(
    cause: unknown,
    readonly idempotencyKey: string,
    readonly attempts: number,
  ) {
    super(`no answer after ${attempts} attempts: ${reason(cause)}`, { cause });
  }
}

/** Says why a fetch failed: Node.js puts that into the cause of its error, which itself says "fetch failed". */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return `${error.message}: ${cause.message || (cause as { code?: string }).code || cause.name}`;
}
