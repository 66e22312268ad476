// The records of the service, as docs/contract.md describes them. Dates are written YYYY-MM-DD and
// timestamps as RFC 3339 in UTC. A field is null where the registry has no value.

export type CompanyStatus = "ACTIVE" | "INACTIVE" | "DISSOLVED" | "STRUCK_OFF" | "SUSPENDED" | "UNDER_LIQUIDATION";
export type DirectorStatus = "ACTIVE" | "RESIGNED" | "REMOVED" | "DISQUALIFIED";
export type LlpStatus = "ACTIVE" | "INACTIVE" | "DISSOLVED" | "SUSPENDED";
export type PartnerStatus = "ACTIVE" | "INACTIVE" | "RETIRED";

/** The registry's record of a company. Amounts are whole rupees. */
export interface Company {
  cin: string;
  company_name: string;
  registration_no: string;
  status: CompanyStatus;
  incorporation_date: string | null;
  category: string | null;
  sub_category: string | null;
  class: string | null;
  roc: string | null;
  authorized_capital: number | null;
  paid_up_capital: number | null;
  listed: boolean | null;
  activity: string | null;
  state: string | null;
  district: string | null;
  pincode: string | null;
  contact: Contact;
  /** At most 50, first appointed first. */
  directors: DirectorItem[];
  last_updated: string | null;
}

/** How to reach a company. E-mail and phone depend on the plan, and are masked in the sandbox. */
export interface Contact {
  address: string | null;
  email: string | null;
  phone: string | null;
  website: string | null;
}

/** A current director in a company's record. */
export interface DirectorItem {
  din: string;
  name: string;
  designation: string | null;
  appointment_date: string | null;
}

/** A person who holds or held offices at companies. */
export interface Director {
  din: string;
  name: string;
  status: DirectorStatus | null;
  /** At most 10. */
  linked_companies: LinkedCompany[];
  linked_companies_total: number;
}

/** A company at which a director holds office. */
export interface LinkedCompany {
  cin: string;
  company_name: string;
  status: CompanyStatus;
  designation: string | null;
  appointment_date: string | null;
}

/** The registry's record of a limited liability partnership. */
export interface Llp {
  llpin: string;
  llp_name: string;
  status: LlpStatus;
  incorporation_date: string | null;
  state: string | null;
  district: string | null;
  pincode: string | null;
  address: string | null;
  activity: string | null;
  contribution: number | null;
  /** At most 50, last joined first. */
  partners: Partner[];
  partners_total: number;
  last_updated: string | null;
}

/** A present or past partner of an LLP. */
export interface Partner {
  din: string | null;
  name: string;
  status: PartnerStatus;
  joined_on: string | null;
  left_on: string | null;
}

/** One result of a search: a CIN, or an LLPIN. */
export interface Match {
  value: string;
  label: string;
  type: "company" | "llp";
}

/** What is left of the current minute. While an edge can't know it, it sends the limit alone. */
export interface RateLimit {
  limit: number | null;
  remaining: number | null;
  /** Seconds until the minute ends. */
  reset: number | null;
}

/** A success: data, and what the service said beside it. */
export interface Result<T> {
  data: T;
  /** What support needs to find the call. */
  requestId: string;
  /** The balance after this call; null with the sandbox key. */
  creditsRemaining: number | null;
  sandbox: boolean;
  rateLimit: RateLimit;
  /** The state of the registry that was read. */
  release: string;
  /** An earlier attempt had been charged already, so this one was not. */
  replayed: boolean;
  /** Registered names that were perhaps meant: at most three, only beside an empty search. */
  suggestions: string[];
  attempts: number;
}
