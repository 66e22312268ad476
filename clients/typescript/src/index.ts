export { Client, DEFAULT_BASE_URL, SANDBOX_KEY } from "./client.js";
export type { CallOptions, ClientOptions, SearchOptions } from "./client.js";
export { ApiError, RegedgeError, UnansweredError } from "./errors.js";
export type { Code } from "./errors.js";
export type {
  Company,
  CompanyStatus,
  Contact,
  Director,
  DirectorItem,
  DirectorStatus,
  LinkedCompany,
  Llp,
  LlpStatus,
  Match,
  Partner,
  PartnerStatus,
  RateLimit,
  Result,
} from "./resources.js";
